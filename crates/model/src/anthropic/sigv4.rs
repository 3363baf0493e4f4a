//! AWS Signature Version 4: authenticates a request by a secret key without sending the key. Pure.
//!
//! The signature covers the canonical form of a request: method, path, query, some headers and the hash of the body. The signing key is
//! derived from the secret key for a day, a region and a service.

use chrono::{DateTime, Utc};
use ring::{digest, hmac};

use reveille_base::{random::format_hex, redact::Secret, words};

/// The algorithm's name in headers and in the signed text.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// An access key of AWS.
#[derive(Debug, Clone)]
pub struct AwsKeys {
    /// The key's id, sent with each request.
    pub access_key_id: String,
    /// The secret key.
    pub secret_access_key: Secret,
    /// The session token of temporary keys.
    pub session_token: Option<Secret>,
}

/// The time, region and service of a signature.
#[derive(Debug, Clone, Copy)]
pub(super) struct SigningScope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) at: DateTime<Utc>,
}

/// A request to sign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a str,
    /// The encoded path.
    pub(super) path: &'a str,
    /// The encoded query, without the question mark.
    pub(super) query: &'a str,
    /// The headers to sign, with `host`.
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

impl SigningScope<'_> {
    /// Returns the time in the format of `x-amz-date`.
    pub(super) fn format_date(&self) -> String {
        self.at.format("%Y%m%dT%H%M%SZ").to_string()
    }

    fn format_day(&self) -> String {
        self.at.format("%Y%m%d").to_string()
    }

    fn format_credential(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.format_day(), self.region, self.service)
    }

    /// Builds the `authorization` header. The request's headers must include `x-amz-date`, from [`SigningScope::format_date`].
    pub(super) fn build_authorization(&self, keys: &AwsKeys, request: Unsigned<'_>) -> String {
        let (canonical, signed) = canonicalize_request(request);
        let hash = format_hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let credential = self.format_credential();
        let to_sign = format!("{ALGORITHM}\n{}\n{credential}\n{hash}", self.format_date());
        let signature = format_hex(compute_mac(&self.signing_key(keys), &to_sign).as_ref());
        format!(
            "{ALGORITHM} Credential={}/{credential}, SignedHeaders={signed}, Signature={signature}",
            keys.access_key_id
        )
    }

    /// Derives the key for the day, the region and the service.
    fn signing_key(&self, keys: &AwsKeys) -> Vec<u8> {
        let first = format!("AWS4{}", keys.secret_access_key.expose()).into_bytes();
        let parts = [self.format_day().as_str(), self.region, self.service, "aws4_request"].map(str::to_owned);
        parts.iter().fold(first, |key, part| compute_mac(&key, part).as_ref().to_vec())
    }
}

fn compute_mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// Returns a request's canonical form and the names of its headers.
fn canonicalize_request(request: Unsigned<'_>) -> (String, String) {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in request.headers {
        let (name, value) = (name.to_ascii_lowercase(), words::one_line(value));
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => *values = format!("{values},{value}"),
            None => headers.push((name, value)),
        }
    }
    headers.sort();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let signed = headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(";");
    let body = format_hex(digest::digest(&digest::SHA256, request.body).as_ref());
    let (path, query) = (encode_path(request.path), sort_query(request.query));
    (format!("{}\n{path}\n{query}\n{lines}\n{signed}\n{body}", request.method), signed)
}

/// Encodes the path once more, as the signature requires.
fn encode_path(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Sorts the query by parameter names.
fn sort_query(query: &str) -> String {
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let mut parameters: Vec<(&str, &str)> =
        parameters.map(|parameter| parameter.split_once('=').unwrap_or((parameter, ""))).collect();
    parameters.sort_unstable();
    parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use reveille_base::clock::parse_time;

    #[derive(Deserialize)]
    struct Suite {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Case {
        name: String,
        request: String,
        canonical: String,
        signature: String,
        token: Option<String>,
        omit_session_token: bool,
        sign_body: bool,
        normalize: bool,
    }

    /// Normalizes a path as clients do before sending; in our case the URL parser has done so.
    fn normalized(path: &str) -> String {
        let mut kept: Vec<&str> = Vec::new();
        for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
            match segment {
                ".." => drop(kept.pop()),
                segment => kept.push(segment),
            }
        }
        let is_folder = path.ends_with('/') && !kept.is_empty();
        format!("/{}{}", kept.join("/"), if is_folder { "/" } else { "" })
    }

    fn check(case: &Case) {
        let scope =
            SigningScope { region: "us-east-1", service: "service", at: parse_time("2015-08-30T12:36:00Z").unwrap() };
        let (head, body) = case.request.split_once("\n\n").unwrap_or((case.request.trim_end(), ""));
        // A value may continue in lines that begin with a blank.
        let head = head.replace("\n ", " ");
        let (first, lines) = head.split_once('\n').unwrap();
        let (method, target) = first.strip_suffix(" HTTP/1.1").unwrap().split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query: String =
            query.chars().map(|c| if c.is_ascii() { c.into() } else { encode_path(&c.to_string()) }).collect();
        let path = if case.normalize { normalized(path) } else { path.to_owned() };
        let (date, hash) = (scope.format_date(), format_hex(digest::digest(&digest::SHA256, body.as_bytes()).as_ref()));
        let mut headers: Vec<(&str, &str)> = lines.lines().map(|line| line.split_once(':').unwrap()).collect();
        headers.push(("X-Amz-Date", &date));
        if case.sign_body {
            headers.push(("x-amz-content-sha256", &hash));
        }
        let signed_token = case.token.as_deref().filter(|_| !case.omit_session_token);
        headers.extend(signed_token.map(|token| ("X-Amz-Security-Token", token)));
        let request = Unsigned { method, path: &path, query: &query, headers: &headers, body: body.as_bytes() };
        assert_eq!(canonicalize_request(request).0, case.canonical, "{}", case.name);
        let keys = AwsKeys {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: case.token.clone().map(Secret::new),
        };
        let authorization = scope.build_authorization(&keys, request);
        let begins = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=";
        assert!(authorization.starts_with(begins), "{authorization}");
        assert!(authorization.ends_with(&format!("Signature={}", case.signature)), "{}: {authorization}", case.name);
    }

    #[test]
    fn every_case_of_the_official_suite_is_signed_as_it_says() {
        let suite: Suite = serde_json::from_str(include_str!("sigv4/vectors.json")).unwrap();
        assert_eq!(suite.cases.len(), 38);
        suite.cases.iter().for_each(check);
    }

    #[test]
    fn a_path_that_is_encoded_already_is_signed_encoded_once_more() {
        assert_eq!(encode_path("/test/@connections/a%3D"), "/test/%40connections/a%253D");
        assert_eq!(encode_path("/anthropic/v1/messages"), "/anthropic/v1/messages");
    }
}
