//! The hot path allocates nothing: point queries and simple writes on connections that are bound, through the session alone and
//! through a worker's loop. An allocator that counts, for the threads that ask for it, is this binary's own.

#[path = "../bench/loopback.rs"]
mod loopback;
#[path = "../bench/pair.rs"]
mod pair;
#[path = "../bench/script.rs"]
mod script;

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loopback::Loopback;
use pair::Pair;
use script::Form;

/// Statements that are counted, after some of each form that may still make room.
const STATEMENTS: usize = 10_000;
const WARM_UP: usize = 100;

#[test]
fn a_session_allocates_nothing_for_a_statement() {
    static COUNTER: Counter = Counter::new();
    COUNTER.watch_this_thread();
    let mut pair = Pair::bound();
    for form in Form::ALL {
        let (command, reply) = (form.command(), form.reply());
        let role = usize::from(form.is_read());
        for _ in 0..WARM_UP {
            pair.exchange(&command, &reply);
        }
        let before = pair.answered[role];
        COUNTER.arm(true);
        for _ in 0..STATEMENTS {
            pair.exchange(&command, &reply);
        }
        COUNTER.arm(false);
        assert_eq!(pair.to_client, reply, "{}", form.name());
        assert_eq!(pair.answered[role] - before, STATEMENTS as u64);
        COUNTER.assert_none(form.name());
    }
}

#[test]
fn a_worker_allocates_nothing_for_a_statement() {
    static COUNTER: Counter = Counter::new();
    let loopback = Loopback::start(|| COUNTER.watch_this_thread());
    let mut client = loopback.client();
    let script = Form::ALL.map(|form| (form.command(), form.reply()));
    for (command, reply) in script.iter().cycle().take(WARM_UP) {
        client.exchange(command, reply);
    }
    let before = loopback.answered();
    COUNTER.arm(true);
    for (command, reply) in script.iter().cycle().take(STATEMENTS) {
        client.exchange(command, reply);
    }
    COUNTER.arm(false);
    // Half of them are reads. The last answer is counted after it was sent.
    let after = loopback.answered();
    for (before, after) in before.into_iter().zip(after) {
        assert!((after - before).abs_diff(STATEMENTS as u64 / 2) <= 1);
    }
    COUNTER.assert_none("four forms in turn");
    // That it is the worker's thread which is watched shows a new client, who does need memory.
    COUNTER.arm(true);
    drop(loopback.client());
    COUNTER.arm(false);
    assert!(COUNTER.count.load(Ordering::SeqCst) > 0);
}

#[test]
fn the_counter_counts() {
    static COUNTER: Counter = Counter::new();
    COUNTER.watch_this_thread();
    let not_counted = std::hint::black_box(vec![1_u8]);
    COUNTER.arm(true);
    let mut counted = std::hint::black_box(vec![1_u8]);
    counted.reserve_exact(1000);
    let also_counted = std::hint::black_box(vec![0_u8; 10]);
    COUNTER.arm(false);
    drop((not_counted, counted, also_counted));
    assert_eq!(COUNTER.count.load(Ordering::Relaxed), 3);
    let trace = COUNTER.first.lock().expect("not poisoned").take();
    assert!(trace.is_some_and(|trace| trace.contains("the_counter_counts")));
}

/// Allocations of the threads that it watches while it is armed.
struct Counter {
    armed: AtomicBool,
    count: AtomicU64,
    /// Where the first came from.
    first: Mutex<Option<String>>,
}

impl Counter {
    const fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
            count: AtomicU64::new(0),
            first: Mutex::new(None),
        }
    }

    fn watch_this_thread(&'static self) {
        WATCHED_BY.set(Some(self));
    }

    fn arm(&self, armed: bool) {
        self.armed.store(armed, Ordering::SeqCst);
    }

    fn assert_none(&self, what: &str) {
        let count = self.count.load(Ordering::SeqCst);
        if count > 0 {
            let first = self.first.lock().expect("not poisoned").take();
            panic!(
                "{what}: {count} allocations in {STATEMENTS} statements, the first here:\n{}",
                first.unwrap_or_default()
            );
        }
    }

    fn note(&'static self) {
        if !self.armed.load(Ordering::SeqCst) || self.count.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        // Telling where allocates too.
        WATCHED_BY.set(None);
        let trace = std::backtrace::Backtrace::force_capture().to_string();
        if let Ok(mut first) = self.first.lock() {
            *first = Some(trace);
        }
        WATCHED_BY.set(Some(self));
    }
}

thread_local! {
    static WATCHED_BY: Cell<Option<&'static Counter>> = const { Cell::new(None) };
}

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// The system's allocator with the counter before it.
#[expect(unsafe_code, reason = "the interface of allocators is unsafe")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};

    pub(super) struct Counting;

    // SAFETY: every call goes to the system's allocator as it is.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            note();
            // SAFETY: the caller's promises are those that the system's allocator asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            note();
            // SAFETY: as above.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            note();
            // SAFETY: as above; the block came from the system's allocator.
            unsafe { System.realloc(block, layout, size) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as above.
            unsafe { System.dealloc(block, layout) }
        }
    }

    fn note() {
        // A thread that ends has no such value any more.
        if let Ok(Some(counter)) = super::WATCHED_BY.try_with(std::cell::Cell::get) {
            counter.note();
        }
    }
}
