//! What can go wrong with one request, and what its sender may know of it afterwards.

use std::time::Duration;

use super::{
    CLOSED, QUESTION,
    wire::{DOWNLOAD, LINE},
};

/// Which server stands behind the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    Telegram,
    Claude,
    Git,
}

/// How long a stalled connection hangs before it breaks. The programs' own bounds are 10 s and more: only [`Fault::Hang`]
/// waits for them.
const STALL: Duration = Duration::from_millis(200);
/// Longer than Telegram (10 s) and a remote (20 s) are waited for. The bounds for Claude and for a poll are minutes: tests with
/// shorter ones cover them.
const HANG: Duration = Duration::from_secs(60);

/// Seconds to wait that no program chooses by itself after a first failure.
const LONG_WAIT: u64 = 120;
/// Seconds to wait when Telegram is said to be asked too often, and not for how long.
const UNSAID_WAIT: u64 = 30;

/// One way a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server is gone after this request's answer: whoever comes then is refused.
    Closed,
    /// The connection is reset, and nothing was done.
    Reset,
    /// The request is done, then the connection is reset.
    ResetAfter,
    /// The request is done, then the connection ends as if all were well.
    EndAfter,
    /// Silence, then as [`Fault::Reset`].
    Stall,
    /// The request is done; silence, then as [`Fault::ResetAfter`].
    StallAfter,
    /// Silence until the program has enough of it. Nothing was done.
    Hang,
    /// The answer comes a few bytes at a time.
    Slow,
    /// The answer comes twice.
    Twice,
    /// Telegram gives the batch before once more.
    Again,
    /// Another answer comes, and nothing was done.
    Says(Said),
    /// The request is done, and another answer comes.
    SaysAfter(Said),
    /// The answer breaks off after so many percent of its body.
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

/// An answer that isn't the server's usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: u16,
    /// Seconds to wait, in the server's own way of saying so.
    pub(super) retry_after: Option<u64>,
    pub(super) by: By,
}

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The server itself, in its own format.
    Server,
    /// Something in between: a page in HTML that repeats the request's address and keys, as such pages do.
    Foreign,
    /// Nobody: no body at all.
    Nobody,
    /// The server itself, in its format, with less than it promises.
    Hollow,
}

const fn says(status: u16, by: By) -> Said {
    Said { status, retry_after: None, by }
}

const fn slow_down(retry_after: u64) -> Said {
    Said { status: 429, retry_after: Some(retry_after), by: By::Server }
}

/// What any server can do.
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

/// What one courtesy goes through, and files after the first: nothing that is kept depends on them, so a fault of each kind will do.
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
    /// What each run begins with, by the request's name: promises that few trials among thousands would show broken.
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

    /// Everything that can go wrong with a request on which something depends.
    pub(super) fn many(label: &str) -> Vec<Self> {
        Self::possible(label, [ANY, TELEGRAM, &[Self::Says(slow_down(LONG_WAIT))]].concat())
    }

    /// No client can see that a file's bytes were changed on their way: only their number is told.
    fn possible(label: &str, mut faults: Vec<Self>) -> Vec<Self> {
        faults.retain(|fault| !(label == DOWNLOAD && *fault == Self::Garbled));
        faults
    }

    /// Everything that can go wrong with a request; `events` is how many events its answer streams.
    pub(super) fn all(target: Target, label: &str, events: usize) -> Vec<Self> {
        let own = match target {
            Target::Telegram => TELEGRAM,
            Target::Claude => CLAUDE,
            Target::Git => GIT,
        };
        let mut faults = [ANY, own].concat();
        // A poll may take a minute by itself.
        faults.retain(|fault| !(label == "getUpdates" && *fault == Self::Hang));
        // Of a stream the events are damaged one by one.
        faults.retain(|fault| !(events > 0 && matches!(fault, Self::Garbled | Self::Cut(_))));
        faults.extend((label == "getUpdates").then_some(Self::Again));
        faults.extend((0..events).flat_map(|n| [Self::CutEvents(n), Self::EndEvents(n), Self::GarbledEvent(n)]));
        faults
    }

    /// Whether a file isn't to be had after this.
    pub(super) fn is_end_of_file(self, label: &str) -> bool {
        match self {
            Self::Says(Said { status: 400 | 403, by: By::Server, .. }) => matches!(label, "getFile" | DOWNLOAD),
            // Telegram knows the file and doesn't say where it is.
            Self::SaysAfter(Said { by: By::Hollow, .. }) => label == "getFile",
            _ => false,
        }
    }

    /// How long the other side says nothing.
    pub(super) fn silence(self) -> Duration {
        match self {
            Self::Stall | Self::StallAfter => STALL,
            Self::Hang => HANG,
            _ => Duration::ZERO,
        }
    }

    /// Whether the server gets the request.
    pub(super) fn is_taken(self) -> bool {
        !matches!(self, Self::Reset | Self::Stall | Self::Hang | Self::Says(_))
    }

    /// What the program may take from what it sees of this.
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

/// What became of a request, as far as its sender can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// It was done.
    Done,
    /// It surely wasn't; and it isn't to be tried again before so many seconds.
    NotDone { retry_after: Option<u64> },
    /// It never will be.
    Never,
    /// It may have been done or not.
    Doubt,
}
