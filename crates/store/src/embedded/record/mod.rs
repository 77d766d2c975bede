//! Values on disk: a version byte, a checksum over keyspace, key and payload, and the payload.
//!
//! The checksum covers the key, so a value under a wrong key is detected. The payload is postcard of
//! the private structs of this folder; the domain's own types know nothing of the disk.
//!
//! A struct only ever grows at its end, and [`VERSION`] is raised with it. A record of an older
//! version ends before the new fields; they are read as zeros (0, false, nothing, empty), so the
//! zero of a new field must mean what was true before the field existed.

mod account;
mod change;
mod group;
mod member;
mod message;
mod zero_padding;

use nexo_chat::ids::UserId;
use serde::{Deserialize, Serialize};

use self::zero_padding::ZeroPaddedReader;
use super::keys::Keyspace;
use super::poison::EngineFault;

pub(crate) use self::account::{LoginRecord, ResetRecord, UserRecord};
pub(crate) use self::change::ChangeRecord;
pub(crate) use self::group::{GroupMemberRecord, GroupRecord, RequestRecord};
pub(crate) use self::member::{CursorRecord, SettingsRecord, WindowRecord};
pub(crate) use self::message::{IdRecord, MessageRecord};

/// The version that is written; older ones are read too.
const VERSION: u8 = 3;
const HEADER: usize = 5;

/// Encodes a record for this keyspace and key.
pub(crate) fn encode(
    keyspace: Keyspace,
    key: &[u8],
    record: &impl Serialize,
) -> Result<Vec<u8>, EngineFault> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    let mut bytes = postcard::to_extend(record, bytes).map_err(|error| {
        EngineFault::new(format!("cannot write a record of {}: {error}", keyspace.name()))
    })?;
    let checksum = checksum(VERSION, keyspace, key, &bytes[HEADER..]);
    bytes[1..HEADER].copy_from_slice(&checksum.to_be_bytes());
    Ok(bytes)
}

/// Decodes a record, or reports the damage.
pub(crate) fn decode<'a, T: Deserialize<'a>>(
    keyspace: Keyspace,
    key: &[u8],
    bytes: &'a [u8],
) -> Result<T, EngineFault> {
    let damaged =
        |what: &str| EngineFault::damage(format!("a record in {}: {what}", keyspace.name()));
    let (header, payload) =
        bytes.split_first_chunk::<HEADER>().ok_or_else(|| damaged("too short"))?;
    let [version, stored @ ..] = *header;
    if u32::from_be_bytes(stored) != checksum(version, keyspace, key, payload) {
        return Err(damaged("wrong checksum"));
    }
    let read = match version {
        VERSION => postcard::take_from_bytes(payload),
        1..VERSION => ZeroPaddedReader::take(payload),
        _ => return Err(damaged("unknown version")),
    };
    match read {
        Ok((record, [])) => Ok(record),
        Ok(_) => Err(damaged("bytes left over")),
        Err(error) => Err(damaged(&error.to_string())),
    }
}

fn checksum(version: u8, keyspace: Keyspace, key: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[version, keyspace as u8]);
    hasher.update(key);
    hasher.update(payload);
    hasher.finalize()
}

/// Damage that the checksum does not show: the record is intact but its content is impossible.
pub(crate) fn impossible(keyspace: Keyspace, what: &str) -> EngineFault {
    EngineFault::damage(format!("a record in {}: {what}", keyspace.name()))
}

pub(crate) fn user_id(text: &str) -> Result<UserId, EngineFault> {
    UserId::parse(text).map_err(|_| EngineFault::damage("a record: not a user id"))
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::Seq;
    use nexo_chat::model::Cursors;
    use nexo_chat::progress::Progress;

    use super::*;

    /// A record as an earlier version wrote it.
    fn written(version: u8, record: &impl Serialize) -> Vec<u8> {
        let payload = postcard::to_allocvec(record).unwrap();
        let checksum = checksum(version, Keyspace::LastSeen, b"key", &payload);
        [&[version][..], &checksum.to_be_bytes(), &payload].concat()
    }

    #[test]
    fn an_older_record_is_read_with_zeros_for_what_it_does_not_have() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Grown<'a> {
            name: &'a str,
            at: u64,
            note: &'a str,
            rest: (bool, Option<u8>, Vec<u8>),
        }
        let read = |bytes: &[u8]| {
            decode::<Grown<'_>>(Keyspace::LastSeen, b"key", bytes)
                .map(|it| (it.name.to_owned(), it.at))
        };
        let old = written(1, &("alice", 300_u64));
        let grown: Grown<'_> = decode(Keyspace::LastSeen, b"key", &old).unwrap();
        let rest = (false, None, Vec::new());
        assert_eq!(grown, Grown { name: "alice", at: 300, note: "", rest });
        // A record of today's version is complete, and no record has bytes left over.
        assert!(read(&written(VERSION, &("alice", 300_u64, "note", [0_u8; 3]))).is_ok());
        assert!(read(&written(VERSION, &("alice", 300_u64))).is_err());
        assert!(read(&written(1, &("alice", 300_u64, "note", [0_u8; 3], 9_u8))).is_err());
        // A text that is longer than the record is damage, not the end of an old record.
        assert!(read(&written(1, &b'\x05')).is_err());
        assert!(read(&written(VERSION + 1, &("alice", 300_u64, "", [0_u8; 3]))).is_err());
    }

    #[test]
    fn every_flipped_bit_and_every_wrong_place_is_noticed() {
        let record = CursorRecord::from(Progress {
            cursors: Cursors { delivered: Seq(300), read: Seq(2) },
            own: Some((Seq(301), Seq(302))),
            quiet: Seq(7),
        });
        let good = encode(Keyspace::Cursors, b"key", &record).unwrap();
        assert!(decode::<CursorRecord>(Keyspace::Cursors, b"key", &good).is_ok());
        assert!(decode::<CursorRecord>(Keyspace::Members, b"key", &good).is_err());
        assert!(decode::<CursorRecord>(Keyspace::Cursors, b"kez", &good).is_err());
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<CursorRecord>(Keyspace::Cursors, b"key", &bad).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(decode::<CursorRecord>(Keyspace::Cursors, b"key", &good[..cut]).is_err());
        }
    }
}
