//! Takes the web client into the program, if it has been built (`make web`). Without it the server
//! shows a page that says so.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let built =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/dist");
    // What is not there counts as changed at every build: then its parent tells when it comes.
    let watched = if built.is_dir() { built.clone() } else { built.join("../..") };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut files = Vec::new();
    if built.is_dir() {
        collect(&built.canonicalize()?, "", &mut files)?;
    }
    files.sort();
    let mut code = String::from("&[\n");
    for (name, file) in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let file = file.to_string_lossy();
        let written = writeln!(code, "    ({name:?}, include_bytes!({file:?}) as &[u8]),");
        written.map_err(io::Error::other)?;
    }
    code.push(']');
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    fs::write(out.join("web_files.rs"), code)
}

/// Every file below a folder, by the path it is asked for.
fn collect(folder: &Path, at: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{at}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &name, files)?;
        } else {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}
