//! Brave's search API, version 1.

use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::Deserialize;

use reveille_base::redact::Secret;

use super::WebHit;
use crate::web::{WebError, html::PageTree};

pub(super) const URL: &str = "https://api.search.brave.com/res/v1/web/search";

/// The used parts of an answer.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "type")]
    kind: String,
    /// Missing without results.
    #[serde(default)]
    web: Option<Results>,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    results: Vec<WebResult>,
}

#[derive(Deserialize)]
struct WebResult {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default)]
    description: String,
}

/// Adds the result count to the URL and returns the authentication header.
pub(super) fn prepare_request(url: &mut Url, key: &Secret, count: usize) -> Result<HeaderMap, WebError> {
    url.query_pairs_mut().append_pair("count", &count.to_string());
    let key = HeaderValue::from_str(key.expose().trim());
    let mut key =
        key.map_err(|_| WebError::Setting("BRAVE_API_KEY isn't a key: it has characters that keys can't have."))?;
    key.set_sensitive(true);
    Ok(HeaderMap::from_iter([(HeaderName::from_static("x-subscription-token"), key)]))
}

/// Translates an error for this engine.
pub(super) fn translate_error(error: WebError) -> WebError {
    match error {
        WebError::Status(401 | 403 | 422) => WebError::Setting(
            "Brave refused the search, most likely because of the key: check BRAVE_API_KEY. Without a key, I search with DuckDuckGo.",
        ),
        WebError::Status(402 | 429) => WebError::Unreachable(
            "Brave accepts no more searches for now: the key's allowance is used up. Try again later.",
        ),
        error => error,
    }
}

/// Parses the results of an answer.
pub(super) fn parse_hits(answer: &str) -> Result<Vec<WebHit>, WebError> {
    let answer: Option<Answer> = serde_json::from_str(answer).ok();
    let changed = WebError::Unreadable("I can't read Brave's answer.");
    let answer = answer.filter(|answer| answer.kind == "search").ok_or(changed)?;
    let results = answer.web.map(|web| web.results).unwrap_or_default();
    // Titles and descriptions are HTML with highlighted words.
    let plain = |html: &str| {
        let page = PageTree::parse(html);
        page.all_text(page.root())
    };
    let hit = |result: WebResult| WebHit {
        title: plain(&result.title),
        url: result.url,
        snippet: plain(&result.description),
    };
    Ok(results.into_iter().map(hit).collect())
}
