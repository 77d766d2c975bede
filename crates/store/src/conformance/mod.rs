//! The contract as named cases. A case gets an empty store and panics if a promise is broken.
//!
//! In reading order: [`CASES`] lists everything; `fixtures` builds users and drafts; then the cases
//! by subject: `sending`, `commit_listener`, `recall`, `reading`, `cursors`, `marks`, `groups`,
//! `group_windows`, `accounts`, `account_changes`, `logins`, `listings`,
//! `documents`, `durability`.

#![allow(
    clippy::unwrap_used,
    reason = "a case is a test: a failed step is a broken promise and must stop it"
)]

mod account_changes;
mod accounts;
mod commit_listener;
mod cursors;
mod documents;
mod durability;
mod fixtures;
mod group_windows;
mod groups;
mod listings;
mod logins;
mod marks;
mod reading;
mod recall;
mod sending;

use std::sync::Arc;

use nexo_chat::Boxed;
use nexo_chat::store::Store;

/// How a case opens the engine under test.
pub trait Opener: Send + Sync {
    /// The first call opens an empty store, later calls what the ones before stored. The store
    /// opened before must be closed first.
    fn open(&self) -> Arc<dyn Store>;

    /// Opens what would be on disk if the machine died now, while the store opened before is still
    /// open.
    fn open_after_crash(&self) -> Arc<dyn Store>;
}

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// The promise as a sentence.
    pub name: &'static str,
    /// Whether it is about what is there after a restart.
    pub needs_reopen: bool,
    /// Checks it; panics if it is broken.
    pub run: fn(Arc<dyn Opener>) -> Boxed<'static, ()>,
}

const fn case(name: &'static str, run: fn(Arc<dyn Opener>) -> Boxed<'static, ()>) -> Case {
    Case { name, needs_reopen: false, run }
}

const fn lasting(name: &'static str, run: fn(Arc<dyn Opener>) -> Boxed<'static, ()>) -> Case {
    Case { name, needs_reopen: true, run }
}

