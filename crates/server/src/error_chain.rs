//! Prints an error with its causes, each once: many errors already repeat their cause in their own
//! text.

/// The error and its causes, the outermost first, without causes that the text already contains.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut described = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let text = text.trim();
        if described.is_empty() {
            described.push_str(text);
        } else if described != text && !described.contains(&format!(": {text}")) {
            described.push_str(": ");
            described.push_str(text);
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let refused = std::io::Error::other("connection refused");
        let error = anyhow::Error::from(refused)
            .context("the database is away: connection refused")
            .context("cannot use the database");
        assert_eq!(
            describe(&error),
            "cannot use the database: the database is away: connection refused"
        );
        let other: Result<(), _> = Err(std::io::Error::other("no")).context("cannot read x");
        assert_eq!(describe(&other.unwrap_err()), "cannot read x: no");
    }
}
