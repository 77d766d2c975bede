//! The proxy cuts, stalls and delays connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nexo_sim::{MariaDb, Proxy};

/// A server that echoes and records what it receives.
struct Echo {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, received) = (stream.expect("a connection"), Arc::clone(&shared));
                std::thread::spawn(move || {
                    let mut buffer = [0; 1024];
                    // Until the other side closes or fails.
                    while let Ok(read @ 1..) = stream.read(&mut buffer) {
                        received.lock().expect("no panic").extend_from_slice(&buffer[..read]);
                        if stream.write_all(&buffer[..read]).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, received }
    }

    fn received(&self) -> String {
        String::from_utf8(self.received.lock().expect("no panic").clone()).expect("text")
    }
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("an option");
    stream
}

/// Reads exactly this text.
fn expect(stream: &mut TcpStream, text: &str) {
    let mut buffer = vec![0; text.len()];
    stream.read_exact(&mut buffer).expect("bytes");
    assert_eq!(String::from_utf8(buffer).expect("text"), text);
}

/// Sends a text and expects its echo.
fn ask(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).expect("a sent text");
    expect(stream, text);
}

/// Expects that the connection closes without another byte.
fn expect_end(stream: &mut TcpStream) {
    match stream.read(&mut [0; 64]) {
        Ok(read) => assert_eq!(read, 0, "nothing more was expected"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

/// Expects no bytes for a while.
fn expect_silence(stream: &mut TcpStream) {
    let patience = stream.read_timeout().expect("an option");
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("an option");
    let error = stream.read(&mut [0; 64]).expect_err("silence");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(patience).expect("an option");
}

#[test]
fn bytes_pass_and_so_does_the_end() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy);
    ask(&mut stream, "hello");
    stream.write_all(b"bye").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    expect(&mut stream, "bye");
    expect_end(&mut stream);
    assert_eq!((proxy.connections(), proxy.cuts()), (1, 0));
}

#[test]
fn much_passes_in_both_directions_at_once() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy);
    let text: Vec<u8> = (0..4_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let (mut writer, written) = (stream.try_clone().unwrap(), text.clone());
    let writing = std::thread::spawn(move || writer.write_all(&written).unwrap());
    let mut received = vec![0; text.len()];
    stream.read_exact(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == text, "bytes are lost or out of order");
}

#[test]
fn a_cut_closes_all_connections_and_spares_new_ones() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut streams = [connect(&proxy), connect(&proxy)];
    for stream in &mut streams {
        ask(stream, "hello");
    }
    proxy.cut();
    assert_eq!((proxy.connections(), proxy.cuts()), (2, 2));
    streams.iter_mut().for_each(expect_end);
    ask(&mut connect(&proxy), "again");
    assert_eq!((proxy.connections(), proxy.cuts()), (3, 2));
}

#[test]
fn new_connections_can_be_refused() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut old = connect(&proxy);
    ask(&mut old, "hello");
    proxy.refuse(true);
    expect_end(&mut connect(&proxy));
    ask(&mut old, "still here");
    proxy.refuse(false);
    ask(&mut connect(&proxy), "welcome");
    assert_eq!((proxy.connections(), proxy.cuts()), (2, 0));
}

#[test]
fn a_stalled_connection_stays_open_and_loses_nothing() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy);
    ask(&mut stream, "hello");
    proxy.stall(true);
    stream.write_all(b"are you there").unwrap();
    expect_silence(&mut stream);
    assert_eq!(echo.received(), "hello");
    proxy.stall(false);
    expect(&mut stream, "are you there");

    proxy.stall(true);
    stream.write_all(b"lost").unwrap();
    proxy.cut();
    expect_end(&mut stream);
    assert_eq!(proxy.cuts(), 1, "what stalls can be cut");
}

