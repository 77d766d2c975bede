//! A draft with what is computed before the committer takes it.

use nexo_chat::ids::{MessageId, UserId};
use nexo_chat::model::{Draft, Fingerprint};

pub(crate) struct Prepared {
    pub(crate) draft: Draft,
    pub(crate) id: MessageId,
    pub(crate) fingerprint: Fingerprint,
}

impl Prepared {
    /// Hashes on the caller's thread: the committer is the bottleneck.
    pub(crate) fn new(draft: Draft) -> Self {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        Self { draft, id, fingerprint }
    }

    /// About how many bytes the message takes in memory and on disk.
    pub(crate) fn bytes(&self) -> usize {
        let content = &self.draft.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len());
        256 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * UserId::LEN_MAX
    }
}
