//! Work that is repeated beside something else, until that is done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// A background thread that runs until this value is dropped.
pub(super) struct BackgroundThread {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundThread {
    /// Repeats the work at intervals. Its output is a courtesy, lost if the thread can't be started.
    pub(super) fn repeat_until_dropped(pause: Duration, mut work: impl FnMut() + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_there = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("meanwhile".to_owned()).spawn(move || {
            while !is_over_there.load(Ordering::SeqCst) {
                work();
                std::thread::park_timeout(pause);
            }
        });
        Self { is_over, thread: thread.ok() }
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
    }
}
