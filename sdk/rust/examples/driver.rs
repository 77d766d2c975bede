//! One user for `sdk/scenarios`: reads commands from stdin and writes answers to stdout, one JSON
//! object per line.
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nexo_sdk::{Client, Error, Event, FileStore, Message, Options, State, Target};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

/// Checks the message events: each message once, in order.
#[derive(Default)]
struct EmittedMessages {
    names: HashSet<(String, String)>,
    last: HashMap<String, u64>,
    twice: u64,
    disordered: u64,
}

impl EmittedMessages {
    /// A removed message may come again.
    fn forget(&mut self, client_msg_id: &str) {
        self.names.retain(|(_, name)| name != client_msg_id);
    }

    fn check(&mut self, message: &Message) {
        let name = (message.from.clone(), message.client_msg_id.clone());
        self.twice += u64::from(!self.names.insert(name));
        if message.seq == 0 {
            return;
        }
        let last = self.last.insert(message.conversation_id.clone(), message.seq);
        self.disordered += u64::from(last.is_some_and(|last| message.seq <= last));
    }
}

fn print(answer: &Value) {
    writeln!(stdout(), "{answer}").expect("stdout is open");
}

fn argument(name: &str) -> String {
    let mut words = std::env::args().skip_while(|word| *word != format!("--{name}"));
    words.nth(1).unwrap_or_default()
}

fn target(command: &Value) -> Target {
    match command["groupId"].as_str() {
        Some(group_id) => Target::group(group_id),
        None => Target::to(command["to"].as_str().unwrap_or_default()),
    }
}

async fn send(client: Client, sent: Arc<AtomicU64>, command: Value) -> Result<(), Error> {
    let me = client.me().unwrap_or_default();
    let every = Duration::from_millis(command["everyMs"].as_u64().unwrap_or(0));
    for _ in 0..command["count"].as_u64().unwrap_or(0) {
        let number = sent.fetch_add(1, Relaxed);
        client.send(target(&command), format!("{me}-{number}")).await?;
        if !every.is_zero() {
            tokio::time::sleep(every).await;
        }
    }
    Ok(())
}

async fn all(client: &Client) -> Result<Vec<Arc<Message>>, Error> {
    let mut all = Vec::new();
    for summary in client.conversations().await? {
        all.extend(client.messages(summary.id.as_str()).await?);
    }
    Ok(all)
}

/// A restarted process continues the numbers of the killed one.
async fn resume_count(client: &Client, sent: &AtomicU64) -> Result<(), Error> {
    for message in all(client).await?.iter().filter(|message| message.is_mine) {
        if let Some(Ok(number)) = message.body.rsplit('-').next().map(str::parse::<u64>) {
            sent.fetch_max(number + 1, Relaxed);
        }
    }
    Ok(())
}

async fn recall(client: &Client, body: &str) -> Result<(), Error> {
    let all = all(client).await?;
    let message = all.iter().find(|one| one.is_mine && one.body == body).ok_or(Error::Closed)?;
    client.recall(&client.saved(message).await?.server_msg_id).await
}

async fn count(client: &Client) -> Result<Value, Error> {
    let mut conversations = Map::new();
    for summary in client.conversations().await? {
        let messages = client.messages(summary.id.as_str()).await?;
        let unsent = messages.iter().filter(|message| message.seq == 0).count();
        let counts =
            json!({ "last": summary.last_seq, "unread": summary.unread, "unsent": unsent });
        conversations.insert(summary.id, counts);
    }
    Ok(json!({ "say": "count", "conversations": conversations }))
}

async fn report(client: &Client, emitted: &EmittedMessages) -> Result<Value, Error> {
    let mut conversations = Vec::new();
    for summary in client.conversations().await? {
        let id = summary.id.as_str();
        while !client.load_older(id, 500).await?.is_empty() {}
        let list = client.messages(id).await?;
        let placed = list.iter().filter(|message| message.seq > 0).map(|one| {
            json!({ "id": one.server_msg_id, "seq": one.seq, "from": one.from, "body": one.body,
                    "isRecalled": one.is_recalled, "state": one.state })
        });
        let messages: Vec<Value> = placed.collect();
        let unread = client.conversation(id).await?.map(|summary| summary.unread);
        let unsent = list.len() - messages.len();
        let one = json!({ "id": id, "unread": unread, "unsent": unsent, "messages": messages });
        conversations.push(one);
    }
    let (twice, disordered) = (emitted.twice, emitted.disordered);
    Ok(json!({ "say": "report", "twice": twice, "disordered": disordered,
               "conversations": conversations }))
}

async fn run(
    client: &Client,
    emitted: &EmittedMessages,
    sent: &Arc<AtomicU64>,
    command: Value,
) -> Result<(), Error> {
    match command["do"].as_str().unwrap_or_default() {
        // The next command may refer to messages sent here.
        "send" if command["everyMs"] == 0 => send(client.clone(), sent.clone(), command).await?,
        "send" => drop(tokio::spawn(send(client.clone(), sent.clone(), command))),
        "read" => client.mark_read(target(&command), None).await?,
        "recall" => {
            recall(client, command["body"].as_str().unwrap_or_default()).await?;
            print(&json!({ "say": "done" }));
        }
        "count" => print(&count(client).await?),
        "report" => print(&report(client, emitted).await?),
        "connect" => client.connect(),
        "disconnect" => client.disconnect(),
        _ => std::process::exit(0),
    }
    Ok(())
}

fn name(state: State) -> &'static str {
    match state {
        State::Connecting => "connecting",
        State::Online => "online",
        State::Offline { .. } => "offline",
        State::Kicked => "kicked",
        State::SignedOut { .. } => "signedOut",
    }
}

fn commands() -> mpsc::UnboundedReceiver<Value> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            sender.send(serde_json::from_str(&line).expect("a command is JSON")).ok();
        }
    });
    receiver
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::new(argument("url")).store(FileStore::open(argument("store"))?);
    options.platform = argument("platform").parse()?;
    options.keep = usize::MAX;
    options.timing = serde_json::from_str(&argument("timing"))?;
    let client = Client::new(options)?;
    let (mut events, mut commands) = (client.events(), commands());
    let (mut emitted, sent) = (EmittedMessages::default(), Arc::new(AtomicU64::new(0)));
    if !client.resume().await? {
        client.login(&argument("user"), &argument("password")).await?;
    }
    loop {
        tokio::select! {
            biased;
            event = events.next() => match event {
                Some(Event::Message(message)) => emitted.check(&message),
                Some(Event::Removed { client_msg_id, .. }) => emitted.forget(&client_msg_id),
                Some(Event::State(state)) => {
                    if state == State::Online {
                        resume_count(&client, &sent).await?;
                    }
                    print(&json!({ "say": "state", "name": name(state) }));
                }
                Some(Event::Problem(error)) => eprintln!("{}: {error}", argument("user")),
                Some(_) => {}
                None => return Ok(()),
            },
            command = commands.recv() => match command {
                Some(command) => run(&client, &emitted, &sent, command).await?,
                None => return Ok(()),
            },
        }
    }
}
