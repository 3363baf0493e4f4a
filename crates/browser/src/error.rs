//! Why a verb wasn't carried out, named by what the caller does next.

use crate::cdp::CallError;

/// A verb that wasn't carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// The reference or the picture is out of date. Choose from the fresh look.
    #[error("{why} Nothing was done. This is the page now:\n{look}")]
    ChooseFromLook {
        /// What is out of date.
        why: String,
        /// The page as it is now. Untrusted.
        look: String,
    },
    /// The element can't be acted on as it is. Choose another one, or change the page first.
    #[error("{0} Nothing was done.")]
    ChangePageFirst(String),
    /// A dialog holds the page. Answer it.
    #[error(
        "The page shows a dialog first ({kind}): \"{message}\". Answer it with the verb `dialog`. Nothing was done."
    )]
    AnswerDialog {
        /// `alert`, `confirm` or `prompt`.
        kind: String,
        /// Its text. Untrusted.
        message: String,
    },
    /// The call is wrong. Correct it.
    #[error("{0} Nothing was done.")]
    CorrectCall(String),
    /// The page stopped working and was ended. Open it again, or do without it.
    #[error("{0}")]
    OpenAgain(String),
    /// The browser has ended. Start another one.
    #[error("The browser has ended by itself. Its tabs are lost.")]
    StartAgain,
    /// The browser refused something that it normally does. Trying again may help once.
    #[error("The browser could not do this: {0}")]
    TryOnce(String),
}

/// A failure inside: either of a call, or already in words.
#[derive(Debug)]
pub(crate) enum Fault {
    Call(CallError),
    Told(BrowserError),
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<BrowserError> for Fault {
    fn from(error: BrowserError) -> Self {
        Self::Told(error)
    }
}

/// A failure that the caller corrects.
pub(crate) fn wrong(why: impl Into<String>) -> Fault {
    Fault::Told(BrowserError::CorrectCall(why.into()))
}

/// A failure that lies in the page's state.
pub(crate) fn blocked(why: impl Into<String>) -> Fault {
    Fault::Told(BrowserError::ChangePageFirst(why.into()))
}
