//! A message on its way into an engine.

use nexo_chat::ids::{MessageId, UserId};
use nexo_chat::model::{Draft, Fingerprint};

/// A draft with what can be worked out before its turn comes.
pub(crate) struct Prepared {
    pub(crate) draft: Draft,
    pub(crate) id: MessageId,
    pub(crate) fingerprint: Fingerprint,
}

impl Prepared {
    /// Hashes are worked out by the caller's thread: whoever decides has enough to do.
    pub(crate) fn new(draft: Draft) -> Self {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        Self { draft, id, fingerprint }
    }

    /// About how many bytes it will take.
    pub(crate) fn bytes(&self) -> usize {
        let content = &self.draft.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len());
        256 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * UserId::LEN_MAX
    }
}
