//! Seqs that were lost before the folder was salvaged. They are known to be missing, so they answer as
//! damaged without being counted as damage, and no new message or change takes their place.

use std::ops::RangeInclusive;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::store::Order;

use super::engine::Engine;
use super::keys::{self, Keyspace};
use super::poison::EngineFault;
use super::record;

/// Returns the lost ranges of a conversation's messages or changes, in order. Almost always none.
pub(crate) fn of(
    engine: &Engine,
    keyspace: Keyspace,
    conversation: &ConversationId,
) -> Result<Vec<RangeInclusive<Seq>>, EngineFault> {
    let range = keys::lost_of(keyspace, conversation);
    let found = engine.scan(Keyspace::Lost, range, usize::MAX, Order::Ascending, usize::MAX)?;
    found.iter().map(|(key, value)| decode(key, value)).collect()
}

/// Returns the end of the last lost range, or zero.
pub(crate) fn end_of(
    engine: &Engine,
    keyspace: Keyspace,
    conversation: &ConversationId,
) -> Result<Seq, EngineFault> {
    let last = engine.last(Keyspace::Lost, keys::lost_of(keyspace, conversation))?;
    last.map_or(Ok(Seq::ZERO), |(key, value)| Ok(*decode(&key, &value)?.end()))
}

fn decode(key: &[u8], value: &[u8]) -> Result<RangeInclusive<Seq>, EngineFault> {
    let first = keys::seq_of(key).ok_or_else(|| record::impossible(Keyspace::Lost, "no seq"))?;
    Ok(first..=Seq(record::decode(Keyspace::Lost, key, value)?))
}
