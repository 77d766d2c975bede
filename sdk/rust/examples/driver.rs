//! One person for `sdk/scenarios`: hears commands on stdin and answers on stdout, a line of JSON each.
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nexo_sdk::{Client, Error, Event, FileStore, Message, Options, State, Target};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

/// What the app is told: each message once, in order.
#[derive(Default)]
struct Told {
    names: HashSet<(String, String)>,
    last: HashMap<String, u64>,
    twice: u64,
    disordered: u64,
}

impl Told {
    /// What is gone may come again.
    fn forget(&mut self, client_msg_id: &str) {
        self.names.retain(|(_, name)| name != client_msg_id);
    }

    fn hear(&mut self, message: &Message) {
        let name = (message.from.clone(), message.client_msg_id.clone());
        self.twice += u64::from(!self.names.insert(name));
        if message.seq == 0 {
            return;
        }
        let last = self.last.insert(message.conversation_id.clone(), message.seq);
        self.disordered += u64::from(last.is_some_and(|last| message.seq <= last));
    }
}

fn say(line: &Value) {
    writeln!(stdout(), "{line}").expect("somebody listens");
}

fn given(name: &str) -> String {
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
    for line in client.conversations().await? {
        all.extend(client.messages(line.id.as_str()).await?);
    }
    Ok(all)
}

/// A process that was killed goes on counting where it was.
async fn count_again(client: &Client, sent: &AtomicU64) -> Result<(), Error> {
    for message in all(client).await?.iter().filter(|message| message.mine) {
        if let Some(Ok(number)) = message.body.rsplit('-').next().map(str::parse::<u64>) {
            sent.fetch_max(number + 1, Relaxed);
        }
    }
    Ok(())
}

async fn recall(client: &Client, body: &str) -> Result<(), Error> {
    let all = all(client).await?;
    let message = all.iter().find(|one| one.mine && one.body == body).ok_or(Error::Closed)?;
    client.recall(&client.saved(message).await?.server_msg_id).await
}

async fn count(client: &Client) -> Result<Value, Error> {
    let mut conversations = Map::new();
    for line in client.conversations().await? {
        let messages = client.messages(line.id.as_str()).await?;
        let unsent = messages.iter().filter(|message| message.seq == 0).count();
        let counts = json!({ "last": line.last_seq, "unread": line.unread, "unsent": unsent });
        conversations.insert(line.id, counts);
    }
    Ok(json!({ "say": "count", "conversations": conversations }))
}

async fn report(client: &Client, told: &Told) -> Result<Value, Error> {
    let mut conversations = Vec::new();
    for line in client.conversations().await? {
        let id = line.id.as_str();
        while !client.load_older(id, 500).await?.is_empty() {}
        let list = client.messages(id).await?;
        let placed = list.iter().filter(|message| message.seq > 0).map(|one| {
            json!({ "id": one.server_msg_id, "seq": one.seq, "from": one.from, "body": one.body,
                    "revoked": one.revoked, "state": one.state })
        });
        let messages: Vec<Value> = placed.collect();
        let unread = client.conversation(id).await?.map(|line| line.unread);
        let unsent = list.len() - messages.len();
        let one = json!({ "id": id, "unread": unread, "unsent": unsent, "messages": messages });
        conversations.push(one);
    }
    let (twice, disordered) = (told.twice, told.disordered);
    Ok(json!({ "say": "report", "twice": twice, "disordered": disordered,
               "conversations": conversations }))
}

async fn obey(
    client: &Client,
    told: &Told,
    sent: &Arc<AtomicU64>,
    command: Value,
) -> Result<(), Error> {
    match command["do"].as_str().unwrap_or_default() {
        // What comes next may be about what is said at once.
        "send" if command["everyMs"] == 0 => send(client.clone(), sent.clone(), command).await?,
        "send" => drop(tokio::spawn(send(client.clone(), sent.clone(), command))),
        "read" => client.mark_read(target(&command), None).await?,
        "recall" => {
            recall(client, command["body"].as_str().unwrap_or_default()).await?;
            say(&json!({ "say": "done" }));
        }
        "count" => say(&count(client).await?),
        "report" => say(&report(client, told).await?),
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
    let (tell, hear) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            tell.send(serde_json::from_str(&line).expect("a command is JSON")).ok();
        }
    });
    hear
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::new(given("url")).store(FileStore::open(given("store"))?);
    options.platform = given("platform").parse()?;
    options.keep = usize::MAX;
    options.timing = serde_json::from_str(&given("timing"))?;
    let client = Client::new(options)?;
    let (mut events, mut commands) = (client.events(), commands());
    let (mut told, sent) = (Told::default(), Arc::new(AtomicU64::new(0)));
    if !client.resume().await? {
        client.login(&given("user"), &given("password")).await?;
    }
    loop {
        tokio::select! {
            biased;
            event = events.next() => match event {
                Some(Event::Message(message)) => told.hear(&message),
                Some(Event::Removed { client_msg_id, .. }) => told.forget(&client_msg_id),
                Some(Event::State(state)) => {
                    if state == State::Online {
                        count_again(&client, &sent).await?;
                    }
                    say(&json!({ "say": "state", "name": name(state) }));
                }
                Some(Event::Problem(error)) => eprintln!("{}: {error}", given("user")),
                Some(_) => {}
                None => return Ok(()),
            },
            command = commands.recv() => match command {
                Some(command) => obey(&client, &told, &sent, command).await?,
                None => return Ok(()),
            },
        }
    }
}
