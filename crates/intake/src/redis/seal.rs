//! A message as it lies in Redis. Whoever can write there could make one up, so each proves that a
//! node of ours accepted it. One that is put there again is saved only once, as any retry.

use std::sync::Arc;

use nexo_chat::model::Draft;

use crate::accepted::Accepted;

const VERSION: u8 = 1;
const MAC_LEN: usize = 16;

/// Why a message is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("it has another version")]
    Version,
    #[error("it is not sealed with this system's key")]
    Forged,
    #[error("it cannot be read")]
    Unreadable,
}

/// Seals messages with a key that all nodes share.
pub(super) struct Seal {
    key: [u8; 32],
}

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key: blake3::derive_key("nexo accepted message v1", &key) }
    }

    /// A message as bytes.
    pub(super) fn close(&self, message: &Accepted) -> Vec<u8> {
        let mut bytes = vec![0; 1 + MAC_LEN];
        bytes[0] = VERSION;
        let mut bytes = postcard::to_extend(&message.draft, bytes)
            .expect("names, numbers and bytes always serialize");
        let mac = self.mac(&bytes[1 + MAC_LEN..]);
        bytes[1..=MAC_LEN].copy_from_slice(&mac.as_bytes()[..MAC_LEN]);
        bytes
    }

    /// The message that these bytes are.
    pub(super) fn open(&self, bytes: &[u8]) -> Result<Arc<Accepted>, Refusal> {
        let (version, rest) = bytes.split_first().ok_or(Refusal::Version)?;
        if *version != VERSION {
            return Err(Refusal::Version);
        }
        let (mac, body) = rest.split_at_checked(MAC_LEN).ok_or(Refusal::Forged)?;
        let ours = self.mac(body);
        let mut theirs = *ours.as_bytes();
        theirs[..MAC_LEN].copy_from_slice(mac);
        // Hashes are compared in a time that tells nothing.
        if blake3::Hash::from_bytes(theirs) != ours {
            return Err(Refusal::Forged);
        }
        let draft: Draft = postcard::from_bytes(body).map_err(|_| Refusal::Unreadable)?;
        Ok(Arc::new(Accepted::new(draft)))
    }

    fn mac(&self, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[VERSION]).update(body).finalize()
    }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, ConnectionId, ConversationId, Millis, UserId};
    use nexo_chat::model::Content;

    use super::*;

    fn message() -> Accepted {
        let (ann, bob) = (UserId::parse("ann").unwrap(), UserId::parse("bob").unwrap());
        Accepted::new(Draft {
            conversation: ConversationId::private(&ann, &bob),
            sender: ann,
            client_id: ClientMsgId::parse("c-1").unwrap(),
            content: Content::text("words"),
            cleaned: Some(Content::text("*****")),
            sent_at: Millis(5),
            origin: Some(ConnectionId(7)),
            marks_read: true,
        })
    }

    #[test]
    fn what_was_accepted_is_read_as_it_was() {
        let seal = Seal::new([3; 32]);
        assert_eq!(*seal.open(&seal.close(&message())).unwrap(), message());
    }

    #[test]
    fn nobody_else_can_make_one_or_change_it() {
        let seal = Seal::new([3; 32]);
        let bytes = seal.close(&message());
        assert_eq!(Seal::new([4; 32]).open(&bytes), Err(Refusal::Forged));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(seal.open(&changed).is_err(), "byte {at}");
            assert!(seal.open(&bytes[..at]).is_err(), "first {at} bytes");
        }
    }
}
