use super::*;

const RESULTS: &str = r#"<html><body><div class="serp__results"><div id="links" class="results">
<div class="result results_links results_links_deep result--ad">
  <h2 class="result__title"><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Buy bread</a></h2></div>
<div class="result results_links results_links_deep web-result">
  <h2 class="result__title"><a rel="nofollow" class="result__a"
     href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Fbread%3Fa%3Db%26c&amp;rut=0123">How to <b>bake</b> bread</a></h2>
  <a class="result__url" href="x">example.org</a>
  <a class="result__snippet" href="x">Mix <b>flour</b> &amp; water,
     then wait.</a></div>
<div class="result results_links web-result"><h2><a class="result__a" href="https://example.com/">Direct</a></h2></div>
<div class="result web-result"><h2><a class="result__a" href="javascript:alert(1)">No page</a></h2></div>
</div></div></body></html>"#;

fn duckduckgo(page: &str) -> Result<Vec<WebHit>, WebError> {
    let body = page.as_bytes().to_vec();
    let url = Url::parse(duckduckgo::URL).unwrap();
    parse_results(&Kind::DuckDuckGo, &Fetched { url, content_type: None, body, is_cut: false })
}

fn brave(answer: &str) -> Result<Vec<WebHit>, WebError> {
    let body = answer.as_bytes().to_vec();
    let url = Url::parse(brave::URL).unwrap();
    parse_results(&Kind::Brave(Secret::new("k")), &Fetched { url, content_type: None, body, is_cut: false })
}

fn hit(title: &str, url: &str, snippet: &str) -> WebHit {
    WebHit { title: title.into(), url: url.into(), snippet: snippet.into() }
}

#[test]
fn duckduckgos_results_are_read_without_advertisements() {
    assert_eq!(
        duckduckgo(RESULTS).unwrap(),
        [
            hit("How to bake bread", "https://example.org/bread?a=b&c", "Mix flour & water, then wait."),
            hit("Direct", "https://example.com/", ""),
        ]
    );
}

#[test]
fn an_empty_result_differs_from_a_refusal_and_a_changed_page() {
    let nothing = r#"<div class="results"><div class="result result--no-result"><div class="no-results">No results.</div></div></div>"#;
    assert_eq!(duckduckgo(nothing), Ok(Vec::new()));
    let challenge =
        r#"<form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html"><div class="anomaly-modal__title">"#;
    assert!(matches!(duckduckgo(challenge), Err(WebError::Unreachable(_))));
    for changed in ["", "<p>Hello", "<div class=new-results><a href=https://example.org>x</a></div>"] {
        assert!(matches!(duckduckgo(changed), Err(WebError::Unreadable(_))), "{changed}");
    }
    assert!(matches!(duckduckgo::translate_error(WebError::Status(429)), WebError::Unreachable(_)));
    assert_eq!(duckduckgo::translate_error(WebError::Status(500)), WebError::Status(500));
}

#[test]
fn braves_results_are_read_without_their_marks() {
    let answer = r#"{"type":"search","query":{"original":"x"},"web":{"type":"search","results":[
        {"title":"Bread &amp; <strong>butter</strong>","url":"https://example.org/","description":"A <strong>loaf</strong>","more":1},
        {"title":"","url":"https://example.com/"},
        {"title":"bad","url":"file:///etc/passwd"}]}}"#;
    assert_eq!(
        brave(answer).unwrap(),
        [hit("Bread & butter", "https://example.org/", "A loaf"), hit("(no title)", "https://example.com/", "")]
    );
    assert_eq!(brave(r#"{"type":"search","query":{}}"#), Ok(Vec::new()));
    for changed in
        ["", "{}", "[]", "<html>", r#"{"type":"error"}"#, r#"{"type":"search","web":{"results":[{"title":"x"}]}}"#]
    {
        assert!(matches!(brave(changed), Err(WebError::Unreadable(_))), "{changed}");
    }
    assert!(matches!(brave::translate_error(WebError::Status(422)), WebError::Setting(_)));
    assert!(matches!(brave::translate_error(WebError::Status(429)), WebError::Unreachable(_)));
}

#[test]
fn hits_are_bounded_in_number_and_length() {
    let result = format!(
        r#"<div class=result><a class=result__a href=https://example.org/>{0}</a><a class=result__snippet>{0}</a></div>"#,
        "word ".repeat(1_000)
    );
    let hits = duckduckgo(&result.repeat(50)).unwrap();
    assert_eq!(hits.len(), MAX_RESULTS);
    assert!(hits.iter().all(|hit| hit.title.chars().count() <= MAX_TITLE_CHARS + 1));
    assert!(hits.iter().all(|hit| hit.snippet.chars().count() <= MAX_SNIPPET_CHARS + 1));
}
