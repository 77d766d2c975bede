//! A socket that has not said who it is.

use axum::extract::ws::{Message, WebSocket};
use nexo_chat::Reason;
use nexo_chat::auth;
use nexo_chat::command::Command;
use nexo_chat::model::Caller;
use nexo_wire::typed::{self, Decoded, Echo, Inbound, Refused};

use crate::farewell::Farewell;
use crate::gateway::Gateway;
use crate::pump::what_broke;
use crate::strikes::Strikes;

/// Waits for AUTH. Only a PING is answered before.
pub(crate) async fn open(gateway: &Gateway, socket: &mut WebSocket) -> Result<Caller, Farewell> {
    let mut strikes = Strikes::default();
    loop {
        let received = socket.recv().await;
        let now = gateway.chat.clock.now();
        let ends = |reason| Err(Farewell::error(reason, &Echo::default(), now));
        let text = match received {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Binary(_))) => return ends(Reason::Unauthorized),
            Some(Err(error)) => {
                let broken = what_broke(&error);
                return Err(broken.map_or(Farewell::GONE, |it| Farewell::broken(it, now)));
            }
            Some(Ok(Message::Close(_))) | None => return Err(Farewell::GONE),
        };
        let answer = match typed::decode(&text) {
            Ok(Decoded { inbound: Inbound::Auth { token }, .. }) => {
                return auth::authenticate(&gateway.chat, &token)
                    .await
                    .map_err(|error| Farewell::auth_fail(error.reason(), now));
            }
            Ok(Decoded { inbound: Inbound::Command(Command::Ping), .. }) => typed::pong(now),
            Ok(_) => return ends(Reason::Unauthorized),
            Err(Refused { reason: Reason::MissingToken, .. }) => {
                return Err(Farewell::auth_fail(Reason::MissingToken, now));
            }
            Err(Refused { reason, echo }) if strikes.is_out(gateway.chat.clock.ticks()) => {
                return Err(Farewell::strikes(reason, &echo, now));
            }
            Err(Refused { reason, echo }) => typed::refusal(reason, &echo, now),
        };
        if socket.send(Message::Text(answer.into())).await.is_err() {
            return Err(Farewell::GONE);
        }
    }
}
