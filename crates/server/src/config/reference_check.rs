//! Checks the addresses, origins and files that settings refer to. This happens before anything is
//! opened, so that `nexo config check` reports a problem and `nexo serve` fails early.

use std::fs;
use std::path::Path;

use nexo_chat::word_filter::WordFilter;
use nexo_gateway::IpNetwork;
use nexo_redis_link::NodeId;

use super::Config;

/// Everything that is wrong with them.
pub(super) fn reference_problems(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    let gateway = &config.gateway;
    problems.extend(gateway.allowed_origins.iter().filter_map(|origin| origin_problem(origin)));
    problems.extend(gateway.trusted_proxies.iter().filter_map(|proxy| proxy_problem(proxy)));
    problems.extend(words_problem(&config.messages.words_file));
    if Path::new(&config.data).metadata().is_ok_and(|found| !found.is_dir()) {
        problems.push(format!("data must be a folder, and {} is not", config.data));
    }
    let database_ca = file_problem("mysql.ca_file", &config.mysql.ca_file);
    let redis_ca = file_problem("cluster.ca_file", &config.cluster.ca_file);
    if config.store.starts_with("mysql://")
        && database_ca.is_none()
        && let Err(error) = config.mysql.options(&config.store).check()
    {
        problems.push(format!("store: {error}"));
    }
    if !config.redis.is_empty() {
        let options = config.cluster.options(&config.redis, NodeId([0; 16]));
        if redis_ca.is_none()
            && let Err(error) = options.check()
        {
            problems.push(format!("redis: {error}"));
        }
    }
    problems.extend(database_ca);
    problems.extend(redis_ca);
    problems
}

/// An origin is compared as browsers send it: scheme, host and port.
fn origin_problem(origin: &str) -> Option<String> {
    let problem = |why: &str| Some(format!("gateway.allowed_origins: `{origin}` {why}"));
    let Some((scheme, host)) = origin.split_once("://") else {
        return problem("has no scheme: write it as https://app.example.com");
    };
    // Apps in a web view and browser extensions have schemes of their own.
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return problem("has no scheme: write it as https://app.example.com");
    }
    if host.is_empty() || host.contains(['/', '?', '#', '@', '*', ' ']) {
        return problem("is scheme, host and port only, such as https://app.example.com:8443");
    }
    None
}

fn proxy_problem(proxy: &str) -> Option<String> {
    let problem = proxy.parse::<IpNetwork>().err()?;
    Some(format!("gateway.trusted_proxies: `{proxy}` {problem}"))
}

fn words_problem(file: &str) -> Option<String> {
    if file.is_empty() {
        return None;
    }
    match fs::read_to_string(file) {
        Err(error) => Some(format!("messages.words_file: cannot read {file}: {error}")),
        Ok(list) => {
            let error = WordFilter::new(&list).err()?;
            Some(format!("messages.words_file: {file} cannot be used: {error}"))
        }
    }
}

fn file_problem(setting: &str, file: &str) -> Option<String> {
    if file.is_empty() {
        return None;
    }
    let error = fs::read(file).err()?;
    Some(format!("{setting}: cannot read {file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for good in ["https://app.example.com", "http://localhost:5173", "tauri://localhost"] {
            assert_eq!(origin_problem(good), None);
        }
        for bad in ["app.example.com", "https://a.example/", "https://", "://a", "*", ""] {
            assert!(origin_problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn every_place_is_looked_at() {
        let mut config = Config::default();
        assert_eq!(reference_problems(&config), Vec::<String>::new());
        config.gateway.allowed_origins = vec!["a.example".into(), "b.example".into()];
        config.gateway.trusted_proxies =
            ["proxy", "10.0.0.1", "10.0.0.0/8", "10.0.0.9/8"].map(String::from).into();
        config.messages.words_file = "/nowhere/words".into();
        config.store = "mysql://:s3cret@:x/nexo".into();
        config.redis = "http://:s3cret@b".into();
        config.cluster.ca_file = "/nowhere/ca".into();
        let problems = reference_problems(&config);
        for part in [
            "`a.example`",
            "`b.example`",
            "`proxy`",
            "`10.0.0.9/8`",
            "/nowhere/words",
            "/nowhere/ca",
        ] {
            let named = problems.iter().filter(|problem| problem.contains(part)).count();
            assert_eq!(named, 1, "{part}: {problems:#?}");
        }
        assert_eq!(problems.len(), 7, "{problems:#?}");
        assert!(!problems.iter().any(|problem| problem.contains("s3cret")), "{problems:#?}");
        config.cluster.ca_file = String::new();
        assert!(reference_problems(&config).iter().any(|problem| problem.starts_with("redis: ")));
    }
}
