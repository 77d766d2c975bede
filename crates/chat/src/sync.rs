//! Catching up: the messages a device has not received, in fair pages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use crate::chat::Chat;
use crate::command::ResendPage;
use crate::cursor_audit::{self, ReachedMessage};
use crate::ids::{ConversationId, MessageId, Millis, Seq, UserId};
use crate::model::{Caller, CursorKind, Message, Receive, Standing};
use crate::read::Page;
use crate::reason::Error;
use crate::store::{Limit, MessagePage, Order, PageRequest};

/// Conversations read from the store at a time.
const STANDINGS_PAGE: usize = 1000;

/// The progress of one connection while it catches up, so that the next page continues whether or not the
/// client acknowledged the one before. Empty when nothing is left.
#[derive(Debug, Default)]
pub struct Catchup {
    sent: HashMap<ConversationId, Seq>,
    /// The end of the last pulled page, per conversation.
    pulled: HashMap<ConversationId, PageEnd>,
}

#[derive(Debug)]
struct PageEnd {
    message: MessageId,
    seq: Seq,
    sender: UserId,
    saved_at: Millis,
}

impl From<&Message> for PageEnd {
    fn from(it: &Message) -> Self {
        Self { message: it.id, seq: it.seq, sender: it.sender.clone(), saved_at: it.sent_at }
    }
}

/// A conversation with something left to send.
struct Backlog {
    standing: Standing,
    after: Seq,
}

impl Backlog {
    fn pending(&self) -> u64 {
        self.standing.visible_max().0.saturating_sub(self.after.0)
    }
}

impl Catchup {
    /// The next page. A conversation starts at the client's cursor if given, else where this connection's
    /// last page ended, else at the member's delivered cursor.
    pub async fn next_page(
        &mut self,
        chat: &Chat,
        caller: &Caller,
        cursors: BTreeMap<ConversationId, Seq>,
    ) -> Result<ResendPage, Error> {
        let backlogs = self.backlogs(chat, caller, cursors).await?;
        self.read_page(chat, caller, backlogs, None).await
    }

    async fn backlogs(
        &mut self,
        chat: &Chat,
        caller: &Caller,
        cursors: BTreeMap<ConversationId, Seq>,
    ) -> Result<Vec<Backlog>, Error> {
        let mut backlogs = Vec::new();
        let mut last: Option<ConversationId> = None;
        loop {
            let standings =
                chat.store.standings(&caller.user, last.as_ref(), STANDINGS_PAGE).await?;
            last = standings.last().map(|standing| standing.conversation.clone());
            let is_last_page = standings.len() < STANDINGS_PAGE;
            for standing in standings {
                if let Some(at) = cursors.get(&standing.conversation) {
                    // Capped: a cursor beyond the newest message must not suppress messages that come later.
                    let at = (*at).min(standing.visible_max());
                    self.sent.insert(standing.conversation.clone(), at);
                }
                backlogs.extend(self.backlog(standing));
            }
            if is_last_page {
                break;
            }
        }
        Ok(backlogs)
    }

    /// The next page for a client that pulls instead of acknowledging: a request that continues confirms that
    /// the page before has arrived. One that does not starts over at the delivered cursors.
    pub async fn pull_page(
        &mut self,
        chat: &Chat,
        caller: &Caller,
        goes_on: bool,
        limit: usize,
    ) -> Result<ResendPage, Error> {
        let served = std::mem::take(&mut self.pulled);
        if goes_on {
            for (conversation, PageEnd { message, seq, sender, saved_at }) in served {
                let (user, kind) = (&caller.user, CursorKind::Delivered);
                if let Some(moved) =
                    chat.store.advance_cursor(user, &conversation, kind, seq).await?
                {
                    let reached = Some(ReachedMessage { message, seq, sender: &sender, saved_at });
                    cursor_audit::record_move(chat, caller, kind, &conversation, reached, moved);
                }
            }
        } else {
            self.sent = HashMap::new();
        }
        let backlogs = self.backlogs(chat, caller, BTreeMap::new()).await?;
        let page = self.read_page(chat, caller, backlogs, Some(limit)).await?;
        let ends = page.messages.iter().map(|it| (it.conversation.clone(), PageEnd::from(&**it)));
        self.pulled = ends.collect();
        Ok(page)
    }

