//! The world that a request is made in: accounts, a private chat and a group. Worlds share one server; the names of
//! each begin with its own number, so that no cell of the matrix can see what another did.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use nexo_sim::identity_provider::{CLIENT_ID, CLIENT_SECRET};
use nexo_sim::person::PASSWORD;
use nexo_sim::process::Setup;
use nexo_sim::{IdentityProvider, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::callers::{CALLERS, Caller};

/// The server, and what all worlds have in common.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) provider: IdentityProvider,
    /// The token of `system.token`, which prepares what a request needs.
    pub(crate) operator: String,
    keys: BTreeMap<&'static str, String>,
    revoked: String,
    worlds: AtomicU32,
    /// Where backups go.
    _backups: TempDir,
}

/// The accounts of a world. `target`, a plain member, is whom others act on; `guest` has nothing to do with anybody;
/// `asker` waits to be let into the group; `author` is the one that `peer` chats with.
const PARTS: [&str; 10] =
    ["owner", "admin", "member", "target", "guest", "asker", "author", "peer", "stranger", "bot"];

pub(crate) struct World<'a> {
    pub(crate) site: &'a Site,
    pub(crate) caller: Caller,
    /// The caller's token or key; empty for nobody.
    pub(crate) token: String,
    number: u32,
    pub(crate) group: String,
    /// The conversation of `author` and `peer`.
    pub(crate) private_chat: String,
    /// What `peer` wrote to `author`.
    pub(crate) private_message: String,
    /// What `member` wrote to the group.
    pub(crate) group_message: String,
}

/// What `peer` wrote to `author`, and `member` to the group. Whoever else sees it has found a hole.
pub(crate) const PRIVATE_TEXT: &str = "only for the author";
pub(crate) const GROUP_TEXT: &str = "only for members";

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

impl Site {
    pub(crate) async fn start() -> Self {
        let provider = IdentityProvider::start().await;
        let backups = tempfile::tempdir().expect("a folder");
        // One node: backups are those of the embedded store. Everything that is off by default is on, so that each
        // operation can succeed for somebody.
        let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
            .nodes(0)
            .with("NEXO_GATEWAY__TRUSTED_PROXIES", "127.0.0.0/8")
            .with("NEXO_BACKUP__TARGET", backups.path().to_str().expect("a path"))
            .with("NEXO_GROUPS__CODE_COOLDOWN_SECONDS", "0")
            .with("NEXO_AUTH__INVITES_BY", "members")
            .with("NEXO_AUTH__TOKEN__JWKS_URL", &provider.jwks_url())
            .with("NEXO_AUTH__TOKEN__ISSUER", &provider.issuer)
            .with("NEXO_AUTH__TOKEN__AUDIENCE", "nexo")
            .with("NEXO_AUTH__OIDC__ISSUER", &provider.issuer)
            .with("NEXO_AUTH__OIDC__CLIENT_ID", CLIENT_ID)
            .with("NEXO_AUTH__OIDC__CLIENT_SECRET", CLIENT_SECRET)
            .with("NEXO_AUTH__OIDC__REDIRECT_URL", "http://x/auth/oidc/callback")
            .start();
        let operator = std::fs::read_to_string(server.data().join("system.token"));
        let operator = operator.expect("a token").trim().to_owned();
        let mut site = Self {
            server,
            provider,
            operator,
            keys: BTreeMap::new(),
            revoked: String::new(),
            worlds: AtomicU32::new(0),
            _backups: backups,
        };
        for caller in CALLERS {
            if let Caller::Key(scope) = caller {
                let made = site.new_key(scope).await;
                site.keys.insert(scope, text(&made["key"]));
            }
        }
        let revoked = site.new_key("admin").await;
        let path = format!("/admin/keys/{}", text(&revoked["key_id"]));
        site.server.http.delete(&path, &site.operator).await.data();
        site.revoked = text(&revoked["key"]);
        site
    }

    pub(crate) async fn new_key(&self, scope: &str) -> Value {
        self.operate("/admin/keys", &json!({ "name": scope, "scopes": [scope] })).await
    }

    /// What the operator's `POST` answers.
    pub(crate) async fn operate(&self, path: &str, body: &Value) -> Value {
        self.server.http.post(path, &self.operator, body.clone()).await.data().clone()
    }

