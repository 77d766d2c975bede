//! A file system of its own on a loop device, whose power can be cut: what the device never got is lost.
//!
//! The device writes into a file, so a copy of that file is what a disk would hold after a power cut: writes that
//! are still in the page cache of the file system are not in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted ext4 file system. Unmounted and detached when dropped.
pub struct LoopDisk {
    /// Holds what the device holds.
    image: PathBuf,
    device: String,
    mount: PathBuf,
}

impl LoopDisk {
    /// Makes a file system of so many MiB and mounts it; `None` where that is not possible (it takes root and
    /// loop devices).
    pub fn create(image: &Path, mount: &Path, mib: u64) -> Option<Self> {
        let file = fs::File::create(image).expect("an image");
        file.set_len(mib << 20).expect("its length");
        // Everything is written now, so that the device is quiet later.
        let now = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-E", now, path(image)])?;
        Self::attach(image.to_owned(), mount)
    }

    fn attach(image: PathBuf, mount: &Path) -> Option<Self> {
        let device = run("losetup", &["--find", "--show", path(&image)])?.trim().to_owned();
        fs::create_dir_all(mount).expect("a folder");
        let disk = Self { image, device, mount: mount.to_owned() };
        run("mount", &["-o", "noatime", &disk.device, path(mount)])?;
        Some(disk)
    }

    /// Cuts the power: mounts a copy of what is on the device now. Whoever writes to this disk must be dead.
    #[must_use]
    pub fn after_power_cut(&self, image: &Path, mount: &Path) -> Self {
        // A write by the kernel in the middle of the copy would be half in it: copy again.
        loop {
            let before = self.writes();
            fs::copy(&self.image, image).expect("a copy");
            if self.writes() == before {
                break;
            }
        }
        // As every machine does when it starts; it fails if it had something to mend.
        run("e2fsck", &["-p", path(image)]);
        Self::attach(image.to_owned(), mount).expect("the file system recovers from its journal")
    }

    /// Write requests that the device has finished, and how many are under way.
    fn writes(&self) -> (u64, u64) {
        let name = self.device.trim_start_matches("/dev/");
        let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).expect("its counters");
        let mut fields = stat.split_whitespace().map(|field| field.parse().expect("a number"));
        let finished = fields.nth(4).expect("write requests");
        (finished, fields.nth(3).expect("requests under way"))
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        for (program, target) in [("umount", path(&self.mount)), ("losetup", &self.device)] {
            let flags: &[&str] = if program == "umount" { &["-l"] } else { &["-d"] };
            if run(program, &[flags, &[target]].concat()).is_none() {
                eprintln!("{program} of {target} failed");
            }
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Returns the output of a program that succeeded.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    // Tools of the administrator are not in everybody's path.
    let found = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(arguments).env("PATH", found).output().ok()?;
    if !output.status.success() {
        eprintln!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    String::from_utf8(output.stdout).ok()
}
