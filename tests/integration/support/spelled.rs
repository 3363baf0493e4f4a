//! Secrets as ordinary tools write them, for looking whether one stands anywhere.

use serde_json::json;

/// The eight ways in which a secret is promised to be known.
pub(crate) fn spelled(secret: &str) -> [String; 8] {
    use base64::{Engine as _, engine::general_purpose as forms};
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let coded = forms::STANDARD.encode(secret);
    let wrapped: Vec<_> = coded.as_bytes().chunks(16).map(|line| std::str::from_utf8(line).unwrap()).collect();
    [
        secret.to_owned(),
        forms::URL_SAFE_NO_PAD.encode(format!("user:{secret}@")),
        hex.to_uppercase(),
        hex,
        secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        json!(secret).to_string(),
        wrapped.join("\n"),
        coded,
    ]
}

/// What of a secret stands in a text in any of the eight ways; white space aside, as it stands in JSON, too.
pub(crate) fn shown_in(text: &str, secret: &str) -> Option<String> {
    let bare = |text: &str| text.replace("\\n", "").replace(char::is_whitespace, "");
    let text = bare(text);
    // The middle of base64 is its own, whatever is around it.
    let core = |spelling: &str| spelling.trim_matches('"').trim_end_matches('=').to_owned();
    spelled(secret).into_iter().find(|spelling| {
        let spelling = core(&bare(spelling));
        text.contains(spelling.get(8..spelling.len() - 4).unwrap())
    })
}
