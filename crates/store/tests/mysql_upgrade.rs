//! Tables of an earlier version are migrated to the newest one, also by a start that is
//! interrupted.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::sync::Arc;

use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{
    AccountDetails, AccountStatus, Content, Draft, HiddenChange, HiddenMark, Profile, Settings,
    SettingsChange, User,
};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{AccountStore, ConversationStore, MessageStore, Store};
use nexo_sim::MariaDb;
use nexo_store::{MySql, MySqlOptions};

/// Turns the tables back to version 2.
const BACK_TO_2: &str = "\
    ALTER TABLE members DROP COLUMN hidden_seq, DROP COLUMN hidden_since, DROP COLUMN extra; \
    ALTER TABLE chat_groups DROP COLUMN group_type; \
    ALTER TABLE group_members DROP COLUMN nickname, DROP COLUMN avatar, DROP COLUMN extra; \
    DELETE FROM schema_versions WHERE version > 2";

/// Turns the tables back to version 4.
const BACK_TO_4: &str = "\
    ALTER TABLE users DROP COLUMN details; \
    ALTER TABLE logins DROP COLUMN details; \
    DROP TABLE documents; \
    DELETE FROM schema_versions WHERE version > 4";

/// As if the start had ended after the last statement, before it was recorded.
const NOT_NOTED: &str = "DELETE FROM schema_versions WHERE version > 2";

async fn open(url: &str) -> Arc<MySql> {
    MySql::open(&MySqlOptions::new(url.to_owned())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn older_tables_are_brought_up_to_date_and_keep_what_they_have() {
    let url = MariaDb::shared().fresh_database();
    let database = url.rsplit('/').next().unwrap();
    let (alice, bob) = (UserId::parse("alice").unwrap(), UserId::parse("bob").unwrap());
    let conversation = ConversationId::private(&alice, &bob);
    let store = open(&url).await;
    let draft = Draft {
        conversation: conversation.clone(),
        sender: alice.clone(),
        client_id: ClientMsgId::parse("1").unwrap(),
        content: Content::text("one"),
        cleaned: None,
        sent_at: Millis(1),
        origin: None,
        marks_read: true,
    };
    store.append(Permit::for_tests(), draft).await.unwrap();
    let pin = SettingsChange { pinned: Some(true), ..SettingsChange::default() };
    store.update_settings(&bob, &conversation, pin).await.unwrap();
    store.close().await.unwrap();
    let hidden = HiddenMark { seq: Seq(1), since: Millis(0) };
    let mut expect = Settings { pinned: true, ..Settings::default() };
    for undo in [BACK_TO_2, NOT_NOTED] {
        MariaDb::shared().sql(database, undo);
        let store = open(&url).await;
        let standing = store.standing(&bob, &conversation).await.unwrap().unwrap();
        assert_eq!((standing.unread(), standing.settings), (1, expect.clone()));
        let hide = SettingsChange {
            hidden: Some(HiddenChange::Hide(hidden)),
            extra: Some("mine".into()),
            ..SettingsChange::default()
        };
        expect = Settings { hidden: Some(hidden), extra: "mine".into(), ..expect };
        let now = store.update_settings(&bob, &conversation, hide).await.unwrap();
        assert_eq!(now.as_ref(), Some(&expect));
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_accounts_have_no_details_and_can_get_some() {
    let url = MariaDb::shared().fresh_database();
    let database = url.rsplit('/').next().unwrap();
    let alice = User {
        id: UserId::parse("alice").unwrap(),
        profile: Profile::default(),
        created_at: Millis(1),
        updated_at: Millis(1),
        password_hash: "hash".into(),
        session_version: 1,
        details: AccountDetails::default(),
    };
    let store = open(&url).await;
    assert!(store.create_user(alice.clone()).await.unwrap());
    store.close().await.unwrap();
    let status = AccountStatus::Deleted { at: Millis(5) };
    let details = AccountDetails { status, ..AccountDetails::default() };
    let mut expect = alice.clone();
    for undo in [BACK_TO_4, "DELETE FROM schema_versions WHERE version > 4"] {
        MariaDb::shared().sql(database, undo);
        let store = open(&url).await;
        assert_eq!(store.user(&alice.id).await.unwrap().as_deref(), Some(&expect));
        expect.details = details.clone();
        let set = expect.clone();
        let now = store.change_account(&alice.id, Box::new(move |_| Some(set.clone()))).await;
        assert_eq!(now.unwrap().as_deref(), Some(&expect));
        store.close().await.unwrap();
    }
}
