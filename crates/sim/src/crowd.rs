//! A crowd: many accounts and one group of them, put into a data folder before a server starts on
//! it. Registering so many one by one would take a test longer than it lasts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_chat::ids::{GroupId, LoginId, Millis, Platform, UserId};
use nexo_chat::membership::{
    GroupAct, GroupFacts, GroupProfile, History, JoinCode, Joining, NewGroup,
};
use nexo_chat::model::{Login, Profile, User};
use nexo_chat::policy::group::decide;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{About, Asker, Store};
use nexo_chat::token::{Claims, TokenKey};
use nexo_store::{Embedded, Options};
use tempfile::TempDir;

use crate::person::Person;
use crate::process::{Server, Setup};

const SECRET: &str = "what the tokens of a crowd are signed with";
const PLATFORM: Platform = Platform(5);
const BEGAN: Millis = Millis(1_700_000_000_000);
const LATER: Millis = Millis(4_102_444_800_000);

/// Writes that wait at a time.
const WAITING: usize = 4_000;
/// People who come into the group at a time.
const COMING: usize = 10_000;

/// How large a crowd is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// People in the group; the first owns it.
    pub members: usize,
    /// Those of them who are signed in.
    pub signed_in: usize,
    /// People outside of it, all of them signed in.
    pub outsiders: usize,
}

/// Many accounts and one group.
pub struct Crowd {
    /// The members who are signed in.
    pub members: Vec<Person>,
    /// The outsiders.
    pub outsiders: Vec<Person>,
    /// The group's id.
    pub group: String,
    /// How long it took to make the accounts.
    pub accounts_took: Duration,
    /// How long it took to make the group.
    pub group_took: Duration,
    folder: TempDir,
}

/// The id of the n-th of a crowd; ids sort like numbers.
pub fn name(n: usize) -> String {
    format!("crowd-{n:06}")
}

fn user(n: usize) -> UserId {
    UserId::parse(&name(n)).expect("a good id")
}

impl Crowd {
    /// Makes a crowd in a new folder.
    pub async fn new(size: Size) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> =
            Embedded::open(folder.path().join("data"), &Options::default()).expect("a store");
        let Size { members, signed_in, outsiders } = size;
        let since = Instant::now();
        register(&*store, members + outsiders).await;
        let accounts_took = since.elapsed();
        let inside = sign_in(&*store, (0..signed_in).collect()).await;
        let outside = sign_in(&*store, (members..members + outsiders).collect()).await;
        let since = Instant::now();
        let group = GroupId::parse("crowd").expect("a good id");
        gather(&*store, &group, members).await;
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

    /// Starts a server that knows the crowd; returns it with those who are signed in.
    pub fn start(self, setup: Setup) -> (Server, Vec<Person>, Vec<Person>) {
        let server = setup.with("NEXO_AUTH__JWT_SECRET", SECRET).start_on(self.folder);
        (server, self.members, self.outsiders)
    }
}

async fn register(store: &dyn Store, count: usize) {
    let all: Vec<usize> = (0..count).collect();
    for some in all.chunks(WAITING) {
        let account = |n: &usize| User {
            id: user(*n),
            profile: Profile { nickname: name(*n), ..Profile::default() },
            created_at: BEGAN,
            updated_at: BEGAN,
            password_hash: "none of them has a password".to_owned(),
            session_version: 1,
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
    for some in people.chunks(WAITING) {
        let kept: Vec<_> = some.iter().map(|n| store.create_login(login(*n), 1, BEGAN)).collect();
        for (kept, n) in kept.into_iter().zip(some) {
            let login = kept.await.expect("a store").expect("the version is right").login;
            let claims = Claims {
                user: login.user,
                login: login.id,
                platform: login.platform,
                session_version: 1,
                expires_at: LATER,
            };
            let token = key.sign(&claims, BEGAN).expect("a token");
            signed_in.push(Person { id: name(*n), token, refresh: String::new() });
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
        created_at: BEGAN,
        expires_at: LATER,
        refresh_hash,
        generation: 0,
        rotated_at: BEGAN,
        ended: false,
    }
}

/// Brings people into a new group by the real rules, many at a time.
async fn gather(store: &dyn Store, group: &GroupId, count: usize) {
    let people: Vec<UserId> = (0..count).map(user).collect();
    let mut parts = people.chunks(COMING);
    let first = parts.next().expect("at least one");
    let new = NewGroup {
        profile: GroupProfile { name: "Crowd".to_owned(), ..GroupProfile::default() },
        joining: Joining::Open,
        history: History::Joined,
        members: first.to_vec(),
        least: first.len(),
        code: JoinCode::random([9; 8]),
    };
    let invited = parts.map(|part| GroupAct::Invite(part.to_vec()));
    for act in std::iter::once(GroupAct::Create(new)).chain(invited) {
        let by = people[0].clone();
        let asker = Asker { user: by.clone(), at: BEGAN, origin: None };
        let about = About { users: act.users().to_vec(), code: act.code().cloned() };
        let rules = GroupRules { members_max: u32::MAX, ..GroupRules::default() };
        let id = group.clone();
        let decide = move |facts: &GroupFacts| decide(&rules, facts, &id, &by, &act, BEGAN);
        let done = store.change_group(group, asker, about, Box::new(decide)).await;
        done.expect("a store").expect("they may come");
    }
}
