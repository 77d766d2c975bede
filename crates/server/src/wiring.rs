//! The parts put together.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use nexo_bus::{self as bus, NodeId, Redis, RedisOptions};
use nexo_chat::Chat;
use nexo_chat::bus::Bus;
use nexo_chat::clock::Dice;
use nexo_chat::rules::{Registration, Rules, SessionPolicy};
use nexo_chat::store::Store;
use nexo_chat::token::TokenKey;
use nexo_chat::words::Words;
use nexo_gateway::{Gateway, Options};
use nexo_intake::TwoPhase;
use nexo_store::{Embedded, Memory, MySql};

use crate::clock::{SystemClock, SystemDice};
use crate::cluster_settings::shown;
use crate::config::{Config, burst};
use crate::early::Early;
use crate::figures::{Figures, VERSION};
use crate::metric_table;
use crate::passwords::Argon2id;
use crate::secrets::secret;

/// A server ready to listen.
pub(crate) struct Parts {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) store: Arc<dyn Store>,
    /// What other nodes are reached through.
    pub(crate) redis: Option<Arc<Redis>>,
    /// Who takes messages in before they are saved.
    pub(crate) two_phase: Option<Arc<TwoPhase>>,
    pub(crate) metrics: PrometheusHandle,
}

/// Opens the store and builds everything on it.
pub(crate) async fn build(config: &Config) -> anyhow::Result<Parts> {
    let metrics = start_metrics()?;
    let store = open_store(config).await?;
    let mut node = [0; 16];
    SystemDice.fill(&mut node);
    let node = NodeId(node);
    let shared = redis_options(config, node)?;
    let redis = open_redis(shared.as_ref())?;
    let bus: Arc<dyn Bus> = match &redis {
        Some(redis) => Arc::clone(redis) as Arc<dyn Bus>,
        None => Arc::new(bus::Local::new()),
    };
    let chat = chat(config, Arc::clone(&store), bus)?.with_instance(node.to_string());
    let early = Early::open(&config.two_phase, shared, &chat).await?;
    let chat = match &early {
        Some(early) if config.two_phase.enabled => chat.with_intake(early.intake()),
        _ => chat,
    };
    let folder = Path::new(&config.data);
    let metrics_token = secret(&config.metrics.token, folder, "metrics.token", &SystemDice)?;
    let system_token = secret(&config.system.token, folder, "system.token", &SystemDice)?;
    let (page, figures) = (metrics.clone(), Figures::new(folder));
    let gateway = Gateway::new(
        Arc::new(chat),
        Options {
            metrics_token: Some(metrics_token),
            system_token: Some(system_token),
            ..options(config)
        },
        Box::new(move || {
            let mut text = page.render();
            figures.render(&mut text);
            text
        }),
    );
    let two_phase = match early {
        Some(early) => Some(early.start().await?),
        None => None,
    };
    Ok(Parts { gateway, store, redis, two_phase, metrics })
}

/// Builds the domain on a store and a bus.
pub(crate) fn chat(
    config: &Config,
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
) -> anyhow::Result<Chat> {
    let dice: Arc<dyn Dice> = Arc::new(SystemDice);
    let folder = Path::new(&config.data);
    let jwt_secret = secret(&config.auth.jwt_secret, folder, "jwt.secret", &*dice)?;
    let key = TokenKey::new(jwt_secret.as_bytes()).context("auth.jwt_secret is too short")?;
    let auth = &config.auth;
    let passwords = Argon2id::new(
        auth.argon2_memory_kib,
        auth.argon2_passes,
        auth.password_jobs_max,
        Arc::clone(&dice),
    )?;
    Ok(Chat::new(
        store,
        bus,
        Arc::new(SystemClock::new()),
        dice,
        Arc::new(passwords),
        Rules { words: words(&config.messages.words_file)?, ..rules(config) },
        key,
    ))
}

pub(crate) async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    if config.store == "embedded" {
        return open_embedded(config);
    }
    std::fs::create_dir_all(&config.data)
        .with_context(|| format!("cannot make {}", config.data))?;
    if config.store == "memory" {
        tracing::warn!("the memory store forgets everything at the end");
        return Ok(Memory::new());
    }
    let options = config.mysql.options(&config.store);
    let store = MySql::open(&options).await;
    Ok(store.with_context(|| format!("cannot use the database {}", shown(&config.store)))?)
}

/// Where other nodes are found, and a key that only they can make: what they tell each other nobody
/// else can make up.
pub(crate) type Shared = (RedisOptions, [u8; 32]);

fn redis_options(config: &Config, node: NodeId) -> anyhow::Result<Option<Shared>> {
    if config.redis.is_empty() {
        return Ok(None);
    }
    let options = config.cluster.options(&config.redis, node);
    let folder = Path::new(&config.data);
    let secret = secret(&config.auth.jwt_secret, folder, "jwt.secret", &SystemDice)?;
    Ok(Some((options, blake3::derive_key("nexo bus v1", secret.as_bytes()))))
}

