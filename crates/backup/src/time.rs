//! Times as people write them.

use std::time::{Duration, UNIX_EPOCH};

/// Milliseconds since 1970 as `2026-11-18T04:00:00Z`.
pub fn format_time(at_ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(at_ms)).to_string()
}

/// Reads `2026-11-18T04:00:00Z`, with or without fractions of a second.
pub fn parse_time(text: &str) -> Option<u64> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        assert_eq!(parse_time("2026-11-18T04:00:00Z"), Some(1_794_974_400_000));
        assert_eq!(parse_time("2026-11-18T04:00:00.250Z"), Some(1_794_974_400_250));
        assert_eq!(format_time(1_794_974_400_250), "2026-11-18T04:00:00Z");
        assert_eq!(parse_time("yesterday"), None);
    }
}
