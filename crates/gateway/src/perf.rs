//! One line per saved message with its times, for those who look for where they go. Off unless the
//! operator asks for it by the log level of its own target.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use nexo_chat::model::Message;
use tracing::Level;

/// The target that is switched on.
const TARGET: &str = "nexo::perf";

/// How many microseconds it took until now, if anybody wants to know.
pub(crate) fn placed(since: Instant) -> Option<NonZeroU32> {
    if !tracing::enabled!(target: TARGET, Level::DEBUG) {
        return None;
    }
    NonZeroU32::new(u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX).max(1))
}

/// A message that a socket sent is durable and answered: how long it took to be allowed and placed,
/// to become durable from there, and in all.
pub(crate) fn saved(message: &Message, since: Instant, placed_after_us: NonZeroU32) {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (check, all) = (Duration::from_micros(placed_after_us.get().into()), since.elapsed());
    macro_rules! line {
        ($what:literal) => {
            tracing::debug!(
                target: TARGET,
                serverMsgId = %message.id,
                conversationId = %message.conversation,
                msgSeq = message.seq.0,
                checkMs = ms(check),
                saveMs = ms(all.saturating_sub(check)),
                ackMs = ms(all),
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