    /// Resends pushes that were dropped: a page of these conversations from these seqs on. A connection that
    /// is still catching up is only set back, because its next page will cover them.
    pub async fn recover(
        &mut self,
        chat: &Chat,
        caller: &Caller,
        missed: BTreeMap<ConversationId, Seq>,
    ) -> Result<Option<ResendPage>, Error> {
        let is_catching_up = !self.sent.is_empty();
        let mut backlogs = Vec::new();
        for (conversation, at) in missed {
            let Some(standing) = chat.store.standing(&caller.user, &conversation).await? else {
                continue;
            };
            let known = self.sent.get(&conversation).copied();
            let otherwise = if is_catching_up { standing.cursors.delivered } else { at };
            self.sent.insert(conversation, at.min(known.unwrap_or(otherwise)));
            backlogs.extend(self.backlog(standing));
        }
        if is_catching_up {
            return Ok(None);
        }
        self.read_page(chat, caller, backlogs, None).await.map(Some)
    }

    /// What is left of a conversation for this connection, if anything. Nothing if the member blocked it.
    fn backlog(&self, standing: Standing) -> Option<Backlog> {
        if standing.settings.receive == Receive::Blocked {
            return None;
        }
        let from = self.sent.get(&standing.conversation).copied();
        let after = from.unwrap_or(standing.cursors.delivered);
        let after = after.max(standing.window.min.previous());
        let backlog = Backlog { standing, after };
        (backlog.pending() > 0).then_some(backlog)
    }

    /// Reads a page of these and remembers where it ends: `wanted` messages, or by default one page of private
    /// messages and one of group messages.
    async fn read_page(
        &mut self,
        chat: &Chat,
        caller: &Caller,
        mut backlogs: Vec<Backlog>,
        wanted: Option<usize>,
    ) -> Result<ResendPage, Error> {
        // The least recently active conversations come first, in case there are more of them than messages on a
        // page. Private conversations and groups have a page each, so that neither starves the other.
        let is_private = |backlog: &Backlog| backlog.standing.conversation.group().is_none();
        backlogs.sort_by_key(|it| (!is_private(it), it.standing.updated_at()));
        let pending: u64 = backlogs.iter().map(Backlog::pending).sum();
        let (private, groups) = backlogs.split_at(backlogs.partition_point(is_private));
        let shares = if let Some(wanted) = wanted {
            fair_shares(wanted, &backlogs)
        } else {
            let page = chat.rules.resend_page;
            [fair_shares(page, private), fair_shares(page, groups)].concat()
        };
        let to_read: Vec<_> = backlogs.iter().zip(shares).filter(|(_, share)| *share > 0).collect();
        let requests = to_read.iter().map(|(backlog, share)| PageRequest {
            conversation: backlog.standing.conversation.clone(),
            range: backlog.after.next()..=backlog.standing.visible_max(),
            limit: Limit { count: *share, bytes: chat.rules.page_bytes_max },
        });
        let pages = chat.store.message_pages(requests.collect()).await?;
        let (mut streams, mut around_damage) = (Vec::new(), Vec::new());
        for ((backlog, _), read) in to_read.into_iter().zip(pages) {
            if !read.damaged.is_empty() {
                around_damage.push((backlog, read.clone()));
            }
            streams.push(read.messages);
        }
        let messages = merge(streams, chat.rules.page_bytes_max);
        let mut ends: HashMap<ConversationId, Seq> =
            messages.iter().map(|it| (it.conversation.clone(), it.seq)).collect();
        let mut covered = messages.len() as u64;
        for (backlog, read) in around_damage {
            covered += pass_damage(&mut ends, backlog, &read);
        }
        let has_more = pending > covered;
        if has_more {
            self.sent.extend(ends);
        } else {
            self.sent = HashMap::new(); // from here on the delivered cursor counts
        }
        log(chat, caller, &backlogs, &messages, has_more);
        Ok(ResendPage { messages, has_more })
    }
}

