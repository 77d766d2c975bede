//! Compares the records of a folder with each other.

use std::collections::{BTreeMap, HashMap, HashSet};

use nexo_chat::ids::{ConversationId, GroupId, LoginId, Seq};
use nexo_chat::membership::Group;
use nexo_chat::model::{Cursors, User, Window};
use nexo_chat::progress::Progress;
use serde::Serialize;

use super::density::{self, LostRanges, place_of};
use super::report::{Problem, Report, seqs};
use super::salvage::derived_fingerprint;
use super::snapshot::Snapshot;
use crate::embedded::keys::{self, ALL_IDS_FOLDED, Keyspace};
use crate::embedded::record::{
    self, CursorRecord, GroupRecord, IdRecord, LoginRecord, UserRecord, WindowRecord, user_id,
};
use crate::embedded::{export, folded_ids, messages};

/// Returns what is wrong, and the records that can be derived from others.
pub(crate) fn check(
    snapshot: &mut Snapshot,
    progress: &mut dyn FnMut(&str),
) -> (Report, DerivedRecords) {
    let mut report = std::mem::take(&mut snapshot.report);
    let mut derived = DerivedRecords::default();
    let snapshot = &*snapshot;
    let heads = density::known_heads(snapshot);
    progress("messages");
    check_messages(snapshot, &heads, &mut report, &mut derived);
    progress("changes");
    let lost = density::lost(snapshot, Keyspace::Changes, &HashMap::new());
    report_lost(&lost, "changes", &mut report);
    progress("accounts");
    check_accounts(snapshot, &mut report, &mut derived);
    progress("sign-ins");
    check_logins(snapshot, &mut report, &mut derived);
    progress("groups");
    check_groups(snapshot, &mut report, &mut derived);
    progress("members");
    check_members(snapshot, &heads, &mut report, &mut derived);
    progress("documents");
    check_documents(snapshot, &mut report);
    (report, derived)
}

/// Records that follow from others, to be written by a repair.
#[derive(Default)]
pub(crate) struct DerivedRecords(pub(crate) Vec<(Keyspace, Vec<u8>, Vec<u8>)>);

impl DerivedRecords {
    fn put(&mut self, keyspace: Keyspace, key: &[u8], record: &impl Serialize) {
        // A record that was read can be written.
        if let Ok(value) = record::encode(keyspace, key, record) {
            self.0.push((keyspace, key.to_vec(), value));
        }
    }
}

fn report_lost(lost: &LostRanges, what: &str, report: &mut Report) {
    for (conversation, ranges) in lost {
        for range in ranges {
            let (from, to) = (range.start().0, range.end().0);
            report.add(Problem::lost(
                format!("The {what} {} of {conversation} cannot be read.", seqs(from, to)),
                format!("The members of {conversation} do not see them."),
            ));
        }
    }
}

fn damaged_record(keyspace: Keyspace, key: &[u8], report: &mut Report) {
    let key = String::from_utf8_lossy(key).replace(|it: char| it.is_control(), " ");
    let what = format!("The record {key:?} of `{}` is damaged.", keyspace.name());
    report.add(Problem::lost(what, "What needs this record is refused as damaged."));
}

/// Density, and each message's entry in the index of ids.
fn check_messages(
    snapshot: &Snapshot,
    heads: &HashMap<ConversationId, Seq>,
    report: &mut Report,
    derived: &mut DerivedRecords,
) {
    report_lost(&density::lost(snapshot, Keyspace::Messages, heads), "messages", report);
    let mut conversations = HashSet::new();
    let mut without_id: BTreeMap<ConversationId, u64> = BTreeMap::new();
    let mut count = 0;
    snapshot.for_each(Keyspace::Messages, &mut |key, value| {
        let Some((conversation, seq)) = place_of(key) else { return };
        let Ok(message) = messages::decode(&conversation, key, value) else { return };
        count += 1;
        conversations.insert(conversation.clone());
        let location = snapshot.core.engine.get(Keyspace::MessageIds, &message.id.0).ok().flatten();
        let is_indexed = location.is_some_and(|bytes| {
            let at = record::decode::<IdRecord<'_>>(Keyspace::MessageIds, &message.id.0, &bytes);
            at.is_ok_and(|at| at.conversation == conversation.as_str() && at.seq == seq.0)
        });
        if !is_indexed {
            let location = IdRecord::new(&conversation, seq, derived_fingerprint(&message));
            derived.put(Keyspace::MessageIds, &message.id.0, &location);
            *without_id.entry(conversation).or_default() += 1;
        }
    });
    (report.messages, report.conversations) = (count, conversations.len() as u64);
    for (conversation, count) in without_id {
        report.add(Problem::derivable(
            format!("{count} messages of {conversation} are not in the index of message ids."),
            "They cannot be acknowledged, recalled or sent again by their ids.",
        ));
    }
}

