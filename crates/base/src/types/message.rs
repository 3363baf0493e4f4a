//! What goes along with a message.

/// A file of plain text that a message carries: what is too long for its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its name, as its reader sees it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What a message asks: it carries buttons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Whether something may be done: yes or no.
    Approval {
        /// What the buttons give back.
        nonce: String,
        /// Whether the same may be allowed for good.
        may_stand: bool,
    },
    /// Whether a rule is made of what is asked: yes, or not now.
    Rule {
        /// The nonce of that question.
        nonce: String,
    },
    /// What becomes of a reminder that has come: it is done, or comes again.
    Reminder {
        /// The message's row.
        outgoing_id: i64,
    },
    /// What becomes of what was said of our own accord.
    Nudge {
        /// The message's row.
        outgoing_id: i64,
        /// What can be answered.
        answers: Vec<NudgeAnswer>,
    },
}

/// What a button means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ButtonChoice {
    /// A yes or a no.
    Approval {
        /// The question's.
        nonce: String,
        /// Whether it is a yes.
        is_approval: bool,
    },
    /// Always, which shows the rule first.
    Always {
        /// The question's.
        nonce: String,
    },
    /// Whether that rule is added.
    Rule {
        /// The question's.
        nonce: String,
        /// Whether it is a yes.
        is_yes: bool,
    },
    /// An answer to a reminder.
    Reminder {
        /// The row of the reminder's message.
        outgoing_id: i64,
        /// Which.
        answer: ReminderAnswer,
    },
    /// An answer to a nudge.
    Nudge {
        /// The row of the nudge's message.
        outgoing_id: i64,
        /// Which.
        answer: NudgeAnswer,
    },
}

/// What a person does about what was said to them unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NudgeAnswer {
    /// The task that it is about is done.
    Done,
    /// It comes again in the morning.
    InTheMorning,
    /// No more of its kind.
    NoMore,
    /// The change of the assistant's own orders that it reports on is taken back.
    TakeBack,
}

impl NudgeAnswer {
    /// All of them, in the order of their buttons.
    pub const ALL: [Self; 4] = [Self::Done, Self::InTheMorning, Self::NoMore, Self::TakeBack];

    /// Its name, in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::InTheMorning => "morning",
            Self::NoMore => "quiet",
            Self::TakeBack => "undo",
        }
    }

    /// The one of this name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.name() == name)
    }
}

/// How a nudge's buttons begin, before their answer's name.
const NUDGE: &str = "nudge-";

/// What a person does about a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReminderAnswer {
    /// It is done.
    Done,
    /// It comes again in an hour.
    InAnHour,
    /// It comes again in the morning.
    InTheMorning,
}

impl ReminderAnswer {
    const ALL: [Self; 3] = [Self::Done, Self::InAnHour, Self::InTheMorning];

    /// Its name, in buttons and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::InAnHour => "hour",
            Self::InTheMorning => "morning",
        }
    }

    /// The one of this name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.name() == name)
    }
}

impl Question {
    /// What its buttons mean, in their order.
    pub fn choices(&self) -> Vec<ButtonChoice> {
        match self {
            Self::Approval { nonce, may_stand } => {
                let nonce = || nonce.clone();
                let once = [true, false].map(|is_approval| ButtonChoice::Approval { nonce: nonce(), is_approval });
                once.into_iter().chain(may_stand.then(|| ButtonChoice::Always { nonce: nonce() })).collect()
            }
            Self::Rule { nonce } => {
                [true, false].map(|is_yes| ButtonChoice::Rule { nonce: nonce.clone(), is_yes }).to_vec()
            }
            Self::Reminder { outgoing_id } => {
                ReminderAnswer::ALL.map(|answer| ButtonChoice::Reminder { outgoing_id: *outgoing_id, answer }).to_vec()
            }
            Self::Nudge { outgoing_id, answers } => {
                let choice = |answer: &NudgeAnswer| ButtonChoice::Nudge { outgoing_id: *outgoing_id, answer: *answer };
                answers.iter().map(choice).collect()
            }
        }
    }
}

impl ButtonChoice {
    /// What its button gives back. A channel allows 64 bytes.
    pub fn data(&self) -> String {
        match self {
            Self::Approval { nonce, is_approval: true } => format!("yes:{nonce}"),
            Self::Approval { nonce, is_approval: false } => format!("no:{nonce}"),
            Self::Always { nonce } => format!("always:{nonce}"),
            Self::Rule { nonce, is_yes: true } => format!("add:{nonce}"),
            Self::Rule { nonce, is_yes: false } => format!("leave:{nonce}"),
            Self::Reminder { outgoing_id, answer } => format!("{}:{outgoing_id}", answer.name()),
            Self::Nudge { outgoing_id, answer } => format!("{NUDGE}{}:{outgoing_id}", answer.name()),
        }
    }

    /// Reads what a button gave back; none if it is no button of ours.
    pub fn read(data: &str) -> Option<Self> {
        let (name, which) = data.split_once(':')?;
        let nonce = || which.to_owned();
        match name {
            "yes" | "no" => Some(Self::Approval { nonce: nonce(), is_approval: name == "yes" }),
            "always" => Some(Self::Always { nonce: nonce() }),
            "add" | "leave" => Some(Self::Rule { nonce: nonce(), is_yes: name == "add" }),
            _ => {
                let outgoing_id = which.parse().ok()?;
                Some(match name.strip_prefix(NUDGE) {
                    Some(name) => Self::Nudge { outgoing_id, answer: NudgeAnswer::read(name)? },
                    None => Self::Reminder { outgoing_id, answer: ReminderAnswer::read(name)? },
                })
            }
        }
    }
}
