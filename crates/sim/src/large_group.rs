//! Many accounts and one group of them, written to a data folder before a server starts on it. Registering them
//! one by one over HTTP would take longer than the test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_chat::ids::{GroupId, LoginId, Millis, Platform, UserId};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, NewGroup,
};
use nexo_chat::model::{AccountDetails, Login, LoginDevice, Profile, User};
use nexo_chat::policy::group::decide;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{Actor, GroupFactsQuery, Store};
use nexo_chat::token::{Claims, TokenKey};
use nexo_store::{Embedded, Options};
use tempfile::TempDir;

use crate::person::Person;
use crate::process::{Server, Setup};

const SECRET: &str = "what the tokens of a crowd are signed with";
const PLATFORM: Platform = Platform(5);
const CREATED_AT: Millis = Millis(1_700_000_000_000);
const EXPIRES_AT: Millis = Millis(4_102_444_800_000);

const WRITES_IN_FLIGHT: usize = 4_000;
/// Users added to the group per action.
const JOIN_BATCH: usize = 10_000;

#[derive(Clone, Copy, Debug)]
pub struct LargeGroupSize {
    /// Members of the group; the first owns it.
    pub members: usize,
    /// How many of the members are signed in.
    pub signed_in: usize,
    /// Users outside of the group, all signed in.
    pub outsiders: usize,
}

pub struct LargeGroup {
    /// The signed-in members.
    pub members: Vec<Person>,
    pub outsiders: Vec<Person>,
    pub group: String,
    /// How long it took to create the accounts.
    pub accounts_took: Duration,
    /// How long it took to create the group.
    pub group_took: Duration,
    folder: TempDir,
}

/// The id of the n-th user; ids sort like numbers.
pub fn user_id(n: usize) -> String {
    format!("crowd-{n:06}")
}

fn user(n: usize) -> UserId {
    UserId::parse(&user_id(n)).expect("a good id")
}

impl LargeGroup {
    /// Creates accounts and group in a new folder.
    pub async fn new(size: LargeGroupSize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> =
            Embedded::open(folder.path().join("data"), &Options::default()).expect("a store");
        let LargeGroupSize { members, signed_in, outsiders } = size;
        let since = Instant::now();
        register(&*store, members + outsiders).await;
        let accounts_took = since.elapsed();
        let inside = sign_in(&*store, (0..signed_in).collect()).await;
        let outside = sign_in(&*store, (members..members + outsiders).collect()).await;
        let since = Instant::now();
        let group = GroupId::parse("crowd").expect("a good id");
        create_group(&*store, &group, members).await;
        let group_took = since.elapsed();
        store.close().await.expect("a closed store");
        Self {
            members: inside,
            outsiders: outside,
            group: group.to_string(),
            accounts_took,
            group_took,
            folder,
        }
    }

    /// Starts a server on the folder; returns it with the signed-in members and outsiders.
    pub fn start(self, setup: Setup) -> (Server, Vec<Person>, Vec<Person>) {
        let server = setup.with("NEXO_AUTH__JWT_SECRET", SECRET).start_on(self.folder);
        (server, self.members, self.outsiders)
    }
}

async fn register(store: &dyn Store, count: usize) {
    let all: Vec<usize> = (0..count).collect();
    for some in all.chunks(WRITES_IN_FLIGHT) {
        let account = |n: &usize| User {
            id: user(*n),
            profile: Profile { nickname: user_id(*n), ..Profile::default() },
            created_at: CREATED_AT,
            updated_at: CREATED_AT,
            password_hash: "none of them has a password".to_owned(),
            session_version: 1,
            details: AccountDetails::default(),
        };
        let made: Vec<_> = some.iter().map(|n| store.create_user(account(n))).collect();
        for made in made {
            assert!(made.await.expect("a store"), "the folder is new");
        }
    }
}

async fn sign_in(store: &dyn Store, people: Vec<usize>) -> Vec<Person> {
    let key = TokenKey::new(SECRET.as_bytes()).expect("long enough");
    let mut signed_in = Vec::with_capacity(people.len());
    for some in people.chunks(WRITES_IN_FLIGHT) {
        let kept: Vec<_> =
            some.iter().map(|n| store.create_login(login(*n), 1, CREATED_AT)).collect();
        for (kept, n) in kept.into_iter().zip(some) {
            let login = kept.await.expect("a store").expect("the version is right").login;
            let claims = Claims {
                user: login.user,
                login: login.id,
                platform: login.platform,
                session_version: 1,
                expires_at: EXPIRES_AT,
            };
            let token = key.sign(&claims, CREATED_AT).expect("a token");
            signed_in.push(Person { id: user_id(*n), token, refresh: String::new() });
        }
    }
    signed_in
}

fn login(n: usize) -> Login {
    let mut refresh_hash = [0; 32];
    refresh_hash[..8].copy_from_slice(&(n as u64).to_be_bytes());
    Login {
        id: LoginId((n as u128).to_be_bytes()),
        user: user(n),
        platform: PLATFORM,
        created_at: CREATED_AT,
        expires_at: EXPIRES_AT,
        refresh_hash,
        generation: 0,
        rotated_at: CREATED_AT,
        ended: false,
        device: LoginDevice::default(),
    }
}

/// Creates the group by the real rules, in batches of members.
async fn create_group(store: &dyn Store, group: &GroupId, count: usize) {
    let people: Vec<UserId> = (0..count).map(user).collect();
    let mut parts = people.chunks(JOIN_BATCH);
    let first = parts.next().expect("at least one");
    let new = NewGroup {
        profile: GroupProfile { name: "Crowd".to_owned(), ..GroupProfile::default() },
        joining: JoinPolicy::Open,
        history: HistoryPolicy::Joined,
        members: first.to_vec(),
        members_min: first.len(),
        code: JoinCode::random([9; 8]),
    };
    let invited = parts.map(|part| GroupAction::Invite(part.to_vec()));
    for act in std::iter::once(GroupAction::Create(new)).chain(invited) {
        let by = people[0].clone();
        let asker = Actor { user: by.clone(), at: CREATED_AT, origin: None };
        let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
        let rules = GroupRules { members_max: u32::MAX, ..GroupRules::default() };
        let id = group.clone();
        let decide = move |facts: &GroupFacts| decide(&rules, facts, &id, &by, &act, CREATED_AT);
        let done = store.change_group(group, asker, about, Box::new(decide)).await;
        done.expect("a store").expect("they may come");
    }
}
