//! Bytes that prove which system wrote them. Anybody who can write to Redis could put bytes there,
//! so every node seals what it writes with a key that only the nodes of this system have.

const MAC_LEN: usize = 16;
/// A version and a MAC.
const HEADER_LEN: usize = 1 + MAC_LEN;

/// Why sealed bytes are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("it has another version")]
    Version,
    #[error("it is not sealed with this system's key, or not for this node")]
    Forged,
    #[error("it cannot be read")]
    Unreadable,
}

/// Seals bytes: a version, a keyed hash (MAC), then the body. It does not encrypt.
pub struct Seal {
    key: [u8; 32],
    version: u8,
}

impl Seal {
    /// Derives its own key from `key`, so that bytes sealed for one `purpose` are not accepted for
    /// another.
    pub fn new(purpose: &str, key: &[u8; 32], version: u8) -> Self {
        Self { key: blake3::derive_key(purpose, key), version }
    }

    /// A buffer with room for the header; the body is appended to it, then [`Self::finish`] seals it.
    pub fn start(&self, capacity: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + capacity);
        bytes.push(self.version);
        bytes.extend([0; MAC_LEN]);
        bytes
    }

    /// Writes the MAC over the body and the `recipient`, who must name itself to open it.
    pub fn finish(&self, recipient: &[u8], bytes: &mut [u8]) {
        let mac = self.mac(recipient, &bytes[HEADER_LEN..]);
        bytes[1..HEADER_LEN].copy_from_slice(&mac.as_bytes()[..MAC_LEN]);
    }

    /// The body, if the seal is genuine and was made for `recipient`.
    pub fn open<'a>(&self, recipient: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], SealError> {
        let (version, rest) = bytes.split_first().ok_or(SealError::Version)?;
        if *version != self.version {
            return Err(SealError::Version);
        }
        let (mac, body) = rest.split_at_checked(MAC_LEN).ok_or(SealError::Forged)?;
        let ours = self.mac(recipient, body);
        let mut theirs = *ours.as_bytes();
        theirs[..MAC_LEN].copy_from_slice(mac);
        // `blake3::Hash` compares in constant time, so the time taken reveals nothing of the MAC.
        if blake3::Hash::from_bytes(theirs) == ours { Ok(body) } else { Err(SealError::Forged) }
    }

    fn mac(&self, recipient: &[u8], body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[self.version]).update(recipient).update(body).finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(seal: &Seal) -> Vec<u8> {
        let mut bytes = seal.start(0);
        bytes.extend_from_slice(b"words");
        seal.finish(b"there", &mut bytes);
        bytes
    }

    #[test]
    fn a_seal_holds_for_one_key_purpose_version_and_recipient() {
        let seal = Seal::new("test", &[5; 32], 1);
        let bytes = sealed(&seal);
        assert_eq!(seal.open(b"there", &bytes), Ok(&b"words"[..]));
        assert_eq!(seal.open(b"here", &bytes), Err(SealError::Forged));
        let forged = |seal: Seal| seal.open(b"there", &bytes).unwrap_err();
        assert_eq!(forged(Seal::new("test", &[6; 32], 1)), SealError::Forged);
        assert_eq!(forged(Seal::new("other", &[5; 32], 1)), SealError::Forged);
        assert_eq!(forged(Seal::new("test", &[5; 32], 2)), SealError::Version);
    }

    /// The bytes are in Redis while nodes of two releases run: they never change.
    #[test]
    fn the_bytes_are_those_of_earlier_releases() {
        let mut expect = blake3::Hasher::new_keyed(&blake3::derive_key("test", &[5; 32]));
        expect.update(&[1]).update(b"there").update(b"words");
        let mut mac = [0; MAC_LEN];
        expect.finalize_xof().fill(&mut mac);
        let bytes = sealed(&Seal::new("test", &[5; 32], 1));
        assert_eq!(bytes, [&[1], &mac[..], b"words"].concat());
    }
}
