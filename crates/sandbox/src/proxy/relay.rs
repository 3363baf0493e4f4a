//! Copying bytes both ways between two streams, with bounds and an end.

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

/// How often a silent stream is looked at, for the end and the bounds.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The longest that one write may hang.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much is copied at a time.
const BUFFER_BYTES: usize = 16 << 10;

/// How long a connection may go on.
#[derive(Debug, Clone)]
pub(crate) struct RelayLimits {
    /// Until the whole head of a request is there.
    pub(super) head: Duration,
    /// Without a byte either way.
    pub(super) idle: Duration,
    /// In all.
    pub(super) total: Duration,
    /// Set when all is over.
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

/// A connection, by TCP or a Unix socket.
pub(crate) trait Stream: Read + Write + Send + Sized + 'static {
    fn again(&self) -> io::Result<Self>;
    fn end(&self, how: Shutdown);
    fn bound(&self, read: Duration, write: Duration) -> io::Result<()>;
}

macro_rules! stream {
    ($kind:ty) => {
        impl Stream for $kind {
            fn again(&self) -> io::Result<Self> {
                self.try_clone()
            }
            fn end(&self, how: Shutdown) {
                // It may have ended by itself.
                self.shutdown(how).ok();
            }
            fn bound(&self, read: Duration, write: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(read))?;
                self.set_write_timeout(Some(write))
            }
        }
    };
}
stream!(TcpStream);
stream!(UnixStream);

/// Copies both ways until both have ended, one fails or a limit is reached; then both are closed.
pub(crate) fn both_ways(a: &impl Stream, b: &impl Stream, limits: &RelayLimits) {
    if let (Ok(from_a), Ok(from_b)) = (a.again(), b.again()) {
        let heard = Arc::new(Mutex::new(Instant::now()));
        let (their_limits, their_heard) = (limits.clone(), Arc::clone(&heard));
        let (Ok(to_a), Ok(to_b)) = (a.again(), b.again()) else { return };
        let back = thread::spawn(move || copy(from_b, to_a, &their_limits, &their_heard));
        copy(from_a, to_b, limits, &heard);
        back.join().ok();
    }
    a.end(Shutdown::Both);
    b.end(Shutdown::Both);
}

/// Copies what one has to say to the other, and nothing back. The one is closed then, the other given back.
pub(super) fn one_way<S: Stream>(mut from: impl Stream, mut to: S, limits: &RelayLimits) -> S {
    // However it ended, it is over.
    copy_until_end(&mut from, &mut to, limits, &Mutex::new(Instant::now())).ok();
    from.end(Shutdown::Both);
    to
}

/// Copies one way. A regular end is handed on as such, so that the other way can go on; any other ends both.
fn copy(mut from: impl Stream, mut to: impl Stream, limits: &RelayLimits, heard: &Mutex<Instant>) {
    let how = copy_until_end(&mut from, &mut to, limits, heard);
    let is_over = how.is_err();
    to.end(if is_over { Shutdown::Both } else { Shutdown::Write });
    if is_over {
        from.end(Shutdown::Both);
    }
}

fn copy_until_end(
    from: &mut impl Stream,
    to: &mut impl Stream,
    limits: &RelayLimits,
    heard: &Mutex<Instant>,
) -> io::Result<()> {
    from.bound(LOOK_EVERY, WRITE_TIMEOUT)?;
    to.bound(LOOK_EVERY, WRITE_TIMEOUT)?;
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
