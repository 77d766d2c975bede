//! Logs one line per saved message with the time each step took. Off unless the operator enables the
//! log target `nexo::perf`.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use nexo_chat::model::Message;
use tracing::Level;

const TARGET: &str = "nexo::perf";

/// When the frame of a send was read, and how long its check took, until its line is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendTimes {
    pub(crate) received_at: Instant,
    /// Microseconds; `None` if the log target is off.
    pub(crate) check_us: Option<NonZeroU32>,
}

/// Microseconds since the frame was read, or `None` if the log target is off.
pub(crate) fn check_time(received_at: Instant) -> Option<NonZeroU32> {
    if !tracing::enabled!(target: TARGET, Level::DEBUG) {
        return None;
    }
    NonZeroU32::new(u32::try_from(received_at.elapsed().as_micros()).unwrap_or(u32::MAX).max(1))
}

/// Logs a message that is durable and acknowledged: the time until it was checked and placed in the
/// order of its conversation, the time from there until it was durable, and the sum.
pub(crate) fn log_saved(message: &Message, times: SendTimes) {
    let SendTimes { received_at, check_us: Some(check_us) } = times else { return };
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (check, all) = (Duration::from_micros(check_us.get().into()), received_at.elapsed());
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
