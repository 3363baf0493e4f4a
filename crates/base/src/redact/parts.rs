//! Parts of a secret that are secret by themselves.
//!
//! A Telegram token is a public bot name, a colon and the key. The same holds for a password after a user name, a credential after its
//! scheme, each value of a list, and each line of a private key.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{MIN_SECRET_BYTES, decode_percent};

/// Words in the names of fields, variables and parameters with secret values.
const SECRET_NAMES: [&str; 7] = ["AUTH", "COOKIE", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN"];
/// The schemes of credentials in headers.
const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "apikey", "bot"];
/// The minimum length in bytes of a password after a name; shorter ones (`x:443`) occur in ordinary text.
const MIN_PASSWORD_BYTES: usize = 8;
/// The minimum length in bytes of a mixed value of a list; shorter ones (`theme=dark`) are ordinary words.
const MIN_LISTED_BYTES: usize = 12;
/// The minimum length in bytes of a user name in a URL to count as a token.
const MIN_USER_BYTES: usize = 20;
/// The minimum length in bytes of a line of a private key. The last line may be shorter.
const MIN_KEY_LINE_BYTES: usize = 24;
/// The maximum nesting of parts: `Basic` in a list, with a name and a password inside.
const MAX_DEPTH: u32 = 4;

/// The texts to search for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SecretParts {
    /// Whole secrets and their parts, to be found in every spelling.
    pub(super) spelled: BTreeSet<String>,
    /// Lines of private keys, to be found as written: a key has dozens, and is base64 already.
    pub(super) lines: BTreeSet<String>,
}

impl SecretParts {
    /// Collects the parts of these secrets.
    pub(super) fn from_secrets<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut parts = Self::default();
        secrets.for_each(|secret| parts.add_secret(secret, MAX_DEPTH));
        parts
    }

    fn add_secret(&mut self, secret: &str, depth: u32) {
        let secret = secret.trim();
        if secret.len() < MIN_SECRET_BYTES || !self.spelled.insert(secret.to_owned()) {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        if secret.contains("-----BEGIN ") {
            self.lines.extend(key_lines(secret).map(str::to_owned));
            return;
        }
        for part in find_passwords(secret) {
            self.add_secret(&part, depth);
        }
        if secret.contains("://") {
            return;
        }
        if let Ok(Value::Object(fields)) = serde_json::from_str(secret) {
            let named = fields.iter().filter(|(name, _)| is_secret_name(name));
            named.filter_map(|(_, value)| value.as_str()).for_each(|value| self.add_secret(value, depth));
            return;
        }
        let credential = find_credential(secret);
        if let Some(credential) = credential {
            self.add_secret(credential, depth);
            let decoded = STANDARD.decode(credential).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            decoded.iter().for_each(|pair| self.add_secret(pair, depth));
        }
        for value in split_list(secret) {
            self.add_secret(value, depth);
        }
        // fault: half-bots-token-secret
        if let Some(password) = password_behind_name(secret) {
            self.add_secret(password, depth);
        }
    }
}

/// Returns true if a value of this name is secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Extracts passwords and tokens from the URLs in a text, from user info and query.
pub(super) fn find_passwords(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let rest = text.get(at + 3..).unwrap_or_default();
        let rest = rest.split(|c: char| c.is_whitespace() || "\"'<>".contains(c)).next().unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some((info, _)) = authority.rsplit_once('@') {
            let (user, password) = info.split_once(':').map_or((info, ""), |(user, password)| (user, password));
            found.extend(Some(password).filter(|password| !password.is_empty()).map(str::to_owned));
            found.extend(Some(user).filter(|user| user.len() >= MIN_USER_BYTES).map(str::to_owned));
        }
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split(['&', ';', '#']).filter_map(|pair| pair.split_once('='));
        found.extend(pairs.filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.to_owned()));
    }
    // Add the decoded form to the sent form.
    let typed: Vec<String> =
        found.iter().map(|part| decode_percent(part)).filter(|part| !found.contains(part)).collect();
    found.extend(typed);
    found
}

/// The credential after a scheme, such as `abc` in `Bearer abc`, with or without a header name.
fn find_credential(secret: &str) -> Option<&str> {
    let value = match secret.split_once(": ") {
        Some((name, value)) if is_secret_name(name) => value.trim_start(),
        _ => secret,
    };
    let (scheme, credential) = value.split_once(char::is_whitespace)?;
    let is_one = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
    is_one.then_some(credential.trim()).filter(|credential| !credential.contains(char::is_whitespace))
}