fn check_accounts(snapshot: &Snapshot, report: &mut Report, derived: &mut DerivedRecords) {
    let core = &snapshot.core;
    let mut problems = Vec::new();
    snapshot.for_each(Keyspace::Users, &mut |key, value| {
        report.records += 1;
        let id = std::str::from_utf8(key).ok().and_then(|id| user_id(id).ok());
        let record = record::decode::<UserRecord<'_>>(Keyspace::Users, key, value);
        let user = id.and_then(|id| record.ok()?.user(&id).ok());
        let Some(User { id, .. }) = user else {
            return problems.push(None);
        };
        if !matches!(folded_ids::holder(core, &id.folded()), Ok(Some(_))) {
            let key = keys::folded(&id.folded());
            derived.put(Keyspace::FoldedIds, &key, &id.as_str());
            problems.push(Some(id));
        }
    });
    for id in problems {
        match id {
            Some(id) => report.add(Problem::derivable(
                format!("The account {id} is not in the index of ids that look alike."),
                format!(
                    "{id} cannot sign in under another case of the id, and it could be taken again."
                ),
            )),
            None => damaged_record(Keyspace::Users, b"(an account)", report),
        }
    }
    let mut gone = 0;
    snapshot.for_each(Keyspace::FoldedIds, &mut |key, value| {
        report.records += 1;
        let user = record::decode::<&str>(Keyspace::FoldedIds, key, value);
        let is_there = user.is_ok_and(|user| {
            !matches!(core.engine.get(Keyspace::Users, user.as_bytes()), Ok(None))
        });
        gone += u64::from(!is_there && key != ALL_IDS_FOLDED);
    });
    if gone > 0 {
        report.add(Problem::lost(
            format!("{gone} ids are taken by accounts that are not there."),
            "These people cannot sign in, and nobody can take their ids.",
        ));
    }
}

fn check_logins(snapshot: &Snapshot, report: &mut Report, derived: &mut DerivedRecords) {
    let engine = &snapshot.core.engine;
    let (mut damaged, mut unlisted) = (0, 0);
    snapshot.for_each(Keyspace::Logins, &mut |key, value| {
        report.records += 1;
        let id = key.try_into().ok().map(LoginId);
        let record = record::decode::<LoginRecord<'_>>(Keyspace::Logins, key, value);
        let login = id.and_then(|id| record.ok()?.login(id).ok());
        let Some(login) = login else {
            damaged += 1;
            return;
        };
        let listed = engine.get(Keyspace::UserLogins, &keys::user_login(&login.user, login.id));
        let by_token = engine.get(Keyspace::RefreshTokens, &login.refresh_hash);
        let is_listed = matches!(listed, Ok(Some(_))) && matches!(by_token, Ok(Some(_)));
        if !is_listed {
            unlisted += 1;
            derived.put(Keyspace::UserLogins, &keys::user_login(&login.user, login.id), &());
            derived.put(Keyspace::RefreshTokens, &login.refresh_hash, &login.id.0);
        }
    });
    if damaged > 0 {
        report.add(Problem::lost(
            format!("{damaged} sign-ins cannot be read."),
            "These people must sign in again.",
        ));
    }
    if unlisted > 0 {
        report.add(Problem::derivable(
            format!("{unlisted} sign-ins are not in the lists of their users or tokens."),
            "These people must sign in again, or cannot end these sign-ins.",
        ));
    }
}

