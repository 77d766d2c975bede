//! Rows of `members`: windows and cursors, read, locked and written many at a time.

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::Row;
use nexo_chat::ids::{ConversationId, Seq, UserId};
use nexo_chat::model::{Cursors, Settings, Window, WindowEnd};
use nexo_chat::progress::Progress;

use super::fault::SqlFault;
use super::fields::Fields;
use super::pool::PooledConnection;
use super::row::{self, SETTINGS};
use super::sql::{insert_rows, values};
use super::transaction::Transaction;
use crate::member_key::{MemberKey, OwnSend};

/// The columns of [`row::member_values`].
pub(crate) const MEMBER: &str = "user_id, conversation_id, min_seq, min_change_seq, since, \
     end_seq, end_change_seq, end_at, delivered_seq, read_seq, own_first, own_last, quiet_seq";

/// Returns those of these keys that have a member.
pub(crate) async fn existing(
    transaction: &mut Transaction,
    member_keys: &BTreeSet<MemberKey>,
) -> Result<BTreeSet<MemberKey>, SqlFault> {
    let keys: Vec<_> =
        member_keys.iter().map(|(user, at)| values![user.as_str(), at.as_str()]).collect();
    let sql = "SELECT user_id, conversation_id FROM members \
         WHERE (user_id, conversation_id) IN {}";
    let rows = transaction.rows_by_keys(sql, &keys).await?.into_iter().map(|row| {
        let mut fields = Fields::from(row);
        Ok((fields.user()?, fields.conversation()?))
    });
    rows.collect()
}

/// Locks the members of these keys, in the order of the keys, and reads them.
pub(crate) async fn lock(
    transaction: &mut Transaction,
    member_keys: &BTreeSet<MemberKey>,
) -> Result<BTreeMap<MemberKey, (Window, Progress)>, SqlFault> {
    let keys: Vec<_> =
        member_keys.iter().map(|(user, at)| values![user.as_str(), at.as_str()]).collect();
    let sql = format!(
        "SELECT {MEMBER} FROM members WHERE (user_id, conversation_id) IN {{}} \
         ORDER BY user_id, conversation_id FOR UPDATE",
    );
    transaction.rows_by_keys(&sql, &keys).await?.into_iter().map(member).collect()
}

fn member(row: Row) -> Result<(MemberKey, (Window, Progress)), SqlFault> {
    let mut fields = Fields::from(row);
    let member_key = (fields.user()?, fields.conversation()?);
    Ok((member_key, (fields.window()?, fields.progress()?)))
}

/// Writes members that were locked, or are new.
pub(crate) async fn save(
    transaction: &mut Transaction,
    member_keys: impl Iterator<Item = (&MemberKey, Window, Progress)>,
) -> Result<(), SqlFault> {
    let rows = member_keys
        .map(|((user, at), window, progress)| row::member_values(user, at, window, progress))
        .collect();
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         delivered_seq = GREATEST(delivered_seq, VALUES(delivered_seq)), \
         read_seq = GREATEST(read_seq, VALUES(read_seq)), \
         own_first = VALUES(own_first), own_last = VALUES(own_last), \
         quiet_seq = GREATEST(quiet_seq, VALUES(quiet_seq))",
    );
    transaction.write(&sql, rows).await
}

/// Raises delivered cursors as [`Progress::acknowledged`] does, without reading them first. The
/// members are there: members of private conversations are never deleted.
pub(crate) async fn raise_delivered(
    connection: &mut PooledConnection,
    moves: &[(MemberKey, Seq)],
) -> Result<(), SqlFault> {
    let raised = |seq: Seq| {
        let cursors = Cursors { delivered: seq, read: Seq::ZERO };
        Progress { cursors, ..Progress::default() }
    };
    let rows = moves
        .iter()
        .map(|((user, at), seq)| row::member_values(user, at, Window::ALL, raised(*seq)))
        .collect();
    let to = "GREATEST(delivered_seq, VALUES(delivered_seq))";
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         delivered_seq = IF({to} + 1 >= own_first, GREATEST({to}, own_last), {to})",
    );
    for (sql, params) in insert_rows(&sql, rows) {
        connection.run(sql, params).await?;
    }
    Ok(())
}

/// Makes both users of a private conversation its members.
pub(crate) async fn insert_pair(
    transaction: &mut Transaction,
    member_keys: &[MemberKey],
) -> Result<(), SqlFault> {
    let begun = member_keys.iter().map(|member_key| (member_key, Window::ALL, Progress::default()));
    save(transaction, begun).await
}

