//! The clock of the machine is set back while the server runs: what was used up stays used up.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nexo_bus::LocalBus;
use nexo_chat::auth::{self, PasswordLogin, RegisterRequest, SignInDevice, Tokens};
use nexo_chat::clock::{Clock, Rng};
use nexo_chat::ids::{Millis, Platform};
use nexo_chat::model::Profile;
use nexo_chat::passwords::Passwords;
use nexo_chat::rules::Rules;
use nexo_chat::token::TokenKey;
use nexo_chat::{Boxed, Chat, Error, Reason};
use nexo_store::Memory;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PASSWORD: &str = "correct horse battery";

/// A clock that the test sets; its ticks only go on.
#[derive(Default)]
struct SetClock {
    wall: AtomicU64,
    ticks: AtomicU64,
}

impl SetClock {
    fn pass(&self, ms: u64) {
        self.wall.fetch_add(ms, Ordering::Relaxed);
        self.ticks.fetch_add(ms, Ordering::Relaxed);
    }

    fn set_back(&self, ms: u64) {
        self.wall.fetch_sub(ms, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Millis {
        Millis(self.wall.load(Ordering::Relaxed))
    }

    fn ticks(&self) -> Millis {
        Millis(self.ticks.load(Ordering::Relaxed))
    }

    fn sleep(&self, ms: u64) -> Boxed<'static, ()> {
        self.pass(ms);
        Box::pin(std::future::ready(()))
    }
}

/// Counts, so that no two tokens are alike.
#[derive(Default)]
struct CountingRng(AtomicU64);

impl Rng for CountingRng {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes.iter_mut().zip(number.iter().cycle()).for_each(|(byte, number)| *byte = *number);
    }
}

struct PlainPasswords;

impl Passwords for PlainPasswords {
    fn hash(&self, password: String) -> Boxed<'_, Result<String, Error>> {
        Box::pin(std::future::ready(Ok(password)))
    }

    fn verify(&self, password: String, hash: Option<String>) -> Boxed<'_, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(hash == Some(password))))
    }
}

/// A server's domain with alice signed in.
async fn signed_in() -> (Chat, Arc<SetClock>, Tokens) {
    let clock = Arc::new(SetClock::default());
    clock.pass(1_800_000_000_000);
    let chat = Chat::new(
        Memory::new(),
        Arc::new(LocalBus::new()),
        Arc::clone(&clock) as Arc<dyn Clock>,
        Arc::new(CountingRng::default()),
        Arc::new(PlainPasswords),
        Rules::default(),
        TokenKey::new(b"a secret of at least 32 bytes for tests").unwrap(),
    );
    let profile = Profile { nickname: "Alice".into(), ..Profile::default() };
    let request = RegisterRequest {
        user_id: Some("alice".into()),
        profile,
        password: PASSWORD.into(),
        invite: None,
    };
    auth::register(&chat, HERE, request).await.unwrap();
    let device = SignInDevice { address: HERE, platform: Platform(5), name: String::new() };
    let request =
        PasswordLogin { user_id: "alice".into(), password: PASSWORD.into(), totp_code: None };
    let signed_in = auth::login(&chat, request, &device).await;
    let (tokens, _) = signed_in.unwrap();
    (chat, clock, tokens)
}

async fn refresh(chat: &Chat, token: &str) -> Result<Tokens, Reason> {
    auth::refresh(chat, token).await.map(|(tokens, _)| tokens).map_err(|error| error.reason())
}

#[tokio::test]
async fn a_used_refresh_token_stays_used() {
    for back_ms in [55_000, 61_000, 3_600_000, 400 * 24 * 3_600_000] {
        let (chat, clock, tokens) = signed_in().await;
        let next = refresh(&chat, &tokens.refresh).await.unwrap();
        assert_eq!(refresh(&chat, &tokens.refresh).await.unwrap().refresh, next.refresh, "a retry");
        clock.pass(61_000);
        clock.set_back(back_ms);
        let again = refresh(&chat, &tokens.refresh).await;
        assert_eq!(again.unwrap_err(), Reason::InvalidRefreshToken, "set back by {back_ms}");
        let stolen = refresh(&chat, &next.refresh).await;
        assert_eq!(stolen.unwrap_err(), Reason::InvalidRefreshToken, "the theft ended the sign-in");
    }
}

#[tokio::test]
async fn a_clock_that_is_corrected_signs_nobody_out() {
    let (chat, clock, tokens) = signed_in().await;
    // A year ahead for a moment, as a machine before it has asked for the time.
    let year = 365 * 24 * 3_600_000;
    clock.pass(1000);
    clock.wall.fetch_add(year, Ordering::Relaxed);
    assert!(refresh(&chat, "nonsense").await.is_err());
    clock.set_back(year);
    let next = refresh(&chat, &tokens.refresh).await.unwrap();
    clock.pass(1000);
    let again = refresh(&chat, &tokens.refresh).await.unwrap();
    assert_eq!(again.refresh, next.refresh, "a lost answer is repeated as ever");
    clock.pass(3_600_000);
    assert!(refresh(&chat, &next.refresh).await.is_ok());
}
