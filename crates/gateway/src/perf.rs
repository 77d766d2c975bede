//! One line per saved message with its times, for those who look for where they go. Off unless the
//! operator asks for it by the log level of its own target.

use std::time::{Duration, Instant};

use nexo_chat::model::Message;
use tracing::Level;

/// The target that is switched on.
const TARGET: &str = "nexo::perf";

/// Whether anybody wants to know.
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// A message that a socket sent is durable and answered: how long it took to be allowed and placed,
/// to become durable from there, and in all.
pub(crate) fn saved(message: &Message, since: Instant, placed: Instant) {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    macro_rules! line {
        ($what:literal) => {
            tracing::debug!(
                target: TARGET,
                serverMsgId = %message.id,
                conversationId = %message.conversation,
                msgSeq = message.seq.0,
                checkMs = ms(placed.duration_since(since)),
                saveMs = ms(placed.elapsed()),
                ackMs = ms(since.elapsed()),
                $what,
            )
        };
    }
    if message.conversation.group().is_some() {
        line!("ws_perf group_chat");
    } else {
        line!("ws_perf single_chat");
    }
}
