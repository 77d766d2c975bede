//! Writes the sample data folder that `tests/formats.rs` opens, for a new format:
//! `cargo run -p nexo-store --example make_fixture -- crates/store/tests/fixtures/v1`

use std::error::Error;
use std::fs;
use std::path::Path;

use nexo_chat::ids::{
    ClientMsgId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{Content, CursorKind, Draft, Login, Profile, User};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::Store;
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
    store.rotate([1; 32], [11; 32], Millis(9_000_000), Millis(2000), 0).await?;
    let second = UserId::clone(&bob);
    store.end_logins(&second, Box::new(|_| true)).await?;
    for n in 1..=10 {
        let sender = if n % 2 == 1 { &alice } else { &bob };
        store.append(Permit::for_tests(), draft(sender, &alice, &bob, n)?).await?;
    }
    let conversation = ConversationId::private(&alice, &bob);
    store.advance(&alice, &conversation, CursorKind::Delivered, Seq(10)).await?;
    store.close().await?;
    drop(store);
    trim(&Path::new(&path).join("lsm"))
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
        password_hash: "$argon2id$…".into(),
        session_version: 1,
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
    }
}

fn draft(sender: &UserId, a: &UserId, b: &UserId, n: u64) -> Result<Draft, Box<dyn Error>> {
    let mut content = Content::text(format!("message {n}"));
    if n == 10 {
        content.extra.insert("colour".into(), "red".into());
        content.mentions.push(a.clone());
        content.reply_to = Some(MessageId::of(a, &ClientMsgId::parse("client 9")?));
    }
    Ok(Draft {
        conversation: ConversationId::private(a, b),
        sender: sender.clone(),
        client_id: ClientMsgId::parse(&format!("client {n}"))?,
        content,
        sent_at: Millis(1_700_000_000_000 + n),
        cleaned: None,
        origin: None,
    })
}

/// The journal is made 64 MiB long in advance; the sample needs only what is written.
fn trim(tree: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(tree)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let mut bytes = fs::read(&path)?;
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(end);
            fs::write(&path, bytes)?;
        }
    }
    Ok(())
}
