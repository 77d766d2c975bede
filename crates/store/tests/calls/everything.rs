//! Everything a reader can ask, written down.

use std::fmt::Write;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, LoginId, MessageId, Seq};
use nexo_chat::membership::JoinCode;
use nexo_chat::store::{Limit, Order, Store};

use super::{PEOPLE, client_id, group_id, look, pair, user};

/// Every answer to every question about everybody, one a line.
pub(crate) async fn everything(store: &Arc<dyn Store>) -> String {
    let mut told = String::new();
    for n in 0..PEOPLE.len() {
        let who = user(n);
        writeln!(told, "{who} {:?}", store.user(&who).await.unwrap()).unwrap();
        writeln!(told, "{who} {:?}", store.last_seen(&who).await.unwrap()).unwrap();
        writeln!(told, "{who} {:?}", store.holder(&who.folded()).await.unwrap()).unwrap();
        writeln!(told, "{who} {:?}", store.reset_code(&who).await.unwrap()).unwrap();
        let standings = store.standings(&who, None, usize::MAX).await.unwrap();
        for standing in &standings {
            writeln!(told, "{who} {standing:?} {}", standing.unread()).unwrap();
        }
        let others = (0..PEOPLE.len()).map(user).collect();
        writeln!(told, "{who} {:?}", store.acquainted(&who, others).await.unwrap()).unwrap();
        writeln!(told, "{who} {}", look(store, &who).await).unwrap();
        for id in 0..20 {
            let id = MessageId::of(&who, &client_id(id));
            writeln!(told, "{:?}", store.message(id).await.unwrap()).unwrap();
        }
        for m in 0..=n {
            told += &conversation(store, &pair(n, m)).await;
        }
    }
    for n in 0..60 {
        writeln!(told, "{:?}", store.login(LoginId([n; 16])).await.unwrap()).unwrap();
        let code = JoinCode::random([n; 8]);
        writeln!(told, "{code:?} {:?}", store.group_by_code(&code).await.unwrap()).unwrap();
    }
    writeln!(told, "{:?}", store.group(&group_id()).await.unwrap()).unwrap();
    told
}

/// All that is in a conversation, and everybody's marks in it.
async fn conversation(store: &Arc<dyn Store>, id: &ConversationId) -> String {
    let mut told = String::new();
    let all = || Seq::ZERO..=Seq(u64::MAX);
    for order in [Order::Ascending, Order::Descending] {
        let messages = store.messages(id, all(), Limit::of(1000), order).await.unwrap();
        writeln!(told, "{messages:?}").unwrap();
    }
    writeln!(told, "{:?}", store.changes(id, Seq::ZERO, 1000).await.unwrap()).unwrap();
    for who in (0..PEOPLE.len()).map(user) {
        let mentions = store.mentions(&who, id, all(), 1000).await.unwrap();
        writeln!(told, "{who} {id} {mentions:?}").unwrap();
        for end in 0..30 {
            let quiet = store.quiet(&who, id, Seq::ZERO..=Seq(end)).await.unwrap();
            write!(told, " {quiet}").unwrap();
        }
    }
    told
}
