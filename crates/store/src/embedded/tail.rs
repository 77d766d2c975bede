//! The tail: one record per synced batch with the own sends in it.
//!
//! Cursors are written behind, so a crash may lose the moves of the last second. For a delivery
//! that only means a repetition, but somebody's own message must not come back as unread. So every
//! batch names its own sends, and at open those that no written cursor covers are done again. The
//! numbers of these records also tell whether a batch went missing.

use std::collections::HashMap;

use nexo_chat::ids::Seq;

use super::cursors::Place;
use super::engine::{Batch, Engine};
use super::keys::{self, Space};
use super::pending::Decided;
use super::poison::Fault;
use super::record::{self, TailRecord};

/// Which records of the tail there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The newest batch; zero before the first.
    pub(crate) newest: u64,
    /// The oldest batch whose record is still there.
    pub(crate) oldest: u64,
}

/// An own send, which moves its sender's cursors.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) place: Place,
    pub(crate) seq: Seq,
    pub(crate) marks_read: bool,
}

impl Tail {
    /// Adds the record of the next batch to it.
    pub(crate) fn extend(&mut self, decided: &mut Decided) -> Result<(), Fault> {
        self.newest += 1;
        self.oldest = self.oldest.max(1);
        // Of each kind only the last own message of a batch counts: the cursors are at least there.
        let last: HashMap<(&Place, bool), Seq> =
            decided.sent.iter().map(|it| ((&it.place, it.marks_read), it.seq)).collect();
        let moves = last.iter().map(|(((user, place), marks_read), seq)| {
            (user.as_str(), place.as_str(), seq.0, *marks_read)
        });
        let mut record = TailRecord { oldest: self.oldest, moves: moves.collect() };
        record.moves.sort_unstable_by_key(|(_, _, seq, _)| *seq);
        let key = keys::tail(self.newest);
        let value = record::encode(Space::Tail, &key, &record)?;
        decided.batch.put(Space::Tail, key, value);
        Ok(())
    }

    /// Deletes the records that the cursors written in this batch cover. The newest stays: its
    /// number is the witness.
    pub(crate) fn cut(&mut self, batch: &mut Batch) {
        for number in self.oldest..self.newest {
            batch.delete(Space::Tail, keys::tail(number));
        }
        self.oldest = self.newest;
    }

    /// Finds the tail at open, and the own sends to do again.
    pub(crate) fn find(engine: &Engine) -> Result<(Self, Vec<Sent>), Fault> {
        let everything = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let Some((key, value)) = engine.last(Space::Tail, everything)? else {
            return Ok((Self::default(), Vec::new()));
        };
        let newest = keys::batch_of(&key)
            .ok_or_else(|| record::impossible(Space::Tail, "not a batch number"))?;
        let record: TailRecord<'_> = record::decode(Space::Tail, &key, &value)?;
        let mut sent = Vec::new();
        let mut found = 0;
        for number in record.oldest..newest {
            let key = keys::tail(number);
            if let Some(value) = engine.get(Space::Tail, &key)? {
                sent.extend(record::decode::<TailRecord<'_>>(Space::Tail, &key, &value)?.moves()?);
                found += 1;
            }
        }
        sent.extend(record.moves()?);
        // All of them, or none if cursors were written after the newest batch.
        let expected = newest - record.oldest.min(newest);
        if found != expected && found != 0 {
            let missing = expected - found;
            return Err(Fault::new(format!("{missing} acknowledged batches are missing")));
        }
        let oldest = if found == 0 { newest } else { record.oldest };
        Ok((Self { newest, oldest }, sent))
    }
}
