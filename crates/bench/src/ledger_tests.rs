//! Every fault a server can have is fed to a ledger, and must be counted once.

use super::*;

/// A ledger with `count` messages sent, number `i` due at `i`.
fn sent(count: u64) -> Ledger {
    let mut ledger = Ledger::from(0, true);
    (0..count).for_each(|index| ledger.sent(index));
    ledger
}

fn all_steps(ledger: &mut Ledger, index: u64) {
    ledger.saved(index, index + 1, 10);
    ledger.pushed(index, index + 1, 20);
    ledger.delivered(index + 1, 30);
}

#[test]
fn a_faultless_run_is_clean_and_forgets_its_messages() {
    let mut ledger = sent(3);
    (0..3).for_each(|index| all_steps(&mut ledger, index));
    assert!(ledger.is_settled());
    assert_eq!(ledger.samples().len(), 9);
    assert_eq!(ledger.samples()[5], Sample { step: Step::Delivered, due: 1, at: 30 });
    let counters = ledger.close();
    assert!(counters.is_clean(), "{counters:?}");
    assert_eq!((counters.sent, counters.saved, counters.pushed), (3, 3, 3));
    assert_eq!((counters.delivered, counters.receipts), (3, 3));
}

#[test]
fn a_push_may_overtake_its_ack() {
    let mut ledger = sent(1);
    ledger.pushed(0, 1, 5);
    ledger.delivered(1, 6);
    assert_eq!(ledger.unanswered(), 1);
    ledger.saved(0, 1, 7);
    assert!(ledger.is_settled() && ledger.close().is_clean());
}

#[test]
fn a_duplicate_is_counted_in_flight_and_afterwards() {
    let mut ledger = sent(2);
    ledger.pushed(0, 1, 1);
    ledger.pushed(0, 1, 2);
    ledger.saved(0, 1, 3);
    ledger.delivered(1, 4);
    ledger.pushed(0, 1, 5);
    all_steps(&mut ledger, 1);
    let counters = ledger.close();
    assert_eq!((counters.duplicates, counters.pushed), (2, 2));
    assert_eq!((counters.reordered_by_seq, counters.reordered_by_sender), (0, 0));
    assert!(!counters.is_clean());
}

#[test]
fn a_gap_is_a_loss_even_if_a_later_receipt_covers_it() {
    let mut ledger = sent(3);
    all_steps(&mut ledger, 0);
    ledger.saved(1, 2, 10);
    all_steps(&mut ledger, 2);
    assert!(!ledger.is_settled());
    let counters = ledger.close();
    assert_eq!((counters.lost, counters.delivered, counters.undelivered), (1, 2, 0));
}

#[test]
fn order_by_seq_and_by_sender_are_told_apart() {
    // The server stored them in the wrong order, and pushed as stored.
    let mut ledger = sent(2);
    ledger.pushed(1, 1, 1);
    ledger.pushed(0, 2, 2);
    let counters = ledger.close();
    assert_eq!((counters.reordered_by_seq, counters.reordered_by_sender), (0, 1));
    // Stored in order, pushed in the wrong one.
    let mut ledger = sent(2);
    ledger.pushed(1, 2, 1);
    ledger.pushed(0, 1, 2);
    let counters = ledger.close();
    assert_eq!((counters.reordered_by_seq, counters.reordered_by_sender), (1, 1));
}

#[test]
fn one_receipt_covers_all_before_it() {
    let mut ledger = sent(3);
    for index in 0..3 {
        ledger.saved(index, index + 1, 1);
        ledger.pushed(index, index + 1, 2);
    }
    ledger.delivered(2, 3);
    let counters = ledger.close();
    assert_eq!((counters.delivered, counters.receipts, counters.undelivered), (2, 1, 1));
}

#[test]
fn refusals_and_silence_are_not_losses() {
    let mut ledger = sent(2);
    ledger.refused(Some(0), "RATE_LIMITED");
    ledger.refused(None, "RATE_LIMITED");
    assert_eq!((ledger.unanswered(), ledger.unpushed()), (1, 1));
    let counters = ledger.close();
    assert_eq!((counters.refused, counters.unanswered, counters.lost), (1, 1, 0));
    assert_eq!(counters.errors["RATE_LIMITED"], 2);
}

#[test]
fn answers_to_nothing_are_counted() {
    let mut ledger = sent(1);
    ledger.saved(0, 1, 1);
    ledger.saved(0, 1, 2);
    ledger.saved(9, 9, 2);
    ledger.pushed(9, 9, 2);
    assert_eq!(ledger.close().unexpected, 3);
}

#[test]
fn without_receipts_a_push_is_the_end() {
    let mut ledger = Ledger::from(0, false);
    ledger.sent(0);
    ledger.saved(0, 1, 1);
    ledger.pushed(0, 1, 2);
    assert!(ledger.is_settled() && ledger.close().is_clean());
}

#[test]
fn counters_of_pairs_add_up() {
    let mut one = sent(2);
    all_steps(&mut one, 0);
    one.refused(Some(1), "A");
    let mut two = sent(1);
    two.refused(Some(0), "A");
    let mut sum = one.close();
    sum.add(&two.close());
    assert_eq!((sum.sent, sum.saved, sum.refused, sum.errors["A"]), (3, 1, 2, 2));
}
