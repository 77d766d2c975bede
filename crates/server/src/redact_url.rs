//! Removes passwords from URLs before they are logged or printed.

/// The URL without its password and query.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((secret, rest)) => {
            let user = secret.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…@{rest}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, expect) in [
            ("embedded", "embedded"),
            ("mysql://db/nexo", "mysql://db/nexo"),
            ("mysql://nexo:a@b:c@db:3306/nexo", "mysql://nexo:…@db:3306/nexo"),
            ("redis://:secret@cache", "redis://:…@cache"),
            ("redis://cache/0?password=secret", "redis://cache/0"),
        ] {
            assert_eq!(without_password(url), expect);
        }
    }
}