/// Makes one user of a private conversation its member before the first message, which will find
/// the row and leave its settings. Fails with a duplicate key if the first message came meanwhile:
/// the next attempt finds its row.
pub(crate) async fn insert_before_first_message(
    transaction: &mut Transaction,
    (user, conversation): &MemberKey,
    settings: &Settings,
) -> Result<(), SqlFault> {
    // The conversation first, in the order of an append: a standing is read from both rows.
    let sql = "INSERT IGNORE INTO conversations (id, max_seq, change_seq, newest_at) VALUES {}";
    transaction.write(sql, vec![values![conversation.as_str(), 0, 0, 0]]).await?;
    let mut row = row::member_values(user, conversation, Window::ALL, Progress::default());
    row.extend(row::settings_values(settings));
    let sql = format!("INSERT INTO members ({MEMBER}, {SETTINGS}) VALUES {{}}");
    transaction.write(&sql, vec![row]).await
}

/// Moves the senders' cursors as [`Progress::sent`] does, in one statement without reading them
/// first. A database may evaluate each assignment with the old values of the columns or with those
/// assigned to its left: the outcome is the same.
pub(crate) async fn apply_own_sends(
    transaction: &mut Transaction,
    mut sent: Vec<OwnSend>,
) -> Result<(), SqlFault> {
    // In the order of their keys, like every transaction that locks them; those of one member by
    // seq.
    sent.sort_by(|a, b| (&a.member_key, a.seq).cmp(&(&b.member_key, b.seq)));
    let mut runs: Vec<(MemberKey, Progress)> = Vec::with_capacity(sent.len());
    for OwnSend { member_key, seq, marks_read } in sent {
        let mut progress = Progress::default();
        if let Some((last, it)) = runs.last()
            && *last == member_key
            && it.own.is_some_and(|(_, last)| last.next() == seq)
        {
            progress = *it;
            runs.pop();
        }
        progress.sent(seq, marks_read);
        runs.push((member_key, progress));
    }
    let rows = runs
        .iter()
        .map(|((user, at), progress)| row::member_values(user, at, Window::ALL, *progress))
        .collect();
    let first = "IF(own_last + 1 = VALUES(own_first), own_first, VALUES(own_first))";
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         delivered_seq = IF(delivered_seq + 1 >= {first}, \
             GREATEST(delivered_seq, VALUES(own_last)), delivered_seq), \
         read_seq = GREATEST(read_seq, VALUES(read_seq)), \
         own_first = {first}, own_last = VALUES(own_last), \
         quiet_seq = GREATEST(quiet_seq, VALUES(quiet_seq))",
    );
    transaction.write(&sql, rows).await
}

/// Opens the windows of users who join. Their settings stay.
pub(crate) async fn open_windows(
    transaction: &mut Transaction,
    conversation: &ConversationId,
    comers: impl Iterator<Item = (&UserId, Window)>,
    progress: Progress,
) -> Result<(), SqlFault> {
    let rows = comers
        .map(|(user, window)| row::member_values(user, conversation, window, progress))
        .collect();
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         min_seq = VALUES(min_seq), min_change_seq = VALUES(min_change_seq), \
         since = VALUES(since), end_seq = VALUES(end_seq), \
         end_change_seq = VALUES(end_change_seq), end_at = VALUES(end_at), \
         delivered_seq = VALUES(delivered_seq), read_seq = VALUES(read_seq), \
         own_first = VALUES(own_first), own_last = VALUES(own_last), \
         quiet_seq = VALUES(quiet_seq)",
    );
    transaction.write(&sql, rows).await
}

/// Closes the window of a user who leaves, unless it is closed already.
pub(crate) async fn close_window(
    transaction: &mut Transaction,
    user: &UserId,
    conversation: &ConversationId,
    edge: WindowEnd,
) -> Result<(), SqlFault> {
    let mut params = row::window_end_values(Some(edge));
    params.extend(values![user.as_str(), conversation.as_str()]);
    let sql = "UPDATE members SET end_seq = ?, end_change_seq = ?, end_at = ? \
         WHERE user_id = ? AND conversation_id = ? AND end_seq IS NULL";
    transaction.run(sql, params).await?;
    Ok(())
}

/// Counts the messages that a member has sent without marking anything read.
pub(crate) async fn sent_without_read_total(
    transaction: &mut Transaction,
    member_key: &MemberKey,
) -> Result<u64, SqlFault> {
    let sql = "SELECT total FROM quiet_messages WHERE user_id = ? AND conversation_id = ? \
         ORDER BY seq DESC LIMIT 1";
    let rows = transaction.rows(sql, values![member_key.0.as_str(), member_key.1.as_str()]).await?;
    rows.into_iter().next().map_or(Ok(0), |row| Fields::from(row).u64())
}