/// Moves the end of a conversation's part of a page behind the damaged seqs that it passed, so that the next
/// page does not stop at them again. Returns how many it passed.
fn pass_damage(
    ends: &mut HashMap<ConversationId, Seq>,
    backlog: &Backlog,
    read: &MessagePage,
) -> u64 {
    let conversation = &backlog.standing.conversation;
    let last = ends.get(conversation).copied();
    let is_whole = last == read.messages.last().map(|message| message.seq);
    let end = if is_whole { read.end(Order::Ascending) } else { last };
    let Some(end) = end else { return 0 };
    ends.insert(conversation.clone(), end);
    let passed = read.damaged.iter().filter(|range| *range.end() <= end);
    passed.map(|range| range.end().0 - range.start().0 + 1).sum()
}

/// Logs one line per page, at `info` only if it has messages: most connections have nothing to catch up on.
fn log(
    chat: &Chat,
    caller: &Caller,
    backlogs: &[Backlog],
    messages: &[Arc<Message>],
    has_more: bool,
) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                target: "nexo::resend",
                userId = %caller.user,
                deviceId = %caller.login,
                connId = caller.connection.map(|connection| connection.0),
                instanceId = &*chat.instance,
                conversations = backlogs.len(),
                sent = messages.len(),
                hasMore = has_more,
                result = "ok",
                "resent",
            )
        };
    }
    if messages.is_empty() {
        line!(debug);
        return;
    }
    line!(info);
    if tracing::enabled!(target: "nexo::resend", tracing::Level::DEBUG) {
        for Backlog { standing, after } in backlogs {
            let of = |message: &&Arc<Message>| message.conversation == standing.conversation;
            let sent: Vec<&Message> = messages.iter().filter(of).map(|it| &**it).collect();
            cursor_audit::log_resend(chat, caller, *after, &sent);
        }
    }
}

/// Divides a page evenly; what small backlogs do not need goes to the others.
fn fair_shares(page: usize, backlogs: &[Backlog]) -> Vec<usize> {
    let mut shares = vec![0_usize; backlogs.len()];
    let mut left = page;
    while left > 0 {
        let unsatisfied: Vec<usize> =
            (0..backlogs.len()).filter(|&i| (shares[i] as u64) < backlogs[i].pending()).collect();
        if unsatisfied.is_empty() {
            break;
        }
        let each = (left / unsatisfied.len()).max(1);
        for i in unsatisfied.into_iter().take(left) {
            let wants = usize::try_from(backlogs[i].pending()).unwrap_or(usize::MAX) - shares[i];
            let gets = wants.min(each).min(left);
            shares[i] += gets;
            left -= gets;
        }
    }
    shares
}

/// Merges streams by time, keeping each one's own order, up to a number of bytes but at least one message.
fn merge(streams: Vec<Vec<Arc<Message>>>, bytes_max: usize) -> Vec<Arc<Message>> {
    let mut streams: Vec<_> = streams.into_iter().map(IntoIterator::into_iter).collect();
    let mut waiting = BinaryHeap::new();
    let mut fronts: Vec<Option<Arc<Message>>> = Vec::with_capacity(streams.len());
    for (i, stream) in streams.iter_mut().enumerate() {
        let front = stream.next();
        if let Some(message) = &front {
            waiting.push(Reverse((message.sent_at, i)));
        }
        fronts.push(front);
    }
    let mut merged = Vec::new();
    let mut bytes = 0;
    while let Some(Reverse((_, i))) = waiting.pop() {
        let Some(message) = fronts[i].take() else { continue };
        bytes += message.weight();
        if bytes > bytes_max && !merged.is_empty() {
            break;
        }
        merged.push(message);
        fronts[i] = streams[i].next();
        if let Some(message) = &fronts[i] {
            waiting.push(Reverse((message.sent_at, i)));
        }
    }
    merged
}

/// A user's standings in all their conversations, also those that only have settings so far.
pub async fn standings(chat: &Chat, user: &UserId) -> Result<Vec<Standing>, Error> {
    Ok(chat.store.standings(user, None, usize::MAX).await?)
}

