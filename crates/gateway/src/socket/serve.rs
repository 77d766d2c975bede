//! Serves one upgraded socket: handshake, registration, session, close.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use nexo_chat::Reason;
use nexo_chat::model::Caller;
use nexo_wire::dialect::{Dialect, Echo};

use crate::admission::Place;
use crate::gateway::{Gateway, SessionCount};
use crate::meters::Meters;
use crate::socket::close::SocketClose;
use crate::socket::guard::ConnectionGuard;
use crate::socket::handshake::{self, AuthenticatedSocket};
use crate::socket::session::Session;
use crate::websocket::WebSocket;

/// What the HTTP upgrade said about the client of a socket.
pub(crate) enum UpgradeAuth {
    /// Nothing: the client authenticates by its first frames.
    Missing(IpAddr),
    /// It was authenticated; the echo goes into the welcome frame.
    Authenticated(Caller, Dialect, Echo),
    /// It was refused, and asked to be told so by a frame.
    Refused(Reason, Dialect, Echo),
}

/// Serves one upgraded socket until it closes.
///
/// The parts that run once are boxed: an idle socket's future is as large as its largest part.
pub(crate) fn serve(
    gateway: Arc<Gateway>,
    socket: WebSocket,
    auth: UpgradeAuth,
    place: Arc<Place>,
) -> impl Future<Output = ()> + Send {
    let opening = Box::pin(open(gateway, socket, auth, Arc::clone(&place)));
    async move {
        let Some((mut session, guard, count)) = opening.await else { return };
        // A panic ends this socket alone, and its guard is dropped as after any other end.
        let ran = AssertUnwindSafe(session.run()).catch_unwind().await;
        let close = ran.unwrap_or_else(|_panic| session.close_after_panic());
        Meters::count_session_end(close.label);
        drop(guard); // no more events, and its device slot is free while the close is sent
        Box::pin(session.finish(close)).await;
        drop((count, place));
    }
}

/// Authenticates and registers a socket, or tells the client why it is refused.
async fn open(
    gateway: Arc<Gateway>,
    mut socket: WebSocket,
    auth: UpgradeAuth,
    place: Arc<Place>,
) -> Option<(Box<Session>, ConnectionGuard, SessionCount)> {
    let count = gateway.count_session();
    let authenticated = match auth {
        UpgradeAuth::Missing(from) => tokio::select! {
            authenticated = handshake::authenticate(&gateway, &mut socket, from) => authenticated,
            // Closed without a frame: whoever floods the server does not get to keep the descriptor until it
            // has read one.
            () = place.evicted() => {
                Meters::count_eviction();
                return None;
            }
        },
        UpgradeAuth::Authenticated(caller, dialect, echo) => {
            let now = gateway.chat.clock.now();
            let welcome = dialect.welcome(&caller, &gateway.limits, &echo, now);
            Ok(AuthenticatedSocket { caller, dialect, welcome })
        }
        UpgradeAuth::Refused(reason, dialect, echo) => {
            Err(SocketClose::auth_fail(dialect, reason, &echo, gateway.chat.clock.now()))
        }
    };
    let guard = match authenticated {
        Ok(authenticated) => {
            if !place.set_authenticated() {
                Meters::count_eviction();
                return None;
            }
            ConnectionGuard::register(&gateway, authenticated).await
        }
        Err(close) => Err(close),
    };
    match guard {
        Ok(guard) => Some((Box::new(Session::new(gateway, &guard, socket)), guard, count)),
        Err(close) => {
            Meters::count_session_end(close.label);
            close.send(&mut socket).await;
            None
        }
    }
}
