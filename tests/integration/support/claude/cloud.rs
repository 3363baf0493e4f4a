//! Fakes of the cloud providers that serve Claude. They check the client's identity like the real ones, with code independent of the
//! product's.
//!
//! A wrong key gets the provider's answer and is no violation, since people mistype keys. A request whose format around the conversation
//! isn't the provider's is a violation.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    hmac,
    signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents},
};
use serde_json::{Value, json};

use super::super::http::{Request, Response};

/// The end of a conversation with a cache mark, and the same end without it.
const MARKED: (&str, &str) = (r#","cache_control":{"type":"ephemeral"}}]}]}"#, "}]}]}");

/// A cloud provider's front end.
pub(crate) enum Cloud {
    Aws(Aws),
    Google(Google),
}

impl From<Aws> for Cloud {
    fn from(aws: Aws) -> Self {
        Self::Aws(aws)
    }
}

impl From<Google> for Cloud {
    fn from(google: Google) -> Self {
        Self::Google(google)
    }
}

/// Amazon Bedrock in `eu-west-1`.
pub(crate) struct Aws {
    /// The key that is valid only for Bedrock.
    pub(crate) bearer: String,
    pub(crate) key_id: String,
    pub(crate) secret: String,
    /// The session token, which a request signed with these keys must have.
    pub(crate) session: Option<String>,
    /// The present time to the minute, in the format of `x-amz-date`.
    pub(crate) minute: String,
}

/// Google Cloud, with its token server at `/token`.
pub(crate) struct Google {
    /// The public key of the service account: modulus and exponent.
    pub(crate) public_key: (Vec<u8>, Vec<u8>),
    pub(crate) email: String,
    pub(crate) refresh_token: String,
    /// The present time in seconds since 1970.
    pub(crate) now: i64,
    /// The beginning of the path in a request for an answer.
    pub(crate) path: String,
    /// The token that is accepted, and the number of tokens issued.
    pub(crate) token: Option<String>,
    pub(crate) given: usize,
    /// The number of requests for an answer.
    pub(crate) asked: usize,
    /// `true` if every token is refused.
    pub(crate) is_closed: bool,
}

/// The request's body as the API behind the provider sees it, or its fault.
type Inner = Result<String, String>;

impl Cloud {
    /// Passes a request on to the API, or answers it.
    pub(super) fn admit(&mut self, http: &Request) -> Result<Inner, Response> {
        match self {
            Self::Aws(aws) => aws.admit(http),
            Self::Google(google) => google.admit(http),
        }
    }

    pub(crate) fn google(&mut self) -> &mut Google {
        match self {
            Self::Google(google) => google,
            Self::Aws(_) => panic!("the cloud is AWS"),
        }
    }
}

/// Removes the cache mark from the body. The mark must be there once, without the direct API's own field for caching.
fn remove_cache_mark(body: &str) -> Inner {
    let json: Value = serde_json::from_str(body).map_err(|error| format!("body: {error}"))?;
    if json.get("cache_control").is_some() {
        return Err("cache_control: Extra inputs are not permitted".to_owned());
    }
    let bare = body.strip_suffix(MARKED.0).ok_or("messages: the last block isn't marked for the cache")?;
    Ok(format!("{bare}{}", MARKED.1))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Aws {
    fn admit(&self, http: &Request) -> Result<Inner, Response> {
        if let Err(why) = self.check_identity(http) {
            return Err(Response::json(403, &json!({"message": why})));
        }
        if (http.method.as_str(), http.target.as_str()) != ("POST", "/anthropic/v1/messages") {
            return Ok(Err(format!("path: {} {}", http.method, http.target)));
        }
        if http.header("anthropic-version") != Some("2023-06-01") || http.header("x-api-key").is_some() {
            return Ok(Err("headers: not those of the Messages API".to_owned()));
        }
        Ok(remove_cache_mark(&http.text()))
    }

    fn check_identity(&self, http: &Request) -> Result<(), &'static str> {
        let said = http.header("authorization").unwrap_or_default();
        if let Some(bearer) = said.strip_prefix("Bearer ") {
            return if bearer == self.bearer { Ok(()) } else { Err("Authentication failed: Invalid API Key") };
        }
        let parts: BTreeMap<&str, &str> = said
            .strip_prefix("AWS4-HMAC-SHA256 ")
            .ok_or("Missing Authentication Token")?
            .split(", ")
            .filter_map(|part| part.split_once('='))
            .collect();
        let date = http.header("x-amz-date").ok_or("x-amz-date is missing")?;
        if !date.starts_with(&self.minute) {
            return Err("Signature expired: check your system time");
        }
        let day = date.split('T').next().unwrap_or_default();
        let scope = format!("{day}/eu-west-1/bedrock-mantle/aws4_request");
        if parts["Credential"] != format!("{}/{scope}", self.key_id) {
            return Err("The security token included in the request is invalid.");
        }
        if http.header("x-amz-security-token") != self.session.as_deref() {
            return Err("The security token included in the request is invalid or expired");
        }
        let signed: Vec<&str> = parts["SignedHeaders"].split(';').collect();
        let amazons =
            http.headers.iter().map(|(name, _)| name.to_lowercase()).filter(|name| name.starts_with("x-amz-"));
        if !signed.contains(&"host") || !amazons.clone().all(|name| signed.contains(&name.as_str())) {
            return Err("'Host' or an 'X-Amz-' header must be a 'SignedHeader' in the AWS Authorization.");
        }
        let lines: String =
            signed.iter().map(|name| format!("{name}:{}\n", http.header(name).unwrap_or_default().trim())).collect();
        let body = hex(digest(&SHA256, &http.body).as_ref());
        let canonical = format!("{}\n{}\n\n{lines}\n{}\n{body}", http.method, http.target, signed.join(";"));
        let hash = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hash}");
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in scope.split('/').chain([to_sign.as_str()]) {
            key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
        }
        if hex(&key) == parts["Signature"] {
            Ok(())
        } else {
            Err("The request signature we calculated does not match the signature you provided.")
        }
    }
}

