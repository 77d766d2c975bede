//! An accepted message as bytes in Redis. Each is sealed, so that only a node of this system can
//! write one. A copy that is put there again is saved only once, like any retry.

use std::sync::Arc;

use nexo_chat::model::Draft;
use nexo_redis_link::{Seal, SealError};

use crate::accepted::AcceptedMessage;

const VERSION: u8 = 1;

/// Encodes and decodes messages with a key that all nodes share.
pub(super) struct MessageCodec {
    seal: Seal,
}

impl MessageCodec {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { seal: Seal::new("nexo accepted message v1", &key, VERSION) }
    }

    pub(super) fn encode(&self, message: &AcceptedMessage) -> Vec<u8> {
        let mut bytes = postcard::to_extend(&message.draft, self.seal.start(0))
            .expect("names, numbers and bytes always serialize");
        self.seal.finish(&[], &mut bytes);
        bytes
    }

    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Arc<AcceptedMessage>, SealError> {
        let body = self.seal.open(&[], bytes)?;
        let draft: Draft = postcard::from_bytes(body).map_err(|_| SealError::Unreadable)?;
        Ok(Arc::new(AcceptedMessage::new(draft)))
    }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, ConnectionId, ConversationId, Millis, UserId};
    use nexo_chat::model::Content;

    use super::*;

    fn message() -> AcceptedMessage {
        let (ann, bob) = (UserId::parse("ann").unwrap(), UserId::parse("bob").unwrap());
        AcceptedMessage::new(Draft {
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
        let codec = MessageCodec::new([3; 32]);
        assert_eq!(*codec.decode(&codec.encode(&message())).unwrap(), message());
    }

    #[test]
    fn nobody_else_can_make_one_or_change_it() {
        let codec = MessageCodec::new([3; 32]);
        let bytes = codec.encode(&message());
        assert_eq!(MessageCodec::new([4; 32]).decode(&bytes), Err(SealError::Forged));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(codec.decode(&changed).is_err(), "byte {at}");
            assert!(codec.decode(&bytes[..at]).is_err(), "first {at} bytes");
        }
    }
}
