//! Turns the settings into the options of the crates that use them.

use std::path::PathBuf;
use std::time::Duration;

use nexo_backup::{Keep, S3Options};
use nexo_bus::RedisBusOptions;
use nexo_chat::rules::{
    DeliveryStrategy, GroupRules, PasswordRules, RegistrationPolicy, Rules, SessionPolicy,
};
use nexo_gateway::IpNetwork;
use nexo_redis_link::{NodeId, RedisOptions};
use nexo_store::MySqlOptions;

use super::{BackupSettings, ClusterSettings, Config, MySqlSettings, TwoPhaseSettings};
use crate::descriptors;
use crate::process_metrics::VERSION;

impl Config {
    /// The domain's rules, without the word filter, which is read from its file.
    pub(crate) fn rules(&self) -> Rules {
        let limits = &self.limits;
        Rules {
            session_policy: match self.session.policy.as_str() {
                "single" => SessionPolicy::Single,
                "per_platform" => SessionPolicy::PerPlatform,
                _ => SessionPolicy::Multi,
            },
            connections_max: self.session.connections_max,
            access_ttl_ms: millis(self.auth.access_token_seconds),
            refresh_ttl_ms: millis(self.auth.refresh_token_seconds),
            text_chars_max: limits.text_chars,
            content_bytes_max: limits.content_bytes,
            extra_entries_max: limits.extra_entries,
            resend_page: self.resend.page,
            page_bytes_max: self.resend.page_bytes,
            word_filter: None,
            recall_window_ms: millis(self.messages.recall_seconds),
            preview_ms: millis(self.two_phase.preview_seconds),
            refresh_grace_ms: millis(self.auth.refresh_grace_seconds),
            user_sends_per_second: limits.user_sends_per_second,
            user_sends_burst: burst(limits.user_sends_burst, limits.user_sends_per_second),
            user_requests_per_second: limits.user_requests_per_second,
            user_requests_burst: burst(limits.user_requests_burst, limits.user_requests_per_second),
            registration: match self.auth.registration.as_str() {
                "closed" => RegistrationPolicy::Closed,
                "invite" => RegistrationPolicy::Invite,
                _ => RegistrationPolicy::Open,
            },
            members_invite: self.auth.invites_by == "members",
            registrations_per_minute: limits.registrations_per_minute,
            strangers_per_hour: self.accounts.strangers_per_hour,
            broadcast_per_second: self.accounts.broadcast_per_second,
            tell_blocked: self.accounts.tell_blocked,
            passwords: PasswordRules {
                min_chars: self.auth.password_min_chars,
                refuse_common: self.auth.password_common,
            },
            groups: self.group_rules(),
        }
    }

    fn group_rules(&self) -> GroupRules {
        let groups = &self.groups;
        GroupRules {
            members_max: groups.members_max,
            admins_max: groups.admins_max,
            per_user_max: groups.per_user_max,
            by_strangers_per_hour: groups.by_strangers_per_hour,
            batch_max: groups.batch_max,
            requests_max: groups.join_requests_max,
            mentions_max: groups.mentions_max,
            code_cooldown_ms: millis(groups.code_cooldown_seconds),
            receipts_members_max: self.receipts.group_members_max,
            strategy: strategy(&groups.strategy).unwrap_or_default(),
            notify_members: groups.notify_members,
            notify_online: groups.notify_online,
            none_members: groups.none_members,
            none_online: groups.none_online,
        }
    }

    /// The gateway's options, with so many connections as there are file descriptors for.
    pub(crate) fn gateway_options(&self, connections_max: usize) -> nexo_gateway::Options {
        let (limits, gateway) = (&self.limits, &self.gateway);
        nexo_gateway::Options {
            frame_bytes_max: limits.frame_bytes,
            body_bytes_max: limits.frame_bytes,
            auth_timeout: Duration::from_millis(gateway.auth_timeout_ms),
            header_timeout: Duration::from_millis(gateway.header_timeout_ms),
            ping_after_ms: gateway.ping_after_ms,
            idle_timeout_ms: gateway.idle_timeout_ms,
            frames_per_second: limits.connection_frames_per_second,
            frames_burst: burst(
                limits.connection_frames_burst,
                limits.connection_frames_per_second,
            ),
            outbox_low_bytes: gateway.outbox_low_bytes,
            outbox_high_bytes: gateway.outbox_high_bytes,
            receipt_delay: Duration::from_millis(self.receipts.delay_ms),
            unwritable_close_ms: gateway.unwritable_close_ms,
            connections_max,
            connections_per_address: limits.connections_per_address,
            unauthenticated_max: match limits.unauthenticated_max {
                0 => (connections_max / 4).max(1),
                max => max.min(connections_max),
            },
            allowed_origins: gateway.allowed_origins.clone(),
            trusted_proxies: self.trusted_proxies(),
            token_in_query: gateway.token_in_query,
            write_timeout: Duration::from_millis(gateway.write_timeout_ms),
            drain: Duration::from_millis(gateway.drain_ms),
            version: VERSION.to_owned(),
        }
    }

