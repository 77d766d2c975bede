//! Where a request comes from.

use std::net::IpAddr;

use axum::http::HeaderMap;

/// Where a request comes from: the peer, or what a trusted proxy says, read from the end, since
/// anybody may write the beginning. A household's IPv6 addresses count as one.
pub(super) fn origin(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    let said = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = said.flat_map(|value| value.split(',')).map(str::trim).collect();
    // A listener for both families shows IPv4 peers as IPv6: compare them in one form.
    let mut from = peer.to_canonical();
    for hop in hops.iter().rev() {
        match hop.parse::<IpAddr>() {
            Ok(before) if trusted.contains(&from) => from = before.to_canonical(),
            _ => break,
        }
    }
    match from {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, forwarded: &[&str], expect: &str) {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let trusted = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let from = origin(peer.parse().unwrap(), &headers, &trusted);
        assert_eq!(from, expect.parse::<IpAddr>().unwrap(), "{peer} {forwarded:?}");
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        check("1.2.3.4", &[], "1.2.3.4");
        check("1.2.3.4", &["9.9.9.9"], "1.2.3.4");
        check("10.0.0.1", &["9.9.9.9"], "9.9.9.9");
        check("10.0.0.1", &["6.6.6.6, 9.9.9.9"], "9.9.9.9");
        check("10.0.0.1", &["9.9.9.9, 10.0.0.2"], "9.9.9.9");
        check("10.0.0.1", &["6.6.6.6", "9.9.9.9"], "9.9.9.9");
        check("10.0.0.1", &["nonsense"], "10.0.0.1");
        check("::ffff:10.0.0.1", &["::ffff:9.9.9.9"], "9.9.9.9");
    }

    #[test]
    fn a_household_counts_as_one() {
        check("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::");
        check("::ffff:1.2.3.4", &[], "1.2.3.4");
    }
}
