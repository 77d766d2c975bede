//! A person's way to the server.
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::core::{Core, Parts};
use crate::desk::Desk;
use crate::dial::Server;
use crate::error::Error;
use crate::events::{Ears, Events, State};
use crate::groups::Groups;
use crate::http::{Ask, Http, Reply, fields};
use crate::jobs::Jobs;
use crate::link::Link;
use crate::options::Options;
use crate::people::{NewUser, People, User};
use crate::reason::Reason;
use crate::storage::Keeper;
use crate::timing::ms;
use crate::tokens::SignIn;

/// A person's way to the server: one per person and device. Clones are the same client; when the last
/// one is dropped it ends.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) jobs: Jobs,
    ears: Ears,
    http: Http,
    pub(crate) sign_in: SignIn,
    state: watch::Receiver<State>,
    platform: u8,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.jobs.put(Core::close);
    }
}

impl Client {
    /// Makes a client, which does nothing yet. It lives in the runtime it is made in.
    pub fn new(options: Options) -> Result<Self, Error> {
        let timing = Arc::new(options.timing);
        let http = Http::new(Server::at(&options.url)?, ms(timing.http_timeout_ms));
        let (sender, receiver) = mpsc::unbounded_channel();
        let (jobs, ears) = (Jobs(sender), Ears::default());
        let store = Keeper::new(options.store, ears.clone());
        let sign_in = SignIn::new(http.clone(), &timing, store.clone(), jobs.clone());
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
            // The desk of a sign-in that has ended stays, so that what was said can be looked at.
            if core.desk.is_some() && sign_in.user_id().is_some() {
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

    /// Sets a password with a code from the operator, which works once. Every sign-in ends.
    pub async fn reset_password(&self, user_id: &str, code: &str, new: &str) -> Result<(), Error> {
        let body = json!({ "user_id": user_id, "code": code, "new_password": new });
        let ask = Ask::post("/user/reset_password", body);
        self.0.http.ask::<Value>(&ask, None).await.map(drop)
    }

    /// The access token, refreshed if it has expired: for what speaks to the server without this
    /// client. It lives for minutes, so ask for it each time.
    pub async fn token(&self) -> Result<String, Error> {
        self.0.sign_in.token().await
    }

    /// Asks for anything the SDK has no method for, with the token if somebody is signed in. The names
    /// are those of docs/http.md, and the answer is the whole envelope. For GET and DELETE the fields
    /// of `body` become the query.
    pub async fn request<Data: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Reply<Data>, Error> {
        let ask = Ask::any(method, path, body)?;
        match self.me() {
            Some(_) => self.0.sign_in.reply(&ask).await,
            None => self.0.http.reply(&ask, None).await,
        }
    }

    /// Waits until the client is connected and knows the conversations. `login` and `resume` do not
    /// wait for that, since an app can show what it has meanwhile. An error if the sign-in ends first.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut changes = self.0.state.clone();
        loop {
            changes.mark_unchanged();
            let (state, is_signed_in) = self.0.jobs.ask(|core| core.standing()).await?;
            match state {
                State::Online => return Ok(()),
                State::Kicked => return Err(Error::refused(Reason::Kicked)),
                State::SignedOut { reason } => {
                    return Err(Error::refused(reason.unwrap_or(Reason::MissingToken)));
                }
                _ if !is_signed_in => return Err(Error::refused(Reason::MissingToken)),
                State::Connecting | State::Offline { .. } => {}
            }
            changes.changed().await.map_err(|_| Error::Closed)?;
        }
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

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<(), Error> {
        self.0.sign_in.ask::<Value>(Ask::post(path, body)).await.map(drop)
    }

    /// Somebody has to be signed in.
    pub(crate) async fn at_desk<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let asked = self.0.jobs.ask(|core| core.desk.as_mut().map(job)).await?;
        asked.ok_or_else(|| Error::refused(Reason::MissingToken))
    }
}
