//! Which segments of the log a restore needs: those of the backup, and the archived ones after it.

use std::collections::BTreeMap;

use object_store::path::Path as ObjectPath;

use crate::log_archive::ArchivedSegment;
use crate::manifest::Manifest;
use crate::repository::object_path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedSegment {
    pub(crate) number: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
    pub(crate) location: ObjectPath,
}

/// Returns the segments with the entries after `flushed`, up to the first entry that is missing.
pub(crate) fn plan(manifest: &Manifest, archived: &[ArchivedSegment]) -> Vec<PlannedSegment> {
    let own = manifest.log.iter().map(|it| PlannedSegment {
        number: it.segment,
        first: it.first,
        last: it.last,
        bytes: it.bytes,
        blake3: it.blake3.clone(),
        location: object_path(&it.blake3),
    });
    let later = archived.iter().map(|it| PlannedSegment {
        number: it.segment,
        first: it.first,
        last: it.last,
        bytes: it.bytes,
        blake3: it.blake3.clone(),
        location: it.path(&manifest.history),
    });
    // Of one segment, the copy that goes further.
    let mut segments: BTreeMap<u64, PlannedSegment> = BTreeMap::new();
    for segment in own.chain(later) {
        let known = segments.entry(segment.number).or_insert_with(|| segment.clone());
        if known.last < segment.last {
            *known = segment;
        }
    }
    let (mut planned, mut newest) = (Vec::new(), manifest.flushed);
    for segment in segments.into_values().skip_while(|it| it.last <= manifest.flushed) {
        if segment.first > newest + 1 {
            break;
        }
        if segment.last > newest {
            newest = segment.last;
            planned.push(segment);
        }
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{BackedUpSegment, LAYOUT};

    fn manifest(flushed: u64, log: &[(u64, u64, u64)]) -> Manifest {
        let segment = |&(segment, first, last): &(u64, u64, u64)| BackedUpSegment {
            segment,
            first,
            last,
            bytes: 1,
            blake3: format!("own{segment}"),
        };
        Manifest {
            layout: LAYOUT,
            id: "id".into(),
            nexo: "0".into(),
            format: 1,
            history: "f00d".into(),
            taken_ms: 0,
            finished_ms: 0,
            flushed,
            exact_from: flushed,
            exact_from_ms: 0,
            newest: log.last().map_or(flushed, |it| it.2),
            with_secrets: false,
            files: Vec::new(),
            log: log.iter().map(segment).collect(),
            bytes: 0,
            written_bytes: 0,
            blake3: String::new(),
        }
    }

    fn check(manifest: &Manifest, archived: &[(u64, u64, u64)], expected: &[(&str, u64)]) {
        let archived: Vec<_> = archived
            .iter()
            .map(|&(segment, first, last)| ArchivedSegment {
                segment,
                first,
                last,
                blake3: format!("late{segment}"),
                bytes: 1,
            })
            .collect();
        let planned = plan(manifest, &archived);
        let found: Vec<_> = planned.iter().map(|it| (it.blake3.as_str(), it.last)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_log_goes_on_in_the_archive_until_something_is_missing() {
        let backup = manifest(10, &[(3, 8, 15), (4, 16, 20)]);
        check(&backup, &[], &[("own3", 15), ("own4", 20)]);
        // The archive has the same segment, longer, and later ones.
        let longer = [(2, 1, 7), (4, 16, 30), (5, 31, 40)];
        check(&backup, &longer, &[("own3", 15), ("late4", 30), ("late5", 40)]);
        check(&backup, &[(6, 45, 50)], &[("own3", 15), ("own4", 20)]);
        check(&manifest(10, &[]), &[(1, 1, 10), (2, 11, 12)], &[("late2", 12)]);
    }
}
