//! A case: what a client sends, and what the server must answer.

use nexo_sim::{Person, Server};

use super::client::Client;
use super::frames::{Answer, TEXT, close};

/// Frames in one write, a write per frame, or in pieces of this many bytes.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    OneWrite,
    PerFrame,
    Pieces(usize),
}

/// The ways in which the same bytes must have the same answer.
pub(crate) const PACES: [Pace; 3] = [Pace::OneWrite, Pace::PerFrame, Pace::Pieces(1)];

pub(crate) struct Case {
    name: String,
    /// Whether the session speaks the dotted dialect in text or in binary frames.
    opcode: u8,
    pace: Pace,
    /// What is sent, and what must come before the next is sent.
    stages: Vec<(Vec<Vec<u8>>, Vec<Answer>)>,
}

pub(crate) fn case(
    name: impl Into<String>,
    send: impl Into<Vec<Vec<u8>>>,
    expect: impl Into<Vec<Answer>>,
) -> Case {
    let stages = vec![(send.into(), expect.into())];
    Case { name: name.into(), opcode: TEXT, pace: Pace::OneWrite, stages }
}

impl Case {
    pub(crate) fn opcode(self, opcode: u8) -> Self {
        Self { opcode, ..self }
    }

    pub(crate) fn pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    pub(crate) fn then(
        mut self,
        send: impl Into<Vec<Vec<u8>>>,
        expect: impl Into<Vec<Answer>>,
    ) -> Self {
        self.stages.push((send.into(), expect.into()));
        self
    }

    /// Runs it on a connection of its own. Returns what went wrong, with its name.
    pub(crate) async fn run(self, server: &Server, person: &Person) -> Option<String> {
        let mut client = Client::sign_in(server, person, self.opcode).await;
        let (mut is_closed, mut got, mut expected) = (false, Vec::new(), Vec::new());
        for (send, expect) in self.stages {
            let (frames, piece) = match self.pace {
                Pace::OneWrite => (vec![send.concat()], usize::MAX),
                Pace::PerFrame => (send, usize::MAX),
                Pace::Pieces(bytes) => (vec![send.concat()], bytes),
            };
            got.extend(client.exchange(&frames, piece, expect.len()).await);
            is_closed |= matches!(expect.last(), Some(Answer::Close(_)));
            expected.extend(expect);
        }
        if !is_closed {
            client.send(&[close(1000, "")], usize::MAX).await;
        }
        got.extend(client.finish().await);
        // Nothing more may come than the answer to that.
        expected.extend((!is_closed).then_some(Answer::Close(Some(1000))));
        expected.push(Answer::End);
        (got != expected).then(|| format!("{}: expected {expected:?}, got {got:?}", self.name))
    }
}
