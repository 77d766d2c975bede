//! A person's way to the server.
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::core::{Core, Parts};
use crate::desk::Desk;
use crate::dial::Server;
use crate::error::Error;
use crate::events::{Ears, Events, State};
use crate::groups::Groups;
use crate::http::{Ask, Http, fields};
use crate::jobs::Jobs;
use crate::line::ConversationLine;
use crate::link::Link;
use crate::options::Options;
use crate::people::{NewUser, People, User};
use crate::pull;
use crate::reason::Reason;
use crate::storage::Keeper;
use crate::timing::ms;
use crate::tokens::SignIn;
use crate::types::{Content, Message, Receive, Target};

/// A person's way to the server: one per person and device. Clones are the same client; when the last
/// one is dropped it ends.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    jobs: Jobs,
    ears: Ears,
    http: Http,
    sign_in: SignIn,
    state: watch::Receiver<State>,
    platform: u8,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.jobs.put(Core::close);
    }
}

/// Whether somebody has read a message.
#[derive(Debug, Clone, Deserialize)]
pub struct Reader {
    /// Who.
    pub user_id: String,
    /// Whether they have.
    pub has_read: bool,
}

impl Client {
    /// Makes a client, which does nothing yet. It lives in the runtime it is made in.
    pub fn new(options: Options) -> Result<Self, Error> {
        let timing = Arc::new(options.timing);
        let http = Http::new(Server::at(&options.url)?, ms(timing.http_timeout_ms));
        let (sender, receiver) = mpsc::unbounded_channel();
        let (jobs, ears) = (Jobs(sender), Ears::default());
        let store = Keeper::new(options.store, ears.clone());
        let sign_in = SignIn::new(http.clone(), store.clone(), jobs.clone());
        let (told, state) = watch::channel(State::Offline { retry_in: None });
        let parts = Parts {
            jobs: jobs.clone(),
            ears: ears.clone(),
            link: Link::new(http.server.clone(), &timing),
            timing,
            sign_in: sign_in.clone(),
            store,
            keep: options.keep,
            state: told,
        };
        tokio::spawn(Core::new(parts).run(receiver));
        let platform = options.platform;
        Ok(Self(Arc::new(Inner { jobs, ears, http, sign_in, state, platform })))
    }

    /// What happens from now on.
    pub fn events(&self) -> Events {
        self.0.ears.listen()
    }

    /// How it stands with the server.
    pub fn state(&self) -> State {
        *self.0.state.borrow()
    }

    /// Who is signed in.
    pub fn me(&self) -> Option<String> {
        self.0.sign_in.user_id()
    }

    /// Everything that is done to groups.
    pub fn groups(&self) -> Groups {
        Groups(self.0.sign_in.clone())
    }

    /// Who people are, and whether they are there.
    pub fn people(&self) -> People {
        People(self.0.sign_in.clone())
    }

    /// Makes an account; signing in is another step.
    pub async fn register(&self, user: &NewUser) -> Result<User, Error> {
        self.0.http.ask(&Ask::post("/user/register", fields(user)), None).await
    }

    /// Signs in and connects.
    pub async fn login(&self, user_id: &str, password: &str) -> Result<(), Error> {
        let platform = self.0.platform;
        let body = json!({ "user_id": user_id, "password": password, "platform_id": platform });
        let grant = self.0.http.ask(&Ask::post("/auth/login", body), None).await?;
        let sign_in = self.0.sign_in.clone();
        let enter = move |core: &mut Core| {
            sign_in.take(grant);
            core.enter(&sign_in.user_id().unwrap_or_default());
        };
        self.0.jobs.ask(enter).await
    }

    /// Goes on with the sign-in of an earlier run and connects; false if there is none.
    pub async fn resume(&self) -> Result<bool, Error> {
        let sign_in = self.0.sign_in.clone();
        let resume = move |core: &mut Core| {
            if core.desk.is_some() {
                return true;
            }
            let found = sign_in.resume();
            if found {
                core.enter(&sign_in.user_id().unwrap_or_default());
            }
            found
        };
        self.0.jobs.ask(resume).await
    }

