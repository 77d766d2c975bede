//! The payloads that nodes send each other. A payload is sealed for one recipient and numbered, so a
//! node accepts neither a forged payload, nor one meant for another node, nor an old one sent again.

use nexo_chat::event::Event;
use nexo_redis_link::{NodeId, Seal, SealError};

const VERSION: u8 = 2;

/// Encodes and decodes payloads with a key that all nodes share.
pub(crate) struct PayloadCodec {
    seal: Seal,
}

/// A payload whose seal was checked.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) from: NodeId,
    /// Counts the payloads from this sender to this node: 1, 2, 3 … A missing number is a lost
    /// payload.
    pub(crate) number: u64,
    pub(crate) events: Vec<Event>,
}

impl PayloadCodec {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { seal: Seal::new("nexo bus payload v1", &key, VERSION) }
    }

    /// Puts events that [`encode_event`] encoded into a payload for one node.
    pub(crate) fn encode(
        &self,
        from: NodeId,
        to: NodeId,
        number: u64,
        events: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let bytes = events.iter().map(|event| event.len()).sum::<usize>();
        let payload = self.seal.start(bytes + 48);
        // The head ends with the number of events, as a sequence does: `decode` reads it and the
        // events as one tuple.
        let mut payload = postcard::to_extend(&(from, number, events.len()), payload).ok()?;
        for event in events {
            payload.extend_from_slice(event);
        }
        self.seal.finish(&to.0, &mut payload);
        Some(payload)
    }

    /// Checks and reads a payload that the node `to` received.
    pub(crate) fn decode(&self, to: NodeId, payload: &[u8]) -> Result<Payload, SealError> {
        let body = self.seal.open(&to.0, payload)?;
        let (from, number, events) =
            postcard::from_bytes(body).map_err(|_| SealError::Unreadable)?;
        Ok(Payload { from, number, events })
    }
}

/// Encodes an event once, for the payloads to all nodes it goes to.
pub(crate) fn encode_event(event: &Event) -> Option<Vec<u8>> {
    postcard::to_stdvec(event).ok()
}

#[cfg(test)]
mod tests {
    use nexo_chat::Reason;
    use nexo_chat::event::Logins;
    use nexo_chat::ids::UserId;

    use super::*;

    const HERE: NodeId = NodeId([1; 16]);
    const THERE: NodeId = NodeId([2; 16]);

    fn event(user: &str) -> Event {
        let user = UserId::parse(user).unwrap();
        Event::Ended { user, logins: Logins::All, reason: Reason::Kicked }
    }

    fn payload_of(codec: &PayloadCodec) -> Vec<u8> {
        let events: Vec<Vec<u8>> =
            ["ann", "bob"].iter().map(|user| encode_event(&event(user)).unwrap()).collect();
        let events: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
        codec.encode(HERE, THERE, 300, &events).unwrap()
    }

    #[test]
    fn a_payload_is_read_where_it_was_sent_and_nowhere_else() {
        let codec = PayloadCodec::new([5; 32]);
        let payload = codec.decode(THERE, &payload_of(&codec)).unwrap();
        assert_eq!((payload.from, payload.number), (HERE, 300));
        let decoded = format!("{:?}", payload.events);
        assert_eq!(decoded, format!("{:?}", [event("ann"), event("bob")]));
        assert_eq!(codec.decode(HERE, &payload_of(&codec)).unwrap_err(), SealError::Forged);
        assert_eq!(
            PayloadCodec::new([6; 32]).decode(THERE, &payload_of(&codec)).unwrap_err(),
            SealError::Forged
        );
    }

    #[test]
    fn no_bit_can_be_changed_and_nothing_can_be_cut_off() {
        let codec = PayloadCodec::new([5; 32]);
        let payload = payload_of(&codec);
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1;
            assert!(codec.decode(THERE, &changed).is_err(), "byte {at}");
            assert!(codec.decode(THERE, &payload[..at]).is_err(), "first {at} bytes");
        }
    }
}
