//! What runs on an actor's thread, and how it ends.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Why a thread is unwound without anything being wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwind {
    /// The simulation has failed elsewhere.
    Over,
    /// The process it runs in was killed: host and incarnation.
    Killed(usize, u64),
}

/// The actor on this thread.
pub fn current() -> Option<usize> {
    CURRENT.get()
}

/// Plays an actor to its end. What failed, if anything did.
pub fn play(number: usize, act: impl FnOnce()) -> Option<String> {
    quiet_panics();
    CURRENT.set(Some(number));
    let outcome = catch_unwind(AssertUnwindSafe(act));
    CURRENT.set(None);
    match outcome {
        Ok(()) => None,
        Err(cause) => match unwound(&*cause) {
            Some(_) => None,
            None => Some(LAST_PANIC.take()),
        },
    }
}

/// The reason behind a caught unwinding; none for a real panic.
pub fn unwound(cause: &(dyn Any + Send)) -> Option<Unwind> {
    cause.downcast_ref::<Unwind>().copied()
}

/// An actor's panic is the outcome of a run and told there, not on standard error.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if current().is_none() {
                return usual(info);
            }
            let message = info.payload_as_str().unwrap_or("panicked");
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            LAST_PANIC.set(format!("{message} ({place})"));
        }));
    });
}
