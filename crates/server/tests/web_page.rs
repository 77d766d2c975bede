//! What a browser gets from `/`: the web client, guarded, and cached as long as it may be.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::Setup;

/// The paths that a page names in `src` and `href`.
fn named(page: &str) -> Vec<&str> {
    let parts = page.split(['"', '\'']);
    parts.filter(|part| part.starts_with('/') && !part.starts_with("//")).collect()
}

#[tokio::test]
async fn the_page_and_its_files_come_from_here_alone() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let page = server.http.get("/", "").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("script-src 'unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(!page.text.contains("https://"), "nothing from elsewhere");
    if page.header("etag").is_none() {
        assert!(page.text.contains("built without its web client"), "{}", page.text);
        return;
    }
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let host = &server.http.authority;
    assert!(policy.contains(&format!("connect-src 'self' ws://{host} wss://{host};")), "{policy}");
    let files = named(&page.text);
    assert!(files.iter().any(|file| file.contains(".js")), "{files:?}");
    for file in files {
        let answer = server.http.get(file, "").await;
        assert_eq!(answer.status, 200, "{file}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{file}");
        let is_lasting = answer.header("cache-control").unwrap().contains("immutable");
        assert_eq!(is_lasting, file.starts_with("/assets/"), "{file}");
    }
    for nothing in ["/assets/none.js", "/assets/../index.html", "/index.html", "/assets"] {
        assert_eq!(server.http.get(nothing, "").await.status, 404, "{nothing}");
    }
    assert_eq!(server.http.post("/favicon.svg", "", serde_json::json!({})).await.status, 404);
}
