//! A fake Bot API server on a real socket, as strict as the real one, which remembers all calls.
//!
//! It checks every request against the API, and fails the test on a request that the real server would refuse. The test can order faults;
//! an ordered fault that never occurred fails the test too.

use std::{
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::telegram_server::{Shared, State};

/// The token that the server accepts. Its secret half must never be shown.
pub(crate) const TOKEN: &str = "99:AAsecretSecretSecretSecret-Secret_xyz";

/// The time at which the server's messages are sent, by its own clock.
pub(crate) const SENT_AT: i64 = 1_795_000_001;
/// The time at which people write, by the same clock: later, since they answer what they have read.
const SAID_AT: i64 = 1_795_000_002;

/// A fault at the next call of a method.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The call is refused with this code, and perhaps a time to wait in seconds.
    Status(u16, Option<u64>),
    /// The call is refused with this error code, description and parameters.
    Refuse(u16, &'static str, Value),
    /// The call is refused because of its formatting.
    RefuseFormatting,
    /// The connection is closed before the call is carried out.
    CloseBefore,
    /// The call is carried out, then the connection is closed without an answer; a download is cut off in the middle.
    CloseAfterTaking,
    /// The call is neither carried out nor answered until the server ends; a download stalls in the middle.
    Stall,
    /// The call is carried out and answered only after `release`.
    Held,
    /// The call is carried out, but the answer isn't valid JSON.
    Malformed,
    /// Something that isn't Telegram answers with this HTTP status.
    Foreign(u16),
}

/// A message that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentMessage {
    pub(crate) message_id: i64,
    pub(crate) chat_id: i64,
    pub(crate) thread_id: Option<i64>,
    pub(crate) reply_to: Option<i64>,
    /// The text as it was sent.
    pub(crate) text: String,
    /// What a reader sees.
    pub(crate) visible: String,
    pub(crate) html: bool,
    pub(crate) silent: bool,
    pub(crate) preview: bool,
    /// The data that the buttons under it send back.
    pub(crate) buttons: Vec<String>,
    /// The content of the attached file, whose caption is the text.
    pub(crate) file: Option<String>,
    /// True if it is a rich message, whose HTML is the text.
    pub(crate) is_rich: bool,
}

/// A draft that the server showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownDraft {
    pub(crate) chat_id: i64,
    pub(crate) number: i64,
    /// The text as it was sent.
    pub(crate) text: String,
    /// What a reader sees.
    pub(crate) visible: String,
    /// The number of messages that the chat had by then.
    pub(crate) sent: usize,
}

