//! Web search: one engine without a key, and one with a key.
//!
//! Requests to an engine pass the same checks as requests for a page. An engine's address is a constant. Only code can
//! replace it ([`Engine::with_base_url`]), and the new address gets no grant.

mod brave;
mod duckduckgo;

use reqwest::{Url, header::HeaderMap};

use reveille_base::redact::Secret;

use super::{
    Gate, Web, WebError, charset,
    charset::TextForm,
    clean::clean_line,
    fetch::{Ask, Fetched},
    html::PageTree,
    page::{format_origin, run_blocking},
};

/// Maximum number of results.
const MAX_RESULTS: usize = 10;
/// Maximum length of a query, in characters: Brave's limit, the stricter one.
pub const MAX_QUERY_CHARS: usize = 400;
const MAX_TITLE_CHARS: usize = 200;
const MAX_SNIPPET_CHARS: usize = 500;

/// One hit. Its text is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebHit {
    /// The page's title, on one line.
    pub title: String,
    /// The page's address.
    pub url: String,
    /// The engine's quotation of the page, on one line.
    pub snippet: String,
}

/// The results of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResults {
    /// The hits, best first.
    pub hits: Vec<WebHit>,
    /// The engine's name, for people.
    pub engine: &'static str,
    /// `https://host` of the engine.
    pub origin: String,
}

/// A search engine.
#[derive(Debug, Clone)]
pub struct Engine {
    base_url: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    DuckDuckGo,
    Brave(Secret),
}

impl Default for Engine {
    fn default() -> Self {
        Self { base_url: duckduckgo::URL.to_owned(), kind: Kind::DuckDuckGo }
    }
}

impl Engine {
    /// Returns Brave's engine, which needs a key.
    pub fn brave(key: Secret) -> Self {
        Self { base_url: brave::URL.to_owned(), kind: Kind::Brave(key) }
    }

    /// Replaces the address, for a test's server.
    #[must_use]
    pub fn with_base_url(self, base_url: &str) -> Self {
        Self { base_url: base_url.to_owned(), ..self }
    }

    /// Returns the engine's name, for people.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::DuckDuckGo => "DuckDuckGo",
            Kind::Brave(_) => "Brave Search",
        }
    }
}

impl Web {
    /// Searches the web. The gate is called for each redirect of the engine.
    ///
    /// # Errors
    /// The reason, in our own words instead of the engine's. A refusal or an unknown format is an error, never an empty result.
    pub async fn search(&self, query: &str, gate: Gate<'_>) -> Result<WebResults, WebError> {
        let engine = self.engine.clone();
        let mut url =
            Url::parse(&engine.base_url).map_err(|_| WebError::Setting("The search engine has no address."))?;
        url.query_pairs_mut().append_pair("q", query);
        let headers = match &engine.kind {
            Kind::DuckDuckGo => HeaderMap::new(),
            Kind::Brave(key) => brave::prepare_request(&mut url, key, MAX_RESULTS)?,
        };
        let fetched =
            self.fetch(Ask { url: url.as_str(), headers, gate }).await.map_err(|error| match &engine.kind {
                Kind::DuckDuckGo => duckduckgo::translate_error(error),
                Kind::Brave(_) => brave::translate_error(error),
            })?;
        let (name, origin, kind) = (engine.name(), format_origin(&url), engine.kind);
        let hits = run_blocking(move || parse_results(&kind, &fetched)).await??;
        Ok(WebResults { hits, engine: name, origin })
    }
}

fn parse_results(kind: &Kind, fetched: &Fetched) -> Result<Vec<WebHit>, WebError> {
    let text = charset::decode(&fetched.body, Some("utf-8"), TextForm::Plain);
    let hits = match kind {
        Kind::DuckDuckGo => duckduckgo::parse_hits(&PageTree::parse(&text))?,
        Kind::Brave(_) => brave::parse_hits(&text)?,
    };
    Ok(hits.into_iter().filter_map(WebHit::bound_texts).take(MAX_RESULTS).collect())
}

impl WebHit {
    /// Bounds the hit's texts; `None` if its address isn't a web page's.
    fn bound_texts(self) -> Option<Self> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let url = Some(url.to_string()).filter(|url| url.len() <= super::address::MAX_URL_BYTES)?;
        let (title, snippet) = (clean_line(&self.title, MAX_TITLE_CHARS), clean_line(&self.snippet, MAX_SNIPPET_CHARS));
        Some(Self { title: if title.is_empty() { "(no title)".to_owned() } else { title }, url, snippet })
    }
}

#[cfg(test)]
mod tests;
