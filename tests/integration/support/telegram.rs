//! A Bot API server on a real socket that is as strict as the real one and remembers what it was told.
//!
//! It checks every request against the API and fails the test on one that the real server would refuse, unless a fault
//! was ordered; a fault that was ordered and never met fails the test too.

use std::{
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::telegram_server::{Shared, State};

/// The token that the server knows. Its secret half is what must never be seen.
pub(crate) const TOKEN: &str = "99:AAsecretSecretSecretSecret-Secret_xyz";

/// When its messages were sent, by its own clock.
pub(crate) const SENT_AT: i64 = 1_795_000_001;
/// When people wrote, by the same clock: they answer what they have read.
const SAID_AT: i64 = 1_795_000_002;

/// What goes wrong at the next call of a method.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Refused with this code, and maybe a time to wait in seconds.
    Status(u16, Option<u64>),
    /// Refused with this error code, description and parameters.
    Refuse(u16, &'static str, Value),
    /// The formatting isn't understood.
    RefuseFormatting,
    /// The connection is closed and nothing was done.
    CloseBefore,
    /// The call is done, the connection closed without an answer; in the middle of a download's bytes.
    CloseAfterTaking,
    /// No answer, and nothing done, until the server goes; of a download half of its bytes.
    Stall,
    /// Done and answered only after `release`.
    Held,
    /// The call is done, the answer is no JSON.
    Malformed,
    /// Something that isn't Telegram answers with this HTTP status.
    Foreign(u16),
}

/// A message that the server took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentMessage {
    pub(crate) message_id: i64,
    pub(crate) chat_id: i64,
    pub(crate) thread_id: Option<i64>,
    pub(crate) reply_to: Option<i64>,
    /// As it was sent.
    pub(crate) text: String,
    /// What a reader sees.
    pub(crate) visible: String,
    pub(crate) html: bool,
    pub(crate) silent: bool,
    pub(crate) preview: bool,
    /// What the buttons under it give back.
    pub(crate) buttons: Vec<String>,
    /// The file that the text stands under.
    pub(crate) file: Option<String>,
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

    /// Queues a private text from a person, or one from a group when the chat's id is negative. Gives the update's id.
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

    /// Queues a private message from a person with these fields beside the usual ones. Gives the update's id.
    pub(crate) fn push_message(&self, from_id: i64, fields: &Value) -> i64 {
        let update_id = self.shared.lock().next_update_id;
        let mut message = json!({"message_id": update_id - 900, "date": SAID_AT,
            "from": {"id": from_id, "is_bot": false, "first_name": "Ana", "language_code": "en"},
            "chat": {"id": from_id, "type": "private", "first_name": "Ana"}});
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.push_raw(json!({"update_id": update_id, "message": message}));
        update_id
    }

    /// Somebody presses a button of a message in their private chat with the bot, or in a group when the chat's id is negative.
    pub(crate) fn tap(&self, chat_id: i64, from_id: i64, message_id: i64, data: &str) {
        self.push_raw(self.tapped(chat_id, from_id, message_id, data));
    }

    /// The same as an update that comes another way.
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

    /// Has a file under this handle from now on.
    pub(crate) fn keep_file(&self, file_id: &str, bytes: &[u8]) {
        self.shared.lock().files.insert(file_id.to_owned(), bytes.to_owned());
    }

    /// Queues an update as it is; the next one's number follows its own.
    pub(crate) fn push_raw(&self, update: Value) {
        let mut state = self.shared.lock();
        state.next_update_id = update["update_id"].as_i64().unwrap() + 1;
        state.updates.push_back(update);
        self.shared.changed.notify_all();
    }

    /// Numbers the updates from here on.
    pub(crate) fn number_updates_from(&self, update_id: i64) {
        self.shared.lock().next_update_id = update_id;
    }

    /// Orders a fault for the next call of `method`; several are met in the order they were given.
    pub(crate) fn fail_next(&self, method: &str, fault: Fault) {
        self.shared.lock().faults.push((method.to_owned(), fault));
    }

    /// Ends the poll that waits, with nothing, as Telegram does when its time is over.
    pub(crate) fn end_poll(&self) {
        self.shared.lock().is_poll_over = true;
        self.shared.changed.notify_all();
    }

    /// Lets the updates go to a webhook, from now until somebody deletes it.
    pub(crate) fn set_webhook(&self, url: &str) {
        url.clone_into(&mut self.shared.lock().webhook);
    }

    /// Whether the updates go to a webhook.
    pub(crate) fn has_webhook(&self) -> bool {
        !self.shared.lock().webhook.is_empty()
    }

    /// Lets a message of ours stand in a chat, as an earlier bot has left it.
    pub(crate) fn let_stand(&self, chat_id: i64, message_id: i64, text: &str) {
        self.shared.lock().standing.push(((chat_id, message_id), text.to_owned()));
    }

    pub(crate) fn sent(&self) -> Vec<SentMessage> {
        self.shared.lock().sent.clone()
    }

    /// What stands in the chats as people see it now: changed and taken-away messages count as they are.
    pub(crate) fn standing(&self) -> Vec<String> {
        self.shared.lock().standing.iter().map(|(_, text)| text.clone()).collect()
    }

    pub(crate) fn actions(&self) -> Vec<(i64, Option<i64>, String)> {
        self.shared.lock().actions.clone()
    }

    /// Lets calls that are [`Fault::Held`] through.
    pub(crate) fn release(&self) {
        self.shared.lock().is_released = true;
        self.shared.changed.notify_all();
    }

    /// Every call that was understood, faulty or not, with its parameters.
    pub(crate) fn calls(&self, method: &str) -> Vec<Value> {
        let state = self.shared.lock();
        state.calls.iter().filter(|(called, _)| called == method).map(|(_, request)| request.clone()).collect()
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().streams.len()
    }

    /// The updates that nobody has confirmed.
    pub(crate) fn unconfirmed(&self) -> usize {
        self.shared.lock().updates.len()
    }

    /// Waits until `n` messages were taken in all. Panics after `timeout`.
    pub(crate) fn wait_for_sent(&self, n: usize, timeout: Duration) -> Vec<SentMessage> {
        self.wait_until(timeout, |state| state.sent.len() >= n);
        self.sent()
    }

    /// Waits until `method` was called `n` times in all. Panics after `timeout`.
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
