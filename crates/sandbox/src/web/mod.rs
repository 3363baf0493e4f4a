//! Reading from the public internet: pages, and results of search engines.
//!
//! A URL comes from a model that may have been manipulated, so access is decided by the dialled address (`address`,
//! `dial`), again at each redirect. Responses are bounded in bytes and time (`fetch`, `body`) and made readable
//! (`charset`, `html`, `page`; a feed's entries: `feed`). Errors never contain a server's words, because errors enter
//! the conversation without a mark as untrusted.

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

/// A check of redirect targets by a person's rules. Returns the reason for a refusal, or `None` to allow the redirect.
pub type Gate<'a> = &'a dyn Fn(&Url) -> Option<String>;

/// The limits of one fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Maximum number of redirects followed.
    pub redirects: usize,
    /// Maximum bytes read of a body, both packed and unpacked; the rest is left unread.
    pub body_bytes: usize,
    /// Timeout for connecting to one address.
    pub connect_timeout: Duration,
    /// Timeout of the whole fetch, including name lookups and redirects.
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

/// Why a page couldn't be read, in our own words only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The URL is wrong; another URL may work.
    #[error("{0}")]
    Url(&'static str),
    /// The address is private. Only a person's grant helps, not another spelling.
    #[error("{}The address isn't on the public internet: it is {what}. I only go to addresses there that a person has granted.", if *.is_redirect { "A redirect leads inside: " } else { "" })]
    NotPublic {
        /// The kind of address.
        what: &'static str,
        /// True if a redirect led there.
        is_redirect: bool,
    },
    /// A redirect that isn't followed.
    #[error("{0}")]
    Redirect(&'static str),
    /// A redirect refused by a person's rules. The message contains nothing of the target.
    #[error("A redirect leads to where your person's rules don't let it go by itself; it was not followed.")]
    KeptBack {
        /// The target, chosen by the server.
        to: String,
        /// `https://host` of the redirecting server.
        by: String,
        /// The reason from the rules.
        why: String,
    },
    /// A temporary failure.
    #[error("{0}")]
    Unreachable(&'static str),
    /// The server answered with an error status.
    #[error("The server answers {}.", describe_status(*.0))]
    Status(u16),
    /// The content isn't text.
    #[error("{0}")]
    Unreadable(&'static str),
    /// A person has to change a setting.
    #[error("{0}")]
    Setting(&'static str),
}

/// Describes a status in the standard's words, not the server's.
fn describe_status(code: u16) -> String {
    let words = reqwest::StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    format!("{code}{}", words.map(|words| format!(" ({words})")).unwrap_or_default())
}

/// Access to the web for one cycle: grants, name resolver, limits and search engine.
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
    /// Sets the hosts outside the public internet that a person has granted.
    #[must_use]
    pub fn with_grants(self, grants: Grants) -> Self {
        Self { grants, ..self }
    }

    /// Sets the search engine.
    #[must_use]
    pub fn with_search_engine(self, engine: search::Engine) -> Self {
        Self { engine, ..self }
    }

    /// Sets the name resolver. Its answers are checked like the system's answers.
    #[must_use]
    pub fn with_names(self, names: impl Names + 'static) -> Self {
        Self { names: Arc::new(names), ..self }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(self, limits: FetchLimits) -> Self {
        Self { limits, ..self }
    }
}
