//! Backups in a bucket of a real S3 server: made, shared, checked, restored, pruned, and refused with wrong keys.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use nexo_backup::{
    BackupOptions, Keep, LogArchive, Repository, RestoreRequest, S3Options, Target, Transfer,
    create, history_id, prune, restore, verify,
};
use nexo_chat::Boxed;
use nexo_chat::clock::{Clock, Rng};
use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Limit, MessageStore, Order, Store};
use nexo_store::archive::Import;
use nexo_store::embedded::LogClock;
use nexo_store::{Embedded, Options};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;

const BUCKET: &str = "backups";

/// A clock and a source of numbers that a test owns.
struct Steps(AtomicU64);

impl Clock for Steps {
    fn now(&self) -> Millis {
        Millis(1_800_000_000_000 + self.0.load(Ordering::SeqCst))
    }

    fn ticks(&self) -> Millis {
        self.now()
    }

    fn sleep(&self, _ms: u64) -> Boxed<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Rng for Steps {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.iter_mut().zip(number.iter().rev().cycle()).for_each(|(to, from)| *to = *from);
    }
}

/// Starts an S3 server on a folder; returns how to reach it.
async fn serve(root: &Path) -> S3Options {
    std::fs::create_dir(root.join(BUCKET)).unwrap();
    let mut service = S3ServiceBuilder::new(FileSystem::new(root).unwrap());
    service.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = service.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let connection = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service.clone())
                .into_owned();
            // A client that goes away ends its connection with an error.
            tokio::spawn(async move { drop(connection.await) });
        }
    });
    S3Options {
        endpoint,
        region: "us-east-1".to_owned(),
        access_key_id: "key".to_owned(),
        secret_access_key: "secret".to_owned(),
    }
}

fn pair() -> ConversationId {
    ConversationId::parse("si_alice_bob").unwrap()
}

/// Appends messages of 20 KB, so that a segment of the log needs an upload in several parts.
async fn append(store: &Arc<Embedded>, numbers: std::ops::Range<u64>) {
    for n in numbers {
        let draft = Draft {
            conversation: pair(),
            sender: UserId::parse("alice").unwrap(),
            client_id: ClientMsgId::parse(&n.to_string()).unwrap(),
            content: Content::text(format!("message {n} {}", "x".repeat(20_000))),
            sent_at: Millis(n),
            cleaned: None,
            origin: None,
            marks_read: true,
        };
        store.append(Permit::for_tests(), draft).await.unwrap();
    }
}

async fn count(store: &Arc<Embedded>) -> usize {
    let range = Seq::ZERO..=Seq(u64::MAX);
    let page = store.messages(&pair(), range, Limit::of(99_999), Order::Ascending).await;
    page.unwrap().messages.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_in_a_bucket_are_made_checked_restored_and_pruned() {
    let [root, data, restored] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let s3 = serve(root.path()).await;
    let target = Target::parse(&format!("s3://{BUCKET}/of/nexo")).unwrap();
    let steps = Arc::new(Steps(AtomicU64::new(1)));
    let options = Options {
        memtable_bytes: 64 << 20,
        clock: LogClock::new(Arc::clone(&steps) as Arc<dyn Clock>),
        ..Options::default()
    };
    let store = Embedded::open(data.path(), &options).unwrap();
    append(&store, 0..1200).await;
    let wrong = S3Options { secret_access_key: "wrong".to_owned(), ..s3.clone() };
    assert!(Repository::create(&target, &wrong).await.is_err(), "wrong keys are refused");
    assert!(Repository::open(&target, &s3).await.is_err(), "there is no repository yet");
    let repository = Repository::create(&target, &s3).await.unwrap();
    let backup = BackupOptions {
        data: data.path().to_owned(),
        with_secrets: false,
        version: "test".to_owned(),
        clock: Arc::clone(&steps) as Arc<dyn Clock>,
        rng: Arc::clone(&steps) as Arc<dyn Rng>,
    };
    let first = create(&repository, &store, &backup, &Transfer::new(0)).await.unwrap();
    assert!(
        first.log.iter().any(|segment| segment.bytes > 8 << 20),
        "several parts: {:?}",
        first.log
    );
    append(&store, 1200..1210).await;
    let second = create(&repository, &store, &backup, &Transfer::new(0)).await.unwrap();
    assert!(second.written_bytes < first.written_bytes, "{} bytes again", second.written_bytes);
    let listed = Repository::open(&target, &s3).await.unwrap().backups().await.unwrap();
    assert_eq!(listed.backups, [first.clone(), second.clone()]);

    // The archived log goes on after the backup.
    let history = history_id(data.path(), &*steps).unwrap();
    let mut archive = LogArchive::open(repository.clone(), history).await.unwrap();
    archive.run(&store, &Transfer::new(0)).await.unwrap();
    append(&store, 1210..1220).await;
    archive.run(&store, &Transfer::new(0)).await.unwrap();
    let request = RestoreRequest {
        data: restored.path().join("data"),
        options: options.clone(),
        ..RestoreRequest::default()
    };
    let done = restore(&repository, &request, &Transfer::new(0)).await.unwrap();
    assert_eq!(count(&done.store).await, 1220);
    done.store.finish().await.unwrap();
    done.store.close().await.unwrap();

    let now = steps.now().0;
    let keep = Keep { last: 1, days: 0 };
    let pruned = prune(&repository, keep, now, Some(0)).await.unwrap();
    assert_eq!(pruned.backups, [first.id]);
    let verified = verify(&repository, None, &Transfer::new(0)).await.unwrap();
    assert_eq!((verified.backups, verified.problems), (1, Vec::new()));
    // An object goes behind our back.
    let lost = &second.log[0].blake3;
    let object = root.path().join(BUCKET).join("of/nexo/objects").join(&lost[..2]).join(lost);
    std::fs::remove_file(object).unwrap();
    let verified = verify(&repository, None, &Transfer::new(0)).await.unwrap();
    assert!(verified.problems[0].contains("is missing"), "{:?}", verified.problems);
    let again = RestoreRequest {
        backup: Some(second.id),
        data: restored.path().join("again"),
        options,
        ..RestoreRequest::default()
    };
    let refused = restore(&repository, &again, &Transfer::new(0)).await.err().unwrap().to_string();
    assert!(refused.contains("is missing"), "{refused}");
}
