//! Metrics that are sampled when `/metrics` is read: the process, the program and the disk. Those of the
//! process have the names that every Prometheus client uses.

use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};

use nexo_chat::clock::Clock;
use nexo_chat::ids::Millis;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::SystemClock;
use crate::metric_table::MetricKind::{self, Counter, Gauge};

/// The version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The sampled metrics, in the order of the page.
pub(crate) const SAMPLED: &[(MetricKind, &str, &str)] = &[
    (Gauge, "nexo_build_info", "1; the label says which version this is"),
    (
        Counter,
        "process_cpu_seconds_total",
        "Seconds of CPU the process has used, of all its threads",
    ),
    (Gauge, "process_resident_memory_bytes", "Bytes of memory the process holds"),
    (Gauge, "process_virtual_memory_bytes", "Bytes of addresses the process has reserved"),
    (Gauge, "process_open_fds", "Open file descriptors; every socket is one"),
    (Gauge, "process_max_fds", "File descriptors the system allows"),
    (Gauge, "process_start_time_seconds", "When the process started, in seconds since 1970"),
    (
        Gauge,
        "nexo_data_disk_free_bytes",
        "Bytes that may still be written where the data folder is",
    ),
    (Gauge, "nexo_data_disk_size_bytes", "Bytes of the file system the data folder is on"),
    (Gauge, "nexo_store_log_bytes", "Bytes of the embedded store's commit log"),
    (Gauge, "nexo_store_trees_bytes", "Bytes of the embedded store's sorted files"),
];

/// Samples the process and the data folder.
pub(crate) struct ProcessMetrics {
    data: PathBuf,
    started: Millis,
}

impl ProcessMetrics {
    /// Takes now as the start of the process.
    pub(crate) fn new(data: &Path) -> Self {
        Self { data: data.to_owned(), started: SystemClock::new().now() }
    }

    /// Appends the metrics to the page. Leaves out what the system does not report.
    pub(crate) fn render(&self, page: &mut String) {
        let memory = ProcessMemory::read();
        let disk = rustix::fs::statvfs(&self.data).ok();
        let disk = disk.as_ref();
        // Counts used blocks, not lengths: the log's segments are preallocated.
        let store = |part: &str| bytes_in(&self.data.join(part)).map(|it| it.to_string());
        for (kind, name, help) in SAMPLED {
            let value: Option<String> = match *name {
                "nexo_build_info" => Some("1".to_owned()),
                "process_cpu_seconds_total" => Some(cpu_seconds()),
                "process_resident_memory_bytes" => memory.resident.map(|it| it.to_string()),
                "process_virtual_memory_bytes" => memory.virtual_.map(|it| it.to_string()),
                "process_open_fds" => open_files().map(|it| it.to_string()),
                "process_max_fds" => getrlimit(Resource::Nofile).current.map(|it| it.to_string()),
                "process_start_time_seconds" => Some(seconds(self.started)),
                "nexo_data_disk_free_bytes" => {
                    disk.map(|it| (it.f_bavail * it.f_frsize).to_string())
                }
                "nexo_data_disk_size_bytes" => {
                    disk.map(|it| (it.f_blocks * it.f_frsize).to_string())
                }
                "nexo_store_log_bytes" => store("log"),
                "nexo_store_trees_bytes" => store("trees"),
                _ => None,
            };
            let labels = if *name == "nexo_build_info" {
                format!("{{version=\"{VERSION}\"}}")
            } else {
                String::new()
            };
            if let Some(value) = value {
                put(page, *kind, name, help, &labels, &value);
            }
        }
    }
}

fn put(
    page: &mut String,
    kind: MetricKind,
    name: &str,
    help: &str,
    labels: &str,
    value: &dyn Display,
) {
    let kind = if kind == Counter { "counter" } else { "gauge" };
    let line =
        format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{labels} {value}\n\n");
    // Writing to a string cannot fail.
    let _written = page.write_fmt(line).is_ok();
}

fn seconds(at: Millis) -> String {
    format!("{}.{:03}", at.0 / 1000, at.0 % 1000)
}

fn cpu_seconds() -> String {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    format!("{}.{:09}", used.tv_sec, used.tv_nsec)
}

#[derive(Default)]
struct ProcessMemory {
    resident: Option<u64>,
    virtual_: Option<u64>,
}

impl ProcessMemory {
    fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
        };
        Self { resident: kib("VmRSS:"), virtual_: kib("VmSize:") }
    }
}

/// New kernels report the count as the folder's size; for older ones, count the entries.
fn open_files() -> Option<u64> {
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    if size > 0 {
        return Some(size);
    }
    // Without the descriptor that reading the folder itself opens.
    fs::read_dir("/proc/self/fd").ok().map(|files| (files.count() as u64).saturating_sub(1))
}

/// Bytes that a folder's files take up on disk. Ignores files that vanish meanwhile.
fn bytes_in(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let Ok(found) = entry.metadata() else { continue };
        bytes += if found.is_dir() {
            bytes_in(&entry.path()).unwrap_or_default()
        } else {
            found.blocks() * 512
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_on_the_page() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["log", "trees/messages"] {
            fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        fs::write(folder.path().join("trees/messages/1"), vec![1; 10_000]).unwrap();
        let mut page = String::new();
        ProcessMetrics::new(folder.path()).render(&mut page);
        for (_, name, _) in SAMPLED {
            let line = page.lines().find(|line| line.split([' ', '{']).next() == Some(name));
            let line = line.unwrap_or_else(|| panic!("{name} is not in\n{page}"));
            let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(value > 0.0 || *name == "nexo_store_log_bytes", "{line}");
        }
    }
}
