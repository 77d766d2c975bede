//! A node begins to hear a group when the first of its people comes into it. What is said elsewhere
//! before others know that has to be brought; what reaches them by itself is not told twice.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Change, ChangeKind, Message};
use nexo_chat::{Chat, Reason};

use crate::behind;
use crate::delivery::Delivery;

/// Messages of a group that are remembered; further ones may be told twice.
const HEARD_MAX: usize = 1000;
/// For how long what is on its way may still come by itself.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(40);

/// The groups that this node begins to hear, and what it heard of them since.
#[derive(Default)]
pub struct Beginnings {
    heard: Mutex<HashMap<ConversationId, BTreeSet<Seq>>>,
    /// How many there are, so that nobody needs the lock when there are none.
    count: AtomicUsize,
}

impl Beginnings {
    fn heard(&self) -> MutexGuard<'_, HashMap<ConversationId, BTreeSet<Seq>>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, conversation: &ConversationId) {
        let mut heard = self.heard();
        heard.insert(conversation.clone(), BTreeSet::new());
        self.count.store(heard.len(), Ordering::SeqCst);
    }

    fn end(&self, conversation: &ConversationId) {
        let mut heard = self.heard();
        heard.remove(conversation);
        self.count.store(heard.len(), Ordering::SeqCst);
    }

    /// Notes that a message came by itself.
    pub(crate) fn note(&self, message: &Message) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(heard) = self.heard().get_mut(&message.conversation)
            && heard.len() < HEARD_MAX
        {
            heard.insert(message.seq);
        }
    }

    /// The first message of a group after one, up to another, that has not come.
    fn lacks(&self, conversation: &ConversationId, after: Seq, until: Seq) -> Option<Seq> {
        let heard = self.heard();
        let mut next = after.next();
        while next <= until && heard.get(conversation).is_some_and(|heard| heard.contains(&next)) {
            next = next.next();
        }
        (next <= until).then_some(next)
    }
}

impl Delivery {
    /// Nobody here heard a group until this change; `act` lets those hear it who come by it.
    pub(crate) fn begin_to_hear(&self, change: &Change, act: impl FnOnce()) {
        let conversation = &change.conversation;
        if !matches!(change.kind, ChangeKind::Joined { .. }) {
            return act();
        }
        self.beginnings.begin(conversation);
        act();
        let (Some(me), true) = (self.me.upgrade(), self.groups.known(conversation).is_some())
        else {
            return self.beginnings.end(conversation);
        };
        let conversation = conversation.clone();
        self.runtime.spawn(async move {
            if let Some(chat) = me.chat.upgrade()
                && chat.bus.tune_in(vec![conversation.clone()]).await
            {
                me.bring(&chat, &conversation).await;
            }
            me.beginnings.end(&conversation);
        });
    }

    /// Lets everybody here who hears a group have what was said and done before it was heard here.
    async fn bring(&self, chat: &Chat, conversation: &ConversationId) {
        let learnt = behind::learn(self, &*chat.store, conversation).await;
        let mut waiting = Vec::new();
        for connection in self.groups.who_hears(conversation) {
            match chat.store.standing(&connection.user, conversation).await {
                Ok(Some(it)) if learnt.is_ok() => {
                    let delivered = it.cursors.delivered.max(it.window.min.previous());
                    waiting.push((connection, delivered, it.visible_max()));
                }
                // What it lacks cannot be found out now: a new connection starts from the store.
                _ => connection.end(Reason::ShuttingDown),
            }
        }
        let lacks = |after, until| self.beginnings.lacks(conversation, after, until);
        for _ in 0..LOOKS {
            waiting.retain(|(_, delivered, until)| lacks(*delivered, *until).is_some());
            if waiting.is_empty() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        for (connection, delivered, until) in waiting {
            if let Some(first) = lacks(delivered, until) {
                connection.miss(conversation, first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Millis, UserId};
    use nexo_chat::model::{Content, Draft};

    use super::*;

    fn message(conversation: &ConversationId, seq: u64) -> Message {
        let (sender, client_id) = (UserId::parse("ann").unwrap(), ClientMsgId::parse("c").unwrap());
        let id = MessageId::of(&sender, &client_id);
        let draft = Draft {
            conversation: conversation.clone(),
            sender,
            client_id,
            content: Content::text("words"),
            cleaned: None,
            sent_at: Millis(1),
            origin: None,
            marks_read: true,
        };
        draft.into_message(id, Seq(seq))
    }

    #[test]
    fn what_came_by_itself_is_not_lacking() {
        let beginnings = Beginnings::default();
        let group = GroupId::parse("g1").unwrap().conversation();
        beginnings.note(&message(&group, 3)); // nobody wants to know
        beginnings.begin(&group);
        assert_eq!(beginnings.lacks(&group, Seq(2), Seq(2)), None, "there is nothing");
        assert_eq!(beginnings.lacks(&group, Seq(2), Seq(4)), Some(Seq(3)));
        for seq in [4, 3, 6] {
            beginnings.note(&message(&group, seq));
        }
        assert_eq!(beginnings.lacks(&group, Seq(2), Seq(4)), None);
        assert_eq!(beginnings.lacks(&group, Seq(2), Seq(6)), Some(Seq(5)), "a hole");
        beginnings.end(&group);
        assert_eq!(beginnings.lacks(&group, Seq(2), Seq(4)), Some(Seq(3)));
        assert!(beginnings.heard().is_empty());
    }
}