impl Google {
    fn admit(&mut self, http: &Request) -> Result<Inner, Response> {
        if http.target == "/token" {
            return Err(self.issue_token(http));
        }
        self.asked += 1;
        let bearer = http.header("authorization").and_then(|said| said.strip_prefix("Bearer "));
        if self.is_closed || bearer.is_none() || bearer != self.token.as_deref() {
            let said = "Request had invalid authentication credentials.";
            let error = json!({"code": 401, "message": said, "status": "UNAUTHENTICATED"});
            return Err(Response::json(401, &json!({"error": error})));
        }
        let Some(target) = http.target.strip_prefix(&self.path).filter(|_| http.method == "POST") else {
            let error = json!({"code": 404, "message": "Publisher Model was not found.", "status": "NOT_FOUND"});
            return Err(Response::json(404, &json!([{"error": error}])));
        };
        Ok(self.convert_request(target, http))
    }

    /// Converts a request to the form of Anthropic's API, with the model in the body.
    fn convert_request(&self, target: &str, http: &Request) -> Inner {
        let body = http.text();
        if http.header("x-api-key").is_some() {
            return Err("x-api-key: a key of Anthropic's".to_owned());
        }
        if target == "v1/messages" {
            let is_versioned = http.header("anthropic-version") == Some("2023-06-01");
            return is_versioned.then_some(body).ok_or_else(|| "anthropic-version: missing".to_owned());
        }
        let model = target.strip_suffix(":streamRawPredict").ok_or("path: not :streamRawPredict")?;
        let rest =
            body.strip_prefix(r#"{"anthropic_version":"vertex-2023-10-16","#).ok_or("anthropic_version: not first")?;
        if http.header("anthropic-version").is_some()
            || serde_json::from_str::<Value>(&body).unwrap().get("model").is_some()
        {
            return Err("model: Extra inputs are not permitted".to_owned());
        }
        remove_cache_mark(&format!(r#"{{"model":"{model}",{rest}"#))
    }

    fn issue_token(&mut self, http: &Request) -> Response {
        let form: BTreeMap<String, String> = reqwest::Url::parse(&format!("http://x/?{}", http.text()))
            .unwrap()
            .query_pairs()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let is_known = match field("grant_type") {
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => self.is_valid_assertion(field("assertion"), http),
            "refresh_token" => {
                field("refresh_token") == self.refresh_token
                    && (field("client_id"), field("client_secret"))
                        == ("client.apps.example", "client-secret-0123456789")
            }
            _ => false,
        };
        if !is_known {
            let why =
                json!({"error": "invalid_grant", "error_description": format!("Bad: {}", field("refresh_token"))});
            return Response::json(400, &why);
        }
        self.given += 1;
        let token = format!("ya29.fake-token-{:08}-0123456789", self.given);
        self.token = Some(token.clone());
        Response::json(200, &json!({"access_token": token, "expires_in": 3600, "token_type": "Bearer"}))
    }

    /// Returns `true` if a signed assertion is the service account's, for this server, and currently valid.
    fn is_valid_assertion(&self, assertion: &str, http: &Request) -> bool {
        let Some((signed, signature)) = assertion.rsplit_once('.') else { return false };
        let (n, e) = &self.public_key;
        let key = RsaPublicKeyComponents { n, e };
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        if key.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature).is_err() {
            return false;
        }
        let part = |at: usize| -> Value {
            let bytes = URL_SAFE_NO_PAD.decode(signed.split('.').nth(at).unwrap()).unwrap();
            serde_json::from_slice(&bytes).unwrap()
        };
        let (header, claims) = (part(0), part(1));
        let (from, until) = (claims["iat"].as_i64().unwrap(), claims["exp"].as_i64().unwrap());
        let here = format!("http://{}/token", http.header("host").unwrap());
        header == json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"})
            && claims["iss"] == self.email.as_str()
            && claims["aud"] == here.as_str()
            && claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
            && (self.now - 60..=self.now + 60).contains(&from)
            && (1..=3600).contains(&(until - from))
    }
}
