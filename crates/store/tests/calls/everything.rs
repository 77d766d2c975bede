//! Everything a reader can read, as text.

use std::fmt::Write;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, LoginId, MessageId, Seq};
use nexo_chat::membership::JoinCode;
use nexo_chat::store::{Collection, DocumentPage, Limit, Order, Store};

use super::{PEOPLE, client_id, group_id, look, pair, user};

/// Returns the result of every read about every user, one per line.
pub(crate) async fn everything(store: &Arc<dyn Store>) -> String {
    let mut text = String::new();
    for n in 0..PEOPLE.len() {
        let who = user(n);
        writeln!(text, "{who} {:?}", store.user(&who).await.unwrap()).unwrap();
        writeln!(text, "{who} {:?}", store.last_seen(&who).await.unwrap()).unwrap();
        writeln!(text, "{who} {:?}", store.user_by_folded_id(&who.folded()).await.unwrap())
            .unwrap();
        writeln!(text, "{who} {:?}", store.reset_code(&who).await.unwrap()).unwrap();
        writeln!(text, "{who} {:?}", store.logins(&who).await.unwrap()).unwrap();
        let standings = store.standings(&who, None, usize::MAX).await.unwrap();
        for standing in &standings {
            writeln!(text, "{who} {standing:?} {}", standing.unread()).unwrap();
        }
        let others = (0..PEOPLE.len()).map(user).collect();
        writeln!(text, "{who} {:?}", store.share_conversation(&who, others).await.unwrap())
            .unwrap();
        writeln!(text, "{who} {}", look(store, &who).await).unwrap();
        for id in 0..20 {
            let id = MessageId::of(&who, &client_id(id));
            writeln!(text, "{:?}", store.message(id).await.unwrap()).unwrap();
        }
        for m in 0..=n {
            text += &conversation(store, &pair(n, m)).await;
        }
    }
    writeln!(text, "{:?}", store.users(None, usize::MAX).await.unwrap()).unwrap();
    writeln!(text, "{:?}", store.groups(None, usize::MAX).await.unwrap()).unwrap();
    for collection in Collection::ALL {
        let page = DocumentPage::first(collection, usize::MAX);
        writeln!(text, "{collection:?} {:?}", store.documents(page).await.unwrap()).unwrap();
    }
    for n in 0..60 {
        writeln!(text, "{:?}", store.login(LoginId([n; 16])).await.unwrap()).unwrap();
        let code = JoinCode::random([n; 8]);
        writeln!(text, "{code:?} {:?}", store.group_by_code(&code).await.unwrap()).unwrap();
    }
    writeln!(text, "{:?}", store.group(&group_id()).await.unwrap()).unwrap();
    text
}

/// Returns everything in a conversation, and every user's marks in it.
async fn conversation(store: &Arc<dyn Store>, id: &ConversationId) -> String {
    let mut text = String::new();
    let all = || Seq::ZERO..=Seq(u64::MAX);
    for order in [Order::Ascending, Order::Descending] {
        let messages = store.messages(id, all(), Limit::of(1000), order).await.unwrap().messages;
        writeln!(text, "{messages:?}").unwrap();
    }
    writeln!(text, "{:?}", store.changes(id, Seq::ZERO, 1000).await.unwrap()).unwrap();
    for who in (0..PEOPLE.len()).map(user) {
        let mentions = store.mentions(&who, id, all(), 1000).await.unwrap();
        writeln!(text, "{who} {id} {mentions:?}").unwrap();
        for end in 0..30 {
            let count = store.sent_without_read(&who, id, Seq::ZERO..=Seq(end)).await.unwrap();
            write!(text, " {count}").unwrap();
        }
    }
    text
}
