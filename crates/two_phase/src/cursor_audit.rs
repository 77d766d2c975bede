//! Appends accepted messages and logs how each moves its sender's own cursor, if the audit log is
//! enabled.

use std::collections::HashMap;
use std::sync::Arc;

use nexo_chat::cursor_audit;
use nexo_chat::ids::UserId;
use nexo_chat::model::{Cursors, Draft};
use nexo_chat::policy::send::permit_for_accepted;
use nexo_chat::store::{Appended, StoreError, StoreFuture};

use crate::context::TwoPhaseContext;

impl TwoPhaseContext {
    /// Appends a run of messages of one conversation.
    pub(crate) async fn append_run(&self, drafts: Vec<Draft>) -> Result<Vec<Appended>, StoreError> {
        if !cursor_audit::is_enabled() {
            return self.store.append_run(permit_for_accepted(), drafts).await;
        }
        let before = self.sender_cursors(&drafts).await;
        let marks_read: Vec<bool> = drafts.iter().map(|draft| draft.marks_read).collect();
        let outcomes = self.store.append_run(permit_for_accepted(), drafts).await?;
        log_moves(&self.instance, &marks_read, before, &outcomes);
        Ok(outcomes)
    }

    /// Like [`Self::append_run`], but fixes the order when it is called. It cannot read the cursors
    /// before that, so the log lines have none.
    pub(crate) fn append_run_now(&self, drafts: Vec<Draft>) -> StoreFuture<'static, Vec<Appended>> {
        let marks_read = cursor_audit::is_enabled()
            .then(|| drafts.iter().map(|draft| draft.marks_read).collect::<Vec<_>>());
        let appending = self.store.append_run(permit_for_accepted(), drafts);
        let Some(marks_read) = marks_read else { return appending };
        let instance = Arc::clone(&self.instance);
        Box::pin(async move {
            let outcomes = appending.await?;
            log_moves(&instance, &marks_read, HashMap::new(), &outcomes);
            Ok(outcomes)
        })
    }

    /// The cursors of everyone who sent one of the messages. Those that cannot be read are left out:
    /// an audit must not keep a message from being saved.
    async fn sender_cursors(&self, drafts: &[Draft]) -> HashMap<UserId, Cursors> {
        let mut cursors = HashMap::new();
        for Draft { sender, conversation, .. } in drafts {
            if cursors.contains_key(sender) {
                continue;
            }
            if let Ok(standing) = self.store.standing(sender, conversation).await {
                let found = standing.map_or_else(Cursors::default, |standing| standing.cursors);
                cursors.insert(sender.clone(), found);
            }
        }
        cursors
    }
}

/// Logs a line for each message that was stored now.
fn log_moves(
    instance: &str,
    marks_read: &[bool],
    mut cursors: HashMap<UserId, Cursors>,
    outcomes: &[Appended],
) {
    for (marks_read, outcome) in marks_read.iter().zip(outcomes) {
        let (true, Appended::Stored(message)) = (marks_read, outcome) else { continue };
        let before = cursors.get(&message.sender).copied();
        if let Some(after) = cursor_audit::log_accepted_saved(instance, message, before) {
            cursors.insert(message.sender.clone(), after);
        }
    }
}
