//! Builds the server from its settings: store, bus, domain, two-phase acknowledgement, gateway.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use nexo_bus::{LocalBus, RedisBus, RedisBusOptions};
use nexo_chat::Chat;
use nexo_chat::bus::Bus;
use nexo_chat::clock::Rng;
use nexo_chat::keys::{Keys, Scope};
use nexo_chat::rules::Rules;
use nexo_chat::store::Store;
use nexo_chat::token::TokenKey;
use nexo_chat::word_filter::WordFilter;
use nexo_gateway::{Backups, Gateway};
use nexo_redis_link::NodeId;
use nexo_store::embedded::LogClock;
use nexo_store::{Embedded, Memory, MySql};
use nexo_two_phase::Coordinator;

use crate::backup::BackupService;
use crate::clock::{SystemClock, SystemRng};
use crate::config::Config;
use crate::identity;
use crate::metric_table;
use crate::passwords::Argon2id;
use crate::process_metrics::ProcessMetrics;
use crate::redact_url::without_password;
use crate::secrets::secret;
use crate::two_phase::TwoPhaseStartup;

/// A server ready to listen.
pub(crate) struct ServerParts {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) store: Arc<dyn Store>,
    /// The bus between nodes; `None` on a single node.
    pub(crate) redis: Option<Arc<RedisBus>>,
    pub(crate) two_phase: Option<Arc<Coordinator>>,
    /// Makes backups; `None` without a target.
    pub(crate) backups: Option<Arc<BackupService>>,
    pub(crate) metrics: PrometheusHandle,
}

/// Opens the store and builds everything on it. `connections_max` is what the descriptors allow.
pub(crate) async fn build(config: &Config, connections_max: usize) -> anyhow::Result<ServerParts> {
    let metrics = start_metrics()?;
    let embedded = match config.store.as_str() {
        "embedded" => Some(open_embedded(config)?),
        _ => None,
    };
    let store = match &embedded {
        Some(embedded) => Arc::clone(embedded) as Arc<dyn Store>,
        None => open_store(config).await?,
    };
    let mut node = [0; 16];
    SystemRng.fill(&mut node);
    let node = NodeId(node);
    let access = redis_access(config, node)?;
    let redis = connect_redis(access.as_ref())?;
    let bus: Arc<dyn Bus> = match &redis {
        Some(redis) => Arc::clone(redis) as Arc<dyn Bus>,
        None => Arc::new(LocalBus::new()),
    };
    let chat = chat(config, Arc::clone(&store), bus)?.with_instance(node.to_string());
    let chat = with_identity_provider(config, chat)?;
    let startup = TwoPhaseStartup::open(&config.two_phase, access, &chat).await?;
    let chat = match &startup {
        Some(startup) if config.two_phase.enabled => chat.with_two_phase(startup.contract()),
        _ => chat,
    };
    let folder = Path::new(&config.data);
    let chat = chat.with_keys(fixed_keys(config, folder)?);
    let (recorded, process) = (metrics.clone(), ProcessMetrics::new(folder));
    let gateway = Gateway::new(
        Arc::new(chat),
        config.gateway_options(connections_max),
        Box::new(move || {
            let mut page = recorded.render();
            process.render(&mut page);
            page
        }),
    );
    let two_phase = match startup {
        Some(startup) => Some(startup.start().await?),
        None => None,
    };
    let backups = BackupService::start(config, embedded)?;
    if let Some(backups) = &backups {
        gateway.set_backups(Arc::clone(backups) as Arc<dyn Backups>);
    }
    Ok(ServerParts { gateway, store, redis, two_phase, backups, metrics })
}

/// The tokens of the settings or the data folder, which work as API keys.
fn fixed_keys(config: &Config, folder: &Path) -> anyhow::Result<Keys> {
    let metrics = secret(&config.metrics.token, folder, "metrics.token", &SystemRng)?;
    let system = secret(&config.system.token, folder, "system.token", &SystemRng)?;
    let keys = Keys::default().with_fixed("metrics.token", &metrics, &[Scope::Metrics]);
    Ok(keys.with_fixed("system.token", &system, &[Scope::System, Scope::Admin]))
}

