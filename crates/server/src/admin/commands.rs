//! The subcommands, and the request that each makes.

use anyhow::{Context, bail};
use clap::Subcommand;
use reqwest::{Body, Method};
use serde_json::{Map, Value, json};

/// A request to the admin API.
pub(super) struct AdminRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Body>,
    pub(super) answer: Answer,
}

/// How an answer is shown.
pub(super) enum Answer {
    Json,
    /// The key alone, so that it can be redirected into a file.
    NewKey,
    /// As JSON; fails if the audit log is not intact.
    Intact,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes a key and prints it.
    Create {
        /// What it is for.
        #[arg(long)]
        name: String,
        /// `backend` (users: make, change, sign in), `admin` (everything under /admin), `metrics`, `system` (messages
        /// from the system account); several with commas.
        #[arg(long, value_delimiter = ',', required = true)]
        scope: Vec<String>,
        /// Days until it expires; by default it works until it is revoked.
        #[arg(long)]
        days: Option<u64>,
    },
    /// Lists the keys, without their secrets.
    List,
    /// Ends a key.
    Revoke {
        /// The key's id, as `nexo key list` shows it.
        id: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum AdminCommand {
    /// Accounts.
    #[command(subcommand)]
    Users(UsersCommand),
    /// Groups.
    #[command(subcommand)]
    Groups(GroupsCommand),
    /// Messages.
    #[command(subcommand)]
    Messages(MessagesCommand),
    /// The audit log.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Counts users and groups.
    Stats,
}

#[derive(Subcommand)]
pub(crate) enum UsersCommand {
    /// Lists accounts by id.
    List {
        /// Only those with this text in their id or nickname.
        #[arg(long)]
        search: Option<String>,
        /// `active`, `disabled` or `deleted`.
        #[arg(long)]
        status: Option<String>,
        /// `next_cursor` of the page before.
        #[arg(long)]
        cursor: Option<String>,
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Shows an account.
    Show { id: String },
    /// Makes an account or changes it.
    Put {
        id: String,
        #[arg(long)]
        nickname: Option<String>,
        #[arg(long)]
        avatar: Option<String>,
        #[arg(long)]
        extra: Option<String>,
        /// A file with the password.
        #[arg(long, value_name = "FILE")]
        password_file: Option<String>,
        /// Whether it is a bot.
        #[arg(long)]
        bot: Option<bool>,
    },
    /// Makes or changes many accounts, from a file with a JSON object per line: `{"user_id": "alice", …}`.
    Import { file: String },
    /// Ends every sign-in of a user and lets none begin.
    Disable {
        id: String,
        /// For the audit log.
        #[arg(long, default_value = "")]
        reason: String,
        /// Hours until the account is enabled by itself.
        #[arg(long)]
        hours: Option<u64>,
    },
    /// Lets a disabled user sign in again.
    Enable { id: String },
    /// Deletes an account for good.
    Delete {
        id: String,
        /// Unsend all their messages too.
        #[arg(long)]
        remove_messages: bool,
    },
    /// Makes a one-time code with which the user sets a new password.
    ResetCode { id: String },
    /// Lists where a user is signed in.
    Sessions { id: String },
    /// Ends one sign-in of a user, or all.
    EndSessions {
        id: String,
        #[arg(long)]
        login: Option<String>,
    },
}

#[derive(Subcommand)]
pub(crate) enum GroupsCommand {
    /// Lists groups by id.
    List {
        /// Only those with this text in their id, name or owner.
        #[arg(long)]
        search: Option<String>,
        #[arg(long)]
        cursor: Option<String>,
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Shows a group.
    Show { id: String },
    /// Lists the members of a group.
    Members {
        id: String,
        #[arg(long)]
        cursor: Option<String>,
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Ends a group.
    Dissolve { id: String },
    /// Makes a member the owner.
    Transfer { id: String, user: String },
    /// Adds users.
    Add { id: String, users: Vec<String> },
    /// Removes a member.
    Remove { id: String, user: String },
}

#[derive(Subcommand)]
pub(crate) enum MessagesCommand {
    /// Shows a message.
    Show { id: String },
    /// Shows a message with those before and after it.
    Around { id: String },
    /// Unsends a message.
    Recall { id: String },
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Lists what was done, newest first.
    List {
        #[arg(long)]
        cursor: Option<u64>,
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Checks that no entry was changed, removed or inserted.
    Verify,
}

fn get(path: String) -> AdminRequest {
    AdminRequest { method: Method::GET, path, body: None, answer: Answer::Json }
}

fn send(method: Method, path: String, body: &Value) -> AdminRequest {
    AdminRequest { method, path, body: Some(body.to_string().into()), answer: Answer::Json }
}

fn post(path: String, body: &Value) -> AdminRequest {
    send(Method::POST, path, body)
}

fn delete(path: String) -> AdminRequest {
    AdminRequest { method: Method::DELETE, ..get(path) }
}

/// A part of a path. Ids have none of the characters that would end it, so others are refused here.
fn segment(id: &str) -> anyhow::Result<&str> {
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if id.is_empty() || id == "." || id == ".." || !id.chars().all(is_id) {
        bail!("{id:?} is no id");
    }
    Ok(id)
}

/// A path with the parameters that were given.
fn query(path: &str, parameters: &[(&str, Option<String>)]) -> anyhow::Result<String> {
    let mut url = reqwest::Url::parse("http://server")?.join(path)?;
    for (name, value) in parameters {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    Ok(match url.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    })
}

/// An object of the fields that were given.
fn object(fields: [(&str, Option<Value>); 5]) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<String, Value>>())
}

impl KeyCommand {
    pub(super) fn request(&self) -> anyhow::Result<AdminRequest> {
        Ok(match self {
            Self::Create { name, scope, days } => {
                let mut body = json!({ "name": name, "scopes": scope });
                if let Some(days) = days {
                    body["expires_in"] = days.saturating_mul(24 * 60 * 60).into();
                }
                AdminRequest { answer: Answer::NewKey, ..post("/admin/keys".into(), &body) }
            }
            Self::List => get("/admin/keys".into()),
            Self::Revoke { id } => delete(format!("/admin/keys/{}", segment(id)?)),
        })
    }
}

impl AdminCommand {
    pub(super) fn request(&self) -> anyhow::Result<AdminRequest> {
        match self {
            Self::Users(command) => command.request(),
            Self::Groups(command) => command.request(),
            Self::Messages(command) => command.request(),
            Self::Audit(AuditCommand::List { cursor, limit }) => {
                let cursor = cursor.map(|cursor| cursor.to_string());
                let parameters = [("cursor", cursor), ("limit", Some(limit.to_string()))];
                Ok(get(query("/admin/audit", &parameters)?))
            }
            Self::Audit(AuditCommand::Verify) => {
                Ok(AdminRequest { answer: Answer::Intact, ..get("/admin/audit/verify".into()) })
            }
            Self::Stats => Ok(get("/admin/statistics".into())),
        }
    }
}

impl UsersCommand {
    fn request(&self) -> anyhow::Result<AdminRequest> {
        let user = |id: &str| Ok::<_, anyhow::Error>(format!("/admin/users/{}", segment(id)?));
        Ok(match self {
            Self::List { search, status, cursor, limit } => get(query(
                "/admin/users",
                &[
                    ("search", search.clone()),
                    ("status", status.clone()),
                    ("cursor", cursor.clone()),
                    ("limit", Some(limit.to_string())),
                ],
            )?),
            Self::Show { id } => get(user(id)?),
            Self::Put { id, nickname, avatar, extra, password_file, bot } => {
                let password = match password_file {
                    Some(path) => {
                        let read = std::fs::read_to_string(path);
                        let read = read.with_context(|| format!("cannot read {path}"))?;
                        Some(read.trim_end_matches(['\r', '\n']).to_owned())
                    }
                    None => None,
                };
                let body = object([
                    ("nickname", nickname.clone().map(Value::from)),
                    ("avatar", avatar.clone().map(Value::from)),
                    ("extra", extra.clone().map(Value::from)),
                    ("password", password.map(Value::from)),
                    ("is_bot", bot.map(Value::from)),
                ]);
                send(Method::PUT, user(id)?, &body)
            }
            Self::Import { file } => {
                let read = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
                let path = "/admin/users/import".into();
                AdminRequest { body: Some(read.into()), ..post(path, &Value::Null) }
            }
            Self::Disable { id, reason, hours } => {
                let mut body = json!({ "reason": reason });
                if let Some(hours) = hours {
                    body["seconds"] = hours.saturating_mul(3600).into();
                }
                post(user(id)? + "/disable", &body)
            }
            Self::Enable { id } => post(user(id)? + "/enable", &json!({})),
            Self::Delete { id, remove_messages } => {
                let messages = if *remove_messages { "remove" } else { "keep" };
                delete(user(id)? + "?messages=" + messages)
            }
            Self::ResetCode { id } => post(user(id)? + "/reset_code", &json!({})),
            Self::Sessions { id } => get(user(id)? + "/sessions"),
            Self::EndSessions { id, login } => {
                let body = match login {
                    Some(login) => json!({ "login_id": login }),
                    None => json!({}),
                };
                post(user(id)? + "/sessions/end", &body)
            }
        })
    }
}

impl GroupsCommand {
    fn request(&self) -> anyhow::Result<AdminRequest> {
        let group = |id: &str| Ok::<_, anyhow::Error>(format!("/admin/groups/{}", segment(id)?));
        Ok(match self {
            Self::List { search, cursor, limit } => get(query(
                "/admin/groups",
                &[
                    ("search", search.clone()),
                    ("cursor", cursor.clone()),
                    ("limit", Some(limit.to_string())),
                ],
            )?),
            Self::Show { id } => get(group(id)?),
            Self::Members { id, cursor, limit } => get(query(
                &(group(id)? + "/members"),
                &[("cursor", cursor.clone()), ("limit", Some(limit.to_string()))],
            )?),
            Self::Dissolve { id } => post(group(id)? + "/dissolve", &json!({})),
            Self::Transfer { id, user } => {
                post(group(id)? + "/transfer", &json!({ "user_id": user }))
            }
            Self::Add { id, users } => post(group(id)? + "/add", &json!({ "user_ids": users })),
            Self::Remove { id, user } => post(group(id)? + "/remove", &json!({ "user_id": user })),
        })
    }
}

impl MessagesCommand {
    fn request(&self) -> anyhow::Result<AdminRequest> {
        let message =
            |id: &str| Ok::<_, anyhow::Error>(format!("/admin/messages/{}", segment(id)?));
        Ok(match self {
            Self::Show { id } => get(message(id)?),
            Self::Around { id } => get(message(id)? + "/around"),
            Self::Recall { id } => post(message(id)? + "/recall", &json!({})),
        })
    }
}
