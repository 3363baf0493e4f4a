//! The ways in which ordinary tools encode a secret, to check whether a text contains one.

use serde_json::json;

/// The eight encodings in which the program promises to recognise a secret.
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

/// Finds an encoding of a secret in a text, ignoring white space and JSON's `\n`.
pub(crate) fn shown_in(text: &str, secret: &str) -> Option<String> {
    let bare = |text: &str| text.replace("\\n", "").replace(char::is_whitespace, "");
    let text = bare(text);
    // Only the middle is compared, since the ends of base64 depend on the surrounding text.
    let core = |spelling: &str| spelling.trim_matches('"').trim_end_matches('=').to_owned();
    spelled(secret).into_iter().find(|spelling| {
        let spelling = core(&bare(spelling));
        text.contains(spelling.get(8..spelling.len() - 4).unwrap())
    })
}
