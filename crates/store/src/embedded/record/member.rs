//! Members of conversations on disk: windows, cursors and settings.

use nexo_chat::ids::{Millis, Seq};
use nexo_chat::model::{Cursors, HiddenMark, Receive, Settings, Window, WindowEnd};
use nexo_chat::progress::Progress;
use serde::{Deserialize, Serialize};

use super::impossible;
use crate::embedded::keys::Keyspace;
use crate::embedded::poison::EngineFault;

#[derive(Serialize, Deserialize)]
pub(crate) struct WindowRecord {
    min: u64,
    change_min: u64,
    since: u64,
    end: Option<EdgeRecord>,
}

impl From<Window> for WindowRecord {
    fn from(window: Window) -> Self {
        Self {
            min: window.min.0,
            change_min: window.change_min.0,
            since: window.since.0,
            end: window.end.map(EdgeRecord::from),
        }
    }
}

impl From<WindowRecord> for Window {
    fn from(record: WindowRecord) -> Self {
        Self {
            min: Seq(record.min),
            change_min: Seq(record.change_min),
            since: Millis(record.since),
            end: record.end.map(WindowEnd::from),
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct EdgeRecord {
    seq: u64,
    change_seq: u64,
    at: u64,
}

impl From<WindowEnd> for EdgeRecord {
    fn from(edge: WindowEnd) -> Self {
        Self { seq: edge.seq.0, change_seq: edge.change_seq.0, at: edge.at.0 }
    }
}

impl From<EdgeRecord> for WindowEnd {
    fn from(record: EdgeRecord) -> Self {
        let (seq, change_seq) = (Seq(record.seq), Seq(record.change_seq));
        Self { seq, change_seq, at: Millis(record.at) }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SettingsRecord<'a> {
    pinned: bool,
    /// 0 normal, 1 silent, 2 blocked.
    receive: u8,
    /// Since version 2: the last hidden seq, and the `since` of its window.
    hidden: Option<(u64, u64)>,
    extra: &'a str,
}

impl<'a> From<&'a Settings> for SettingsRecord<'a> {
    fn from(settings: &'a Settings) -> Self {
        let receive = match settings.receive {
            Receive::Normal => 0,
            Receive::Silent => 1,
            Receive::Blocked => 2,
        };
        let hidden = settings.hidden.map(|hidden| (hidden.seq.0, hidden.since.0));
        Self { pinned: settings.pinned, receive, hidden, extra: &settings.extra }
    }
}

impl SettingsRecord<'_> {
    pub(crate) fn settings(&self) -> Result<Settings, EngineFault> {
        let receive = match self.receive {
            0 => Receive::Normal,
            1 => Receive::Silent,
            2 => Receive::Blocked,
            _ => return Err(impossible(Keyspace::Settings, "an unknown receive option")),
        };
        let hidden = |(seq, since)| HiddenMark { seq: Seq(seq), since: Millis(since) };
        Ok(Settings {
            pinned: self.pinned,
            receive,
            hidden: self.hidden.map(hidden),
            extra: self.extra.to_owned(),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct CursorRecord {
    delivered: u64,
    read: u64,
    own: Option<(u64, u64)>,
    quiet: u64,
}

impl From<Progress> for CursorRecord {
    fn from(Progress { cursors, own, quiet }: Progress) -> Self {
        let own = own.map(|(first, last)| (first.0, last.0));
        Self { delivered: cursors.delivered.0, read: cursors.read.0, own, quiet: quiet.0 }
    }
}

impl From<CursorRecord> for Progress {
    fn from(record: CursorRecord) -> Self {
        let cursors = Cursors { delivered: Seq(record.delivered), read: Seq(record.read) };
        let own = record.own.map(|(first, last)| (Seq(first), Seq(last)));
        Self { cursors, own, quiet: Seq(record.quiet) }
    }
}
