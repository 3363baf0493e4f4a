//! The figures that judge a change of the standing orders. Each is counted in the ledger, the questions or the receipts.

/// A figure that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The number of requests to a model.
    Rounds,
    /// The cost of these requests in US dollars.
    Cost,
    /// The number of questions asked before an act.
    Questions,
    /// The number of finished tasks.
    TasksDone,
}

impl Figure {
    /// All figures.
    pub const ALL: [Self; 4] = [Self::Rounds, Self::Cost, Self::Questions, Self::TasksDone];

    /// The name, for the model and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rounds => "rounds",
            Self::Cost => "cost",
            Self::Questions => "questions",
            Self::TasksDone => "tasks_done",
        }
    }

    /// Finds a figure by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.name() == name)
    }
}

/// The direction in which a figure should move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The figure should fall.
    Less,
    /// The figure should rise.
    More,
}

impl Aim {
    /// The name, for the model and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
        }
    }

    /// Finds an aim by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Less, Self::More].into_iter().find(|aim| aim.name() == name)
    }
}

/// The intended effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedEffect {
    /// The figure that should move.
    pub figure: Figure,
    /// The direction.
    pub aim: Aim,
}

/// A figure over a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// The total of requests, dollars, questions or tasks.
    pub total: f64,
    /// The number of answers in chats, or of runs of a job, in that time.
    pub pieces: u32,
}
