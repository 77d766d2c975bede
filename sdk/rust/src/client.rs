//! The client.
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::account_state::AccountState;
use crate::core::{Core, CoreParts};
use crate::dial::Server;
use crate::error::Error;
use crate::events::{Events, Listeners, State};
use crate::groups::Groups;
use crate::http::{ApiRequest, Http, Reply, fields};
use crate::jobs::Jobs;
use crate::link::Link;
use crate::options::Options;
use crate::people::{NewUser, People, User};
use crate::reason::Reason;
use crate::storage::BestEffortStore;
use crate::timing::ms;
use crate::tokens::{Grant, LoginTokens, SignIn};

/// A signed-in connection to the server: one per user and device. Clones share it; dropping the
/// last clone closes it.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<ClientInner>);

pub(crate) struct ClientInner {
    pub(crate) jobs: Jobs,
    listeners: Listeners,
    http: Http,
    pub(crate) sign_in: SignIn,
    state: watch::Receiver<State>,
    platform: u8,
}

impl Drop for ClientInner {
    fn drop(&mut self) {
        self.jobs.put(Core::close);
    }
}

impl Client {
    /// Creates a client, not yet connected. It runs in the Tokio runtime of the caller.
    pub fn new(options: Options) -> Result<Self, Error> {
        let timing = Arc::new(options.timing);
        let http = Http::new(Server::at(&options.url)?, ms(timing.http_timeout_ms));
        let (sender, receiver) = mpsc::unbounded_channel();
        let (jobs, listeners) = (Jobs(sender), Listeners::default());
        let store = BestEffortStore::new(options.store, listeners.clone());
        let sign_in = SignIn::new(http.clone(), &timing, store.clone(), jobs.clone());
        let (state_sender, state) = watch::channel(State::Offline { retry_in: None });
        let parts = CoreParts {
            jobs: jobs.clone(),
            listeners: listeners.clone(),
            link: Link::new(http.server.clone(), &timing),
            timing,
            sign_in: sign_in.clone(),
            store,
            keep: options.keep,
            state: state_sender,
        };
        tokio::spawn(Core::new(parts).run(receiver));
        let platform = options.platform;
        Ok(Self(Arc::new(ClientInner { jobs, listeners, http, sign_in, state, platform })))
    }

    /// A stream of the events from now on.
    pub fn events(&self) -> Events {
        self.0.listeners.subscribe()
    }

    /// The state of the connection and of the sign-in.
    pub fn state(&self) -> State {
        *self.0.state.borrow()
    }

    /// The id of the signed-in user.
    pub fn me(&self) -> Option<String> {
        self.0.sign_in.user_id()
    }

    /// Operations on groups.
    pub fn groups(&self) -> Groups {
        Groups(self.0.sign_in.clone())
    }

    /// User profiles and presence.
    pub fn people(&self) -> People {
        People(self.0.sign_in.clone())
    }

    /// Creates an account. It does not sign in.
    pub async fn register(&self, user: &NewUser) -> Result<User, Error> {
        self.0.http.fetch(&ApiRequest::post("/user/register", fields(user)), None).await
    }

    /// Signs in and connects.
    pub async fn login(&self, user_id: &str, password: &str) -> Result<(), Error> {
        let platform = self.0.platform;
        let body = json!({ "user_id": user_id, "password": password, "platform_id": platform });
        let grant = self.0.http.fetch(&ApiRequest::post("/auth/login", body), None).await?;
        self.enter(grant).await
    }

    /// Signs in with a token of the identity provider that the server trusts, and connects. The
    /// name of the device is shown in the user's list of devices.
    pub async fn login_with_token(
        &self,
        token: &str,
        device_name: Option<&str>,
    ) -> Result<(), Error> {
        let mut body = json!({ "token": token, "platform_id": self.0.platform });
        if let Some(name) = device_name {
            body["device_name"] = json!(name);
        }
        let grant = self.0.http.fetch(&ApiRequest::post("/auth/token", body), None).await?;
        self.enter(grant).await
    }

    /// Signs in with tokens that the app's backend obtained from the server, and connects.
    pub async fn login_with_tokens(&self, tokens: LoginTokens) -> Result<(), Error> {
        self.enter(tokens.into()).await
    }