    /// Loading the settings has refused everything that is not an IP address or a network.
    fn trusted_proxies(&self) -> Vec<IpNetwork> {
        self.gateway.trusted_proxies.iter().filter_map(|network| network.parse().ok()).collect()
    }

    pub(crate) fn embedded_options(&self) -> nexo_store::Options {
        let bytes = |mib: u64| mib.saturating_mul(1024 * 1024);
        nexo_store::Options {
            cache_bytes: bytes(self.embedded.cache_mib),
            memtable_bytes: bytes(self.embedded.memtable_mib),
            reserve_bytes: bytes(self.embedded.reserve_mib),
            table_files_max: descriptors::table_files(descriptors::limit()),
            ..nexo_store::Options::default()
        }
    }
}

impl BackupSettings {
    pub(crate) fn s3_options(&self) -> S3Options {
        S3Options {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            access_key_id: self.s3_access_key_id.clone(),
            secret_access_key: self.s3_secret_access_key.clone(),
        }
    }

    pub(crate) fn keep(&self) -> Keep {
        Keep { last: self.keep_last, days: self.keep_days }
    }
}

impl MySqlSettings {
    pub(crate) fn options(&self, url: &str) -> MySqlOptions {
        MySqlOptions {
            ca_file: optional_path(&self.ca_file),
            connections_max: self.connections_max,
            committers: self.committers,
            patience: Duration::from_millis(self.patience_ms),
            statement: Duration::from_millis(self.statement_ms),
            ..MySqlOptions::new(url)
        }
    }
}

impl ClusterSettings {
    pub(crate) fn options(&self, urls: &str, node: NodeId) -> RedisBusOptions {
        let redis = RedisOptions {
            ca_file: optional_path(&self.ca_file),
            prefix: self.prefix.clone(),
            ..RedisOptions::new(urls, node)
        };
        RedisBusOptions {
            node_ttl: Duration::from_millis(self.node_ttl_ms),
            heartbeat: Duration::from_millis((self.node_ttl_ms / 3).max(1)),
            ..RedisBusOptions::new(redis)
        }
    }
}

impl TwoPhaseSettings {
    pub(crate) fn options(&self) -> nexo_two_phase::Options {
        nexo_two_phase::Options {
            deliver_before_saved: self.deliver_before_saved,
            fail_open: self.fail_open,
            groups: self.groups,
            batch_size: self.batch_size,
            block: Duration::from_millis(self.block_ms),
            tries_max: self.tries_max,
            ..nexo_two_phase::Options::default()
        }
    }

    /// The share of the backlog that one shard may hold.
    pub(crate) fn shard_max(&self) -> usize {
        (self.backlog_max / self.shards.max(1)).max(1)
    }
}

pub(super) fn strategy(name: &str) -> Option<DeliveryStrategy> {
    match name {
        "push" => Some(DeliveryStrategy::Push),
        "notify" => Some(DeliveryStrategy::Notify),
        "none" => Some(DeliveryStrategy::None),
        "auto" => Some(DeliveryStrategy::Auto),
        _ => None,
    }
}

/// A burst of 0 stands for two seconds' worth.
fn burst(burst: u32, per_second: u32) -> u32 {
    if burst == 0 { per_second.saturating_mul(2) } else { burst }
}

fn millis(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}

fn optional_path(file: &str) -> Option<PathBuf> {
    Some(file).filter(|file| !file.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    #[track_caller]
    fn assert_same(from_settings: &impl Debug, own: &impl Debug) {
        assert_eq!(format!("{from_settings:#?}"), format!("{own:#?}"));
    }

    /// The crates have defaults of their own, for their tests and for tools that take no settings.
    #[test]
    fn the_crates_defaults_are_those_of_the_settings() {
        let config = Config::default();
        assert_same(&config.rules(), &Rules::default());
        let gateway = config.gateway_options(config.limits.connections_max);
        assert_same(&gateway, &nexo_gateway::Options::default());
        assert_same(&config.two_phase.options(), &nexo_two_phase::Options::default());
        let url = "mysql://nexo@db/nexo";
        assert_same(&config.mysql.options(url), &MySqlOptions::new(url));
        // A command that fills a store reads little twice, and may use the whole disk.
        let own = nexo_store::Options::default();
        let embedded = config.embedded_options();
        let same = nexo_store::Options {
            cache_bytes: own.cache_bytes,
            reserve_bytes: own.reserve_bytes,
            table_files_max: own.table_files_max, // depends on the limit of this process
            ..embedded
        };
        assert_same(&same, &own);
        let node = NodeId([1; 16]);
        let bus = config.cluster.options("redis://r", node);
        let own = RedisBusOptions::new(RedisOptions::new("redis://r", node));
        assert_eq!((bus.redis.prefix, bus.node_ttl), (own.redis.prefix, own.node_ttl));
    }
}
