//! Handles Ctrl-C. While a wake works, the first one pauses the terminal's work, as /stop does for a chat: the row
//! outlives this process until a person resumes. The second one ends the chat. At the prompt, the editor reads Ctrl-C
//! as a key.

use std::{
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::watch;

use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::stop;
use reveille_store::{Order, wake_lock};

use super::{ChatInput, complain};

/// The exit code that shells use for SIGTERM.
const EXIT_TERMINATED: i32 = 143;

/// Handles signals while a chat is open.
pub(super) struct Interrupts {
    config: Config,
    input: ChatInput,
    is_working: AtomicBool,
    presses: AtomicUsize,
    is_leaving: AtomicBool,
    /// Held while an order is written, so the work can't end before.
    ordering: Mutex<()>,
    /// The original state of the terminal, which the line editor changes.
    terminal: Mutex<Option<Termios>>,
}

/// Proof that a wake has started.
pub(super) struct Began(());

impl Interrupts {
    pub(super) fn new(config: &Config, input: ChatInput) -> Self {
        let terminal = if input == ChatInput::Terminal { tcgetattr(io::stdin()).ok() } else { None };
        Self {
            config: config.clone(),
            input,
            is_working: AtomicBool::new(false),
            presses: AtomicUsize::new(0),
            is_leaving: AtomicBool::new(false),
            ordering: Mutex::new(()),
            terminal: Mutex::new(terminal),
        }
    }

    /// Starts treating Ctrl-C as a pause.
    pub(super) fn begin(&self) -> Began {
        self.presses.store(0, Ordering::SeqCst);
        self.is_working.store(true, Ordering::SeqCst);
        Began(())
    }

    /// Stops treating Ctrl-C as a pause. Returns the number of presses.
    pub(super) fn end(&self, _: Began) -> usize {
        let ordered = self.ordering.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_working.store(false, Ordering::SeqCst);
        drop(ordered);
        self.presses.load(Ordering::SeqCst)
    }

    /// Returns `true` if Ctrl-C was pressed during the last work.
    pub(super) fn was_pressed(&self) -> bool {
        self.presses.load(Ordering::SeqCst) > 0
    }

    /// Returns `true` if the chat should end.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// Listens for signals in a thread. `stop` ends the working wake.
    pub(super) fn listen(self: std::sync::Arc<Self>, stop: watch::Sender<bool>) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = super::super::build_runtime()?;
        let within = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        drop(within);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => self.on_interrupt(&stop),
                        _ = terminate.recv() => self.on_end(&stop),
                        _ = hang_up.recv() => self.on_end(&stop),
                    }
                }
            });
        })?;
        Ok(())
    }

    fn on_interrupt(&self, stop: &watch::Sender<bool>) {
        if self.input == ChatInput::Pipe {
            stop.send(true).ok();
            return;
        }
        let _ordering = self.ordering.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_working.load(Ordering::SeqCst) {
            return;
        }
        if self.presses.fetch_add(1, Ordering::SeqCst) > 0 {
            self.is_leaving.store(true, Ordering::SeqCst);
            stop.send(true).ok();
            return;
        }
        complain("Pausing before the next step… Press Ctrl-C again to leave.");
        let ordered = cycle::open_store(&self.config).and_then(|mut store| {
            Ok(store.inbox_mut().carry_out_order(&Order::Stop { is_owners: false }, self.config.clock().now())?)
        });
        if let Err(error) = ordered {
            complain(&format!("I can't pause ({error}), so this chat ends after the current step."));
            self.is_leaving.store(true, Ordering::SeqCst);
            stop.send(true).ok();
            return;
        }
        // End programs that block the wake; leave a wake for another chat alone.
        let lock = self.config.lock_path();
        if wake_lock::read_holder(&lock).is_some_and(|holder| holder.chat == Some(ChatRef::TERMINAL)) {
            std::thread::spawn(move || stop::end_children(&lock));
        }
    }

    /// Handles SIGTERM or the loss of the terminal. At the prompt no work is in progress, and this process has to exit
    /// by itself.
    fn on_end(&self, stop: &watch::Sender<bool>) {
        self.is_leaving.store(true, Ordering::SeqCst);
        stop.send(true).ok();
        if self.input == ChatInput::Terminal && !self.is_working.load(Ordering::SeqCst) {
            if let Some(terminal) = self.terminal.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
                tcsetattr(io::stdin(), OptionalActions::Now, terminal).ok();
            }
            // The main thread waits for a key at the prompt.
            std::process::exit(EXIT_TERMINATED);
        }
    }
}
