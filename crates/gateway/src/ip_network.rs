//! A network of IP addresses, such as `10.0.0.0/8`, and the key under which clients are counted.

use std::net::IpAddr;
use std::str::FromStr;

/// An address with its prefix length; a single address is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    #[error("is not an IP address such as 10.0.0.1 or a network such as 10.0.0.0/8")]
    Malformed,
    #[error(
        "has bits beyond its prefix: write the first address of the network, such as 10.0.0.0/8"
    )]
    HostBits,
    #[error("is every address: each client could choose the address it counts as")]
    Everything,
}

impl IpNetwork {
    /// Whether the address is in the network. IPv4 addresses in their IPv6 form are IPv4 addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                (network.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                (network.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    fn has_host_bits(&self) -> bool {
        let (bits, width) = match self.address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        bits.trailing_zeros() < width - u32::from(self.prefix) && bits != 0
    }
}

impl From<IpAddr> for IpNetwork {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for IpNetwork {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let Some((address, prefix)) = text.split_once('/') else {
            return text.parse::<IpAddr>().map(Self::from).map_err(|_| NetworkError::Malformed);
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Malformed)?;
        let prefix: u8 = prefix.parse().map_err(|_| NetworkError::Malformed)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        if prefix > width {
            return Err(NetworkError::Malformed);
        }
        let network = match address.to_canonical() {
            // `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
            v4 @ IpAddr::V4(_) if address.is_ipv6() => {
                let prefix = prefix.checked_sub(96).ok_or(NetworkError::HostBits)?;
                Self { address: v4, prefix }
            }
            address => Self { address, prefix },
        };
        match network {
            Self { prefix: 0, .. } => Err(NetworkError::Everything),
            _ if network.has_host_bits() => Err(NetworkError::HostBits),
            _ => Ok(network),
        }
    }
}

/// The address under which a client is counted: an IPv6 address is cut to its /64, since one household has all of
/// those, and an IPv4 address in its IPv6 form is an IPv4 address.
pub(crate) fn counted_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
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

    fn check(network: &str, address: &str, expect: bool) {
        let network: IpNetwork = network.parse().unwrap();
        assert_eq!(network.contains(address.parse().unwrap()), expect, "{network:?} {address}");
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "::ffff:10.1.2.3", true);
        check("172.30.99.2/32", "172.30.99.2", true);
        check("192.168.4.0/22", "192.168.7.255", true);
        check("192.168.4.0/22", "192.168.8.0", false);
        check("fd00::/8", "fd12:3456::1", true);
        check("fd00::/8", "fe80::1", false);
        check("fd00::/8", "10.0.0.1", false);
        check("::1", "::1", true);
        check("::ffff:10.0.0.0/104", "10.9.9.9", true);
    }

    #[test]
    fn what_is_no_network_is_refused_with_its_reason() {
        for (text, expect) in [
            ("proxy", NetworkError::Malformed),
            ("", NetworkError::Malformed),
            ("10.0.0.0/", NetworkError::Malformed),
            ("10.0.0.0/33", NetworkError::Malformed),
            ("10.0.0.0/-1", NetworkError::Malformed),
            ("10.0.0.0/255.0.0.0", NetworkError::Malformed),
            ("fd00::/129", NetworkError::Malformed),
            ("10.0.0.1/8", NetworkError::HostBits),
            ("fd00::1/64", NetworkError::HostBits),
            ("0.0.0.0/0", NetworkError::Everything),
            ("::/0", NetworkError::Everything),
        ] {
            assert_eq!(text.parse::<IpNetwork>(), Err(expect), "{text}");
        }
    }

    #[test]
    fn a_household_counts_as_one() {
        for (address, expect) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
            ("1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(
                counted_address(address.parse().unwrap()),
                expect.parse::<IpAddr>().unwrap()
            );
        }
    }
}