/// Builds the domain on a store and a bus.
pub(crate) fn chat(
    config: &Config,
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
) -> anyhow::Result<Chat> {
    let rng: Arc<dyn Rng> = Arc::new(SystemRng);
    let folder = Path::new(&config.data);
    let jwt_secret = secret(&config.auth.jwt_secret, folder, "jwt.secret", &*rng)?;
    let key = TokenKey::new(jwt_secret.as_bytes()).context("auth.jwt_secret is too short")?;
    let auth = &config.auth;
    let passwords = Argon2id::new(
        auth.argon2_memory_kib,
        auth.argon2_passes,
        auth.password_jobs_max,
        Arc::clone(&rng),
    )?;
    Ok(Chat::new(
        store,
        bus,
        Arc::new(SystemClock::new()),
        rng,
        Arc::new(passwords),
        Rules { word_filter: word_filter(&config.messages.words_file)?, ..config.rules() },
        key,
    ))
}

fn with_identity_provider(config: &Config, chat: Chat) -> anyhow::Result<Chat> {
    let verifier = identity::token_verifier(&config.auth.token, Arc::clone(&chat.clock))?;
    let chat = match verifier {
        Some(verifier) => chat.with_token_verifier(Arc::new(verifier)),
        None => chat,
    };
    let oidc = identity::oidc_sign_in(&config.auth.oidc, Arc::clone(&chat.clock))?;
    Ok(match oidc {
        Some(oidc) => chat.with_oidc(Arc::new(oidc)),
        None => chat,
    })
}

pub(crate) async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    if config.store == "embedded" {
        return Ok(open_embedded(config)?);
    }
    std::fs::create_dir_all(&config.data)
        .with_context(|| format!("cannot create {}", config.data))?;
    if config.store == "memory" {
        tracing::warn!("the memory store keeps nothing after a restart");
        return Ok(Memory::new());
    }
    let options = config.mysql.options(&config.store);
    let store = MySql::open(&options).await;
    Ok(store
        .with_context(|| format!("cannot use the database {}", without_password(&config.store)))?)
}

/// How to reach the other nodes.
pub(crate) struct RedisAccess {
    pub(crate) options: RedisBusOptions,
    /// Authenticates what nodes publish. Derived from the JWT secret, which only they know.
    pub(crate) key: [u8; 32],
}

fn redis_access(config: &Config, node: NodeId) -> anyhow::Result<Option<RedisAccess>> {
    if config.redis.is_empty() {
        return Ok(None);
    }
    let options = config.cluster.options(&config.redis, node);
    let folder = Path::new(&config.data);
    let secret = secret(&config.auth.jwt_secret, folder, "jwt.secret", &SystemRng)?;
    Ok(Some(RedisAccess { options, key: blake3::derive_key("nexo bus v1", secret.as_bytes()) }))
}

fn connect_redis(access: Option<&RedisAccess>) -> anyhow::Result<Option<Arc<RedisBus>>> {
    let Some(RedisAccess { options, key }) = access else { return Ok(None) };
    let redis = RedisBus::connect(options.clone(), *key);
    Ok(Some(redis.with_context(|| format!("cannot use {}", options.redis))?))
}

pub(crate) fn open_embedded(config: &Config) -> anyhow::Result<Arc<Embedded>> {
    let folder = Path::new(&config.data);
    let clock = LogClock::new(Arc::new(SystemClock::new()));
    let store = Embedded::open(folder, &nexo_store::Options { clock, ..config.embedded_options() })
        .context("cannot open the data folder")?; // the error names it
    Ok(store)
}

fn word_filter(file: &str) -> anyhow::Result<Option<Arc<WordFilter>>> {
    if file.is_empty() {
        return Ok(None);
    }
    let list = std::fs::read_to_string(file)
        .with_context(|| format!("messages.words_file: cannot read {file}"))?;
    let words = WordFilter::new(&list).with_context(|| format!("messages.words_file: {file}"))?;
    Ok(Some(Arc::new(words)))
}

/// Starts recording metrics. Histogram buckets: 50 µs to 10 s for times, up to a week for how long
/// messages wait for people, powers of four for sizes and counts.
fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let seconds = [
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
        0.5, 1.0, 2.5, 10.0,
    ];
    let sizes = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0];
    // A person may read a message only when they come back, perhaps next week.
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
