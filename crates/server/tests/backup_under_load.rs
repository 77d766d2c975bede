//! Backups of a server that is being used: everything acknowledged before a backup began is in it, dense, and
//! nothing else, also after kill -9 in the middle of one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nexo_sim::backups::{BackupRepository, begin, make, operator_token, wait_for};
use nexo_sim::socket::{SocketEvent, chat};
use nexo_sim::{History, Http, Person, Server, Socket, TestGroup};

const PAIRS: usize = 3;
const WINDOW: usize = 16;
/// Sends go on for as long as a test needs them, and not faster than it can read them back.
const PAUSE: Duration = Duration::from_millis(1);
/// Long, so that memtables are flushed and tables compacted while a backup runs.
const BODY_CHARS: usize = 1500;

/// A sender, whom they write to, and what they tried and were told.
struct Pair {
    sender: Person,
    receiver: Person,
    history: Arc<Mutex<History>>,
}

impl Pair {
    fn history(&self) -> History {
        self.history.lock().unwrap().clone()
    }
}

fn body(number: usize) -> String {
    let begin = format!("number {number} ");
    let rest = BODY_CHARS - begin.len();
    begin + &"x".repeat(rest)
}

/// Sends until it is over or the socket dies.
async fn load(
    http: Http,
    sender: Person,
    peer: String,
    history: Arc<Mutex<History>>,
    is_over: Arc<AtomicBool>,
) {
    let mut socket = Socket::open(&http.authority).await;
    socket.auth(&sender.token).await;
    let (mut next, mut in_flight) = (0, 0);
    while !is_over.load(Ordering::Relaxed) || in_flight > 0 {
        while in_flight < WINDOW && !is_over.load(Ordering::Relaxed) {
            let (id, body) = (format!("m{next}"), body(next));
            history.lock().unwrap().tried(&id, &body);
            if socket.try_text(&chat(&peer, &id, &body).to_string()).await.is_err() {
                return;
            }
            next += 1;
            in_flight += 1;
        }
        match socket.hear().await {
            SocketEvent::Frame(frame) if frame["ackType"] == "saved" => {
                history.lock().unwrap().acked(&frame);
                in_flight -= 1;
                tokio::time::sleep(PAUSE).await;
            }
            SocketEvent::Frame(_) => {}
            SocketEvent::Closed(_) => return,
        }
    }
}

struct Load {
    pairs: Vec<Pair>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    async fn start(server: &Server) -> Self {
        let (mut pairs, mut tasks) = (Vec::new(), Vec::new());
        let is_over = Arc::new(AtomicBool::new(false));
        for i in 0..PAIRS {
            let pair = Pair {
                sender: server.person(&format!("sender{i}")).await,
                receiver: server.person(&format!("receiver{i}")).await,
                history: Arc::default(),
            };
            let (sender, peer) = (pair.sender.clone(), pair.receiver.id.clone());
            let (history, is_over) = (Arc::clone(&pair.history), Arc::clone(&is_over));
            tasks.push(tokio::spawn(load(server.http.clone(), sender, peer, history, is_over)));
            pairs.push(pair);
        }
        Self { pairs, is_over, tasks }
    }

    fn acked(&self) -> usize {
        self.pairs.iter().map(|pair| pair.history().count()).sum()
    }

