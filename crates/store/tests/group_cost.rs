//! A message in a group of a hundred thousand members writes as much as one in a group of ten.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_chat::ids::{ClientMsgId, GroupId, Millis, UserId};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, NewGroup,
};
use nexo_chat::model::{Content, Draft};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{Actor, Appended, GroupFactsQuery, Store};
use nexo_store::{Embedded, Options};

const NOW: Millis = Millis(1_700_000_000_000);
const SENDS: u64 = 500;

fn user(n: usize) -> UserId {
    UserId::parse(&format!("user-{n:06}")).unwrap()
}

async fn act(store: &Arc<dyn Store>, group: &str, by: usize, act: GroupAction) -> Duration {
    let (id, by) = (GroupId::parse(group).unwrap(), user(by));
    let asker = Actor { user: by.clone(), at: NOW, origin: None };
    let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
    let (rules, of) = (GroupRules { members_max: 200_000, ..GroupRules::default() }, id.clone());
    let decide = move |facts: &GroupFacts| decide(&rules, facts, &of, &by, &act, NOW);
    let since = Instant::now();
    store.change_group(&id, asker, about, Box::new(decide)).await.unwrap().unwrap();
    since.elapsed()
}

async fn gather(store: &Arc<dyn Store>, group: &str, count: usize) -> Duration {
    let mut code = [b'x'; 8];
    code[..5].copy_from_slice(group.as_bytes());
    let new = NewGroup {
        profile: GroupProfile { name: "Cost".into(), ..GroupProfile::default() },
        joining: JoinPolicy::Open,
        history: HistoryPolicy::Joined,
        members: (0..count).map(user).collect(),
        members_min: count,
        code: JoinCode::random(code),
    };
    act(store, group, 0, GroupAction::Create(new)).await
}

/// Sends messages one after the other, each durable before the next.
async fn say(store: &Arc<dyn Store>, group: &str, from: u64) -> Duration {
    let since = Instant::now();
    for n in from..from + SENDS {
        let draft = Draft {
            conversation: GroupId::parse(group).unwrap().conversation(),
            sender: user(5),
            client_id: ClientMsgId::parse(&format!("{group}-{n:06}")).unwrap(),
            content: Content::text("what everybody is to hear"),
            cleaned: None,
            sent_at: NOW,
            origin: None,
            marks_read: true,
        };
        let said = store.append(Permit::for_tests(), draft).await.unwrap();
        assert!(matches!(said, Appended::Stored(_)), "{said:?}");
    }
    since.elapsed()
}

/// What was written to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    batches: u64,
    records: u64,
    bytes: u64,
}

/// A part of the log, laid out as in `embedded/segment.rs` and `embedded/batch.rs`.
struct Log<'a>(&'a [u8]);

impl Log<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        *taken
    }

    fn skip(&mut self, count: u32) -> Self {
        let (skipped, rest) = self.0.split_at(count as usize);
        self.0 = rest;
        Self(skipped)
    }

    /// Returns the next entry: its number, its records and its bytes.
    fn next(&mut self) -> Option<(u64, u64, u64)> {
        let before = self.0.len();
        if !self.0.starts_with(b"entr") {
            return None;
        }
        self.skip(4);
        let (length, number) = (u32::from_be_bytes(self.take()), u64::from_be_bytes(self.take()));
        self.skip(8 + 8 + 8); // synced, time, checksum
        let mut payload = self.skip(length);
        payload.skip(8); // covered
        let sent = u32::from_be_bytes(payload.take());
        payload.skip(sent);
        let mut records = 0;
        while !payload.0.is_empty() {
            payload.skip(1); // keyspace
            let key = u16::from_be_bytes(payload.take());
            let value = u32::from_be_bytes(payload.take()).saturating_sub(1);
            payload.skip(u32::from(key) + value);
            records += 1;
        }
        Some((number, records, (before - self.0.len()) as u64))
    }
}

/// Returns what was written after an entry, and the number of the last one.
fn written(folder: &Path, after: u64) -> (Written, u64) {
    let (mut written, mut last) = (Written::default(), after);
    for entry in std::fs::read_dir(folder.join("log")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let mut log = Log(&bytes);
        log.skip(36); // header
        while let Some((number, records, bytes)) = log.next() {
            if number > after {
                written.batches += 1;
                written.records += records;
                written.bytes += bytes;
                last = last.max(number);
            }
        }
    }
    (written, last)
}

#[tokio::test]
async fn a_send_costs_the_same_in_a_group_of_ten_and_of_a_hundred_thousand() {
    let folder = tempfile::tempdir().unwrap();
    // Cursors are written behind by the clock; only sends are to be counted here.
    let options = Options { cursors_every: Duration::from_hours(1), ..Options::default() };
    let store: Arc<dyn Store> = Embedded::open(folder.path(), &options).unwrap();
    let small = gather(&store, "small", 10).await;
    let large = gather(&store, "large", 100_000).await;
    eprintln!("made a group of 10 in {small:?}, one of 100,000 in {large:?}");
    let (_, mut last) = written(folder.path(), 0);
    let mut took = [Duration::ZERO; 2];
    for from in [0, SENDS] {
        let mut costs = Vec::new();
        for (group, took) in ["small", "large"].into_iter().zip(&mut took) {
            *took += say(&store, group, from).await;
            let (cost, newest) = written(folder.path(), last);
            last = newest;
            assert_eq!(cost.batches, SENDS, "each send was made durable by itself");
            costs.push(cost);
        }
        assert_eq!(costs[0], costs[1], "small and large");
        assert_eq!(costs[1].records, 2 * SENDS, "the message and its id");
        let each = costs[1].bytes / SENDS;
        eprintln!("a send: {} records, {each} bytes in both", costs[1].records / SENDS);
    }
    let each = took.map(|took| took / u32::try_from(2 * SENDS).unwrap());
    eprintln!("a send: {:?} in the small group, {:?} in the large one", each[0], each[1]);
    assert!(took[1] < took[0] * 3 + Duration::from_millis(500), "{each:?}");

    let join =
        act(&store, "large", 100_001, GroupAction::Join { message: String::new(), inviter: None })
            .await;
    let kick = act(&store, "large", 0, GroupAction::Kick(user(77))).await;
    let leave = act(&store, "large", 78, GroupAction::Leave).await;
    let end = act(&store, "large", 0, GroupAction::Dissolve).await;
    eprintln!("in the large group: join {join:?}, kick {kick:?}, leave {leave:?}, end {end:?}");
    let (cost, _) = written(folder.path(), last);
    assert!(cost.records < 40, "nobody else is written to: {cost:?}");
    for took in [join, kick, leave, end] {
        assert!(took < Duration::from_millis(500), "{took:?}");
    }
}
