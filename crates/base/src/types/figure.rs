//! The figures by which a change of the assistant's own orders is judged: each is counted in the ledger, the questions or the receipts.

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Requests to a model.
    Rounds,
    /// What they cost, in US dollars.
    Cost,
    /// Questions that a person was asked before something was done.
    Questions,
    /// Tasks that were finished.
    TasksDone,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rounds, Self::Cost, Self::Questions, Self::TasksDone];

    /// Its name, for the model and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rounds => "rounds",
            Self::Cost => "cost",
            Self::Questions => "questions",
            Self::TasksDone => "tasks_done",
        }
    }

    /// The one of this name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.name() == name)
    }
}

/// Which way a figure is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Down.
    Less,
    /// Up.
    More,
}

impl Aim {
    /// Its name, for the model and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
        }
    }

    /// The one of this name.
    pub fn read(name: &str) -> Option<Self> {
        [Self::Less, Self::More].into_iter().find(|aim| aim.name() == name)
    }
}

/// The effect that a change is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedEffect {
    /// On what.
    pub figure: Figure,
    /// Which way.
    pub aim: Aim,
}

/// A figure over some stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Requests, dollars, questions or tasks in all.
    pub total: f64,
    /// Pieces of work in that time: answers in chats, or runs of a job.
    pub pieces: u32,
}
