//! The dialects of the real protocol: how a client connects, and its frames.

mod dotted;
mod dotted_binary;
mod numbered;
mod typed;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::accounts::{Account, PLATFORM};
use crate::codec::{Codec, Incoming};
use crate::socket::{PATIENCE, Socket, connect};

pub(crate) use dotted::Dotted;
pub(crate) use dotted_binary::DottedBinary;
pub(crate) use numbered::{DataForm, Numbered, PULL_MAX};
pub(crate) use typed::Typed;

/// A dialect, by its name on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DialectChoice {
    /// JSON told apart by `type`
    #[default]
    Typed,
    /// Operations by number, data as base64 of JSON
    Numbered,
    /// Operations by number, data as JSON
    NumberedNested,
    /// Requests by `cmd`, as JSON
    Dotted,
    /// Requests by `cmd`, as protobuf
    DottedBinary,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Recipient<'a> {
    /// `from` gets the delivered receipts of `to`.
    Person {
        from: &'a str,
        to: &'a str,
    },
    Group(&'a str),
}

impl DialectChoice {
    /// The frames of one sender, with texts of `size` bytes.
    pub(crate) fn codec(self, to: Recipient<'_>, size: usize) -> Arc<dyn Codec> {
        match self {
            Self::Typed => Arc::new(Typed::new(to, size)),
            Self::Numbered => Arc::new(Numbered::new(to, size, DataForm::Base64)),
            Self::NumberedNested => Arc::new(Numbered::new(to, size, DataForm::Nested)),
            Self::Dotted => Arc::new(Dotted::new(to, size)),
            Self::DottedBinary => Arc::new(DottedBinary::new(to, size)),
        }
    }

    /// Connects and authenticates.
    pub(crate) async fn connect(self, authority: &str, account: &Account) -> Result<Socket> {
        let path = match self {
            Self::Numbered => numbered_path(account, "go"),
            Self::NumberedNested => numbered_path(account, "js"),
            _ => "/ws".to_owned(),
        };
        let socket = connect(authority, &path).await?;
        self.authenticate(socket, account).await
    }

    /// Authenticates a connected socket, and waits for the welcome.
    pub(crate) async fn authenticate(
        self,
        mut socket: Socket,
        account: &Account,
    ) -> Result<Socket> {
        socket.send(self.hello(account)).await?;
        let welcome = timeout(PATIENCE, self.welcome(&mut socket)).await;
        welcome.context("no welcome in time")??;
        Ok(socket)
    }

    fn hello(self, account: &Account) -> Message {
        let token = &account.token;
        match self {
            Self::Typed => Message::text(format!(r#"{{"type":"AUTH","token":"{token}"}}"#)),
            // The server pushes at the latest once it has answered a first request.
            Self::Numbered | Self::NumberedNested => Message::text(
                r#"{"req_identifier":1001,"msg_incr":"1","operation_id":"1","data":{"conversation_ids":[]}}"#,
            ),
            Self::Dotted => Message::text(format!(
                r#"{{"cmd":"auth.validate_token","request_id":"1","payload":{{"token":"{token}"}}}}"#
            )),
            Self::DottedBinary => dotted_binary::validate_token(token),
        }
    }

    async fn welcome(self, socket: &mut Socket) -> Result<()> {
        let codec = self.codec(Recipient::Group(""), 0);
        loop {
            let frame = socket.next().await.context("closed instead of a welcome")??;
            if !(frame.is_text() || frame.is_binary()) {
                continue;
            }
            let (mut is_welcome, mut refusal) = (false, None);
            codec.read(&frame, &mut |incoming| match incoming {
                Incoming::Welcome => is_welcome = true,
                Incoming::Refused { reason, .. } => refusal = Some(reason.to_owned()),
                _ => {}
            });
            ensure!(refusal.is_none(), "not let in: {}", refusal.unwrap_or_default());
            if is_welcome {
                return Ok(());
            }
        }
    }
}

fn numbered_path(account: &Account, sdk: &str) -> String {
    let Account { user, token } = account;
    format!("/ws?token={token}&send_id={user}&platform_id={PLATFORM}&operation_id=1&sdk_type={sdk}")
}

/// Concatenates three pieces of text into a frame.
fn join(head: &str, middle: &str, tail: &str) -> Message {
    let mut text = String::with_capacity(head.len() + middle.len() + tail.len());
    text.push_str(head);
    text.push_str(middle);
    text.push_str(tail);
    Message::text(text)
}
