//! A socket that is let in: reachable and on every list until it is over, however it ends.

use std::sync::Arc;

use nexo_chat::model::Caller;
use nexo_chat::{Reason, devices};
use nexo_wire::dialect::Echo;

use crate::connection::Connection;
use crate::farewell::Farewell;
use crate::gateway::Gateway;
use crate::measure::Measures;
use crate::opening::Opened;
use crate::outbox::Outbox;

/// Takes the socket out of every list when it is dropped.
pub(crate) struct Present {
    gateway: Arc<Gateway>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) caller: Caller,
}

impl Present {
    /// Lets a socket in, or says why not.
    pub(crate) async fn enter(gateway: &Arc<Gateway>, opened: Opened) -> Result<Self, Farewell> {
        let Opened { mut caller, dialect, welcome } = opened;
        let options = &gateway.options;
        let id = gateway.name_connection();
        caller.connection = Some(id);
        let outbox = Outbox::new(options.outbox_low_bytes, options.outbox_high_bytes);
        let ticks = gateway.chat.clock.ticks();
        let connection = Arc::new(Connection::new(id, &caller, dialect, outbox, ticks));
        let present = Self {
            gateway: Arc::clone(gateway),
            connection: Arc::clone(&connection),
            caller: caller.clone(),
        };
        // Reachable first, then allowed in: an end that comes in between finds the socket.
        gateway.roster.add(Arc::clone(&connection));
        let entered = match devices::enter(&gateway.chat, &caller, id).await {
            Ok(()) => gateway.groups.attend(&gateway.chat, &connection).await,
            Err(error) => Err(error),
        };
        if let Err(error) = entered {
            Measures::refused(dialect.name(), error.reason());
            let now = gateway.chat.clock.now();
            return Err(Farewell::auth_fail(dialect, error.reason(), &Echo::default(), now));
        }
        if gateway.is_draining() {
            connection.end(Reason::ShuttingDown);
        }
        if let Some(welcome) = welcome {
            connection.outbox.push_first(welcome.into());
        }
        Ok(present)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.gateway.roster.remove(&self.connection.user, self.connection.id);
        self.gateway.groups.forget(&self.connection);
        devices::leave(&self.gateway.chat, &self.caller, self.connection.id);
    }
}