    /// Waits until so many more are acknowledged.
    async fn more(&self, count: usize) {
        let wanted = self.acked() + count;
        while self.acked() < wanted {
            assert!(!self.tasks.iter().all(tokio::task::JoinHandle::is_finished), "senders ended");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn finish(self) -> Vec<Pair> {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.pairs
    }
}

/// Checks that the server has all that was acknowledged then, dense, and nothing that was never tried.
async fn check(server: &Server, pairs: &[Pair], before: &[History]) {
    for (pair, before) in pairs.iter().zip(before) {
        let mut expected = before.clone();
        for (id, body) in pair.history().all_tried() {
            expected.tried(&id, &body);
        }
        expected.check(&server.http, &pair.receiver, &pair.sender.id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_was_acknowledged_before_a_backup_began_is_in_it() {
    let repository = BackupRepository::new(env!("CARGO_BIN_EXE_nexo"));
    let setup = repository.setup().with("NEXO_EMBEDDED__MEMTABLE_MIB", "1");
    let server = setup.clone().with("NEXO_BACKUP__MIB_PER_SECOND", "24").start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut socket, _) = server.connect(&olga).await;
    let load = Load::start(&server).await;
    let mut made = Vec::new();
    for round in 1..=3_usize {
        load.more(1000).await;
        let said = format!("said before backup {round}");
        group.say(&mut socket, &format!("g{round}"), &said).await;
        let before: Vec<History> = load.pairs.iter().map(Pair::history).collect();
        let status = make(&server).await;
        made.push((status["backup_id"].as_str().unwrap().to_owned(), round, before));
    }
    let pairs = load.finish().await;
    for (id, round, before) in &made {
        let manifest = repository.manifest(id);
        let tables = manifest["files"].as_array().unwrap().len();
        println!(
            "backup {id}: {tables} files, {} bytes, {} of them new, entries {} to {}, exact from {}",
            manifest["bytes"],
            manifest["written_bytes"],
            manifest["flushed"],
            manifest["newest"],
            manifest["exact_from"],
        );
        let (folder, said) = repository.restore(&["--backup", id]);
        println!("{said}");
        let restored = setup.clone().start_on(folder);
        check(&restored, &pairs, before).await;
        let mut group = group.clone();
        group.http = restored.http.clone();
        assert_eq!(group.read_all(&max).await.len(), *round, "the group of backup {round}");
        // It goes on like any server: what was sent meanwhile is sent again, and stored once.
        let pair = &pairs[0];
        let (mut socket, _) = restored.connect(&pair.sender).await;
        let mut history = before[0].clone();
        for (client_id, body) in pair.history().all_tried() {
            history.tried(&client_id, &body);
        }
        for (client_id, body) in history.open().into_iter().take(20) {
            history.acked(&socket.send(&pair.receiver.id, &client_id, &body).await);
        }
        history.check(&restored.http, &pair.receiver, &pair.sender.id).await;
    }
    let (is_whole, said) = repository.run(&["backup", "verify", "--from", &repository.target]);
    assert!(is_whole, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_in_the_middle_of_a_backup_harms_neither_server_nor_repository() {
    let repository = BackupRepository::new(env!("CARGO_BIN_EXE_nexo"));
    let setup = repository.setup().with("NEXO_EMBEDDED__MEMTABLE_MIB", "1");
    let mut server = setup.clone().with("NEXO_BACKUP__MIB_PER_SECOND", "2").start();
    let first = make(&server).await;
    let load = Load::start(&server).await;
    load.more(2000).await;
    let token = operator_token(&server);
    begin(&server.http, &token).await;
    wait_for(&server.http, &token, |status| {
        assert_eq!(status["running"], true, "it is killed before the backup is complete");
        status["written_bytes"].as_u64().unwrap() > 1 << 20
    })
    .await;
    server.kill();
    let pairs = load.finish().await;
    let acked: Vec<History> = pairs.iter().map(Pair::history).collect();
    // The repository has the first backup, whole, and no other.
    let (_, listed) = repository.run(&["backup", "list", "--from", &repository.target]);
    assert!(listed.contains(first["backup_id"].as_str().unwrap()), "{listed}");
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let (is_whole, said) = repository.run(&["backup", "verify", "--from", &repository.target]);
    assert!(is_whole, "{said}");
    // The server has everything, and its next backup uses what the interrupted one copied.
    let left: u64 = repository.objects().iter().map(|(_, bytes)| bytes).sum();
    server.start_again(|setup| setup.with("NEXO_BACKUP__MIB_PER_SECOND", "0"));
    check(&server, &pairs, &acked).await;
    let second = make(&server).await;
    let manifest = repository.manifest(second["backup_id"].as_str().unwrap());
    let all: u64 = repository.objects().iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(all - left, manifest["written_bytes"].as_u64().unwrap(), "nothing is written twice");
    assert!(manifest["written_bytes"].as_u64() < manifest["bytes"].as_u64(), "{manifest}");
    let (folder, _) = repository.restore(&[]);
    check(&setup.start_on(folder), &pairs, &acked).await;
}