/// The caller's standings ordered by conversation id, for a device that compares them with its own state.
/// With `include_empty` also those of private conversations without messages, which only have settings.
pub async fn heads(
    chat: &Chat,
    caller: &Caller,
    after: Option<&ConversationId>,
    limit: usize,
    include_empty: bool,
) -> Result<Page<Standing>, Error> {
    let mut after = after.cloned();
    let mut heads = Vec::new();
    // A page may take several reads, since some are left out.
    loop {
        let standings = chat.store.standings(&caller.user, after.as_ref(), limit + 1).await?;
        let is_last = standings.len() <= limit;
        after = standings.last().map(|standing| standing.conversation.clone());
        heads.extend(standings.into_iter().filter(|it| include_empty || it.has_begun()));
        if is_last || heads.len() > limit {
            return Ok(Page::cut(heads, limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientMsgId;
    use crate::model::{Content, Cursors, Settings, Window};

    fn backlog(pending: u64) -> Backlog {
        let standing = Standing {
            conversation: ConversationId::stored("si_a_b"),
            window: Window::ALL,
            cursors: Cursors::default(),
            own_unread: 0,
            settings: Settings::default(),
            max_seq: Seq(pending),
            change_seq: Seq::ZERO,
            newest_at: Millis(0),
            has_ended: false,
        };
        Backlog { standing, after: Seq::ZERO }
    }

    fn check(page: usize, pending: &[u64], expect: &[usize]) {
        let backlogs: Vec<_> = pending.iter().copied().map(backlog).collect();
        assert_eq!(fair_shares(page, &backlogs), expect, "{page} over {pending:?}");
    }

    #[test]
    fn a_page_is_shared_fairly_and_fully() {
        check(200, &[], &[]);
        check(200, &[50], &[50]);
        check(200, &[1000], &[200]);
        check(200, &[1000, 1000], &[100, 100]);
        check(200, &[1000, 10, 1000], &[95, 10, 95]);
        check(3, &[9, 9, 9, 9], &[1, 1, 1, 0]);
        check(4, &[u64::MAX, 1, 1], &[2, 1, 1]);
    }

    fn message(conversation: &str, seq: u64, sent_at: u64) -> Arc<Message> {
        let sender = UserId::parse("a").unwrap();
        let client_id = ClientMsgId::parse(&format!("{conversation}{seq}")).unwrap();
        Arc::new(Message {
            id: MessageId::of(&sender, &client_id),
            conversation: ConversationId::stored(conversation),
            seq: Seq(seq),
            sender,
            client_id,
            sent_at: Millis(sent_at),
            content: Content::text("four"),
            recalled: None,
        })
    }

    #[test]
    fn a_page_passes_damage_only_if_it_sent_what_came_before() {
        let read = MessagePage {
            messages: vec![message("si_a_b", 1, 1), message("si_a_b", 4, 2)],
            damaged: vec![Seq(2)..=Seq(3), Seq(5)..=Seq(9)],
        };
        let passed = |sent: Option<u64>| {
            let id = ConversationId::stored("si_a_b");
            let mut ends: HashMap<_, _> =
                sent.map(|seq| (id.clone(), Seq(seq))).into_iter().collect();
            let count = pass_damage(&mut ends, &backlog(9), &read);
            (ends.get(&id).map(|seq| seq.0), count)
        };
        assert_eq!(passed(Some(4)), (Some(9), 7));
        assert_eq!(passed(Some(1)), (Some(1), 0));
        assert_eq!(passed(None), (None, 0));
        // Nothing but damage: the next page starts behind it.
        let read = MessagePage { messages: Vec::new(), damaged: vec![Seq(1)..=Seq(3)] };
        let mut ends = HashMap::new();
        assert_eq!(pass_damage(&mut ends, &backlog(9), &read), 3);
        assert_eq!(ends.values().collect::<Vec<_>>(), [&Seq(3)]);
    }

    #[test]
    fn a_merge_goes_by_time_but_never_against_seq() {
        // The clock went back between the second conversation's messages.
        let streams = vec![
            vec![message("si_a_b", 1, 10), message("si_a_b", 2, 40)],
            vec![message("si_a_c", 7, 30), message("si_a_c", 8, 5)],
        ];
        let order: Vec<u64> = merge(streams, 10_000).iter().map(|message| message.seq.0).collect();
        assert_eq!(order, [1, 7, 8, 2]);
    }

    #[test]
    fn a_merge_stops_at_its_bytes_but_gives_at_least_one() {
        let stream = || vec![vec![message("si_a_b", 1, 1), message("si_a_b", 2, 2)]];
        assert_eq!(merge(stream(), 2 * (512 + 4)).len(), 2);
        assert_eq!(merge(stream(), 2 * (512 + 4) - 1).len(), 1);
        assert_eq!(merge(stream(), 0).len(), 1);
    }
}