pub(crate) struct FakeTelegram {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl FakeTelegram {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::new());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut state = accepting.lock();
                if state.stopping {
                    break;
                }
                state.streams.push(stream.try_clone().unwrap());
                drop(state);
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.serve(&stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The drafts shown so far.
    pub(crate) fn drafts(&self) -> Vec<ShownDraft> {
        self.shared.lock().drafts.clone()
    }

    /// Queues a text from a person: private, or from a group if the chat's id is negative. Returns the update's id.
    pub(crate) fn push_text(&self, chat_id: i64, from_id: i64, text: &str) -> i64 {
        let kind = if chat_id < 0 { "supergroup" } else { "private" };
        let update_id = self.shared.lock().next_update_id;
        self.push_raw(json!({"update_id": update_id, "message": {
            "message_id": update_id - 900,
            "from": {"id": from_id, "is_bot": false, "first_name": "Ana", "language_code": "en"},
            "chat": {"id": chat_id, "type": kind, "first_name": "Ana", "title": "Home"},
            "date": SAID_AT, "text": text}}));
        update_id
    }

    /// Queues a private message from a person, with these fields besides the usual ones. Returns the update's id.
    pub(crate) fn push_message(&self, from_id: i64, fields: &Value) -> i64 {
        let update_id = self.shared.lock().next_update_id;
        let mut message = json!({"message_id": update_id - 900, "date": SAID_AT,
            "from": {"id": from_id, "is_bot": false, "first_name": "Ana", "language_code": "en"},
            "chat": {"id": from_id, "type": "private", "first_name": "Ana"}});
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.push_raw(json!({"update_id": update_id, "message": message}));
        update_id
    }

    /// Queues a press of a button: in a private chat with the bot, or in a group if the chat's id is negative.
    pub(crate) fn tap(&self, chat_id: i64, from_id: i64, message_id: i64, data: &str) {
        self.push_raw(self.tapped(chat_id, from_id, message_id, data));
    }

    /// Makes the update for a press of a button without queueing it.
    pub(crate) fn tapped(&self, chat_id: i64, from_id: i64, message_id: i64, data: &str) -> Value {
        let kind = if chat_id < 0 { "supergroup" } else { "private" };
        let update_id = self.shared.lock().next_update_id;
        self.shared.lock().taps.push(format!("tap-{update_id}"));
        json!({"update_id": update_id, "callback_query": {
            "id": format!("tap-{update_id}"), "chat_instance": "1", "data": data,
            "from": {"id": from_id, "is_bot": false, "first_name": "Ana", "language_code": "en"},
            "message": {"message_id": message_id, "date": SENT_AT, "text": "May I do this?",
                "chat": {"id": chat_id, "type": kind, "first_name": "Ana", "title": "Home"},
                "from": {"id": 99, "is_bot": true, "first_name": "Reveille", "username": "reveille_bot"}}}})
    }

    /// Stores a file under this id.
    pub(crate) fn keep_file(&self, file_id: &str, bytes: &[u8]) {
        self.shared.lock().files.insert(file_id.to_owned(), bytes.to_owned());
    }

    /// Queues an update as given; the next update's id follows its own.
    pub(crate) fn push_raw(&self, update: Value) {
        let mut state = self.shared.lock();
        state.next_update_id = update["update_id"].as_i64().unwrap() + 1;
        state.updates.push_back(update);
        self.shared.changed.notify_all();
    }

    /// Sets the id of the next update.
    pub(crate) fn number_updates_from(&self, update_id: i64) {
        self.shared.lock().next_update_id = update_id;
    }

    /// Orders a fault for the next call of `method`. Several faults occur in the order given.
    pub(crate) fn fail_next(&self, method: &str, fault: Fault) {
        self.shared.lock().faults.push((method.to_owned(), fault));
    }

    /// Ends the waiting poll without updates, as Telegram does at its timeout.
    pub(crate) fn end_poll(&self) {
        self.shared.lock().is_poll_over = true;
        self.shared.changed.notify_all();
    }

    /// Sends the updates to a webhook until it is deleted.
    pub(crate) fn set_webhook(&self, url: &str) {
        url.clone_into(&mut self.shared.lock().webhook);
    }

    /// Returns whether the updates go to a webhook.
    pub(crate) fn has_webhook(&self) -> bool {
        !self.shared.lock().webhook.is_empty()
    }

    /// Adds a message of the bot to a chat, as if an earlier bot had left it.
    pub(crate) fn add_old_message(&self, chat_id: i64, message_id: i64, text: &str) {
        self.shared.lock().standing.push(((chat_id, message_id), text.to_owned()));
    }

    pub(crate) fn sent(&self) -> Vec<SentMessage> {
        self.shared.lock().sent.clone()
    }

    /// The texts of the bot's messages as people see them now, with edits and without deleted messages.
    pub(crate) fn standing(&self) -> Vec<String> {
        self.shared.lock().standing.iter().map(|(_, text)| text.clone()).collect()
    }

    pub(crate) fn actions(&self) -> Vec<(i64, Option<i64>, String)> {
        self.shared.lock().actions.clone()
    }

    /// Releases the calls with [`Fault::Held`].
    pub(crate) fn release(&self) {
        self.shared.lock().is_released = true;
        self.shared.changed.notify_all();
    }

    /// The parameters of every valid call of a method, including those with an ordered fault.
    pub(crate) fn calls(&self, method: &str) -> Vec<Value> {
        let state = self.shared.lock();
        state.calls.iter().filter(|(called, _)| called == method).map(|(_, request)| request.clone()).collect()
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().streams.len()
    }

    /// The number of updates that aren't confirmed yet.
    pub(crate) fn unconfirmed(&self) -> usize {
        self.shared.lock().updates.len()
    }

    /// Waits until `n` messages were accepted in total. Panics after `timeout`.
    pub(crate) fn wait_for_sent(&self, n: usize, timeout: Duration) -> Vec<SentMessage> {
        self.wait_until(timeout, |state| state.sent.len() >= n);
        self.sent()
    }

    /// Waits until `method` was called `n` times in total. Panics after `timeout`.
    pub(crate) fn wait_for_calls(&self, method: &str, n: usize, timeout: Duration) {
        self.wait_until(timeout, |state| state.calls.iter().filter(|(called, _)| called == method).count() >= n);
    }

    fn wait_until(&self, timeout: Duration, enough: impl Fn(&State) -> bool) {
        let state = self.shared.lock();
        let (state, waited) = self.shared.changed.wait_timeout_while(state, timeout, |state| !enough(state)).unwrap();
        assert!(!waited.timed_out(), "waited {timeout:?}; calls: {:?}, sent: {:?}", state.calls, state.sent);
    }
}

impl Drop for FakeTelegram {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stopping = true;
        for stream in &state.streams {
            let _closed_already = stream.shutdown(Shutdown::Both);
        }
        let (violations, faults) = (state.violations.clone(), state.faults.clone());
        drop(state);
        self.shared.changed.notify_all();
        let _wakes_the_listener = TcpStream::connect(self.address);
        if !thread::panicking() {
            assert!(violations.is_empty(), "the real server would refuse: {violations:#?}");
            assert!(faults.is_empty(), "faults that were never met: {faults:?}");
        }
    }
}
