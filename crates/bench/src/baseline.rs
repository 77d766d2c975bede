//! What the machine does without the server, measured in the same run: machines are shared, so
//! only ratios of figures taken together mean anything.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::bare_disk::{self, DiskRow};
use crate::endpoint::Endpoint;
use crate::measure::Load;
use crate::options::{Flow, PrivateOptions};
use crate::private::bare;

/// The bare stack and the bare disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// The same load on the bare relay.
    pub relay: Load,
    /// The bare relay at the rate of the server's half load: how steady this machine's latency is
    /// without a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_half: Option<Load>,
    /// Append and fdatasync, by batch size; not measured for groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk: Vec<DiskRow>,
}

/// Measures a bare relay (see [`serve_bare_relay`](crate::serve_bare_relay)), in a closed loop and at
/// the rate of the half load, then the disk that the folder is on.
pub async fn baseline(
    options: &PrivateOptions,
    half: Option<&Load>,
    relay: &Endpoint,
    disk_folder: &Path,
) -> Result<Baseline> {
    let at =
        |rate| PrivateOptions { flow: Flow { rate, ..options.flow.clone() }, ..options.clone() };
    let closed = bare(&at(None), relay).await?.load;
    let relay_half = match half.and_then(|half| half.rate_wanted) {
        Some(rate) => Some(bare(&at(Some(rate)), relay).await?.load),
        None => None,
    };
    let folder = disk_folder.to_owned();
    let disk = tokio::task::spawn_blocking(move || bare_disk::measure(&folder)).await??;
    Ok(Baseline { relay: closed, relay_half, disk })
}

/// Ratios to the baselines, by their names in docs/performance.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Saved per second ÷ relayed per second; only for a closed loop.
    pub p1_throughput: Option<f64>,
    /// A group's pushes per second ÷ those of a bare broadcast; only for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p3_fan_out: Option<f64>,
    /// p99 of ACK(saved) at half the load ÷ p99 of the bare disk.
    pub p2_latency: Option<f64>,
    /// The same ÷ p99 of the bare relay at the same rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p2_beside_relay: Option<f64>,
    /// The batch size of the bare disk that `p2_latency` compares with.
    pub disk_batch: Option<usize>,
}

impl Ratios {
    /// Compares a run with its baseline.
    pub fn of(load: &Load, half: Option<&Load>, baseline: &Baseline, disk_batch: usize) -> Self {
        let nearest = baseline.disk.iter().min_by_key(|row| row.batch.abs_diff(disk_batch));
        let p2 = half.zip(nearest).map(|(half, row)| half.saved.p99_us / row.commit.p99_us);
        let beside = half.zip(baseline.relay_half.as_ref());
        let beside = beside.map(|(half, relay)| half.saved.p99_us / relay.saved.p99_us);
        let closed = load.rate_wanted.is_none();
        let p1 = load.saved_per_second / baseline.relay.saved_per_second;
        Self {
            p1_throughput: (closed && p1.is_finite()).then_some(p1),
            p2_latency: p2.filter(|ratio| ratio.is_finite()),
            p2_beside_relay: beside.filter(|ratio| ratio.is_finite()),
            disk_batch: nearest.map(|row| row.batch),
            p3_fan_out: None,
        }
    }

    /// Compares a group with a bare broadcast to as many members.
    pub fn of_group(load: &Load, relay: &Load) -> Self {
        let closed = load.rate_wanted.is_none();
        let p3 = load.pushed_per_second / relay.pushed_per_second;
        Self { p3_fan_out: (closed && p3.is_finite()).then_some(p3), ..Self::default() }
    }
}
