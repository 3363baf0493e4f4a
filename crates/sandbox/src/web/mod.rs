//! Reading what others have put on the public internet: pages, and what search engines find.
//!
//! A URL comes from a model that may have been talked into it, so where it leads is decided by the address that is dialled
//! (`address`, `dial`), at each hop anew. What comes back is bounded in bytes and time while it comes (`fetch`, `body`) and made
//! readable (`charset`, `html`, `page`; a feed's entries: `feed`). Nothing that a server said is ever part of an error: errors reach the
//! conversation without a mark of whose words they are.

mod address;
mod body;
mod charset;
mod clean;
mod dial;
mod feed;
mod fetch;
mod html;
mod page;
pub mod search;

use std::{sync::Arc, time::Duration};

use reqwest::Url;

pub use self::{
    address::{Grants, check_url},
    dial::{Lookup, Names, SystemNames},
    feed::{FeedEntry, WatchedPage},
    page::Page,
};

/// Why a redirect may not lead to a URL by a person's rules, in a sentence; none: it may.
pub type Gate<'a> = &'a dyn Fn(&Url) -> Option<String>;

/// What one fetch may cost.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Redirects that are followed.
    pub redirects: usize,
    /// Bytes of a body that are read, packed and unpacked each; the rest is left unread.
    pub body_bytes: usize,
    /// How long connecting to one address may take.
    pub connect_timeout: Duration,
    /// How long a fetch may take in all, looking up names and following redirects included.
    pub timeout: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            redirects: 5,
            body_bytes: 2 * 1024 * 1024,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
        }
    }
}

/// Why something could not be read, in words that are ours alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// Another URL would do: it says what is wrong with this one.
    #[error("{0}")]
    Url(&'static str),
    /// A person may grant it; no spelling of the URL will.
    #[error("{}The address isn't on the public internet: it is {what}. Only what a person grants is reached there.", if *.is_redirect { "A redirect leads inside: " } else { "" })]
    NotPublic {
        /// What the address is.
        what: &'static str,
        /// Whether it was a server that led there.
        is_redirect: bool,
    },
    /// It led somewhere that isn't followed.
    #[error("{0}")]
    Redirect(&'static str),
    /// A person's rules keep us from where a redirect leads. What this is printed as holds nothing of it.
    #[error("A redirect leads to where your person's rules don't let it go by itself; it was not followed.")]
    KeptBack {
        /// Where it leads, which is the server's word.
        to: String,
        /// `https://host` of the server that leads there.
        by: String,
        /// What the rules say.
        why: String,
    },
    /// It may work later.
    #[error("{0}")]
    Unreachable(&'static str),
    /// The server answered, and not with what was asked for.
    #[error("The server answers {}.", status(*.0))]
    Status(u16),
    /// It is there, and no text.
    #[error("{0}")]
    Unreadable(&'static str),
    /// A person has to change a setting.
    #[error("{0}")]
    Setting(&'static str),
}

/// A status in words that are the standard's and not the server's.
fn status(code: u16) -> String {
    let words = reqwest::StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    format!("{code}{}", words.map(|words| format!(" ({words})")).unwrap_or_default())
}

/// The means of reaching the web: values that belong to one cycle.
#[derive(Debug, Clone)]
pub struct Web {
    grants: Grants,
    names: Arc<dyn Names>,
    limits: FetchLimits,
    engine: search::Engine,
}

impl Default for Web {
    fn default() -> Self {
        Self {
            grants: Grants::default(),
            names: Arc::new(SystemNames),
            limits: FetchLimits::default(),
            engine: search::Engine::default(),
        }
    }
}

impl Web {
    /// With hosts outside the public internet that a person has granted.
    #[must_use]
    pub fn granting(self, grants: Grants) -> Self {
        Self { grants, ..self }
    }

    /// With a search engine.
    #[must_use]
    pub fn searching(self, engine: search::Engine) -> Self {
        Self { engine, ..self }
    }

    /// With another way to look up names. What it answers is checked like the system's answers.
    #[must_use]
    pub fn naming(self, names: impl Names + 'static) -> Self {
        Self { names: Arc::new(names), ..self }
    }

    /// With other limits.
    #[must_use]
    pub fn within(self, limits: FetchLimits) -> Self {
        Self { limits, ..self }
    }
}
