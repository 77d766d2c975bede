//! Reads a table file block by block, without its index: what the library cannot open may still hold
//! readable blocks.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use lsm_tree::coding::Decode;
use lsm_tree::file::MAGIC_BYTES;
use lsm_tree::table::block::decoder::ParsedItem;
use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::{Block, DataBlock};
use lsm_tree::{CompressionType, InternalValue};
use memchr::memmem;

use crate::embedded::engine::Slice;

/// Keys between two readable ones, where records may have been; an open end is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyGap {
    pub(crate) after: Option<Slice>,
    pub(crate) before: Option<Slice>,
}

impl KeyGap {
    pub(crate) const ALL: Self = Self { after: None, before: None };

    /// Whether a record under this key may have been lost in the gap.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.after.as_ref().is_none_or(|after| key >= &**after)
            && self.before.as_ref().is_none_or(|before| key <= &**before)
    }
}

/// The readable records of a table, and the gaps between them.
#[derive(Default)]
pub(crate) struct RawTable {
    pub(crate) records: Vec<InternalValue>,
    pub(crate) gaps: Vec<KeyGap>,
}

impl RawTable {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let mut table = Self::default();
        let (mut at, mut is_in_gap) = (0, false);
        loop {
            let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else {
                table.end_in_gap(); // the index and the end of the file are missing
                return Ok(table);
            };
            let Ok(header) = Header::decode_from(&mut &*rest) else {
                is_in_gap = true;
                let next = rest.get(1..).and_then(|rest| memmem::find(rest, &MAGIC_BYTES));
                at = next.map_or(bytes.len(), |found| at + 1 + found);
                continue;
            };
            if header.block_type != BlockType::Data {
                if is_in_gap {
                    table.end_in_gap();
                }
                return Ok(table);
            }
            let end = at + Header::serialized_len() + header.data_length as usize;
            match bytes.get(at..end).and_then(|block| records(block, &header)) {
                Some(found) => {
                    if is_in_gap && let Some(first) = found.first() {
                        let after = table.records.last().map(|last| last.key.user_key.clone());
                        let before = Some(first.key.user_key.clone());
                        table.gaps.push(KeyGap { after, before });
                    }
                    is_in_gap = false;
                    table.records.extend(found);
                }
                None => is_in_gap = true,
            }
            at = end;
        }
    }

    fn end_in_gap(&mut self) {
        let after = self.records.last().map(|last| last.key.user_key.clone());
        self.gaps.push(KeyGap { after, before: None });
    }
}

fn records(block: &[u8], header: &Header) -> Option<Vec<InternalValue>> {
    let is_plain = header.data_length == header.uncompressed_length;
    let compression = if is_plain { CompressionType::None } else { CompressionType::Lz4 };
    let decode = || {
        let block = Block::from_reader(&mut &*block, compression).ok()?;
        let block = DataBlock::new(block);
        let records = block.iter().map(|item| item.materialize(block.as_slice()));
        Some(records.collect())
    };
    // The library panics on some kinds of damage.
    catch_unwind(AssertUnwindSafe(decode)).ok().flatten()
}