    pub(crate) async fn world(&self, caller: Caller) -> World<'_> {
        let mut world = World {
            site: self,
            caller,
            token: String::new(),
            number: self.worlds.fetch_add(1, Ordering::Relaxed),
            group: String::new(),
            private_chat: String::new(),
            private_message: String::new(),
            group_message: String::new(),
        };
        world.make_users().await;
        world.make_group().await;
        world.make_private_chat().await;
        world.token = match caller {
            Caller::Nobody => String::new(),
            Caller::User(part) => world.sign_in(part).await,
            Caller::Key(scope) => self.keys[scope].clone(),
            Caller::RevokedKey => self.revoked.clone(),
        };
        world
    }
}

impl World<'_> {
    /// The user id of a part.
    pub(crate) fn id(&self, part: &str) -> String {
        format!("w{}-{part}", self.number)
    }

    /// The caller's user id; `target` for callers that are no users.
    pub(crate) fn caller_id(&self) -> String {
        match self.caller {
            Caller::User(part) => self.id(part),
            _ => self.id("target"),
        }
    }

    pub(crate) fn group_chat(&self) -> String {
        format!("sg_{}", self.group)
    }

    /// An address that no other world has.
    pub(crate) fn address(&self) -> String {
        format!("10.0.{}.{}", self.number / 250, self.number % 250)
    }

    /// What stands for the parameters of paths.
    pub(crate) fn params(&self) -> Vec<(&'static str, String)> {
        vec![
            ("user_id", self.id("target")),
            ("group_id", self.group.clone()),
            ("server_msg_id", self.group_message.clone()),
        ]
    }

    /// Signs a part in, which gives its token.
    pub(crate) async fn sign_in(&self, part: &str) -> String {
        let path = format!("/admin/users/{}/login", self.id(part));
        text(&self.site.operate(&path, &json!({ "platform_id": 5 })).await["token"])
    }

    /// What a `POST` of a part answers.
    pub(crate) async fn post(&self, part: &str, path: &str, body: &Value) -> Value {
        let token = self.sign_in(part).await;
        self.site.server.http.post(path, &token, body.clone()).await.data().clone()
    }

    async fn make_users(&self) {
        let lines = PARTS.map(|part| {
            // A bot has no password.
            let password = Some(PASSWORD).filter(|_| part != "bot");
            json!({ "user_id": self.id(part), "nickname": part, "is_bot": part == "bot",
                "password": password })
            .to_string()
        });
        let request = crate::request::lines(&lines.join("\n"));
        let bytes = request.bytes("POST", "/admin/users/import", &self.site.operator, "10.255.0.1");
        let done = self.site.server.http.raw(&bytes).await;
        assert_eq!(done.data()["created"], PARTS.len(), "{}", done.text);
    }

    async fn make_group(&mut self) {
        let members = ["admin", "member", "target"].map(|part| self.id(part));
        let body = json!({ "name": "Group", "member_ids": members, "join_type": "approval" });
        let http = &self.site.server.http;
        let owner = self.sign_in("owner").await;
        let made = http.post("/group/create", &owner, body).await;
        self.group = text(&made.data()["group_id"]);
        let body = json!({ "group_id": self.group, "user_id": self.id("admin"), "role": 1 });
        http.post("/group/set_role", &owner, body).await.data();
        self.post("asker", "/group/join", &json!({ "group_id": self.group })).await;
        let sent = self.post("member", "/msg/send", &self.to_group("first", GROUP_TEXT)).await;
        self.group_message = text(&sent["server_msg_id"]);
    }

    async fn make_private_chat(&mut self) {
        let sent =
            self.post("peer", "/msg/send", &self.to_user("author", "first", PRIVATE_TEXT)).await;
        self.private_message = text(&sent["server_msg_id"]);
        self.private_chat = text(&sent["conversation_id"]);
    }

    /// A message to the group.
    pub(crate) fn to_group(&self, client_id: &str, text: &str) -> Value {
        json!({ "client_msg_id": client_id, "session_type": 2, "group_id": self.group, "msg_type": 1,
            "content": { "text": text } })
    }

    /// A private message.
    pub(crate) fn to_user(&self, part: &str, client_id: &str, text: &str) -> Value {
        json!({ "client_msg_id": client_id, "session_type": 1, "recv_id": self.id(part), "msg_type": 1,
            "content": { "text": text } })
    }
}
