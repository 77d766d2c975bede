//! The address of the client, also behind proxies.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::ip_network::{IpNetwork, counted_address};

/// The peer, or the last address in `X-Forwarded-For` that no trusted proxy has: a client can write the entries
/// before it. In the form in which clients are counted.
pub(super) fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNetwork]) -> IpAddr {
    let forwarded =
        headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = forwarded.flat_map(|value| value.split(',')).map(str::trim).collect();
    // A dual-stack listener shows IPv4 peers as IPv6: compare them in one form.
    let mut from = peer.to_canonical();
    for hop in hops.iter().rev() {
        match hop.parse::<IpAddr>() {
            Ok(before) if trusted.iter().any(|network| network.contains(from)) => {
                from = before.to_canonical();
            }
            _ => break,
        }
    }
    counted_address(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, forwarded: &[&str], expect: &str) {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let trusted: [IpNetwork; 3] =
            ["10.0.0.1", "10.0.0.2", "fd00::/8"].map(|network| network.parse().unwrap());
        let from = client_ip(peer.parse().unwrap(), &headers, &trusted);
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
        check("fd00::7", &["9.9.9.9, fd12::1"], "9.9.9.9");
        check("fe80::7", &["9.9.9.9"], "fe80::");
    }

    #[test]
    fn a_household_counts_as_one() {
        check("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::");
        check("::ffff:1.2.3.4", &[], "1.2.3.4");
    }
}
