//! Documents name files, functions and tests that exist. A page that nobody can follow is worse than none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Folders that are built or installed, not written.
const BUILT: [&str; 5] = ["target", "node_modules", ".git", "dist", "data"];

/// Every file of the repository by its path from the root.
fn repository() -> Vec<String> {
    let (root, mut found, mut folders) = (root(), Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && !path.is_symlink() {
                if !BUILT.iter().any(|built| name == *built) {
                    folders.push(path);
                }
            } else {
                let path = path.strip_prefix(&root).expect("inside the repository");
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// The text of a document without its code blocks.
fn prose(document: &str) -> String {
    let text = std::fs::read_to_string(root().join(document)).expect("a document");
    text.split("```").step_by(2).collect()
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|known| known == extension)
}

fn documents(files: &[String]) -> impl Iterator<Item = &String> {
    files.iter().filter(|path| has_extension(path, "md") && *path != "CHANGELOG.md")
}

const EXTENSIONS: [&str; 10] =
    [".rs", ".ts", ".svelte", ".md", ".toml", ".sh", ".proto", ".yaml", ".cfg", ".tsx"];
const FOLDERS: [&str; 7] = ["crates/", "docs/", "sdk/", "web/", "scripts/", "deploy/", "examples/"];

/// Files that a document may name although nobody wrote them here.
const MADE_ELSEWHERE: [&str; 2] = ["package.json", "config.toml"];

fn names_a_file(quoted: &str) -> bool {
    let is_plain = quoted.chars().all(|c| c.is_ascii_alphanumeric() || "._-/@".contains(c));
    let has_ending = EXTENSIONS.iter().any(|ending| quoted.ends_with(ending));
    let in_folder = FOLDERS.iter().any(|folder| quoted.starts_with(folder));
    is_plain && (has_ending || in_folder) && !MADE_ELSEWHERE.contains(&quoted)
}

/// Files that a name stands for: the path itself, one beside the document, or any that ends so.
fn found<'a>(files: &'a [String], document: &str, name: &str) -> Vec<&'a String> {
    let name = name.trim_start_matches("../").trim_start_matches("./");
    let folder = name.trim_end_matches('/');
    let beside = Path::new(document).parent().map(|parent| parent.join(name));
    let is_named = |path: &String| {
        path == name
            || path.ends_with(&format!("/{name}"))
            || path.starts_with(&format!("{folder}/"))
            || path.contains(&format!("/{folder}/"))
            || beside.as_ref().is_some_and(|beside| Path::new(path) == beside)
    };
    files.iter().filter(|path| is_named(path)).collect()
}

#[test]
fn every_file_a_document_names_exists() {
    let files = repository();
    let mut missing = Vec::new();
    for document in documents(&files) {
        for quoted in prose(document).split('`').skip(1).step_by(2) {
            if names_a_file(quoted) && found(&files, document, quoted).is_empty() {
                missing.push(format!("{document} names {quoted}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The functions, types and tests that a document puts beside a Rust file: `file.rs`: `one`, `two`, or
/// in the next column of a table.
fn items(document: &str) -> BTreeMap<String, Vec<String>> {
    let mut items = BTreeMap::<String, Vec<String>>::new();
    for line in prose(document).lines() {
        let parts: Vec<&str> = line.split('`').collect();
        let mut file: Option<&str> = None;
        for (place, quoted) in parts.iter().enumerate().skip(1).step_by(2) {
            let before = parts[place - 1];
            let is_item = quoted.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
            if has_extension(quoted, "rs") {
                file = Some(quoted);
            } else if let (Some(file), true) =
                (file, is_item && [": ", ", ", " | "].contains(&before))
            {
                items.entry(file.to_owned()).or_default().push((*quoted).to_owned());
            } else {
                file = None;
            }
        }
    }
    items
}

#[test]
fn every_function_a_document_puts_beside_a_file_is_in_it() {
    let files = repository();
    let mut missing = Vec::new();
    for document in documents(&files) {
        for (file, names) in items(document) {
            let texts = found(&files, document, &file).into_iter();
            let text: String =
                texts.filter_map(|path| std::fs::read_to_string(root().join(path)).ok()).collect();
            for name in names {
                let last = name.rsplit("::").next().expect("a name");
                let is_there = ["fn ", "struct ", "enum ", "trait ", "mod ", "const ", "type "]
                    .iter()
                    .any(|word| text.contains(&format!("{word}{last}")));
                if !is_there {
                    missing.push(format!("{document}: {file} has no {name}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let files = repository();
    let mut missing = Vec::new();
    for document in documents(&files) {
        let folder = Path::new(document).parent().expect("a folder");
        for link in prose(document).split("](").skip(1) {
            let target = link.split([')', '#']).next().expect("a target");
            if !target.contains("://") && !root().join(folder).join(target).exists() {
                missing.push(format!("{document} links to {target}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_architecture_page_can_be_read_in_a_terminal() {
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        for (number, line) in
            std::fs::read_to_string(root().join(page)).expect(page).lines().enumerate()
        {
            let length = line.chars().count();
            assert!(length < 140, "{page}:{} has {length} characters", number + 1);
        }
    }
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let files = repository();
    let sources = files.iter().filter(|path| {
        has_extension(path, "rs") && path.contains("/src/") && !path.contains("/fixtures/")
    });
    for path in sources {
        let text = std::fs::read_to_string(root().join(path)).expect("a file");
        assert!(text.starts_with("//!"), "{path} does not begin with what it is for (`//!`)");
    }
}

#[test]
fn the_kubernetes_manifest_names_this_version() {
    let manifest = std::fs::read_to_string(root().join("deploy/kubernetes/deployment.yaml"));
    let image = format!("image: nexo:{}\n", env!("CARGO_PKG_VERSION"));
    assert!(manifest.expect("a manifest").contains(&image), "the Deployment wants another version");
}
