//! Registers an authenticated socket, and unregisters it when the guard is dropped, however the
//! session ends.

use std::sync::Arc;

use nexo_chat::model::Caller;
use nexo_chat::{Reason, devices};
use nexo_wire::dialect::Echo;

use crate::gateway::Gateway;
use crate::meters::Meters;
use crate::socket::close::SocketClose;
use crate::socket::connection::Connection;
use crate::socket::handshake::AuthenticatedSocket;
use crate::socket::outbox::Outbox;

pub(crate) struct ConnectionGuard {
    gateway: Arc<Gateway>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) caller: Caller,
}

impl ConnectionGuard {
    /// Registers a socket for events and claims its device slot, or returns why it is refused.
    pub(crate) async fn register(
        gateway: &Arc<Gateway>,
        authenticated: AuthenticatedSocket,
    ) -> Result<Self, SocketClose> {
        let AuthenticatedSocket { mut caller, dialect, welcome } = authenticated;
        let options = &gateway.options;
        let id = gateway.next_connection_id();
        caller.connection = Some(id);
        let outbox = Outbox::new(options.outbox_low_bytes, options.outbox_high_bytes);
        let ticks = gateway.chat.clock.ticks();
        let connection = Arc::new(Connection::new(id, &caller, dialect, outbox, ticks));
        let guard = Self {
            gateway: Arc::clone(gateway),
            connection: Arc::clone(&connection),
            caller: caller.clone(),
        };
        // Registered before the device check: a sign-out between the two then finds the socket.
        gateway.fanout.connections.add(Arc::clone(&connection));
        let entered = match devices::connect(&gateway.chat, &caller, id).await {
            Ok(()) => gateway.fanout.subscriptions.subscribe_all(&gateway.chat, &connection).await,
            Err(error) => Err(error),
        };
        if let Err(error) = entered {
            Meters::count_refusal(dialect.name(), error.reason());
            let now = gateway.chat.clock.now();
            return Err(SocketClose::auth_fail(dialect, error.reason(), &Echo::default(), now));
        }
        if gateway.is_draining() {
            connection.close(Reason::ShuttingDown);
        }
        if let Some(welcome) = welcome {
            connection.outbox.push_front(welcome.into());
        }
        Ok(guard)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.gateway.fanout.connections.remove(&self.connection.user, self.connection.id);
        self.gateway.fanout.subscriptions.remove_connection(&self.connection);
        devices::disconnect(&self.gateway.chat, &self.caller, self.connection.id);
    }
}
