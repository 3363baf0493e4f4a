//! Attachments and buttons of a message.

/// A plain text file attached to a message whose text would be too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// The file name that the reader sees.
    pub name: String,
    /// The content.
    pub text: String,
}

/// A question with buttons, carried by a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Asks for approval of an act.
    Approval {
        /// The nonce that the buttons send back.
        nonce: String,
        /// True if the answer may also be to always allow the same act.
        may_stand: bool,
    },
    /// Asks for confirmation of a new rule: yes, or not now.
    Rule {
        /// The nonce of the approval question.
        nonce: String,
    },
    /// Asks about a reminder: done, or remind again later.
    Reminder {
        /// The row of the message.
        outgoing_id: i64,
    },
    /// Asks for an answer to a nudge.
    Nudge {
        /// The row of the message.
        outgoing_id: i64,
        /// The possible answers.
        answers: Vec<NudgeAnswer>,
    },
    /// Asks whether a sample of a rich message shows well.
    Sample {
        /// The row of the message.
        outgoing_id: i64,
    },
}

/// The meaning of a button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ButtonChoice {
    /// Approve or refuse an act.
    Approval {
        /// The nonce of the question.
        nonce: String,
        /// The answer.
        answer: ApprovalAnswer,
    },
    /// Always allow the act; the rule is shown first.
    Always {
        /// The nonce of the question.
        nonce: String,
    },
    /// Add the rule, or leave it.
    Rule {
        /// The nonce of the question.
        nonce: String,
        /// True to add the rule.
        is_yes: bool,
    },
    /// An answer to a reminder.
    Reminder {
        /// The row of the reminder's message.
        outgoing_id: i64,
        /// The answer.
        answer: ReminderAnswer,
    },
    /// An answer to a nudge.
    Nudge {
        /// The row of the nudge's message.
        outgoing_id: i64,
        /// The answer.
        answer: NudgeAnswer,
    },
    /// An answer to a sample.
    Sample {
        /// The row of the sample.
        outgoing_id: i64,
        /// The answer.
        answer: SampleAnswer,
    },
}

/// A person's answer to a sample of a rich message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleAnswer {
    /// It shows well: use rich messages.
    ShowsWell,
    /// It doesn't: use plain messages.
    ShowsBadly,
}

impl SampleAnswer {
    const ALL: [Self; 2] = [Self::ShowsWell, Self::ShowsBadly];

    /// The name in buttons and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::ShowsWell => "well",
            Self::ShowsBadly => "badly",
        }
    }

    /// Finds an answer by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.name() == name)
    }
}

/// The prefix of a sample button's data, before the answer's name.
const SAMPLE: &str = "sample-";

/// A person's answer to a nudge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NudgeAnswer {
    /// The task in question is done.
    Done,
    /// Repeat the nudge in the morning.
    InTheMorning,
    /// Send no more nudges of this kind.
    NoMore,
    /// Undo the change of the standing orders that the nudge reports on.
    TakeBack,
}

impl NudgeAnswer {
    /// All answers in the order of their buttons.
    pub const ALL: [Self; 4] = [Self::Done, Self::InTheMorning, Self::NoMore, Self::TakeBack];

    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::InTheMorning => "morning",
            Self::NoMore => "quiet",
            Self::TakeBack => "undo",
        }
    }

    /// Finds an answer by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.name() == name)
    }
}

/// The prefix of a nudge button's data, before the answer's name.
const NUDGE: &str = "nudge-";

/// A person's answer to an approval question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Allow the act, once.
    Yes,
    /// Refuse the act.
    No,
}

impl ApprovalAnswer {
    const ALL: [Self; 2] = [Self::Yes, Self::No];
}

/// A person's answer to a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReminderAnswer {
    /// The reminded thing is done.
    Done,
    /// Repeat the reminder in an hour.
    InAnHour,
    /// Repeat the reminder in the morning.
    InTheMorning,
}

impl ReminderAnswer {
    const ALL: [Self; 3] = [Self::Done, Self::InAnHour, Self::InTheMorning];

    /// The name in buttons and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::InAnHour => "hour",
            Self::InTheMorning => "morning",
        }
    }

    /// Finds an answer by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.name() == name)
    }
}

impl Question {
    /// The choices of the buttons, in their order.
    pub fn choices(&self) -> Vec<ButtonChoice> {
        match self {
            Self::Approval { nonce, may_stand } => {
                let nonce = || nonce.clone();
                let once = ApprovalAnswer::ALL.map(|answer| ButtonChoice::Approval { nonce: nonce(), answer });
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
            Self::Sample { outgoing_id } => {
                SampleAnswer::ALL.map(|answer| ButtonChoice::Sample { outgoing_id: *outgoing_id, answer }).to_vec()
            }
        }
    }
}

impl ButtonChoice {
    /// The data that the button sends back. A channel allows 64 bytes.
    pub fn to_data(&self) -> String {
        match self {
            Self::Approval { nonce, answer: ApprovalAnswer::Yes } => format!("yes:{nonce}"),
            Self::Approval { nonce, answer: ApprovalAnswer::No } => format!("no:{nonce}"),
            Self::Always { nonce } => format!("always:{nonce}"),
            Self::Rule { nonce, is_yes: true } => format!("add:{nonce}"),
            Self::Rule { nonce, is_yes: false } => format!("leave:{nonce}"),
            Self::Reminder { outgoing_id, answer } => format!("{}:{outgoing_id}", answer.name()),
            Self::Nudge { outgoing_id, answer } => format!("{NUDGE}{}:{outgoing_id}", answer.name()),
            Self::Sample { outgoing_id, answer } => format!("{SAMPLE}{}:{outgoing_id}", answer.name()),
        }
    }

    /// Parses the data of a pressed button; `None` if the button isn't ours.
    pub fn parse(data: &str) -> Option<Self> {
        let (name, which) = data.split_once(':')?;
        let nonce = || which.to_owned();
        match name {
            "yes" => Some(Self::Approval { nonce: nonce(), answer: ApprovalAnswer::Yes }),
            "no" => Some(Self::Approval { nonce: nonce(), answer: ApprovalAnswer::No }),
            "always" => Some(Self::Always { nonce: nonce() }),
            "add" | "leave" => Some(Self::Rule { nonce: nonce(), is_yes: name == "add" }),
            _ => {
                let outgoing_id = which.parse().ok()?;
                Some(match (name.strip_prefix(NUDGE), name.strip_prefix(SAMPLE)) {
                    (Some(name), _) => Self::Nudge { outgoing_id, answer: NudgeAnswer::from_name(name)? },
                    (_, Some(name)) => Self::Sample { outgoing_id, answer: SampleAnswer::from_name(name)? },
                    _ => Self::Reminder { outgoing_id, answer: ReminderAnswer::from_name(name)? },
                })
            }
        }
    }
}