#[test]
fn a_delay_counts_both_ways() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy);
    ask(&mut stream, "hello");
    proxy.delay(Duration::from_millis(100));
    let since = Instant::now();
    ask(&mut stream, "slowly");
    assert!(since.elapsed() >= Duration::from_millis(200), "it took {:?}", since.elapsed());
}

#[test]
fn a_connection_ends_when_nobody_is_behind_the_proxy() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    expect_end(&mut connect(&Proxy::start(closed)));
}

#[test]
fn a_dropped_proxy_closes_everything() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy);
    ask(&mut stream, "hello");
    drop(proxy);
    expect_end(&mut stream);
}

#[test]
fn an_answer_can_be_lost() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    proxy.cut_after_client_bytes(b"COMMIT", 2);
    for pieces in [["x COM", "MIT y"], ["", "COMMIT"]] {
        let mut stream = connect(&proxy);
        ask(&mut stream, pieces[0]);
        stream.write_all(pieces[1].as_bytes()).unwrap();
        expect_end(&mut stream);
    }
    assert_eq!(proxy.cuts(), 2);
    assert_eq!(echo.received(), "x COMMIT yCOMMIT");
    ask(&mut connect(&proxy), "COMMIT");
    assert_eq!(proxy.cuts(), 2, "it was armed twice");
}

#[test]
fn words_can_be_lost() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    proxy.cut_before_client_bytes(b"COMMIT", 2);
    for pieces in [["x COM", "MIT"], ["y ", "COMMIT"]] {
        let mut stream = connect(&proxy);
        ask(&mut stream, pieces[0]);
        stream.write_all(pieces[1].as_bytes()).unwrap();
        expect_end(&mut stream);
    }
    assert_eq!(proxy.cuts(), 2);
    assert_eq!(echo.received(), "x COMy ");
    ask(&mut connect(&proxy), "COMMIT");
    assert_eq!(proxy.cuts(), 2, "it was armed twice");
}

#[test]
fn a_pattern_can_be_disarmed_while_connections_are_open() {
    let echo = Echo::start();
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy);
    ask(&mut stream, "hello");
    proxy.cut_before_client_bytes(b"COMMIT", 1);
    proxy.clear_cut_patterns();
    ask(&mut stream, "COMMIT");
    proxy.cut_before_client_bytes(b"COMMIT", 1);
    stream.write_all(b"COMMIT").unwrap();
    expect_end(&mut stream);
    assert_eq!(proxy.cuts(), 1);
}

/// Inserts a row in a transaction through the proxy; returns whether the client got the commit's success.
fn insert(proxy: &Proxy, database: &str, row: u32) -> bool {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root"]);
    client.arg(format!("--port={}", proxy.port())).args(["--skip-reconnect", database, "-e"]);
    client.arg(format!("BEGIN; INSERT INTO kept VALUES ({row}); COMMIT"));
    let output = client.output().expect("a client");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || stderr.contains("Lost connection"), "{stderr}");
    output.status.success()
}

#[test]
fn a_commit_can_be_lost_on_either_way() {
    let mariadb = MariaDb::shared();
    let url = mariadb.fresh_database();
    let (_, database) = url.rsplit_once('/').expect("a name");
    mariadb.sql(database, "CREATE TABLE kept (row INT PRIMARY KEY)");
    let proxy = Proxy::start((Ipv4Addr::LOCALHOST, mariadb.port()).into());
    let rows = || mariadb.sql(database, "SELECT row FROM kept ORDER BY row");

    assert!(insert(&proxy, database, 1));
    proxy.cut_before_client_bytes(b"COMMIT", 1);
    assert!(!insert(&proxy, database, 2));
    assert_eq!(rows(), "1", "the database never received the commit");
    proxy.cut_after_client_bytes(b"COMMIT", 1);
    assert!(!insert(&proxy, database, 3));
    assert_eq!(rows(), "1\n3", "the database has committed, though the client got no success");
    assert!(insert(&proxy, database, 4));
    assert_eq!(proxy.cuts(), 2);
}