/// Splits lists, pairs of a cookie or a connection string, and lines of `NAME=value`.
fn split_list(secret: &str) -> impl Iterator<Item = &str> {
    let values: Vec<&str> = secret
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '|'))
        .map(|piece| match piece.split_once('=') {
            // Base64 may end in `=`.
            Some((_, value)) if !value.trim_matches('=').is_empty() => value.trim_matches(['"', '\'']),
            _ => piece.trim_matches(['"', '\'']),
        })
        .collect();
    let is_list = values.len() > 1 || values.first().is_some_and(|only| only.len() < secret.len());
    let is_secret = |value: &&str| {
        let has = |is_such: fn(&u8) -> bool| value.as_bytes().iter().any(is_such);
        value.len() >= MIN_LISTED_BYTES && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    values.into_iter().filter(move |value| is_list && is_secret(value))
}

/// The password of `name:password`: of a person, a bot, or a pair of keys.
fn password_behind_name(secret: &str) -> Option<&str> {
    let (name, password) = secret.split_once(':')?;
    let is_name = !name.is_empty() && !secret.contains(char::is_whitespace);
    (is_name && password.len() >= MIN_PASSWORD_BYTES).then_some(password)
}

/// The base64 lines of a key block. In JSON a line break is written `\n`.
fn key_lines(block: &str) -> impl Iterator<Item = &str> {
    let lines = block.split(['\n', '\r']).flat_map(|line| line.split("\\n")).map(str::trim);
    let is_key = |line: &&str| {
        line.len() >= MIN_KEY_LINE_BYTES
            && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
    };
    lines.filter(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    fn spelled(secret: &str) -> Vec<String> {
        SecretParts::from_secrets([secret].into_iter()).spelled.into_iter().filter(|part| part != secret).collect()
    }

    #[test]
    fn what_is_secret_alone_is_a_part() {
        let basic = STANDARD.encode("ana:correct-horse");
        for (secret, parts) in [
            ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", vec!["AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"]),
            ("ana:correct-horse", vec!["correct-horse"]),
            (&format!("AKIAIOSFODNN7EXAMPLE:{KEY}"), vec![KEY]),
            (&format!("AKIAIOSFODNN7EXAMPLE,{KEY}"), vec!["AKIAIOSFODNN7EXAMPLE", KEY]),
            ("Bearer abcdef-123456", vec!["abcdef-123456"]),
            ("Authorization: token abcdef-123456", vec!["abcdef-123456"]),
            (&format!("Basic {basic}"), vec![&*basic, "ana:correct-horse", "correct-horse"]),
            ("https://ana:p%40ssword@example.org/x", vec!["p%40ssword", "p@ssword"]),
            (
                "https://glpat-0123456789abcdefgh:x-oauth-basic@example.org",
                vec!["glpat-0123456789abcdefgh", "x-oauth-basic"],
            ),
            ("https://example.org/mcp?a=b&api_key=abcdef123", vec!["abcdef123"]),
            ("theme=dark; session=abcdef123456; lang=en", vec!["abcdef123456"]),
            ("host=db user=ana password=abcdef123456", vec!["abcdef123456"]),
        ] {
            assert_eq!(spelled(secret), parts, "{secret}");
        }
    }

    #[test]
    fn what_is_one_secret_has_no_parts() {
        for secret in ["open sesame", "hunter2&\"pass word\"<42>", "sk-ant-api03-abcdefghij", "host:443", KEY, "YWJj=="]
        {
            assert_eq!(spelled(secret), [""; 0], "{secret}");
        }
    }

    #[test]
    fn each_line_of_a_private_key_is_looked_for() {
        let (first, second) = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "c3VjaCBpcyBhIGxpbmUgb2YgYSBrZXku");
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{first}\n{second}\nx=\n-----END PRIVATE KEY-----\n");
        let file =
            serde_json::json!({"type": "service_account", "client_email": "a@b", "private_key": pem}).to_string();
        for secret in [&pem, &pem.replace('\n', "\\n"), &file] {
            let lines = SecretParts::from_secrets([secret.as_str()].into_iter()).lines;
            assert_eq!(lines.iter().collect::<Vec<_>>(), [first, second], "{secret}");
        }
    }
}
