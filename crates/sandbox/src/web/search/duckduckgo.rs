//! DuckDuckGo's page for browsers without scripts. The format isn't guaranteed, so unrecognized pages are errors.

use reqwest::Url;

use super::WebHit;
use crate::web::{
    WebError,
    html::{Id, PageTree},
};

pub(super) const URL: &str = "https://html.duckduckgo.com/html/";

const BLOCKED: WebError = WebError::Unreachable(
    "DuckDuckGo takes me for a robot and shows no results for now. Try again later, or set BRAVE_API_KEY to search with Brave.",
);

/// Translates an error for this engine.
pub(super) fn translate_error(error: WebError) -> WebError {
    match error {
        WebError::Status(403 | 418 | 429) => BLOCKED,
        error => error,
    }
}

/// Parses the results on a result page.
pub(super) fn parse_hits(page: &PageTree) -> Result<Vec<WebHit>, WebError> {
    let all = |class: &'static str| page.iter_subtree(page.root()).filter(move |id| page.has_class(*id, class));
    let is_advert = |id: &Id| page.has_class(*id, "result--ad") || page.has_class(*id, "result--no-result");
    let results: Vec<_> = all("result").filter(|id| !is_advert(id)).collect();
    let hits: Vec<_> = results.iter().filter_map(|result| parse_hit(page, *result)).collect();
    if !hits.is_empty() {
        return Ok(hits);
    }
    let is_challenge = |id: Id| {
        let name = [page.attribute(id, "class"), page.attribute(id, "id"), page.attribute(id, "action")];
        name.into_iter().flatten().any(|name| name.contains("anomaly") || name.contains("challenge"))
    };
    if page.iter_subtree(page.root()).any(is_challenge) {
        return Err(BLOCKED);
    }
    if all("no-results").chain(all("result--no-result")).next().is_some() {
        return Ok(Vec::new());
    }
    Err(WebError::Unreadable("I can no longer read DuckDuckGo's page. Set BRAVE_API_KEY to search with Brave."))
}

fn parse_hit(page: &PageTree, result: Id) -> Option<WebHit> {
    let find = |class: &str| page.iter_subtree(result).find(|id| page.has_class(*id, class));
    let link = find("result__a")?;
    let snippet = find("result__snippet").map(|snippet| page.all_text(snippet)).unwrap_or_default();
    let url = find_redirect_target(page.attribute(link, "href")?)?;
    Some(WebHit { title: page.all_text(link), url, snippet })
}

/// Returns the target of DuckDuckGo's redirect address; `None` for an advertisement.
fn find_redirect_target(href: &str) -> Option<String> {
    let url = Url::parse(URL).ok()?.join(href).ok()?;
    let is_own = url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    if !is_own {
        return Some(url.to_string());
    }
    url.query_pairs().find(|(name, _)| name == "uddg").map(|(_, page)| page.into_owned())
}
