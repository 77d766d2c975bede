//! The writes that wait, one queue for each conversation, and which of them may be done now.
//!
//! The writes of a conversation are done in the order in which they came: while one of them is being
//! done, the others wait. Different conversations share a transaction or are written at once.

use std::collections::{HashMap, VecDeque};

use nexo_chat::ids::ConversationId;

use super::append_batch::AppendBatch;
use super::committer::WriteRequest;

/// Work for one transaction.
pub(crate) enum Work {
    Append(AppendBatch),
    /// A request that is not an append.
    Other(WriteRequest),
}

#[derive(Default)]
pub(crate) struct WriteQueue {
    /// The queues of conversations that wait or are being written.
    active: HashMap<ConversationId, VecDeque<WriteRequest>>,
    /// Those of them that wait and are not being written, the one that waited longest first.
    ready: VecDeque<ConversationId>,
    waiting: usize,
}

impl WriteQueue {
    /// Adds a request behind those of its conversation.
    pub(crate) fn push(&mut self, request: WriteRequest) {
        let Some(conversation) = request.conversation() else { return };
        self.waiting += 1;
        if let Some(queue) = self.active.get_mut(conversation) {
            queue.push_back(request);
        } else {
            let conversation = conversation.clone();
            self.ready.push_back(conversation.clone());
            self.active.insert(conversation, VecDeque::from([request]));
        }
    }

    /// Puts a request behind everything that waits or is being written.
    pub(crate) fn push_everywhere(&mut self, mut request: impl FnMut() -> WriteRequest) {
        for queue in self.active.values_mut() {
            self.waiting += 1;
            queue.push_back(request());
        }
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether nothing waits and nothing is being written.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Takes as many appends as fit into a batch, or one other request, with the conversations that
    /// are being written from now on.
    pub(crate) fn take(&mut self) -> Option<(Work, Vec<ConversationId>)> {
        let (mut batch, mut conversations) = (AppendBatch::default(), Vec::new());
        while batch.has_room()
            && let Some(conversation) = self.ready.pop_front()
        {
            let Some(queue) = self.active.get_mut(&conversation) else { continue };
            let mut taken = 0;
            while batch.has_room()
                && let Some(request) = queue.pop_front()
            {
                self.waiting -= 1;
                match batch.add(request) {
                    None => taken += 1,
                    // Reached, unless what comes before it is only being taken now.
                    Some(WriteRequest::Barrier(reached)) if taken == 0 => drop(reached),
                    Some(other) if conversations.is_empty() && taken == 0 => {
                        return Some((Work::Other(other), vec![conversation]));
                    }
                    Some(other) => {
                        self.waiting += 1;
                        queue.push_front(other);
                        break;
                    }
                }
            }
            if taken > 0 {
                conversations.push(conversation);
            } else if queue.is_empty() {
                self.active.remove(&conversation);
            } else {
                self.ready.push_front(conversation);
                break;
            }
        }
        (!conversations.is_empty()).then_some((Work::Append(batch), conversations))
    }

    /// These conversations are no longer being written.
    pub(crate) fn release(&mut self, conversations: Vec<ConversationId>) {
        for conversation in conversations {
            if self.active.get(&conversation).is_some_and(|queue| !queue.is_empty()) {
                self.ready.push_back(conversation);
            } else {
                self.active.remove(&conversation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nexo_chat::ids::{ClientMsgId, Millis, UserId};
    use nexo_chat::model::{Content, Draft};
    use nexo_chat::store::Actor;
    use tokio::sync::oneshot;

    use super::super::recall::RecallRequest;
    use super::*;
    use crate::prepared::Prepared;

    fn conversation(with: &str) -> ConversationId {
        ConversationId::private(&UserId::parse("a").unwrap(), &UserId::parse(with).unwrap())
    }

    fn append(with: &str, text: &str) -> WriteRequest {
        let draft = Draft {
            conversation: conversation(with),
            sender: UserId::parse("a").unwrap(),
            client_id: ClientMsgId::parse(text).unwrap(),
            content: Content::text(text.to_owned()),
            cleaned: None,
            sent_at: Millis(1),
            origin: None,
            marks_read: true,
        };
        WriteRequest::Append(Box::new(Prepared::new(draft)), oneshot::channel().0)
    }

    fn recall(with: &str) -> WriteRequest {
        let asker = Actor { user: UserId::parse("a").unwrap(), at: Millis(1), origin: None };
        let request = RecallRequest {
            id: nexo_chat::ids::MessageId([1; 16]),
            conversation: conversation(with),
            asker,
            may: Box::new(|_| Ok(())),
        };
        WriteRequest::Recall(request, oneshot::channel().0)
    }

    /// The client ids of the next batch, none of another request, and what is written.
    fn take(queue: &mut WriteQueue) -> (Vec<String>, Vec<ConversationId>) {
        let (work, conversations) = queue.take().unwrap();
        let Work::Append(batch) = work else { return (Vec::new(), conversations) };
        let ids = batch.drafts.iter().map(|it| it.draft.client_id.as_str().to_owned());
        (ids.collect(), conversations)
    }

    #[test]
    fn a_conversation_that_is_written_waits_and_others_do_not() {
        let mut queue = WriteQueue::default();
        queue.push(append("b", "b1"));
        queue.push(append("c", "c1"));
        let (first, writing) = take(&mut queue);
        assert_eq!(first, ["b1", "c1"]);
        queue.push(append("b", "b2"));
        queue.push(append("d", "d1"));
        let (second, beside) = take(&mut queue);
        assert_eq!(second, ["d1"]);
        assert!(queue.take().is_none(), "b is being written");
        queue.release(writing);
        assert_eq!(take(&mut queue).0, ["b2"]);
        queue.release(beside);
        queue.release(vec![conversation("b")]);
        assert!(queue.is_idle() && queue.waiting() == 0);
    }

    #[test]
    fn another_request_comes_between_the_appends_around_it() {
        let mut queue = WriteQueue::default();
        for request in [append("b", "b1"), recall("b"), append("b", "b2"), append("c", "c1")] {
            queue.push(request);
        }
        let (first, writing) = take(&mut queue);
        assert_eq!(first, ["b1", "c1"]);
        queue.release(writing);
        let (second, writing) = take(&mut queue);
        assert!(second.is_empty(), "the recall");
        assert!(queue.take().is_none());
        queue.release(writing);
        assert_eq!(take(&mut queue).0, ["b2"]);
    }

    #[test]
    fn a_barrier_is_reached_when_everything_before_it_is_done() {
        let mut queue = WriteQueue::default();
        queue.push(append("b", "b1"));
        let (_, written_first) = take(&mut queue);
        queue.push(append("c", "c1"));
        let (answer, mut reached) = oneshot::channel::<()>();
        let answer = Arc::new(answer);
        queue.push_everywhere(|| WriteRequest::Barrier(Arc::clone(&answer)));
        drop(answer);
        queue.push(append("c", "c2"));
        let mut is_reached = || reached.try_recv() == Err(oneshot::error::TryRecvError::Closed);
        let (first, writing) = take(&mut queue);
        assert_eq!(first, ["c1"], "c2 is behind the barrier");
        assert!(!is_reached());
        queue.release(writing);
        assert_eq!(take(&mut queue).0, ["c2"]);
        assert!(!is_reached(), "b1 is not done");
        queue.release(written_first);
        assert!(queue.take().is_none());
        assert!(is_reached());
    }
}
