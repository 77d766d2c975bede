//! The public keys that an identity provider publishes.

use std::sync::Arc;

use nexo_chat::clock::Clock;
use nexo_chat::external_token::{KeySet, KeySource};
use nexo_chat::{Boxed, Error};
use reqwest::Client;

use super::refreshed::Refreshed;

pub(crate) struct Jwks(Refreshed<KeySet>);

impl Jwks {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, url: String, fresh_ms: u64) -> Self {
        Self(Refreshed::new(client, clock, url, fresh_ms, |body| Ok(KeySet::parse(body)?)))
    }

    pub(crate) fn url(&self) -> &str {
        self.0.url()
    }
}

impl KeySource for Jwks {
    fn keys<'a>(&'a self, kid: Option<&'a str>) -> Boxed<'a, Result<Arc<KeySet>, Error>> {
        Box::pin(self.0.get(move |keys| kid.is_none_or(|kid| keys.has(kid))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use nexo_chat::ids::Millis;
    use nexo_sim::IdentityProvider;

    use super::*;
    use crate::identity::http_client;

    const FRESH_MS: u64 = 600_000;

    /// A clock that the test moves.
    #[derive(Default)]
    struct ManualClock(AtomicU64);

    impl ManualClock {
        fn pass(&self, ms: u64) {
            self.0.fetch_add(ms, Ordering::Relaxed);
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> Millis {
            self.ticks()
        }

        fn ticks(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }

        fn sleep(&self, _ms: u64) -> Boxed<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    async fn setup() -> (IdentityProvider, Arc<ManualClock>, Arc<Jwks>) {
        let provider = IdentityProvider::start().await;
        let clock = Arc::new(ManualClock::default());
        let client = http_client::client().unwrap();
        let clock_of_keys = Arc::clone(&clock) as Arc<dyn Clock>;
        let jwks = Arc::new(Jwks::new(client, clock_of_keys, provider.jwks_url(), FRESH_MS));
        (provider, clock, jwks)
    }

    async fn has(jwks: &Jwks, kid: &str) -> bool {
        jwks.keys(Some(kid)).await.unwrap().has(kid)
    }

    #[tokio::test]
    async fn ten_thousand_invented_ids_are_one_request_in_half_a_minute() {
        let (provider, clock, jwks) = setup().await;
        assert!(has(&jwks, "first").await);
        assert_eq!(provider.key_requests(), 1);
        clock.pass(30_000);
        let asking = (0..10_000).map(|n| {
            let jwks = Arc::clone(&jwks);
            tokio::spawn(async move { has(&jwks, &format!("invented {n}")).await })
        });
        for asked in asking.collect::<Vec<_>>() {
            assert!(!asked.await.unwrap());
        }
        assert_eq!(provider.key_requests(), 2);
        clock.pass(29_999);
        assert!(!has(&jwks, "another").await);
        assert_eq!(provider.key_requests(), 2);
        clock.pass(1);
        assert!(!has(&jwks, "another").await);
        assert_eq!(provider.key_requests(), 3);
    }

    #[tokio::test]
    async fn keys_are_fetched_when_they_are_old_or_one_is_missing() {
        let (provider, clock, jwks) = setup().await;
        for _ in 0..5 {
            assert!(has(&jwks, "first").await);
        }
        assert_eq!(provider.key_requests(), 1, "they are fresh");
        provider.publish(&["first", "second"]);
        clock.pass(30_000);
        assert!(has(&jwks, "second").await, "a missing one is looked for");
        assert_eq!(provider.key_requests(), 2);
        provider.publish(&["second"]);
        clock.pass(FRESH_MS - 1);
        assert!(has(&jwks, "first").await);
        clock.pass(1);
        assert!(!has(&jwks, "first").await, "they are old: the provider withdrew it");
        assert_eq!(provider.key_requests(), 3);
    }

    #[tokio::test]
    async fn old_keys_are_used_while_the_provider_is_away() {
        let (provider, clock, jwks) = setup().await;
        provider.set_away(true);
        assert!(jwks.keys(None).await.is_err(), "nothing is known");
        assert!(jwks.keys(None).await.is_err());
        assert_eq!(provider.key_requests(), 1, "not at every request");
        provider.set_away(false);
        clock.pass(2000);
        assert!(has(&jwks, "first").await, "tried soon while nothing is known");
        provider.set_away(true);
        for day in 1..=3 {
            clock.pass(24 * 60 * 60 * 1000);
            assert!(has(&jwks, "first").await, "day {day}");
            assert!(has(&jwks, "first").await, "day {day}");
            assert_eq!(
                provider.key_requests(),
                2 + day,
                "an attempt a day: nobody asked more often"
            );
        }
        // A provider that publishes nothing usable is as good as away.
        provider.set_away(false);
        provider.publish(&[]);
        clock.pass(30_000);
        assert!(has(&jwks, "first").await);
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_does_not_use_up_the_attempt() {
        let (provider, _, jwks) = setup().await;
        {
            let mut asking = Box::pin(jwks.keys(Some("first")));
            let polled = std::future::poll_fn(|context| {
                std::task::Poll::Ready(asking.as_mut().poll(context).is_pending())
            });
            assert!(polled.await, "it waits for the provider");
        }
        assert!(has(&jwks, "first").await);
        assert_eq!(provider.key_requests(), 1);
    }
}
