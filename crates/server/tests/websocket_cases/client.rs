//! A client that sends any bytes in any pieces.

use std::io::ErrorKind;
use std::time::Duration;

use nexo_sim::{Person, Server};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::frames::{Answer, BINARY, TEXT, echo, whole};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Small, so that a client that reads nothing soon blocks the server.
const RECEIVE_BYTES: u32 = 64 * 1024;

/// An upgrade request with one word or line replaced.
pub(crate) fn upgrade_request(from: &str, to: &str) -> String {
    "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        .replace(from, to)
}

pub(crate) struct Client {
    input: OwnedReadHalf,
    pub(crate) output: OwnedWriteHalf,
    received: Vec<u8>,
}

impl Client {
    /// Connects and sends nothing.
    pub(crate) async fn connect(server: &Server) -> Self {
        let tcp = TcpSocket::new_v4().unwrap();
        tcp.set_recv_buffer_size(RECEIVE_BYTES).unwrap();
        let tcp = tcp.connect(server.http.authority.parse().unwrap()).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let (input, output) = tcp.into_split();
        Self { input, output, received: Vec::new() }
    }

    /// Connects, upgrades and authenticates with the dotted dialect, in JSON or protobuf.
    pub(crate) async fn sign_in(server: &Server, person: &Person, opcode: u8) -> Self {
        let mut client = Self::connect(server).await;
        client.send(&[upgrade_request("", "").into_bytes()], usize::MAX).await;
        client.expect_upgrade().await;
        client.send(&[auth(person, opcode)], usize::MAX).await;
        assert_eq!(client.next().await, echo("auth"));
        client
    }

    /// Reads the answer to the upgrade request.
    pub(crate) async fn expect_upgrade(&mut self) {
        let head = loop {
            if let Some(at) = self.received.windows(4).position(|end| end == b"\r\n\r\n") {
                break self.received.drain(..at + 4).collect::<Vec<u8>>();
            }
            let read = read(&mut self.input, &mut self.received).await;
            assert!(read.unwrap() > 0, "closed during the upgrade");
        };
        let head = String::from_utf8(head).unwrap().to_lowercase();
        assert!(head.starts_with("http/1.1 101"), "{head}");
        // The answer to the key of the request, which is the example of RFC 6455.
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
    }

    /// Sends frames, each in writes of at most `piece` bytes. A failure is found by the next read.
    pub(crate) async fn send(&mut self, frames: &[Vec<u8>], piece: usize) {
        drop(write(&mut self.output, frames, piece).await);
    }

    pub(crate) async fn next(&mut self) -> Answer {
        next(&mut self.input, &mut self.received).await
    }

    /// Sends frames and reads this many answers at the same time.
    pub(crate) async fn exchange(
        &mut self,
        frames: &[Vec<u8>],
        piece: usize,
        count: usize,
    ) -> Vec<Answer> {
        let Self { input, output, received } = self;
        let reading = async {
            let mut answers = Vec::new();
            while answers.len() < count && !is_over(&answers) {
                answers.push(next(input, received).await);
            }
            answers
        };
        let (mut answers, written) = tokio::join!(reading, write(output, frames, piece));
        if written.is_err() {
            answers.push(Answer::Reset);
        }
        answers
    }

    /// Ends its side of the connection, and returns what came until the server has ended the other.
    pub(crate) async fn finish(mut self) -> Vec<Answer> {
        drop(self.output.shutdown().await); // the server may have closed the connection
        let mut answers = Vec::new();
        while !is_over(&answers) {
            answers.push(self.next().await);
        }
        answers
    }
}

/// Whether no more answers can come.
fn is_over(answers: &[Answer]) -> bool {
    matches!(answers.last(), Some(Answer::End | Answer::Reset | Answer::Nothing))
}

async fn read(input: &mut OwnedReadHalf, received: &mut Vec<u8>) -> std::io::Result<usize> {
    tokio::time::timeout(TIMEOUT, input.read_buf(received)).await?
}

async fn next(input: &mut OwnedReadHalf, received: &mut Vec<u8>) -> Answer {
    loop {
        if let Some(answer) = Answer::take(received) {
            return answer;
        }
        match read(input, received).await {
            Ok(0) => return Answer::End,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => return Answer::Nothing,
            Err(_) => return Answer::Reset,
        }
    }
}

async fn write(
    output: &mut OwnedWriteHalf,
    frames: &[Vec<u8>],
    piece: usize,
) -> std::io::Result<()> {
    for frame in frames {
        for piece in frame.chunks(piece) {
            output.write_all(piece).await?;
        }
    }
    Ok(())
}

fn auth(person: &Person, opcode: u8) -> Vec<u8> {
    let token = person.token.as_str();
    if opcode == TEXT {
        let payload = json!({ "token": token });
        let cmd = json!({ "cmd": "auth.validate_token", "request_id": "auth", "payload": payload });
        return whole(TEXT, cmd.to_string());
    }
    let field = |tag: u8, value: &[u8]| {
        let length = u16::try_from(value.len()).unwrap();
        let length =
            [0x80 | u8::try_from(length & 0x7f).unwrap(), u8::try_from(length >> 7).unwrap()];
        [&[tag][..], &length, value].concat()
    };
    let payload = field(0x0a, token.as_bytes());
    let fields = [field(0x0a, b"auth.validate_token"), field(0x12, &payload), field(0x1a, b"auth")];
    whole(BINARY, fields.concat())
}
