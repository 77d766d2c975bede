//! An error in words, each cause once: many errors already tell in their own text what caused them.

/// The error and its causes, from the outermost in, without what was said before.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let text = text.trim();
        if told.is_empty() {
            told.push_str(text);
        } else if told != text && !told.contains(&format!(": {text}")) {
            told.push_str(": ");
            told.push_str(text);
        }
    }
    told
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
            told(&error),
            "cannot use the database: the database is away: connection refused"
        );
        let other: Result<(), _> = Err(std::io::Error::other("no")).context("cannot read x");
        assert_eq!(told(&other.unwrap_err()), "cannot read x: no");
    }
}
