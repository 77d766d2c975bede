//! The server under load, and the resources its process uses.

use std::fs;

/// A server: its URL, and its process if it runs on this machine and is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Such as `http://127.0.0.1:8080`.
    pub address: String,
    pub pid: Option<u32>,
}

impl Endpoint {
    /// A server whose process is not known.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), pid: None }
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        resident_bytes(self.pid?)
    }

    /// Seconds of processor time it has used so far.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        cpu_seconds(self.pid?)
    }
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

fn cpu_seconds(pid: u32) -> Option<f64> {
    /// Linux reports hundredths of a second to programs, whatever the kernel's own tick is.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name, in brackets, may contain anything: count the fields after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let here = Endpoint { address: String::new(), pid: Some(std::process::id()) };
        assert!(here.resident_bytes().unwrap() > 100_000);
        assert!(here.cpu_seconds().unwrap() >= 0.0);
        assert_eq!(Endpoint::at("http://there").resident_bytes(), None);
    }
}
