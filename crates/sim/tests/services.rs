//! MariaDB and Redis as tests start them: real servers, which stop on demand and with the tests.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nexo_sim::{MariaDb, RedisCluster, RedisServer};

/// Waits for a condition; only something broken takes longer.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < Duration::from_mins(1), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a server listens on a port.
fn is_up(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The output of `redis-cli` through the port.
fn redis_cli(port: u16, options: &[&str]) -> Output {
    let mut client = Command::new("redis-cli");
    client.args(["-e", "-h", "127.0.0.1", "-p", &port.to_string()]).args(options).arg("PING");
    client.output().expect("a client")
}

#[test]
fn mariadb_keeps_what_was_committed() {
    let mut database = MariaDb::start();
    let port = database.port();
    database.create_database("chat");
    assert_eq!(database.url("chat"), format!("mysql://root@127.0.0.1:{port}/chat"));
    database.sql("chat", "CREATE TABLE said (text TEXT); INSERT INTO said VALUES ('héllo 👋')");

    database.stop();
    assert!(!is_up(port), "it has stopped");
    database.start_again();
    assert_eq!(database.sql("chat", "SELECT text FROM said"), "héllo 👋");

    database.sql("chat", "INSERT INTO said VALUES ('bye')");
    database.kill();
    assert!(!is_up(port), "it is dead");
    database.start_again();
    assert_eq!(database.sql("chat", "SELECT text FROM said"), "héllo 👋\nbye");
    assert!(is_up(port), "it is where it was");
}

#[test]
fn mariadb_is_as_durable_as_in_production() {
    let settings = "SELECT @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin";
    assert_eq!(MariaDb::shared().sql("", settings), "1\t1\t0");
    let database = MariaDb::start_with(&["--max-connections=70"]);
    assert_eq!(database.sql("", "SELECT @@max_connections"), "70");
}

#[test]
fn fresh_databases_are_empty_and_apart() {
    let database = MariaDb::shared();
    let (one, other) = (database.fresh_database(), database.fresh_database());
    assert_ne!(one, other);
    for url in [one, other] {
        let (_, name) = url.rsplit_once('/').expect("a name");
        database.sql(name, "CREATE TABLE said (text TEXT)");
        assert_eq!(database.sql(name, "SHOW TABLES"), "said");
    }
}

#[test]
fn mariadb_asks_for_a_password() {
    let database = MariaDb::shared();
    database.create_user("nexo", "secret");
    let enters = |password: &str| {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=nexo"]);
        client.arg(format!("--port={}", database.port())).args(["-e", "CREATE DATABASE mine"]);
        client.env("MYSQL_PWD", password).output().expect("a client").status.success()
    };
    assert!(!enters("wrong"));
    assert!(enters("secret"));
    let url = format!("mysql://nexo:secret@127.0.0.1:{}/mine", database.port());
    assert_eq!(database.url_as("nexo", "secret", "mine"), url);
}

#[test]
fn redis_forgets_when_told_and_when_it_ends() {
    let mut redis = RedisServer::start();
    let port = redis.port();
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{port}/"));
    assert_eq!(redis.command(&["SET", "greeting", "hello"]), "OK");
    assert_eq!(redis.command(&["GET", "greeting"]), "hello");
    redis.flush();
    assert_eq!(redis.command(&["DBSIZE"]), "0");

    redis.command(&["SET", "greeting", "hello"]);
    redis.kill();
    assert!(!is_up(port), "it is dead");
    redis.start_again();
    assert_eq!(redis.command(&["DBSIZE"]), "0");
    assert!(redis_cli(port, &[]).status.success(), "it is where it was");
}

#[test]
fn redis_keeps_what_it_holds_if_asked_to() {
    let mut redis = RedisServer::start_with(&["--appendonly", "yes"]);
    redis.command(&["SET", "greeting", "hello"]);
    redis.stop();
    assert!(!is_up(redis.port()), "it has stopped");
    redis.start_again();
    assert_eq!(redis.command(&["GET", "greeting"]), "hello");
}

#[test]
fn redis_asks_for_a_password() {
    let redis = RedisServer::start_with(&["--requirepass", "secret"]);
    assert_eq!(redis.url(), format!("redis://:secret@127.0.0.1:{}/", redis.port()));
    assert_eq!(redis.command(&["PING"]), "PONG");
    assert!(!redis_cli(redis.port(), &[]).status.success());
    assert!(redis_cli(redis.port(), &["--no-auth-warning", "-a", "secret"]).status.success());
}

#[test]
fn redis_speaks_tls() {
    let redis = RedisServer::start_tls();
    assert_eq!(redis.url(), format!("rediss://127.0.0.1:{}/", redis.port()));
    let ca = redis.ca_file();
    let ca = ca.to_str().expect("a readable path");
    let answer = redis_cli(redis.port(), &["--tls", "--cacert", ca]);
    assert_eq!(answer.stdout, b"PONG\n", "{answer:?}");
    assert!(!redis_cli(redis.port(), &["--tls"]).status.success(), "no other authority signed it");
    assert!(!redis_cli(redis.port(), &[]).status.success(), "it speaks nothing else");
    let mut verify = Command::new("openssl");
    let server = Path::new(ca).with_file_name("server.pem");
    verify.args(["verify", "-x509_strict", "-verify_ip", "127.0.0.1", "-CAfile", ca]).arg(server);
    let verified = verify.output().expect("openssl");
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_redis_cluster_shares_what_it_holds() {
    let mut cluster = RedisCluster::start();
    assert_eq!(cluster.urls().len(), 3);
    let keys: Vec<String> = (0..12).map(|number| format!("key {number}")).collect();
    for key in &keys {
        assert_eq!(cluster.command(&["SET", key, key]), "OK");
    }
    for key in &keys {
        assert_eq!(cluster.command(&["GET", key]), *key);
    }
    for which in 0..3 {
        assert_ne!(cluster.member(which).command(&["DBSIZE"]), "0", "member {which} holds some");
    }

    cluster.kill(1);
    let state = |cluster: &RedisCluster| cluster.member(0).command(&["CLUSTER", "INFO"]);
    until("noticing a loss", || state(&cluster).starts_with("cluster_state:fail"));
    cluster.start_again(1);
    cluster.wait_until_whole();
    for key in &keys {
        assert_eq!(cluster.command(&["SET", key, key]), "OK", "it is whole again");
    }
    cluster.flush();
    assert_eq!(cluster.member(2).command(&["DBSIZE"]), "0");
}

#[test]
fn a_redis_cluster_asks_for_a_password() {
    let cluster = RedisCluster::start_with(&["--requirepass", "secret"]);
    assert!(cluster.urls().iter().all(|url| url.starts_with("redis://:secret@")));
    assert!(!redis_cli(cluster.member(1).port(), &[]).status.success());
    assert_eq!(cluster.command(&["SET", "greeting", "hello"]), "OK");
}

/// Runs itself as a child process that starts services and then exits or is killed.
#[test]
fn no_service_outlives_the_tests() {
    const ENDING: &str = "NEXO_TEST_ENDING";
    if let Ok(ending) = std::env::var(ENDING) {
        let (database, redis) = (MariaDb::shared(), RedisServer::start());
        let data = database.sql("", "SELECT @@datadir");
        let folder = redis.command(&["CONFIG", "GET", "dir"]).replace('\n', "=");
        eprintln!("{} {} {data} {folder}", database.port(), redis.port());
        if ending == "exit" {
            std::process::exit(0);
        }
        loop {
            std::thread::park();
        }
    }
    for ending in ["exit", "kill"] {
        let mut tests = Command::new(std::env::current_exe().expect("this program"));
        tests.args(["--exact", "no_service_outlives_the_tests", "--nocapture"]);
        tests.env(ENDING, ending).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut tests = tests.spawn().expect("the same tests");
        let mut line = String::new();
        let stderr = tests.stderr.take().expect("its errors");
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mariadb, redis, data, folder] = words[..] else { panic!("{ending}: {line}") };
        let folder = folder.strip_prefix("dir=").expect("a folder");
        if ending == "kill" {
            assert!(Path::new(data).exists() && Path::new(folder).exists(), "{line}");
            tests.kill().expect("it can be killed");
        }
        tests.wait().expect("it ends");
        for port in [mariadb, redis] {
            until("an end", || !is_up(port.parse().expect("a port")));
        }
        for folder in [data, folder] {
            until("tidying up", || !Path::new(folder).exists());
        }
    }
}
