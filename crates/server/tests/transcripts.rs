//! The transcripts of `crates/wire/tests/transcripts` are what a real server says, word for word.

use std::collections::HashMap;
use std::path::Path;

use nexo_sim::process::Setup;
use nexo_sim::socket::SocketEvent;
use nexo_sim::{Person, Server, Socket};
use serde_json::Value;

/// What `$words` stand for.
type Known = HashMap<String, Value>;

/// Puts known words into a frame that is said.
fn fill(value: &mut Value, known: &Known) {
    match value {
        Value::String(text) if text.starts_with('$') => {
            *value =
                known.get(text.as_str()).cloned().unwrap_or_else(|| panic!("{text} is not known"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, known)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, known)),
        _ => {}
    }
}

/// Whether a frame matches the expected one; binds its placeholders.
fn fits(expected: &Value, heard: &Value, known: &mut Known) -> bool {
    match (expected, heard) {
        (Value::String(word), _) if word == "$any" => true,
        (Value::String(word), _) if word.starts_with('$') => {
            known.entry(word.clone()).or_insert_with(|| heard.clone()) == heard
        }
        (Value::Object(expected), Value::Object(heard)) => {
            expected.len() == heard.len()
                && expected.iter().all(|(name, value)| {
                    let meant = known.get(name).and_then(Value::as_str).unwrap_or(name).to_owned();
                    heard.get(&meant).is_some_and(|heard| fits(value, heard, known))
                })
        }
        (Value::Array(expected), Value::Array(heard)) => {
            expected.len() == heard.len()
                && expected.iter().zip(heard).all(|(value, heard)| fits(value, heard, known))
        }
        _ => expected == heard,
    }
}

/// Opens a socket as the dialect of a file has it.
async fn open(server: &Server, person: &Person, path: &Path) -> Socket {
    let Person { id, token, .. } = person;
    let query = match path.extension().and_then(|dialect| dialect.to_str()) {
        Some("numbered") => format!("?token={token}&send_id={id}&platform_id=5&sdk_type=js"),
        _ => String::new(),
    };
    Socket::open_with(&server.http.authority, &query).await
}

/// Asks over HTTP: `/path {json}`. The answer's data.
async fn post(server: &Server, person: &Person, request: &str, known: &Known) -> Value {
    let (path, body) = request.split_once(' ').expect("a path and a body");
    let mut body: Value = serde_json::from_str(body).expect("a body in JSON");
    fill(&mut body, known);
    server.http.post(path, &person.token, body).await.data().clone()
}

async fn play(server: &Server, path: &Path) {
    let (mut known, mut sockets) = (Known::new(), HashMap::<String, Socket>::new());
    let (mut people, mut answer) = (HashMap::<String, Person>::new(), Value::Null);
    let script = std::fs::read_to_string(path).expect("a transcript");
    for (number, line) in script.lines().enumerate() {
        let at = format!("{}:{}", path.display(), number + 1);
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            [""] | ["#", ..] => {}
            ["people", ..] => {
                for name in line.split(' ').skip(1) {
                    let person = server.person(name).await;
                    known.insert(format!("${name}"), person.token.clone().into());
                    people.insert(name.to_owned(), person);
                }
            }
            [who, "opens"] => {
                sockets.insert(who.to_owned(), open(server, &people[who], path).await);
            }
            [who, "POST", request] => answer = post(server, &people[who], request, &known).await,
            [_, "=", text] => {
                let expected: Value = serde_json::from_str(text).expect("answers are JSON");
                assert!(
                    fits(&expected, &answer, &mut known),
                    "{at}\nexpected {expected}\nanswered {answer}"
                );
            }
            [who, ">", text] => {
                let mut frame: Value = serde_json::from_str(text).expect("frames are JSON");
                fill(&mut frame, &known);
                sockets.get_mut(who).expect(&at).say(frame).await;
            }
            [who, "<", text] => {
                let expected: Value = serde_json::from_str(text).expect("frames are JSON");
                let heard = sockets.get_mut(who).expect(&at).next().await;
                assert!(
                    fits(&expected, &heard, &mut known),
                    "{at}\nexpected {expected}\nheard    {heard}"
                );
            }
            [who, "closed", code] => {
                let heard = sockets.get_mut(who).expect(&at).hear().await;
                assert_eq!(heard, SocketEvent::Closed(code.parse().ok()), "{at}");
            }
            _ => panic!("{at} is not a line of a transcript: {line}"),
        }
    }
}

#[tokio::test]
async fn the_transcripts_are_true() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/transcripts");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).expect("transcripts") {
        let path = entry.expect("a file").path();
        println!("{}", path.display());
        play(&Setup::new(env!("CARGO_BIN_EXE_nexo")).start(), &path).await;
        played += 1;
    }
    assert!(played >= 15, "only {played} transcripts were found");
}
