//! Copying bytes between two streams in both directions, with limits.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Read timeout, so that a silent stream is checked for the stop flag and the limits.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Maximum duration of one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Size of the copy buffer, in bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// Time limits of a connection.
#[derive(Debug, Clone)]
pub(crate) struct RelayLimits {
    /// Time until the whole head of a request has arrived.
    pub(super) head: Duration,
    /// Time without a byte in either direction.
    pub(super) idle: Duration,
    /// Total time.
    pub(super) total: Duration,
    /// Set when the proxy stops.
    pub(super) stop: Arc<AtomicBool>,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(5 * 60),
            total: Duration::from_secs(60 * 60),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// A TCP or Unix socket connection.
pub(crate) trait Stream: Read + Write + Send + Sized + 'static {
    fn duplicate(&self) -> io::Result<Self>;
    fn shut_down(&self, how: Shutdown);
    fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()>;
}

macro_rules! stream {
    ($kind:ty) => {
        impl Stream for $kind {
            fn duplicate(&self) -> io::Result<Self> {
                self.try_clone()
            }
            fn shut_down(&self, how: Shutdown) {
                // The connection may already be closed.
                self.shutdown(how).ok();
            }
            fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(read))?;
                self.set_write_timeout(Some(write))
            }
        }
    };
}
stream!(TcpStream);
stream!(UnixStream);

/// Copies in both directions until both have ended, one fails or a limit is reached. Closes both streams at the end.
pub(crate) fn copy_both_ways(a: &impl Stream, b: &impl Stream, limits: &RelayLimits) {
    if let (Ok(from_a), Ok(from_b)) = (a.duplicate(), b.duplicate()) {
        let heard = Arc::new(Mutex::new(Instant::now()));
        let (their_limits, their_heard) = (limits.clone(), Arc::clone(&heard));
        let (Ok(to_a), Ok(to_b)) = (a.duplicate(), b.duplicate()) else { return };
        let back = thread::spawn(move || copy_direction(from_b, to_a, &their_limits, &their_heard));
        copy_direction(from_a, to_b, limits, &heard);
        back.join().ok();
    }
    a.shut_down(Shutdown::Both);
    b.shut_down(Shutdown::Both);
}

/// Copies from `from` to `to` only, closes `from` and returns `to`.
pub(super) fn copy_one_way<S: Stream>(mut from: impl Stream, mut to: S, limits: &RelayLimits) -> S {
    // An error ends the copy like a regular end.
    copy_until_end(&mut from, &mut to, limits, &Mutex::new(Instant::now())).ok();
    from.shut_down(Shutdown::Both);
    to
}

/// Copies one direction. A regular end closes only the writing side, so that the other direction can go on; an error closes both streams.
fn copy_direction(mut from: impl Stream, mut to: impl Stream, limits: &RelayLimits, heard: &Mutex<Instant>) {
    let how = copy_until_end(&mut from, &mut to, limits, heard);
    let is_over = how.is_err();
    to.shut_down(if is_over { Shutdown::Both } else { Shutdown::Write });
    if is_over {
        from.shut_down(Shutdown::Both);
    }
}

fn copy_until_end(
    from: &mut impl Stream,
    to: &mut impl Stream,
    limits: &RelayLimits,
    heard: &Mutex<Instant>,
) -> io::Result<()> {
    from.set_timeouts(LOOK_EVERY, WRITE_TIMEOUT)?;
    to.set_timeouts(LOOK_EVERY, WRITE_TIMEOUT)?;
    let last = || *heard.lock().unwrap_or_else(PoisonError::into_inner);
    let (begun, mut buffer) = (Instant::now(), vec![0; BUFFER_BYTES]);
    loop {
        if limits.stop.load(Ordering::SeqCst) || begun.elapsed() > limits.total || last().elapsed() > limits.idle {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(buffer.get(..count).unwrap_or_default())?;
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
}
