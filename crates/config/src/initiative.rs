//! How much the assistant does without being asked: `INITIATIVE`.

/// How often the assistant looks for useful work that nobody asked for.
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
    /// All levels, quietest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Low, Self::High];

    /// The value of `INITIATIVE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::High => "high",
        }
    }

    /// Describes the level in a list of choices.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Off => "nothing that you didn't ask for",
            Self::Low => "one useful thing a day, or a proposal: at most $0.10 a day for the AI model",
            Self::High => "the same at 9, 13 and 17 o'clock: at most $0.30 a day",
        }
    }
}

pub(super) fn parse_initiative(value: &str) -> Result<InitiativeLevel, String> {
    let found = InitiativeLevel::ALL.into_iter().find(|level| value.eq_ignore_ascii_case(level.as_str()));
    found.ok_or_else(|| "off, low or high".to_owned())
}
