//! A real browser: Debian's Chromium without a window, driven over a pipe (the DevTools protocol: JSON objects, each ending with NUL).

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use base64::Engine as _;
use serde_json::{Value, json};

use super::env::variable;

/// Maximum wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser with one tab, and a profile that is deleted with it.
pub(crate) struct Chromium {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    id: u64,
    /// The errors of pages since the last call of `problems`.
    problems: Vec<String>,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts the browser. Without one, prints which test isn't run and returns `None`. The program that `REVEILLE_TEST_CHROMIUM` names
    /// must exist.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts it with further arguments.
    pub(crate) fn start_with(arguments: &[String]) -> Option<Self> {
        let promised = variable("REVEILLE_TEST_CHROMIUM").filter(|program| !program.is_empty());
        let program = promised.clone().unwrap_or_else(|| "/usr/bin/chromium".to_owned());
        if !Path::new(&program).exists() {
            assert!(promised.is_none(), "{program} isn't there, which REVEILLE_TEST_CHROMIUM names");
            eprintln!(
                "NOT RUN: the page in a real browser: {program} isn't installed, and REVEILLE_TEST_CHROMIUM names none"
            );
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        // The browser reads from descriptor 3 and writes to descriptor 4.
        #[expect(clippy::disallowed_methods, reason = "the browser is a program of the system's")]
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", &program]).args([
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
        ]);
        command.args(arguments);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command.env("HOME", profile.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let (session, problems, events) = (String::new(), Vec::new(), Vec::new());
        let mut browser = Self { child, input, messages, session, id: 0, problems, events, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Calls a method and waits for its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let mut message = json!({"id": self.id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        write!(self.input, "{message}\0").unwrap();
        loop {
            let message = self.next();
            if message["id"] == self.id {
                assert!(message.get("error").is_none(), "{method} {params}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("the browser sends a message");
        let params = &message["params"];
        let problem = match message["method"].as_str().unwrap_or_default() {
            "Log.entryAdded" if params["entry"]["level"] == "error" => Some(&params["entry"]),
            "Runtime.exceptionThrown" => Some(&params["exceptionDetails"]),
            "Runtime.consoleAPICalled" if params["type"] == "error" => Some(&params["args"]),
            _ => None,
        };
        self.problems.extend(problem.map(Value::to_string));
        if message.get("method").is_some() {
            self.events.push(message.clone());
        }
        message
    }

    /// Waits for an event, which may have arrived since the events were last cleared.
    fn await_event(&mut self, method: &str) {
        while !self.events.iter().any(|event| event["method"] == method) {
            self.next();
        }
        self.events.clear();
    }

    /// Goes to an address and waits until the page is loaded.
    #[track_caller]
    pub(crate) fn go(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": url}));
        self.await_event("Page.loadEventFired");
    }

    /// Evaluates an expression; waits for the result if it is a promise.
    #[track_caller]
    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&mut self, script: &str) {
        let begun = Instant::now();
        // While the browser leaves a page, nothing can be evaluated on it.
        let guarded = format!("(() => {{ try {{ return !!({script}) }} catch {{ return false }} }})()");
        while self.eval(&guarded) != true {
            let shown = self.eval("document.body?.innerText");
            assert!(begun.elapsed() < PATIENCE, "{script} never became true: {shown}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Types text into the focused element.
    pub(crate) fn types(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Presses a key, given by its name and number; with Ctrl if `modifiers` is 2.
    pub(crate) fn press(&mut self, key: &str, code: u32, modifiers: u32) {
        let text = if key == "Enter" && modifiers == 0 { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let pressed = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
                "modifiers": modifiers, "text": if kind == "keyDown" { text } else { "" }});
            self.call("Input.dispatchKeyEvent", &pressed);
        }
    }

    /// Sets the window's width in pixels, and the theme.
    pub(crate) fn look(&mut self, width: u32, theme: &str) {
        let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// Takes a screenshot of the page, from its top down to this height in pixels.
    pub(crate) fn picture(&mut self, path: &Path, max_height: f64) {
        let size = self.call("Page.getLayoutMetrics", &json!({}))["cssContentSize"].clone();
        let clip = json!({"x": 0, "y": 0, "width": size["width"],
            "height": size["height"].as_f64().unwrap().min(max_height), "scale": 1});
        let shot = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        self.shoot(path, &shot);
    }

    /// Takes a screenshot of the visible part of the page.
    pub(crate) fn view(&mut self, path: &Path) {
        self.shoot(path, &json!({"format": "png"}));
    }

    fn shoot(&mut self, path: &Path, shot: &Value) {
        let data = self.call("Page.captureScreenshot", shot)["data"].as_str().unwrap().to_owned();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap();
    }

    /// Takes the errors of pages since the last call: errors of scripts, violations of the content policy, and failed loads.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        // Once this call's result is here, so are all events before it.
        self.eval("0");
        std::mem::take(&mut self.problems)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
