//! How much it does without being asked for anything: `INITIATIVE`.

/// How often it may take a look at what is worth doing, of its own accord.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InitiativeLevel {
    /// Never.
    #[default]
    Off,
    /// Once a day.
    Low,
    /// Three times a day.
    High,
}

impl InitiativeLevel {
    /// All of them, the quietest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Low, Self::High];

    /// As `INITIATIVE` names it.
    pub fn level(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::High => "high",
        }
    }

    /// As a person chooses it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Off => "nothing that you didn't ask for",
            Self::Low => "one useful thing a day, or a proposal: at most $0.10 of the AI model a day",
            Self::High => "the same at 9, 13 and 17 o'clock: at most $0.30 a day",
        }
    }
}

pub(super) fn initiative(value: &str) -> Result<InitiativeLevel, String> {
    let found = InitiativeLevel::ALL.into_iter().find(|level| value.eq_ignore_ascii_case(level.level()));
    found.ok_or_else(|| "off, low or high".to_owned())
}
