//! Rules of the repository that no compiler checks.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the repository")
}

/// Every file below a folder.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|known| known == extension) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn every_path_the_documents_name_exists() {
    let documents = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/operating.md",
        "docs/cluster.md",
        "docs/testing.md",
        "docs/protocol/typed.md",
        "docs/protocol/numbered.md",
        "docs/protocol/dotted.md",
        "docs/http.md",
    ];
    for document in documents {
        for quoted in read(document).split('`').skip(1).step_by(2) {
            let is_path = quoted.starts_with("crates/") || quoted.starts_with("docs/");
            if is_path && !quoted.contains(' ') {
                assert!(root().join(quoted).exists(), "{document} names {quoted}");
            }
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for document in ["README.md", "docs/operating.md", "docs/cluster.md", "docs/protocol/typed.md"]
    {
        let folder = Path::new(document).parent().expect("a folder");
        for link in read(document).split("](").skip(1) {
            let target = link.split(')').next().expect("a target");
            assert!(root().join(folder).join(target).exists(), "{document} links to {target}");
        }
    }
}

#[test]
fn policy_is_pure() {
    for path in files("crates/chat/src/policy", "rs") {
        let text = std::fs::read_to_string(&path).expect("a file");
        for word in ["async ", ".await", "std::fs", "std::net", "tracing::", "Instant", "Mutex"] {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
    }
}

#[test]
fn only_wire_and_the_handshake_know_a_dialect() {
    // The handshake, and the page that shows the typed frames' schema.
    let knows = [
        "crates/gateway/src/socket/handshake.rs",
        "crates/gateway/src/http/routes/socket.rs",
        "crates/gateway/src/http/openapi/docs_page.rs",
    ];
    for folder in ["crates/chat/src", "crates/gateway/src", "crates/store/src", "crates/bus/src"] {
        for path in files(folder, "rs") {
            if knows.iter().any(|known| path.ends_with(known)) {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file");
            for word in ["Dialect::", "typed::", "numbered::", "dotted::"] {
                assert!(!text.contains(word), "{} knows {word}", path.display());
            }
        }
    }
}

#[test]
fn the_domain_has_no_runtime() {
    let manifest = read("crates/chat/Cargo.toml");
    for runtime in ["tokio", "axum", "hyper", "fjall"] {
        assert!(!manifest.contains(runtime), "chat depends on {runtime}");
    }
}

#[test]
fn numbers_of_errors_live_in_one_file() {
    let known = ["codes.rs"];
    for path in files("crates", "rs") {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        if known.contains(&name.as_str()) || is_test {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        for code in ["4401", "4403", "4100", "2007", "client_msg_id_conflict\""] {
            assert!(!text.contains(code), "{} knows the code {code}", path.display());
        }
    }
}

#[test]
fn every_dependency_is_explained() {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("a manifest");
    let page = read("ARCHITECTURE.md").to_lowercase();
    let names = manifest["workspace"]["dependencies"].as_table().expect("dependencies").keys();
    for name in names.filter(|name| !name.starts_with("nexo-")) {
        let short = name.split('-').next().expect("a name");
        assert!(page.contains(short), "ARCHITECTURE.md does not say what {name} is for");
    }
}

#[test]
fn server_sdks_and_pages_share_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    for manifest in ["sdk/typescript/package.json", "web/package.json", "docs/openapi.json"] {
        let named = format!("\"version\": \"{version}\"");
        assert!(read(manifest).contains(&named), "{manifest} has another version than {version}");
    }
    for crate_folder in files("crates", "toml").into_iter().chain(files("sdk/rust", "toml")) {
        let manifest = read(&crate_folder);
        assert!(manifest.contains("version.workspace = true"), "{}", crate_folder.display());
    }
}

#[test]
fn the_readme_names_the_versions_that_build_it() {
    let readme = read("README.md");
    let rust = read("Cargo.toml");
    let rust = rust.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let rust = rust.expect("a Rust version").trim_matches('"');
    assert!(readme.contains(&format!("Rust {rust}")), "the README does not name Rust {rust}");
    let node = read("web/package.json");
    let (_, node) = node.split_once("\"node\": \">=").expect("a Node version");
    let (node, _) = node.split_once('"').expect("a Node version");
    assert!(readme.contains(&format!("Node {node}")), "the README does not name Node {node}");
}

/// The papers that the dialects were made from have no names here: a reader cannot look them up.
#[test]
fn dialects_and_features_are_called_by_their_names() {
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    let pages = pages.into_iter().map(|page| root().join(page));
    let sources = ["crates", "docs", "sdk/rust", "sdk/typescript/src", "web/src"]
        .into_iter()
        .flat_map(|folder| ["rs", "md", "ts", "svelte", "json", "proto"].map(|kind| (folder, kind)))
        .flat_map(|(folder, kind)| files(folder, kind));
    let named = ["document", "documents"].map(|word| format!("{word} 00"));
    for file in pages.chain(sources) {
        let text = read(&file).to_lowercase();
        for name in &named {
            assert!(!text.contains(name.as_str()), "{} speaks of {name}…", file.display());
        }
    }
}