    /// Takes over a new sign-in and connects.
    async fn enter(&self, grant: Grant) -> Result<(), Error> {
        let sign_in = self.0.sign_in.clone();
        let enter = move |core: &mut Core| {
            sign_in.take(grant);
            core.open_account(&sign_in.user_id().unwrap_or_default());
        };
        self.0.jobs.call(enter).await
    }

    /// Resumes the stored sign-in of an earlier run and connects; false if there is none.
    pub async fn resume(&self) -> Result<bool, Error> {
        let sign_in = self.0.sign_in.clone();
        let resume = move |core: &mut Core| {
            // The account state of an ended sign-in stays, so that its messages can still be read.
            if core.account.is_some() && sign_in.user_id().is_some() {
                return true;
            }
            let found = sign_in.resume();
            if found {
                core.open_account(&sign_in.user_id().unwrap_or_default());
            }
            found
        };
        self.0.jobs.call(resume).await
    }

    /// Signs out, here and on the server, and deletes unsent messages.
    pub async fn logout(&self) -> Result<(), Error> {
        if self.me().is_some() {
            // Sign out here even if the server cannot be reached.
            self.post("/auth/logout", json!({})).await.ok();
        }
        let sign_in = self.0.sign_in.clone();
        let leave = move |core: &mut Core| {
            if let Some(account) = &mut core.account {
                account.outbox.forget();
                account.own_joins.clear();
            }
            core.close_account(State::SignedOut { reason: None });
            sign_in.end(None);
        };
        self.0.jobs.call(leave).await
    }

    /// Ends every sign-in of this user, this one too.
    pub async fn change_password(&self, old: &str, new: &str) -> Result<(), Error> {
        let body = json!({ "old_password": old, "new_password": new });
        self.post("/user/change_password", body).await
    }

    /// Sets a new password with a one-time code from the operator. Ends every sign-in of this user.
    pub async fn reset_password(&self, user_id: &str, code: &str, new: &str) -> Result<(), Error> {
        let body = json!({ "user_id": user_id, "code": code, "new_password": new });
        let ask = ApiRequest::post("/user/reset_password", body);
        self.0.http.fetch::<Value>(&ask, None).await.map(drop)
    }

    /// The access token, refreshed if it has expired, for requests made without this client. It is
    /// valid for minutes, so call this each time.
    pub async fn token(&self) -> Result<String, Error> {
        self.0.sign_in.token().await
    }

    /// Sends a request the SDK has no method for, with the token if signed in. Names are those of
    /// docs/http.md; the result is the whole envelope. For GET and DELETE the fields of `body`
    /// become the query.
    pub async fn request<Data: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Reply<Data>, Error> {
        let ask = ApiRequest::any(method, path, body)?;
        match self.me() {
            Some(_) => self.0.sign_in.fetch_reply(&ask).await,
            None => self.0.http.fetch_reply(&ask, None).await,
        }
    }

    /// Waits until the client is connected and has loaded the conversations. `login` and `resume`
    /// do not wait for that, so that an app can show stored data meanwhile. Fails if the sign-in
    /// ends first.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut changes = self.0.state.clone();
        loop {
            changes.mark_unchanged();
            let (state, is_signed_in) = self.0.jobs.call(|core| core.state_and_sign_in()).await?;
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

    /// Closes the connection; messages sent meanwhile wait in the outbox.
    pub fn disconnect(&self) {
        self.0.jobs.put(|core| core.stop(State::Offline { retry_in: None }));
    }

    /// Compares with the server now: call it when the app becomes visible or the network is back.
    pub fn refresh(&self) {
        self.0.jobs.put(|core| {
            core.retry_now();
            if let Some(account) = &mut core.account {
                account.sync.schedule_heads(account.now);
            }
        });
    }

    /// Closes the client for good.
    pub fn close(&self) {
        self.0.jobs.put(Core::close);
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<(), Error> {
        self.0.sign_in.fetch::<Value>(ApiRequest::post(path, body)).await.map(drop)
    }

    /// Runs `job` on the account state; fails if not signed in.
    pub(crate) async fn with_account<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut AccountState) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let result = self.0.jobs.call(|core| core.account.as_mut().map(job)).await?;
        result.ok_or_else(|| Error::refused(Reason::MissingToken))
    }
}