    /// Ends the sign-in, here and on the server, and forgets what was not sent.
    pub async fn logout(&self) -> Result<(), Error> {
        if self.me().is_some() {
            // A server that cannot be reached does not keep us signed in.
            self.post("/auth/logout", json!({})).await.ok();
        }
        let sign_in = self.0.sign_in.clone();
        let leave = move |core: &mut Core| {
            if let Some(desk) = &mut core.desk {
                desk.outbox.forget();
            }
            core.leave(State::SignedOut { reason: None });
            sign_in.end(None);
        };
        self.0.jobs.ask(leave).await
    }

    /// Every sign-in ends, this one too.
    pub async fn change_password(&self, old: &str, new: &str) -> Result<(), Error> {
        let body = json!({ "old_password": old, "new_password": new });
        self.post("/user/change_password", body).await
    }

    /// Connects again after `disconnect`.
    pub fn connect(&self) {
        self.0.jobs.put(Core::start);
    }

    /// Ends the connection; what is said meanwhile waits.
    pub fn disconnect(&self) {
        self.0.jobs.put(|core| core.stop(State::Offline { retry_in: None }));
    }

    /// Compares with the server now: somebody looks, or the network is back.
    pub fn refresh(&self) {
        self.0.jobs.put(|core| {
            core.hurry();
            if let Some(desk) = &mut core.desk {
                desk.sync.ask_heads(desk.now);
            }
        });
    }

    /// Lets go of everything, for good.
    pub fn close(&self) {
        self.0.jobs.put(Core::close);
    }

    /// The list: pinned ones first, then the latest.
    pub async fn conversations(&self) -> Result<Vec<ConversationLine>, Error> {
        let list = |core: &mut Core| {
            let all = core.desk.iter().flat_map(|desk| desk.conversations.values());
            all.filter(|one| one.is_there()).map(|one| one.line()).collect::<Vec<_>>()
        };
        let mut lines = self.0.jobs.ask(list).await?;
        lines.sort_by_key(|line| std::cmp::Reverse((line.pinned, line.updated_at)));
        Ok(lines)
    }

    /// One line of it.
    pub async fn conversation(
        &self,
        target: impl Into<Target>,
    ) -> Result<Option<ConversationLine>, Error> {
        let target = target.into();
        self.at_desk(move |desk| desk.find(&target).map(|one| one.line())).await
    }

    /// The messages that are on this device, in order, and those without a place at the end.
    pub async fn messages(&self, target: impl Into<Target>) -> Result<Vec<Arc<Message>>, Error> {
        let target = target.into();
        self.at_desk(move |desk| desk.find(&target).map(|one| one.list()).unwrap_or_default()).await
    }

    /// Says something. It is on its way until it is saved or refused, whatever happens between.
    pub async fn send(
        &self,
        target: impl Into<Target>,
        content: impl Into<Content>,
    ) -> Result<Arc<Message>, Error> {
        let (target, content) = (target.into(), content.into());
        self.at_desk(move |desk| desk.send(&target, content)).await
    }

