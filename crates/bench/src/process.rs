//! What a process has used, as the kernel tells it.

use std::fs;

/// What is loaded: where it listens, and its process if it is on this machine and known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Such as `http://127.0.0.1:8080`.
    pub address: String,
    /// Its process.
    pub pid: Option<u32>,
}

impl Place {
    /// A server of somebody else.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), pid: None }
    }

    /// Bytes of memory it holds now.
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
    /// Linux counts in hundredths of a second towards programs, whatever it does inside.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything: the fields are counted from behind it.
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
        let here = Place { address: String::new(), pid: Some(std::process::id()) };
        assert!(here.resident_bytes().unwrap() > 100_000);
        assert!(here.cpu_seconds().unwrap() >= 0.0);
        assert_eq!(Place::at("http://there").resident_bytes(), None);
    }
}
