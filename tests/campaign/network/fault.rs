//! The faults of one request, and the sender's possible knowledge afterwards.

use std::time::Duration;

use super::{
    CLOSED, QUESTION,
    wire::{DOWNLOAD, LINE},
};

/// The server behind the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    Telegram,
    Claude,
    Git,
}

/// The time a stalled connection hangs before it breaks. The programs' own limits are 10 s and more; only [`Fault::Hang`] reaches
/// them.
const STALL: Duration = Duration::from_millis(200);
/// Longer than the limits for Telegram (10 s) and a remote (20 s). The limits for Claude and for a poll are minutes, and tests with
/// shorter ones cover them.
const HANG: Duration = Duration::from_secs(60);

/// A wait in seconds no program chooses by itself after a first failure.
const LONG_WAIT: u64 = 120;
/// The wait in seconds after a 429 of Telegram without `retry_after`.
const UNSAID_WAIT: u64 = 30;

/// One way for a request to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server is gone after this request's answer: new connections are refused.
    Closed,
    /// The connection is reset before the request is done.
    Reset,
    /// The request is done, then the connection is reset.
    ResetAfter,
    /// The request is done, then the connection ends normally without an answer.
    EndAfter,
    /// Silence, then as [`Fault::Reset`].
    Stall,
    /// The request is done; silence, then as [`Fault::ResetAfter`].
    StallAfter,
    /// Silence until the program gives up. The request isn't done.
    Hang,
    /// The answer comes a few bytes at a time.
    Slow,
    /// The answer comes twice.
    Twice,
    /// Telegram repeats the previous batch.
    Again,
    /// Another answer comes, and the request isn't done.
    Says(Said),
    /// The request is done, and another answer comes.
    SaysAfter(Said),
    /// The answer breaks off after this percentage of its body.
    Cut(usize),
    /// The answer's middle is damaged.
    Garbled,
    /// The event stream breaks off before this event.
    CutEvents(usize),
    /// The event stream ends before this event, as if it were whole.
    EndEvents(usize),
    /// This event of the stream is damaged.
    GarbledEvent(usize),
}

/// An unusual answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: u16,
    /// Seconds to wait, in the server's own form.
    pub(super) retry_after: Option<u64>,
    pub(super) by: By,
}

/// The author of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The server itself, in its own format.
    Server,
    /// A server in between: an HTML page that repeats the request's address and keys, as such pages do.
    Foreign,
    /// No author: the body is empty.
    Nobody,
    /// The server itself, in its own format, with fields missing.
    Hollow,
}

const fn says(status: u16, by: By) -> Said {
    Said { status, retry_after: None, by }
}

const fn slow_down(retry_after: u64) -> Said {
    Said { status: 429, retry_after: Some(retry_after), by: By::Server }
}

/// Faults any server can have.
const ANY: &[Fault] = &[
    Fault::Closed,
    Fault::Reset,
    Fault::ResetAfter,
    Fault::EndAfter,
    Fault::Stall,
    Fault::StallAfter,
    Fault::Slow,
    Fault::Twice,
    Fault::Garbled,
    Fault::Cut(0),
    Fault::Cut(50),
    Fault::Cut(95),
    Fault::Says(says(429, By::Foreign)),
    Fault::Says(says(500, By::Server)),
    Fault::SaysAfter(says(500, By::Server)),
    Fault::Says(says(502, By::Foreign)),
    Fault::SaysAfter(says(502, By::Foreign)),
    Fault::SaysAfter(says(504, By::Nobody)),
    Fault::Says(says(503, By::Foreign)),
    Fault::Says(says(302, By::Foreign)),
    Fault::Says(says(200, By::Foreign)),
    Fault::Says(says(407, By::Foreign)),
    Fault::Says(says(401, By::Server)),
    Fault::Says(says(403, By::Foreign)),
    Fault::Says(says(404, By::Foreign)),
];

const TELEGRAM: &[Fault] = &[
    Fault::Says(slow_down(2)),
    Fault::Says(slow_down(7)),
    Fault::Says(says(409, By::Server)),
    Fault::Says(says(400, By::Server)),
    Fault::Says(says(403, By::Server)),
    Fault::Hang,
    Fault::SaysAfter(says(200, By::Hollow)),
];

const CLAUDE: &[Fault] = &[
    Fault::Says(slow_down(2)),
    Fault::Says(slow_down(LONG_WAIT)),
    Fault::Says(says(529, By::Server)),
    Fault::Says(says(402, By::Server)),
    Fault::Says(says(403, By::Server)),
    Fault::Says(says(400, By::Server)),
    Fault::Says(says(404, By::Server)),
    Fault::Says(says(413, By::Server)),
];

const GIT: &[Fault] = &[
    Fault::Says(says(403, By::Server)),
    Fault::Says(says(404, By::Server)),
    Fault::Says(says(503, By::Server)),
    Fault::Cut(10),
    Fault::Cut(25),
    Fault::Cut(75),
    Fault::Hang,
];

