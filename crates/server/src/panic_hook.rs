//! Logs and counts panics. A panic ends one request or one socket; the process goes on.

use std::any::Any;
use std::panic::PanicHookInfo;

use metrics::counter;

/// Replaces the standard hook, which would write text into a JSON log.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(log));
}

fn log(panic: &PanicHookInfo<'_>) {
    counter!("nexo_panics_total").increment(1);
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    tracing::error!(
        target: "nexo::panic",
        location,
        thread = thread.name(),
        message = shown_message(panic.payload(), cfg!(debug_assertions)),
        "a bug: please report it"
    );
}

/// The message of a panic, if it is a constant of the program. One that was put together may hold what a user wrote:
/// slicing a text in the wrong place panics with the text. Developers see it anyway.
fn shown_message(payload: &(dyn Any + Send), is_debug_build: bool) -> &str {
    if let Some(constant) = payload.downcast_ref::<&'static str>() {
        return constant;
    }
    let formatted = payload.downcast_ref::<String>();
    formatted
        .filter(|_| is_debug_build)
        .map_or("(not shown: it may hold user data)", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_wrote_is_not_shown() {
        let text = String::from("byte index 1 is not a char boundary of `é, my secret`");
        assert_eq!(shown_message(&"an invariant is broken", false), "an invariant is broken");
        assert_eq!(shown_message(&text, false), "(not shown: it may hold user data)");
        assert_eq!(shown_message(&text, true), text);
    }
}
