//! Writes the sample data folder that `tests/formats.rs` opens, for a new format:
//! `cargo run -p nexo-store --example make_fixture -- crates/store/tests/fixtures/v4`

use std::error::Error;
use std::fs;
use std::path::Path;

use nexo_chat::ids::{
    ClientMsgId, ConversationId, GroupId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::membership::{
    GroupAction, GroupFacts, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy,
    MemberProfileChange, NewGroup, Role,
};
use nexo_chat::model::{
    AccountDetails, Content, CursorKind, Draft, HiddenChange, HiddenMark, Login, LoginDevice,
    Profile, Receive, ReplyTo, SettingsChange, User,
};
use nexo_chat::policy::group::decide;
use nexo_chat::policy::send::Permit;
use nexo_chat::rules::GroupRules;
use nexo_chat::store::{
    AccountStore, Actor, Collection, ConversationStore, DocumentId, DocumentStore, DocumentWrite,
    GroupFactsQuery, GroupStore, LoginStore, MessageStore, RotateRequest, Store,
};
use nexo_store::{Embedded, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("where to?")?;
    fs::create_dir(&path)?;
    let store = Embedded::open(&path, &Options::default())?;
    let (alice, bob) = (UserId::parse("alice")?, UserId::parse("bob")?);
    for (n, id) in [&alice, &bob].into_iter().enumerate() {
        store.create_user(account(id)).await?;
        store.create_login(login(id, u8::try_from(n)? + 1), 1, Millis(1000)).await?;
    }
    let rotation = RotateRequest {
        old_hash: [1; 32],
        new_hash: [11; 32],
        expires_at: Millis(9_000_000),
        now: Millis(2000),
        at: Millis(2000),
        grace_ms: 0,
    };
    store.rotate_refresh_token(rotation).await?;
    let second = UserId::clone(&bob);
    store.end_logins(&second, Box::new(|_| true)).await?;
    for n in 1..=10 {
        let sender = if n % 2 == 1 { &alice } else { &bob };
        store.append(Permit::for_tests(), draft(sender, &alice, &bob, n)?).await?;
    }
    let conversation = ConversationId::private(&alice, &bob);
    store.advance_cursor(&alice, &conversation, CursorKind::Delivered, Seq(10)).await?;
    let hidden = HiddenMark { seq: Seq(10), since: Millis(0) };
    let pinned = SettingsChange {
        pinned: Some(true),
        receive: Some(Receive::Silent),
        hidden: Some(HiddenChange::Hide(hidden)),
        extra: Some("mine".into()),
    };
    store.update_settings(&alice, &conversation, pinned).await?;
    group(&store, &alice, &bob).await?;
    let is_bot = |before: &User| {
        let details = AccountDetails { is_bot: true, ..AccountDetails::default() };
        Some(User { details, ..before.clone() })
    };
    store.change_account(&bob, Box::new(is_bot)).await?;
    let id = DocumentId::new(Collection::Settings, "sample");
    let write = DocumentWrite::put(id.clone(), b"body".to_vec());
    store.change_documents(&id, Box::new(move |_| vec![write.clone()])).await?;
    store.close().await?;
    drop(store);
    trim(&Path::new(&path).join("log"))
}

/// Creates a group of both: a message sent without read, a mute, and a join request.
async fn group(store: &Embedded, alice: &UserId, bob: &UserId) -> Result<(), Box<dyn Error>> {
    let id = GroupId::parse("group")?;
    let new = NewGroup {
        profile: GroupProfile { name: "Sample".into(), group_type: 7, ..GroupProfile::default() },
        joining: JoinPolicy::Approval,
        history: HistoryPolicy::Joined,
        members: vec![bob.clone()],
        members_min: 1,
        code: JoinCode::random([1, 2, 3, 4, 5, 6, 7, 8]),
    };
    let profile = MemberProfileChange {
        nickname: Some("Bobby".into()),
        extra: Some("{}".into()),
        ..MemberProfileChange::default()
    };
    let (carol, message) = (UserId::parse("carol")?, "let me in".to_owned());
    for (by, act) in [
        (alice, GroupAction::Create(new)),
        (alice, GroupAction::SetRole(bob.clone(), Role::Admin)),
        (alice, GroupAction::Mute(bob.clone(), Millis(1_800_000_000_000))),
        (bob, GroupAction::SetProfile(profile)),
        (&carol, GroupAction::Join { message, inviter: None }),
    ] {
        let asker = Actor { user: by.clone(), at: Millis(5000), origin: None };
        let about = GroupFactsQuery { users: act.users().to_vec(), code: act.code().cloned() };
        let (group, by) = (id.clone(), by.clone());
        let decide = Box::new(move |facts: &GroupFacts| {
            decide(&GroupRules::default(), facts, &group, &by, &act, Millis(5000))
        });
        store.change_group(&id, asker, about, decide).await??;
    }
    let quiet = draft(alice, alice, bob, 12)?;
    let quiet = Draft { conversation: id.conversation(), marks_read: false, ..quiet };
    store.append(Permit::for_tests(), quiet).await?;
    Ok(())
}

fn account(id: &UserId) -> User {
    User {
        id: id.clone(),
        profile: Profile {
            nickname: id.as_str().to_uppercase(),
            avatar: "picture".into(),
            extra: "{}".into(),
        },
        created_at: Millis(1000),
        updated_at: Millis(1000),
        password_hash: "$argon2id$…".into(),
        session_version: 1,
        details: AccountDetails::default(),
    }
}

fn login(user: &UserId, n: u8) -> Login {
    Login {
        id: LoginId([n; 16]),
        user: user.clone(),
        platform: Platform(5),
        created_at: Millis(1000),
        expires_at: Millis(5_000_000),
        refresh_hash: [n; 32],
        generation: 0,
        rotated_at: Millis(1000),
        ended: false,
        device: LoginDevice { address: "::1".into(), name: "sample".into() },
    }
}

fn draft(sender: &UserId, a: &UserId, b: &UserId, n: u64) -> Result<Draft, Box<dyn Error>> {
    let mut content = Content::text(format!("message {n}"));
    if n == 10 {
        content.extra.insert("colour".into(), "red".into());
        content.mentions.push(a.clone());
        let message = MessageId::of(a, &ClientMsgId::parse("client 9")?);
        content.reply_to = Some(ReplyTo { message, sender: a.clone() });
    }
    Ok(Draft {
        conversation: ConversationId::private(a, b),
        sender: sender.clone(),
        client_id: ClientMsgId::parse(&format!("client {n}"))?,
        content,
        sent_at: Millis(1_700_000_000_000 + n),
        cleaned: None,
        origin: None,
        marks_read: true,
    })
}

/// Segments are preallocated; the sample needs only what was written.
fn trim(log: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(log)? {
        let path = entry?.path();
        let mut bytes = fs::read(&path)?;
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(end + 8); // the last entry may end in zeros
        fs::write(&path, bytes)?;
    }
    Ok(())
}