/// One fault of each kind, for courtesy requests and for files after the first, since no stored data depends on them.
const FEW: &[Fault] = &[
    Fault::Closed,
    Fault::Reset,
    Fault::ResetAfter,
    Fault::Stall,
    Fault::Slow,
    Fault::Twice,
    Fault::Cut(50),
    Fault::Garbled,
    Fault::Says(slow_down(7)),
    Fault::Says(says(400, By::Server)),
    Fault::Says(says(403, By::Server)),
    Fault::Says(says(401, By::Server)),
    Fault::Says(says(500, By::Server)),
    Fault::SaysAfter(says(502, By::Foreign)),
    Fault::SaysAfter(says(200, By::Hollow)),
];

impl Fault {
    /// Faults at the start of each run, by the request's name: few random trials would show these promises broken.
    pub(super) const FIRST: &[(&str, Self)] = &[
        ("turn", Self::Says(slow_down(2))),
        ("turn", Self::Says(slow_down(LONG_WAIT))),
        ("sendMessage", Self::Says(slow_down(7))),
        ("getFile", Self::Says(slow_down(LONG_WAIT))),
        ("getFile", Self::ResetAfter),
        (DOWNLOAD, Self::SaysAfter(says(200, By::Hollow))),
        ("deleteMessage", Self::Reset),
        ("deleteMessage", Self::Says(slow_down(7))),
        (LINE, Self::ResetAfter),
        (QUESTION, Self::ResetAfter),
        (CLOSED, Self::Says(slow_down(7))),
    ];

    /// A fault of each kind.
    pub(super) fn few(label: &str) -> Vec<Self> {
        Self::possible(label, FEW.to_vec())
    }

    /// Every fault of an essential request.
    pub(super) fn many(label: &str) -> Vec<Self> {
        Self::possible(label, [ANY, TELEGRAM, &[Self::Says(slow_down(LONG_WAIT))]].concat())
    }

    /// Drops a fault no client can detect: changed bytes of a file, since only their number is known.
    fn possible(label: &str, mut faults: Vec<Self>) -> Vec<Self> {
        faults.retain(|fault| !(label == DOWNLOAD && *fault == Self::Garbled));
        faults
    }

    /// Every fault of a request; `events` is the number of events in its answer's stream.
    pub(super) fn all(target: Target, label: &str, events: usize) -> Vec<Self> {
        let own = match target {
            Target::Telegram => TELEGRAM,
            Target::Claude => CLAUDE,
            Target::Git => GIT,
        };
        let mut faults = [ANY, own].concat();
        // A poll may take a minute by itself.
        faults.retain(|fault| !(label == "getUpdates" && *fault == Self::Hang));
        // The events of a stream are damaged one by one.
        faults.retain(|fault| !(events > 0 && matches!(fault, Self::Garbled | Self::Cut(_))));
        faults.extend((label == "getUpdates").then_some(Self::Again));
        faults.extend((0..events).flat_map(|n| [Self::CutEvents(n), Self::EndEvents(n), Self::GarbledEvent(n)]));
        faults
    }

    /// Tells whether a file is lost after this fault.
    pub(super) fn is_end_of_file(self, label: &str) -> bool {
        match self {
            Self::Says(Said { status: 400 | 403, by: By::Server, .. }) => matches!(label, "getFile" | DOWNLOAD),
            // Telegram knows the file but doesn't return its path.
            Self::SaysAfter(Said { by: By::Hollow, .. }) => label == "getFile",
            _ => false,
        }
    }

    /// The time the other side is silent.
    pub(super) fn silence(self) -> Duration {
        match self {
            Self::Stall | Self::StallAfter => STALL,
            Self::Hang => HANG,
            _ => Duration::ZERO,
        }
    }

    /// Tells whether the server gets the request.
    pub(super) fn is_taken(self) -> bool {
        !matches!(self, Self::Reset | Self::Stall | Self::Hang | Self::Says(_))
    }

    /// The conclusion the program may draw from this fault.
    pub(super) fn knowledge(self, target: Target) -> Knowledge {
        match self {
            Self::Closed | Self::Slow | Self::Twice | Self::Again => Knowledge::Done,
            Self::Says(said) | Self::SaysAfter(said) => said.knowledge(target),
            _ => Knowledge::Doubt,
        }
    }
}

impl Said {
    fn knowledge(self, target: Target) -> Knowledge {
        let is_own = self.by == By::Server;
        match (target, self.status) {
            (Target::Telegram, 200 | 500..) => Knowledge::Doubt,
            (Target::Telegram, 400 | 403) if is_own => Knowledge::Never,
            (Target::Telegram, 429) => Knowledge::NotDone { retry_after: self.retry_after.or(Some(UNSAID_WAIT)) },
            _ => Knowledge::NotDone { retry_after: self.retry_after },
        }
    }
}

/// The fate of a request, as far as its sender can know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// The request was done.
    Done,
    /// The request was surely not done, and must not be repeated before this number of seconds.
    NotDone { retry_after: Option<u64> },
    /// The request never will be done.
    Never,
    /// The request may have been done or not.
    Doubt,
}
