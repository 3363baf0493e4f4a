//! The faults that can hit a request, and what its sender can know afterwards.

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

/// A wait in seconds, longer than any that a program chooses by itself after a first failure.
const LONG_WAIT: u64 = 120;
/// The wait in seconds after Telegram's status 429 without `retry_after`.
const UNSAID_WAIT: u64 = 30;

/// One way for a request to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request is answered normally, but the server refuses new connections afterwards.
    Closed,
    /// The connection is reset before the request is carried out.
    Reset,
    /// The request is carried out, then the connection is reset.
    ResetAfter,
    /// The request is carried out, then the connection ends normally without an answer.
    EndAfter,
    /// Silence, then the same as [`Fault::Reset`].
    Stall,
    /// The request is carried out; then silence, then the connection is reset.
    StallAfter,
    /// Silence until the program gives up. The request isn't carried out.
    Hang,
    /// The answer comes a few bytes at a time.
    Slow,
    /// The answer comes twice.
    Twice,
    /// Telegram repeats the previous batch of updates.
    Again,
    /// Another answer comes, and the request isn't carried out.
    Says(Said),
    /// The request is carried out, and another answer comes.
    SaysAfter(Said),
    /// The answer breaks off after this percentage of its body.
    Cut(usize),
    /// The answer's middle is damaged.
    Garbled,
    /// The event stream breaks off before this event.
    CutEvents(usize),
    /// The event stream ends before this event, as if it were complete.
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

/// Faults that any server can have.
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

/// One fault of each kind. They suffice for requests that no stored data depends on, and for files after the first.
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
    /// Faults tried at the start of each run, by the request's name: random trials would seldom reveal the promises that they can break.
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

    /// Drops the fault that no client can detect: changed bytes of a file, since only their number is known in advance.
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
        // A poll may take a minute even without a fault.
        faults.retain(|fault| !(label == "getUpdates" && *fault == Self::Hang));
        // The events of a stream are damaged one by one.
        faults.retain(|fault| !(events > 0 && matches!(fault, Self::Garbled | Self::Cut(_))));
        faults.extend((label == "getUpdates").then_some(Self::Again));
        faults.extend((0..events).flat_map(|n| [Self::CutEvents(n), Self::EndEvents(n), Self::GarbledEvent(n)]));
        faults
    }

    /// Returns whether a file is lost for good after this fault.
    pub(super) fn is_end_of_file(self, label: &str) -> bool {
        match self {
            Self::Says(Said { status: 400 | 403, by: By::Server, .. }) => matches!(label, "getFile" | DOWNLOAD),
            // Telegram knows the file but doesn't return its path.
            Self::SaysAfter(Said { by: By::Hollow, .. }) => label == "getFile",
            _ => false,
        }
    }

    /// How long the other side is silent.
    pub(super) fn silence(self) -> Duration {
        match self {
            Self::Stall | Self::StallAfter => STALL,
            Self::Hang => HANG,
            _ => Duration::ZERO,
        }
    }

    /// Returns whether the server carries out the request.
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
    /// The request was carried out.
    Done,
    /// The request certainly wasn't carried out, and must not be repeated before this number of seconds.
    NotDone { retry_after: Option<u64> },
    /// The request will never be carried out.
    Never,
    /// The request may or may not have been carried out.
    Doubt,
}
