//! What goes along with a message.

/// A file of plain text that a message carries: what is too long for its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its name, as its reader sees it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What a message asks: it carries a button for yes and one for no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What the buttons give back; see [`Self::yes`] and [`Self::no`].
    pub nonce: String,
}

impl Question {
    /// What the button for yes gives back. A channel allows 64 bytes.
    pub fn yes(&self) -> String {
        format!("yes:{}", self.nonce)
    }

    /// What the button for no gives back.
    pub fn no(&self) -> String {
        format!("no:{}", self.nonce)
    }

    /// The nonce of what a button gave back, and whether it means yes; none if it is no button of a question's.
    pub fn read(data: &str) -> Option<(&str, bool)> {
        data.strip_prefix("yes:").map(|nonce| (nonce, true)).or_else(|| Some((data.strip_prefix("no:")?, false)))
    }
}