fn check_groups(snapshot: &Snapshot, report: &mut Report, derived: &mut DerivedRecords) {
    let engine = &snapshot.core.engine;
    let mut members: HashMap<String, u32> = HashMap::new();
    let mut without_window = 0;
    snapshot.for_each(Keyspace::GroupMembers, &mut |key, _| {
        report.records += 1;
        let Some((group, user)) = keys::split(key) else { return };
        *members.entry(group.to_owned()).or_default() += 1;
        let id = GroupId::parse(group).ok().map(|group| group.conversation());
        let user = std::str::from_utf8(user).ok().and_then(|user| user_id(user).ok());
        if let (Some(conversation), Some(user)) = (id, user) {
            let window = engine.get(Keyspace::Members, &keys::member(&user, &conversation));
            without_window += u64::from(!matches!(window, Ok(Some(_))));
        }
    });
    if without_window > 0 {
        report.add(Problem::lost(
            format!("{without_window} members of groups have no place in the conversation."),
            "These people are members but see nothing of the group.",
        ));
    }
    let mut found = Vec::new();
    snapshot.for_each(Keyspace::Groups, &mut |key, value| {
        report.records += 1;
        let id = std::str::from_utf8(key).ok().and_then(|id| GroupId::parse(id).ok());
        let record = record::decode::<GroupRecord<'_>>(Keyspace::Groups, key, value);
        let group = id.zip(record.ok()).and_then(|(id, record)| record.group(&id).ok());
        let Some(group) = group else {
            return found.push(Err(key.to_vec()));
        };
        let count = members.get(group.id.as_str()).copied().unwrap_or_default();
        let is_alive = group.ended.is_none();
        if is_alive && count != group.members {
            let counted = Group { members: count, ..group.clone() };
            derived.put(Keyspace::Groups, key, &GroupRecord::from(&counted));
            found.push(Ok(Problem::derivable(
                format!(
                    "The group {} says {} members, {count} are there.",
                    group.id, group.members
                ),
                "The group shows a wrong number of members.",
            )));
        }
        let code = engine.get(Keyspace::JoinCodes, group.code.as_str().as_bytes());
        if is_alive && !matches!(code, Ok(Some(_))) {
            derived.put(Keyspace::JoinCodes, group.code.as_str().as_bytes(), &group.id.as_str());
            found.push(Ok(Problem::derivable(
                format!("The join code of the group {} does not lead to it.", group.id),
                "Nobody can join the group by its code.",
            )));
        }
    });
    for problem in found {
        match problem {
            Ok(problem) => report.add(problem),
            Err(key) => damaged_record(Keyspace::Groups, &key, report),
        }
    }
}

/// Windows and cursors.
fn check_members(
    snapshot: &Snapshot,
    heads: &HashMap<ConversationId, Seq>,
    report: &mut Report,
    derived: &mut DerivedRecords,
) {
    let core = &snapshot.core;
    let (mut damaged, mut found) = (Vec::new(), Vec::new());
    snapshot.for_each(Keyspace::Members, &mut |key, value| {
        report.records += 1;
        let Ok(window) = record::decode::<WindowRecord>(Keyspace::Members, key, value) else {
            return damaged.push(key.to_vec());
        };
        let Some((user, conversation)) = keys::split(key) else { return };
        let conversation = ConversationId::stored(&String::from_utf8_lossy(conversation));
        let window = Window::from(window);
        if window.end.is_some_and(|end| end.seq.next() < window.min) {
            found.push(Problem::lost(
                format!("The visible range of {user} in {conversation} ends before it begins."),
                format!("{user} sees nothing of it."),
            ));
        }
        let cursors = match core.engine.get(Keyspace::Cursors, key) {
            Ok(Some(value)) => record::decode::<CursorRecord>(Keyspace::Cursors, key, &value),
            Ok(None) => return,
            Err(fault) => Err(fault),
        };
        let Ok(cursors) = cursors else { return damaged.push(key.to_vec()) };
        let progress = Progress::from(cursors);
        let cursors = progress.cursors;
        let head = core.heads.get_readable(core, &conversation).map(|it| it.head.seq);
        let head = head.unwrap_or_default();
        // A head that the index of ids knows of was lost; that is another problem.
        let is_known = heads.get(&conversation).is_some_and(|known| *known > head);
        if cursors.read.max(cursors.delivered) > head && !is_known {
            let cut =
                Cursors { delivered: cursors.delivered.min(head), read: cursors.read.min(head) };
            let own = progress.own.filter(|(_, last)| *last <= head);
            let cut = Progress { cursors: cut, own, quiet: progress.quiet.min(head) };
            derived.put(Keyspace::Cursors, key, &CursorRecord::from(cut));
            found.push(Problem::derivable(
                format!("{user} has read beyond the end of {conversation}."),
                format!("{user} may miss new messages of {conversation}."),
            ));
        }
    });
    for problem in found {
        report.add(problem);
    }
    for key in damaged {
        damaged_record(Keyspace::Members, &key, report);
    }
}

/// Documents follow from nothing else: each can be read or is lost.
fn check_documents(snapshot: &Snapshot, report: &mut Report) {
    let keyspace = Keyspace::Documents;
    let mut damaged = Vec::new();
    snapshot.for_each(keyspace, &mut |key, value| {
        report.records += 1;
        if export::item(&snapshot.core, keyspace, key, value).is_err() {
            // Without the rest of the key: it may be a secret, such as the code of an invite.
            let collection = keys::split(key).map_or("(a document)", |(collection, _)| collection);
            damaged.push(collection.to_owned());
        }
    });
    for collection in damaged {
        damaged_record(keyspace, collection.as_bytes(), report);
    }
}