    /// Waits until a message that was sent is saved; an error if it is refused.
    pub async fn saved(&self, message: &Message) -> Result<Arc<Message>, Error> {
        let (waiter, answer) = oneshot::channel();
        let message = message.clone();
        self.at_desk(move |desk| desk.wait_for(&message, waiter)).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Tries a refused message again.
    pub async fn retry(&self, client_msg_id: &str) -> Result<(), Error> {
        let name = client_msg_id.to_owned();
        self.at_desk(move |desk| desk.retry(&name)).await
    }

    /// Forgets a refused message.
    pub async fn discard(&self, client_msg_id: &str) -> Result<(), Error> {
        let name = client_msg_id.to_owned();
        self.at_desk(move |desk| desk.discard(&name)).await
    }

    /// You have read up to this place, or everything that is here.
    pub async fn mark_read(
        &self,
        target: impl Into<Target>,
        seq: Option<u64>,
    ) -> Result<(), Error> {
        let target = target.into();
        let beyond = self.at_desk(move |desk| desk.mark_read(&target, seq)).await?;
        let Some((conversation_id, read_seq)) = beyond else { return Ok(()) };
        let body = json!({ "conversation_id": conversation_id, "read_seq": read_seq });
        self.post("/conversation/mark_read", body).await?;
        self.at_desk(|desk| desk.sync.ask_heads(desk.now)).await
    }

    /// Brings older messages; none if there are none.
    pub async fn load_older(
        &self,
        target: impl Into<Target>,
        limit: u64,
    ) -> Result<Vec<Arc<Message>>, Error> {
        let target = target.into();
        let whose = move |desk: &mut Desk| (target.conversation_id(&desk.me), desk.inside.clone());
        let (id, inside) = self.at_desk(whose).await?;
        pull::older(&inside, &self.0.sign_in, id, limit).await
    }

    /// Takes a message back, for everybody.
    pub async fn recall(&self, server_msg_id: &str) -> Result<(), Error> {
        self.post("/msg/recall", json!({ "server_msg_id": server_msg_id })).await?;
        let name = server_msg_id.to_owned();
        self.at_desk(move |desk| desk.recalled(&name)).await
    }

    /// Who has read a message.
    pub async fn readers(&self, server_msg_id: &str) -> Result<Vec<Reader>, Error> {
        #[derive(Deserialize)]
        struct Page {
            readers: Vec<Reader>,
            next_cursor: Option<String>,
        }
        let (mut readers, mut cursor) = (Vec::new(), None);
        loop {
            let mut query = vec![("server_msg_id", server_msg_id), ("limit", "200")];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: Page = self.0.sign_in.ask(Ask::get("/msg/readers", &query)).await?;
            readers.extend(page.readers);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(readers);
            }
        }
    }

    /// You are writing. Call it at every key; the others hear of it now and then.
    pub fn typing(&self, target: impl Into<Target>) {
        let target = target.into();
        self.0.jobs.put(move |core| {
            let is_online = core.is_online();
            if let Some(desk) = core.desk.as_mut().filter(|_| is_online) {
                desk.write_to(&target);
            }
        });
    }

    /// Keeps a conversation on top of the list, or not.
    pub async fn pin(&self, target: impl Into<Target>, pinned: bool) -> Result<(), Error> {
        self.choose(target.into(), json!({ "is_pinned": pinned })).await
    }

    /// Chooses what you hear of a conversation.
    pub async fn receive(&self, target: impl Into<Target>, receive: Receive) -> Result<(), Error> {
        self.choose(target.into(), json!({ "recv_msg_opt": receive as u8 })).await
    }

    async fn choose(&self, target: Target, mut choice: Value) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Chosen {
            is_pinned: bool,
            recv_msg_opt: u8,
        }
        let id = self.at_desk(move |desk| target.conversation_id(&desk.me)).await?;
        choice["conversation_id"] = json!(id);
        let now: Chosen = self.0.sign_in.ask(Ask::put("/conversation/update", choice)).await?;
        let choose = move |desk: &mut Desk| {
            desk.open(&id).choose(now.is_pinned, now.recv_msg_opt);
            desk.touch(&id);
        };
        self.at_desk(choose).await
    }

    async fn post(&self, path: &str, body: Value) -> Result<(), Error> {
        self.0.sign_in.ask::<Value>(Ask::post(path, body)).await.map(drop)
    }

    /// Somebody has to be signed in.
    async fn at_desk<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let asked = self.0.jobs.ask(|core| core.desk.as_mut().map(job)).await?;
        asked.ok_or_else(|| Error::refused(Reason::MissingToken))
    }
}
