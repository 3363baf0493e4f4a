//! Whether the owner's long or structured answers go as rich Telegram messages: `TELEGRAM_RICH`.

/// The use of rich messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TelegramRich {
    /// Once the owner has confirmed that a sample shows well.
    #[default]
    Auto,
    /// Without asking.
    Always,
    /// Not at all.
    Never,
}

impl TelegramRich {
    const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    /// The value of `TELEGRAM_RICH`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

pub(super) fn parse_telegram_rich(value: &str) -> Result<TelegramRich, String> {
    let found = TelegramRich::ALL.into_iter().find(|it| value.eq_ignore_ascii_case(it.as_str()));
    found.ok_or_else(|| "auto, always or never".to_owned())
}
