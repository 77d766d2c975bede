//! `nexo admin` and `nexo key`: the admin API from the command line. A running server is asked over HTTP; for a
//! stopped one the command runs a server of its own on the same data for as long as it takes, so that every command
//! works the same way in both cases.

mod commands;
mod private_server;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;
use nexo_store::Embedded;
use nexo_store::embedded::OpenError;
use serde_json::Value;

use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::migrate::start_command;
use crate::remote::RemoteServer;

pub(crate) use self::commands::{AdminCommand, KeyCommand};
use self::commands::{AdminRequest, Answer};
use self::private_server::PrivateServer;

#[derive(Args)]
#[command(after_help = KEY_EXAMPLES)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Args)]
#[command(after_help = ADMIN_EXAMPLES)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    command: AdminCommand,
    #[command(flatten)]
    access: AccessArgs,
}

/// Which server is meant.
#[derive(Args)]
struct AccessArgs {
    /// A running server, such as `http://127.0.0.1:8080`; by default the one that uses the data folder.
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// An API key with the scope `admin`, in a file; by default the token in the data folder.
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

const KEY_EXAMPLES: &str = "\
Examples:
  nexo key create --name shop --scope backend
  nexo key create --name prometheus --scope metrics --days 365
  nexo key list
  nexo key revoke 3fk2x7mqhd5wz4ab";

const ADMIN_EXAMPLES: &str = "\
Works with a running server and with a stopped one. Answers are JSON.

Examples:
  nexo admin users list --search ali
  nexo admin users put alice --nickname Alice
  nexo admin users import people.ndjson
  nexo admin users disable bob --reason spam --hours 24
  nexo admin groups members GROUP
  nexo admin audit verify
  nexo admin stats --server https://chat.example.com --key-file admin.key";

impl KeyArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        run(&self.access, self.command.request()?)
    }
}

impl AdminArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        run(&self.access, self.command.request()?)
    }
}

fn run(access: &AccessArgs, request: AdminRequest) -> anyhow::Result<()> {
    start_command()?;
    let config = Config::load(&access.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = access.connect(&config).await?;
        let answer = answer(server.remote(), request).await;
        server.stop().await?;
        answer
    })
}

/// Where the request goes.
enum Server {
    Running(RemoteServer),
    Private(PrivateServer),
}

impl Server {
    fn remote(&self) -> &RemoteServer {
        match self {
            Self::Running(remote) => remote,
            Self::Private(private) => &private.remote,
        }
    }

    async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Running(_) => Ok(()),
            Self::Private(private) => private.stop().await,
        }
    }
}

impl AccessArgs {
    async fn connect(&self, config: &Config) -> anyhow::Result<Server> {
        let key = match &self.key_file {
            Some(path) => {
                let read = std::fs::read_to_string(path);
                Some(read.with_context(|| format!("cannot read {path}"))?.trim().to_owned())
            }
            None => None,
        };
        if self.server.is_some() || is_in_use(config)? {
            let server = RemoteServer::new(config, self.server.as_deref(), key.as_deref())?;
            return Ok(Server::Running(server));
        }
        Ok(Server::Private(PrivateServer::start(config).await?))
    }
}

/// Whether a server is using the data folder. A database may be used by this process too.
fn is_in_use(config: &Config) -> anyhow::Result<bool> {
    if config.store == "memory" {
        bail!("store = \"memory\" keeps nothing: give --server, --data or --store");
    }
    if config.store != "embedded" {
        return Ok(false);
    }
    let folder = Path::new(&config.data);
    if !folder.join("FORMAT").exists() {
        bail!("{} has no data: give the right folder with --data", config.data);
    }
    match Embedded::open(folder, &config.embedded_options()) {
        Ok(store) => {
            drop(store); // it is opened again by the server
            Ok(false)
        }
        Err(OpenError::Locked(_)) => Ok(true),
        Err(error) => Err(error).context("cannot open the data folder"),
    }
}

/// Sends the request and prints the answer.
async fn answer(server: &RemoteServer, request: AdminRequest) -> anyhow::Result<()> {
    let AdminRequest { method, path, body, answer } = request;
    let data: Value = server.ask(method, &path, body).await?;
    let mut out = std::io::stdout().lock();
    match answer {
        Answer::Json => writeln!(out, "{}", serde_json::to_string_pretty(&data)?)?,
        Answer::NewKey => {
            let key = data["key"].as_str().context("the server made no key")?;
            writeln!(out, "{key}")?;
            let id = data["key_id"].as_str().unwrap_or_default();
            let note = "It is shown this once: the server stores only its hash.";
            writeln!(std::io::stderr(), "{note} `nexo key revoke {id}` ends it.")?;
        }
        Answer::Intact => {
            writeln!(out, "{}", serde_json::to_string_pretty(&data)?)?;
            if data["is_intact"] != true {
                bail!("the audit log is not intact");
            }
        }
    }
    Ok(())
}