/// Reaches the other nodes, if there may be any.
fn open_redis(shared: Option<&Shared>) -> anyhow::Result<Option<Arc<Redis>>> {
    let Some((options, key)) = shared else { return Ok(None) };
    let redis = Redis::connect(options.clone(), *key);
    Ok(Some(redis.with_context(|| format!("cannot use {options}"))?))
}

/// Opens the data folder.
pub(crate) fn open_embedded(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let folder = Path::new(&config.data);
    let options = nexo_store::Options {
        cache_bytes: config.embedded.cache_mib.saturating_mul(1024 * 1024),
        memtable_bytes: config.embedded.memtable_mib.saturating_mul(1024 * 1024),
        reserve_bytes: config.embedded.reserve_mib.saturating_mul(1024 * 1024),
        ..nexo_store::Options::default()
    };
    let store = Embedded::open(folder, &options)
        .with_context(|| format!("cannot open the data folder {}", folder.display()))?;
    Ok(store)
}

fn rules(config: &Config) -> Rules {
    let limits = &config.limits;
    Rules {
        session_policy: match config.session.policy.as_str() {
            "single" => SessionPolicy::Single,
            "per_platform" => SessionPolicy::PerPlatform,
            _ => SessionPolicy::Multi,
        },
        connections_max: config.session.connections_max,
        access_ttl_ms: config.auth.access_token_seconds.saturating_mul(1000),
        refresh_ttl_ms: config.auth.refresh_token_seconds.saturating_mul(1000),
        text_chars_max: limits.text_chars,
        content_bytes_max: limits.content_bytes,
        extra_entries_max: limits.extra_entries,
        resend_page: config.resend.page,
        page_bytes_max: config.resend.page_bytes,
        words: None,
        recall_window_ms: config.messages.recall_seconds.saturating_mul(1000),
        preview_ms: config.two_phase.preview_seconds.saturating_mul(1000),
        refresh_grace_ms: config.auth.refresh_grace_seconds.saturating_mul(1000),
        user_sends_per_second: limits.user_sends_per_second,
        user_sends_burst: burst(limits.user_sends_burst, limits.user_sends_per_second),
        user_requests_per_second: limits.user_requests_per_second,
        user_requests_burst: burst(limits.user_requests_burst, limits.user_requests_per_second),
        registration: match config.auth.registration.as_str() {
            "closed" => Registration::Closed,
            _ => Registration::Open,
        },
        registrations_per_minute: limits.registrations_per_minute,
        groups: config.groups.rules(&config.receipts),
    }
}

fn options(config: &Config) -> Options {
    let (limits, gateway) = (&config.limits, &config.gateway);
    Options {
        frame_bytes_max: limits.frame_bytes,
        body_bytes_max: limits.frame_bytes,
        auth_timeout: Duration::from_millis(gateway.auth_timeout_ms),
        header_timeout: Duration::from_millis(gateway.header_timeout_ms),
        ping_after_ms: gateway.ping_after_ms,
        idle_timeout_ms: gateway.idle_timeout_ms,
        frames_per_second: limits.connection_frames_per_second,
        frames_burst: burst(limits.connection_frames_burst, limits.connection_frames_per_second),
        outbox_low_bytes: gateway.outbox_low_bytes,
        outbox_high_bytes: gateway.outbox_high_bytes,
        unwritable_close_ms: gateway.unwritable_close_ms,
        connections_max: limits.connections_max,
        allowed_origins: gateway.allowed_origins.clone(),
        trusted_proxies: trusted_proxies(config),
        write_timeout: Duration::from_millis(gateway.write_timeout_ms),
        metrics_token: None,
        system_token: None,
        drain: Duration::from_millis(gateway.drain_ms),
        version: VERSION.to_owned(),
    }
}

fn words(file: &str) -> anyhow::Result<Option<Arc<Words>>> {
    if file.is_empty() {
        return Ok(None);
    }
    let list = std::fs::read_to_string(file)
        .with_context(|| format!("messages.words_file: cannot read {file}"))?;
    let words = Words::new(&list).with_context(|| format!("messages.words_file: {file}"))?;
    Ok(Some(Arc::new(words)))
}

/// Addresses that are none were refused when the settings were read.
fn trusted_proxies(config: &Config) -> Vec<IpAddr> {
    config.gateway.trusted_proxies.iter().filter_map(|address| address.parse().ok()).collect()
}

/// Buckets from 50 µs to 10 s for times, up to a week for what people wait for, powers of four for sizes and counts.
fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let seconds = [
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
        0.5, 1.0, 2.5, 10.0,
    ];
    let sizes = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0];
    // People answer when they come back, maybe next week.
    let waits = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0, 21_600.0,
        86_400.0, 604_800.0,
    ];
    let [delivered, read] = ["nexo_saved_to_delivered_seconds", "nexo_delivered_to_read_seconds"];
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(delivered.into()), &waits)?
        .set_buckets_for_metric(Matcher::Full(read.into()), &waits)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &seconds)?
        .set_buckets(&sizes)?;
    let recorder = builder.install_recorder()?;
    metric_table::describe();
    Ok(recorder)
}
