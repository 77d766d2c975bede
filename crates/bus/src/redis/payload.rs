//! What travels between nodes. Whoever can write to Redis could publish too, so each payload proves
//! that it comes from a node of ours, was meant for this one, and is not an old one come again.

use nexo_chat::command::Event;

use super::names::NodeId;

const VERSION: u8 = 2;
const MAC_LEN: usize = 16;

/// Seals what is sent and opens what is heard, with a key that all nodes share.
pub(crate) struct Seal {
    key: [u8; 32],
}

/// A payload that is genuine.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Who sent it.
    pub(crate) from: NodeId,
    /// Which one of theirs to this node: 1, 2, 3 … A missing number is a lost payload.
    pub(crate) number: u64,
    /// What happened, in order.
    pub(crate) events: Vec<Event>,
}

/// Why a payload is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it has another version")]
    Version,
    #[error("it is not sealed with this system's key, or not for this node")]
    Forged,
    #[error("it cannot be read")]
    Unreadable,
    #[error("it was heard before")]
    Repeated,
}

impl Seal {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { key: blake3::derive_key("nexo bus payload v1", &key) }
    }

    /// Closes events that were encoded by [`encode`] into a payload for one node.
    pub(crate) fn close(
        &self,
        from: NodeId,
        to: NodeId,
        number: u64,
        events: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let bytes = events.iter().map(|event| event.len()).sum::<usize>();
        let mut payload = Vec::with_capacity(bytes + 64);
        payload.push(VERSION);
        payload.extend([0; MAC_LEN]);
        // The head, then the number of events and the events: together the tuple that is read.
        let mut payload = postcard::to_extend(&(from, number, events.len()), payload).ok()?;
        for event in events {
            payload.extend_from_slice(event);
        }
        let mac = self.mac(to, &payload[1 + MAC_LEN..]);
        payload[1..=MAC_LEN].copy_from_slice(&mac);
        Some(payload)
    }

    /// Opens a payload that came to `to`.
    pub(crate) fn open(&self, to: NodeId, payload: &[u8]) -> Result<Opened, Refusal> {
        let (version, rest) = payload.split_first().ok_or(Refusal::Version)?;
        if *version != VERSION {
            return Err(Refusal::Version);
        }
        let (mac, body) = rest.split_at_checked(MAC_LEN).ok_or(Refusal::Forged)?;
        if !is_same(&self.mac(to, body), mac) {
            return Err(Refusal::Forged);
        }
        let (from, number, events) = postcard::from_bytes(body).map_err(|_| Refusal::Unreadable)?;
        Ok(Opened { from, number, events })
    }

    fn mac(&self, to: NodeId, body: &[u8]) -> [u8; MAC_LEN] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[VERSION]).update(&to.0).update(body);
        let mut mac = [0; MAC_LEN];
        hasher.finalize_xof().fill(&mut mac);
        mac
    }
}

/// An event in the form it has inside a payload: once for all the nodes it goes to.
pub(crate) fn encode(event: &Event) -> Option<Vec<u8>> {
    postcard::to_stdvec(event).ok()
}

/// Compares in a time that tells nothing, as hashes of that library do.
fn is_same(ours: &[u8; MAC_LEN], theirs: &[u8]) -> bool {
    let padded = |mac: &[u8]| {
        let mut all = [0; 32];
        all[..MAC_LEN].copy_from_slice(mac);
        blake3::Hash::from_bytes(all)
    };
    padded(ours) == padded(theirs)
}

#[cfg(test)]
mod tests {
    use nexo_chat::Reason;
    use nexo_chat::command::Logins;
    use nexo_chat::ids::UserId;

    use super::*;

    const HERE: NodeId = NodeId([1; 16]);
    const THERE: NodeId = NodeId([2; 16]);

    fn event(user: &str) -> Event {
        let user = UserId::parse(user).unwrap();
        Event::Ended { user, logins: Logins::All, reason: Reason::Kicked }
    }

    fn closed(seal: &Seal) -> Vec<u8> {
        let events: Vec<Vec<u8>> =
            ["ann", "bob"].iter().map(|user| encode(&event(user)).unwrap()).collect();
        let events: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
        seal.close(HERE, THERE, 300, &events).unwrap()
    }

    #[test]
    fn what_is_closed_is_opened_there_and_nowhere_else() {
        let seal = Seal::new([5; 32]);
        let opened = seal.open(THERE, &closed(&seal)).unwrap();
        assert_eq!((opened.from, opened.number), (HERE, 300));
        let told = format!("{:?}", opened.events);
        assert_eq!(told, format!("{:?}", [event("ann"), event("bob")]));
        assert_eq!(seal.open(HERE, &closed(&seal)).unwrap_err(), Refusal::Forged);
        assert_eq!(Seal::new([6; 32]).open(THERE, &closed(&seal)).unwrap_err(), Refusal::Forged);
    }

    #[test]
    fn no_bit_can_be_changed_and_nothing_can_be_cut_off() {
        let seal = Seal::new([5; 32]);
        let payload = closed(&seal);
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1;
            assert!(seal.open(THERE, &changed).is_err(), "byte {at}");
            assert!(seal.open(THERE, &payload[..at]).is_err(), "first {at} bytes");
        }
    }
}
