//! A person at a terminal, who waits for a program's questions, types answers, and presses Ctrl-C.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Child,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustix::termios::{LocalModes, tcgetattr};

use super::{
    env::{ProgramOutput, Terminal, TestEnv, eventually},
    http::lock,
};

/// Maximum wait for a text to be shown.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that runs on its own terminal.
pub(crate) struct Dialog {
    keyboard: File,
    /// Kept open, so that the terminal's modes can still be read after the program has ended.
    inner: File,
    shown: Arc<Mutex<String>>,
    /// The length of the shown text that `until` has passed.
    seen: usize,
    child: Child,
}

impl Dialog {
    /// Starts a program as the terminal's foreground process, which Ctrl-C ends.
    pub(crate) fn start(env: &TestEnv, program: &str, args: &[&str]) -> Self {
        let Terminal { outer, inner } = Terminal::open();
        let terminal = Terminal { outer: outer.try_clone().unwrap(), inner: inner.try_clone().unwrap() };
        let mut command = env.command("setsid", &[&["--ctty", "--wait", program], args].concat());
        command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
        let child = command.spawn().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (growing, mut screen) = (Arc::clone(&shown), outer.try_clone().unwrap());
        // The thread ends once nobody holds the terminal open.
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                lock(&growing).push_str(&String::from_utf8_lossy(&bytes[..n]).replace("\r\n", "\n"));
            }
        });
        Self { keyboard: outer, inner, shown, seen: 0, child }
    }

    /// Everything shown so far.
    pub(crate) fn shown(&self) -> String {
        lock(&self.shown).clone()
    }

    /// Waits until this text is shown, after the text of the previous wait. Returns everything shown in between, up to its end.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        let end;
        let (shown, seen) = (Arc::clone(&self.shown), self.seen);
        let begun = std::time::Instant::now();
        loop {
            let so_far = lock(&shown).get(seen..).unwrap().to_owned();
            if let Some(at) = so_far.find(text) {
                end = seen + at + text.len();
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{text:?} was never shown after {so_far}");
            thread::sleep(Duration::from_millis(10));
        }
        let part = self.shown().get(self.seen..end).unwrap().to_owned();
        self.seen = end;
        part
    }

    /// Types a line.
    pub(crate) fn say(&mut self, line: &str) -> &mut Self {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
        self
    }

    /// Waits for a question and answers it.
    #[track_caller]
    pub(crate) fn answer(&mut self, question: &str, line: &str) -> String {
        let before = self.until(question);
        self.say(line);
        before
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        self.keyboard.write_all(b"\x03").unwrap();
    }

    /// Presses Ctrl-D.
    pub(crate) fn keyboard_end(&mut self) {
        self.keyboard.write_all(b"\x04").unwrap();
    }

    /// Returns whether the terminal shows typed text.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.inner).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Waits until the program ends.
    pub(crate) fn end(mut self) -> ProgramOutput {
        let status = self.child.wait().unwrap();
        // The program's last output has been read once the text no longer grows.
        let (mut before, mut now) = (usize::MAX, 0);
        eventually("the terminal is read to its end", || {
            (before, now) = (now, self.shown().len());
            before == now
        });
        ProgramOutput {
            command: String::new(),
            code: status.code().unwrap_or(-1),
            stdout: self.shown(),
            stderr: String::new(),
        }
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