/// Every promise of the contract.
pub const CASES: &[Case] = &[
    case("seqs_are_dense_per_conversation", |o| Box::pin(sending::seqs_are_dense(o))),
    case("a_stored_message_is_what_was_sent", |o| Box::pin(sending::is_what_was_sent(o))),
    case("same_client_id_returns_first_seq", |o| Box::pin(sending::same_client_id(o))),
    case("a_client_id_belongs_to_its_sender", |o| Box::pin(sending::client_id_per_sender(o))),
    case("conflict_changes_nothing", |o| Box::pin(sending::conflict_changes_nothing(o))),
    case("other_conversation_is_a_conflict", |o| Box::pin(sending::other_conversation(o))),
    case("seq_has_no_holes_after_conflict", |o| Box::pin(sending::no_holes_after_conflict(o))),
    case("calls_in_order_get_increasing_seqs", |o| Box::pin(sending::calls_in_order(o))),
    case("parallel_sends_are_dense", |o| Box::pin(sending::parallel_sends_are_dense(o))),
    case("parallel_sends_of_one_client_id_store_one_message", |o| {
        Box::pin(sending::parallel_sends_of_one_client_id(o))
    }),
    case("a_run_is_appended_in_order", |o| Box::pin(sending::run_in_order(o))),
    case("a_run_refuses_only_what_is_wrong", |o| Box::pin(sending::run_refuses(o))),
    case("a_dropped_append_is_still_stored", |o| Box::pin(sending::dropped_append(o))),
    case("commits_are_heard_once_and_in_order", |o| {
        Box::pin(commit_listener::once_and_in_order(o))
    }),
    case("commits_are_heard_before_the_answer", |o| {
        Box::pin(commit_listener::before_the_answer(o))
    }),
    case("duplicates_are_not_heard", |o| Box::pin(commit_listener::duplicates_are_not_heard(o))),
    case("a_recall_takes_the_content_away", |o| Box::pin(recall::content_is_gone(o))),
    case("changes_are_dense_and_heard", |o| Box::pin(recall::dense_and_heard(o))),
    case("a_repeated_recall_is_no_second_change", |o| Box::pin(recall::repeated(o))),
    case("a_refused_recall_changes_nothing", |o| Box::pin(recall::refused(o))),
    case("a_recall_may_follow_its_send_at_once", |o| Box::pin(recall::right_after_the_send(o))),
    case("a_message_is_found_by_its_id", |o| Box::pin(reading::found_by_id(o))),
    case("ranges_are_read_in_both_orders", |o| Box::pin(reading::both_orders(o))),
    case("ranges_keep_to_their_limit", |o| Box::pin(reading::limits(o))),
    case("ranges_beyond_what_exists_give_what_exists", |o| Box::pin(reading::beyond(o))),
    case("a_range_never_runs_into_another_conversation", |o| Box::pin(reading::neighbours(o))),
    case("several_ranges_are_read_in_one_call", |o| Box::pin(reading::several(o))),
    case("many_messages_read_back_the_same", |o| Box::pin(reading::many(o))),
    case("first_message_makes_both_members", |o| Box::pin(cursors::both_members(o))),
    case("strangers_have_no_standing", |o| Box::pin(cursors::strangers(o))),
    case("a_standing_tells_the_newest_message", |o| Box::pin(cursors::newest_message(o))),
    case("standings_come_in_pages_by_id", |o| Box::pin(cursors::standings_page(o))),
    case("cursors_only_move_forward", |o| Box::pin(cursors::only_forward(o))),
    case("cursor_never_beyond_visible_max", |o| Box::pin(cursors::never_beyond(o))),
    case("read_moves_delivered", |o| Box::pin(cursors::read_moves_delivered(o))),
    case("delivered_does_not_move_read", |o| Box::pin(cursors::delivered_alone(o))),
    case("own_messages_never_count_as_unread", |o| Box::pin(cursors::own_messages(o))),
    case("an_answer_does_not_deliver_what_came_before", |o| Box::pin(cursors::an_answer(o))),
    case("a_duplicate_moves_no_cursor", |o| Box::pin(cursors::duplicate_moves_nothing(o))),
    case("quiet_messages_never_count_as_unread", |o| Box::pin(marks::quiet(o))),
    case("quiet_messages_are_counted_in_any_range", |o| Box::pin(marks::quiet_ranges(o))),
    case("a_message_finds_those_it_speaks_to", |o| Box::pin(marks::mentions(o))),
    case("settings_change_in_what_is_named", |o| Box::pin(marks::settings(o))),
    case("settings_before_the_first_message_stay", |o| {
        Box::pin(marks::settings_before_first_message(o))
    }),
    case("settings_before_the_first_message_are_only_ones_own", |o| {
        Box::pin(marks::settings_are_ones_own(o))
    }),
    case("settings_and_the_first_message_may_race", |o| Box::pin(marks::settings_race(o))),
    case("somebody_was_last_seen", |o| Box::pin(marks::last_seen(o))),
    case("a_group_begins_with_its_people", |o| Box::pin(groups::begins(o))),
    case("members_come_in_pages_by_id", |o| Box::pin(groups::pages(o))),
    case("a_groups_cursors_are_read_together", |o| Box::pin(groups::cursors(o))),
    case("groups_come_in_pages_by_id", |o| Box::pin(listings::groups(o))),
    case("a_member_is_seen_as_they_like", |o| Box::pin(groups::profiles(o))),
    case("a_code_leads_to_one_group", |o| Box::pin(groups::codes(o))),
    case("a_wish_to_join_waits_until_it_is_settled", |o| Box::pin(groups::wishes(o))),
    case("a_refused_act_changes_nothing", |o| Box::pin(groups::refused(o))),
    case("an_act_without_effect_writes_nothing", |o| Box::pin(groups::without_effect(o))),
    case("only_who_may_speak_is_stored", |o| Box::pin(groups::may_speak(o))),
    case("a_mute_outlasts_leaving", |o| Box::pin(groups::mutes_last(o))),
    case("people_know_whom_they_share_a_conversation_with", |o| {
        Box::pin(groups::share_conversation(o))
    }),
    case("a_retry_after_a_kick_is_a_duplicate", |o| Box::pin(groups::retry_after_kick(o))),
    case("of_two_transfers_one_wins", |o| Box::pin(groups::two_transfers(o))),
    case("the_owner_cannot_leave_even_at_once", |o| Box::pin(groups::last_owner(o))),
    case("parallel_joins_never_overfill_a_group", |o| Box::pin(groups::never_overfull(o))),
    case("an_admin_recalls_what_members_said", |o| Box::pin(groups::admin_recalls(o))),
    case("a_newcomer_sees_from_the_join_on", |o| Box::pin(group_windows::newcomer(o))),
    case("a_newcomer_may_see_everything", |o| Box::pin(group_windows::whole_history(o))),
    case("a_former_member_sees_up_to_the_end", |o| Box::pin(group_windows::former_member(o))),
    case("joining_again_opens_a_new_window", |o| Box::pin(group_windows::again(o))),
    case("the_end_of_a_group_ends_every_window", |o| Box::pin(group_windows::dissolved(o))),
    case("a_kick_and_sends_agree_on_their_order", |o| Box::pin(group_windows::kick_races(o))),
    case("a_kick_never_shows_what_came_after", |o| Box::pin(group_windows::kick_and_look(o))),
    case("a_join_and_sends_agree_on_their_order", |o| Box::pin(group_windows::join_races(o))),
    case("a_user_id_is_taken_once", |o| Box::pin(accounts::taken_once(o))),
    case("an_id_is_taken_whatever_its_look", |o| Box::pin(accounts::taken_whatever_its_look(o))),
    case("of_many_that_look_alike_one_is_made", |o| Box::pin(accounts::one_look_wins(o))),
    case("a_reset_code_sets_a_password_once", |o| Box::pin(accounts::reset_once(o))),
    case("of_parallel_registrations_one_wins", |o| Box::pin(accounts::one_wins(o))),
    case("a_profile_changes_in_what_is_named", |o| Box::pin(accounts::profile_changes(o))),
    case("a_new_password_ends_all_sign_ins", |o| Box::pin(accounts::new_password(o))),
    case("changes_to_nobody_are_none", |o| Box::pin(accounts::nobody(o))),
    case("an_account_changes_as_a_whole", |o| Box::pin(account_changes::as_a_whole(o))),
    case("an_account_is_created_with_its_details", |o| {
        Box::pin(account_changes::created_with_details(o))
    }),
    case("parallel_changes_of_an_account_all_count", |o| Box::pin(account_changes::all_count(o))),
    case("a_raised_session_version_ends_all_sign_ins", |o| {
        Box::pin(account_changes::raised_version(o))
    }),
    case("a_deleted_account_is_gone_and_its_id_taken", |o| Box::pin(account_changes::deleted(o))),
    case("accounts_come_in_pages_by_id", |o| Box::pin(listings::users(o))),
    case("a_sign_in_is_kept", |o| Box::pin(logins::kept(o))),
    case("sign_ins_are_listed_newest_first", |o| Box::pin(listings::logins(o))),
    case("old_sign_ins_are_forgotten", |o| Box::pin(logins::forgotten(o))),
    case("sign_ins_are_bounded", |o| Box::pin(logins::bounded(o))),
    case("rotation_replaces_the_token", |o| Box::pin(logins::rotated(o))),
    case("reuse_of_a_token_ends_the_sign_in", |o| Box::pin(logins::reuse(o))),
    case("reuse_at_once_is_only_refused", |o| Box::pin(logins::reuse_at_once(o))),
    case("a_used_token_stays_used_when_the_clock_goes_back", |o| {
        Box::pin(logins::clock_went_back(o))
    }),
    case("a_changed_password_signs_nobody_in", |o| Box::pin(logins::version(o))),
    case("a_sign_in_begins_after_all_others", |o| Box::pin(logins::after_all_others(o))),
    case("of_parallel_rotations_one_wins", |o| Box::pin(logins::parallel_rotations(o))),
    case("expired_and_ended_tokens_are_unknown", |o| Box::pin(logins::expired_and_ended(o))),
    case("any_used_token_ends_the_sign_in", |o| Box::pin(logins::two_back(o))),
    case("end_logins_ends_what_is_picked", |o| Box::pin(logins::picked(o))),
    case("a_document_is_what_was_written", |o| Box::pin(documents::written(o))),
    case("a_change_of_documents_is_decided_on_its_guard", |o| Box::pin(documents::guarded(o))),
    case("documents_come_in_pages_by_key", |o| Box::pin(documents::pages(o))),
    case("documents_come_in_pages_backwards_too", |o| Box::pin(documents::backwards(o))),
    case("parallel_changes_with_one_guard_all_count", |o| Box::pin(documents::all_count(o))),
    case("of_parallel_changes_without_a_guard_one_wins", |o| Box::pin(documents::one_wins(o))),
    case("changes_with_crossed_guards_all_end", |o| Box::pin(documents::crossed(o))),
    case("a_closed_store_takes_nothing", |o| Box::pin(durability::closed_takes_nothing(o))),
    case("closing_twice_is_fine", |o| Box::pin(durability::closing_twice(o))),
    lasting("acked_survives_reopen", |o| Box::pin(durability::survives_reopen(o))),
    lasting("acked_survives_a_crash", |o| Box::pin(durability::survives_crash(o))),
    lasting("same_client_id_after_reopen_returns_first_seq", |o| {
        Box::pin(durability::same_client_id(o))
    }),
    lasting("seqs_go_on_after_reopen", |o| Box::pin(durability::seqs_go_on(o))),
    lasting("cursors_survive_reopen", |o| Box::pin(durability::cursors_survive(o))),
    lasting("own_messages_never_count_as_unread_after_a_crash", |o| {
        Box::pin(durability::own_messages_after_crash(o))
    }),
    lasting("a_second_crash_forgets_nothing", |o| Box::pin(durability::second_crash(o))),
    lasting("recalls_survive_a_crash", |o| Box::pin(recall::survives_crash(o))),
    lasting("groups_survive_a_crash", |o| Box::pin(group_windows::survives_crash(o))),
    lasting("marks_survive_a_crash", |o| Box::pin(marks::survive_crash(o))),
    lasting("settings_before_the_first_message_survive_a_crash", |o| {
        Box::pin(marks::settings_before_first_message_survive(o))
    }),
    lasting("accounts_survive_a_crash", |o| Box::pin(durability::accounts_survive(o))),
    lasting("details_of_accounts_survive_a_crash", |o| Box::pin(account_changes::survive_crash(o))),
    lasting("reset_codes_survive_a_crash", |o| Box::pin(accounts::resets_survive(o))),
    lasting("documents_survive_a_crash", |o| Box::pin(documents::survive_crash(o))),
    lasting("ended_sign_ins_stay_ended", |o| Box::pin(durability::ended_stay_ended(o))),
];

/// Cases that run at the same time: they wait for the disk more than they work.
const AT_ONCE: usize = 4;

/// Runs cases, each on its own opener, and returns the names of those that failed. A case that
/// hangs fails after a minute. `starting` is called with each name first.
///
/// # Panics
///
/// If no runtime can be created.
pub fn run(
    cases: &[Case],
    opener: impl Fn() -> Arc<dyn Opener>,
    starting: impl Fn(&str),
) -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(AT_ONCE)
        .enable_all()
        .build()
        .expect("a runtime for the cases");
    let minute = std::time::Duration::from_mins(1);
    let mut failed = Vec::new();
    for some in cases.chunks(AT_ONCE) {
        let started: Vec<_> = some
            .iter()
            .map(|case| {
                starting(case.name);
                // A task of its own, so that a panic fails this case alone.
                let task = (case.run)(opener());
                (case.name, runtime.spawn(async move { tokio::time::timeout(minute, task).await }))
            })
            .collect();
        for (name, task) in started {
            if !matches!(runtime.block_on(task), Ok(Ok(()))) {
                failed.push(name);
            }
        }
    }
    failed
}
