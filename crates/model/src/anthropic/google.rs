//! Access tokens for Claude on Google Cloud, created from a service account's key or a person's login. Tokens are cached and renewed
//! shortly before they expire.
//!
//! The login file is written by Google's tools. A service account's key signs a statement (a JSON web token), which the token server
//! exchanges for an access token. A person's login contains a refresh token for the same purpose.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Client;
use ring::{rsa, signature};
use serde::Deserialize;

use reveille_base::{
    clock::Clock,
    random,
    redact::{Redactor, Secret},
};
use reveille_config::{read_private, safe_server_url};
use reveille_memory::outside::{Origin, Outside};

use super::{build_transient, connection_fault, read_bounded};
use crate::ModelError;

/// The token server if the file names none.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// The scope of a token: all of Google Cloud, limited by the account's roles.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The grant type of a signed statement, named in RFC 7523.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Lifetime of a statement, the longest that Google accepts.
const STATEMENT_LIFE: TimeDelta = TimeDelta::hours(1);
/// Remaining lifetime at which a token is renewed.
const RENEWED_BEFORE_END: TimeDelta = TimeDelta::minutes(2);
/// Maximum bytes read of the token server's answer.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// The access tokens of one login.
pub(super) struct GoogleTokens {
    /// The login file, read at the first request for a token.
    path: PathBuf,
    clock: Arc<dyn Clock>,
    kept: Mutex<Option<Kept>>,
}

#[derive(Clone)]
struct Kept {
    token: Secret,
    until: DateTime<Utc>,
}

impl GoogleTokens {
    pub(super) fn new(path: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { path, clock, kept: Mutex::new(None) }
    }

    /// Returns an access token that stays valid for at least [`RENEWED_BEFORE_END`].
    pub(super) async fn ensure_token(&self, client: &Client) -> Result<Secret, ModelError> {
        let now = self.clock.now();
        if let Some(kept) = self.read_cache().filter(|kept| now + RENEWED_BEFORE_END < kept.until) {
            return Ok(kept.token);
        }
        let login = GoogleLogin::load(&self.path).map_err(|why| ModelError::Account { why })?;
        let kept =
            login.request_token(client, &self.path, now).await.map_err(|error| error.redact(&login.redactor()))?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept.clone());
        Ok(kept.token)
    }

    /// Discards a refused token. Returns true if there was a token.
    pub(super) fn forget(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Returns the cached token, for masking.
    pub(super) fn secret(&self) -> Option<Secret> {
        self.read_cache().map(|kept| kept.token)
    }

    fn read_cache(&self) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the secrets in the login file for masking, or nothing if the file is unusable. Access tokens are masked by their shape.
pub fn login_secrets(path: &Path) -> Vec<Secret> {
    let login = GoogleLogin::load(path).ok();
    login.iter().flat_map(GoogleLogin::secrets).cloned().collect()
}

/// The account that requests tokens.
struct GoogleLogin {
    token_uri: String,
    who: Who,
}

enum Who {
    ServiceAccount { email: String, key_id: Option<String>, private_key: Secret },
    Person { client_id: String, client_secret: Secret, refresh_token: Secret },
}

/// The file format of Google's tools.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum LoginFile {
    ServiceAccount {
        client_email: String,
        private_key_id: Option<String>,
        private_key: String,
        token_uri: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        token_uri: Option<String>,
    },
}

/// The token server's answer.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenAnswer {
    access_token: Option<String>,
    /// In seconds.
    expires_in: Option<i64>,
    error: Option<String>,
    error_description: Option<String>,
}

impl GoogleLogin {
    fn load(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let private = read_private(path).map_err(|why| {
            format!("the Google login {shown} {why}. Set GOOGLE_APPLICATION_CREDENTIALS to a file that is yours alone")
        })?;
        Self::parse(&private.text).map_err(|why| format!("the Google login {shown} can't be used: {why}"))
    }

    /// Parses the login file. Errors never quote the file, since it is full of secrets.
    fn parse(text: &str) -> Result<Self, String> {
        let file: LoginFile = serde_json::from_str(text).map_err(|_| {
            "it is neither a service account's key nor what `gcloud auth application-default login` writes".to_owned()
        })?;
        let (who, token_uri) = match file {
            LoginFile::ServiceAccount { client_email: email, private_key_id: key_id, private_key, token_uri } => {
                (Who::ServiceAccount { email, key_id, private_key: private_key.into() }, token_uri)
            }
            LoginFile::AuthorizedUser { client_id, client_secret, refresh_token, token_uri } => {
                let (client_secret, refresh_token) = (client_secret.into(), refresh_token.into());
                (Who::Person { client_id, client_secret, refresh_token }, token_uri)
            }
        };
        let token_uri = token_uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        safe_server_url(&token_uri).map_err(|expected| format!("its token_uri must be {expected}"))?;
        Ok(Self { token_uri, who })
    }

    fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets())
    }

    fn secrets(&self) -> Vec<&Secret> {
        match &self.who {
            Who::ServiceAccount { private_key, .. } => vec![private_key],
            Who::Person { client_secret, refresh_token, .. } => vec![client_secret, refresh_token],
        }
    }

    /// Builds the form for the token server.
    fn build_form(&self, now: DateTime<Utc>) -> Result<Vec<(&'static str, String)>, String> {
        Ok(match &self.who {
            Who::ServiceAccount { email, key_id, private_key } => {
                let statement = self.sign_statement(email, key_id.as_deref(), private_key, now)?;
                vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", statement)]
            }
            Who::Person { client_id, client_secret, refresh_token } => vec![
                ("grant_type", "refresh_token".to_owned()),
                ("client_id", client_id.clone()),
                ("client_secret", client_secret.expose().to_owned()),
                ("refresh_token", refresh_token.expose().to_owned()),
            ],
        })
    }

    /// Signs a JSON web token (RS256).
    fn sign_statement(
        &self,
        email: &str,
        key_id: Option<&str>,
        key: &Secret,
        now: DateTime<Utc>,
    ) -> Result<String, String> {
        let mut header = serde_json::json!({"alg": "RS256", "typ": "JWT"});
        if let (Some(id), Some(header)) = (key_id, header.as_object_mut()) {
            header.insert("kid".to_owned(), id.into());
        }
        let claims = serde_json::json!({
            "iss": email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": now.timestamp(),
            "exp": (now + STATEMENT_LIFE).timestamp(),
        });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let unusable = || "its private_key is damaged. Make a new key for the service account".to_owned();
        let pair = rsa::KeyPair::from_pkcs8(&decode_pem(key).ok_or_else(unusable)?).map_err(|_| unusable())?;
        let mut bytes = vec![0; pair.public().modulus_len()];
        pair.sign(&signature::RSA_PKCS1_SHA256, &random::create_source(), signed.as_bytes(), &mut bytes)
            .map_err(|_| unusable())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    async fn request_token(&self, client: &Client, path: &Path, now: DateTime<Utc>) -> Result<Kept, ModelError> {
        let unusable =
            |why| ModelError::Account { why: format!("the Google login {} can't be used: {why}", path.display()) };
        let form = self.build_form(now).map_err(unusable)?;
        let request = client.post(&self.token_uri).form(&form).timeout(super::CONNECT_TIMEOUT * 3);
        let mut response =
            request.send().await.map_err(|error| build_transient(connection_fault("Google's token server", &error)))?;
        let status = response.status().as_u16();
        let body = read_bounded(&mut response, MAX_ANSWER_BYTES).await;
        let answer: TokenAnswer = serde_json::from_slice(&body).unwrap_or_default();
        if let (200, Some(token)) = (status, answer.access_token) {
            let life = TimeDelta::seconds(answer.expires_in.unwrap_or(0).clamp(0, 24 * 60 * 60));
            return Ok(Kept { token: Secret::new(token), until: now + life });
        }
        let said = [answer.error, answer.error_description].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let said = if said.is_empty() { String::new() } else { format!(": {}", Outside::new(Origin::Model, &said)) };
        if matches!(status, 408 | 429 | 500..=599) {
            return Err(build_transient(format!("Google's token server is having trouble (HTTP {status}){said}")));
        }
        let remedy = match self.who {
            Who::ServiceAccount { .. } => "Make a new key for the service account, and check this machine's clock.",
            Who::Person { .. } => "Please run `gcloud auth application-default login` again.",
        };
        Err(ModelError::Account {
            why: format!("Google refused the login {} (HTTP {status}){said}. {remedy}", path.display()),
        })
    }
}

/// Decodes a key in PEM (`-----BEGIN PRIVATE KEY-----`).
fn decode_pem(pem: &Secret) -> Option<Vec<u8>> {
    let (_, rest) = pem.expose().split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        GoogleLogin::parse(text).map(|_| ()).unwrap_err()
    }

    #[test]
    fn a_login_that_cannot_be_used_is_told_without_a_word_of_it() {
        for text in ["", "{}", r#"{"type":"external_account","secret":"s3cret"}"#, r#"{"type":"service_account"}"#] {
            let why = why(text);
            assert!(why.contains("gcloud auth application-default login") && !why.contains("s3cret"), "{why}");
        }
        let elsewhere = r#"{"type":"authorized_user","client_id":"a","client_secret":"s3cret","refresh_token":"r",
            "token_uri":"http://example.org/token"}"#;
        let why = why(elsewhere);
        assert!(why.contains("https") && !why.contains("s3cret"), "{why}");
    }

    #[test]
    fn what_is_secret_in_a_login_is_known_to_whoever_masks() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("login.json");
        let person = r#"{"type":"authorized_user","client_id":"a","client_secret":"s3cret-word","refresh_token":"r3fresh-word"}"#;
        std::fs::write(&file, person).unwrap();
        let masked = Redactor::new(&login_secrets(&file)).redact("a s3cret-word and r3fresh-word");
        assert_eq!(masked, "a *** and ***");
        assert_eq!(login_secrets(&dir.path().join("none")), []);
    }

    #[test]
    fn a_damaged_key_says_what_to_do() {
        let file = |key: &str| {
            let file = serde_json::json!({"type": "service_account", "client_email": "a@b", "private_key": key});
            GoogleLogin::parse(&file.to_string()).unwrap()
        };
        for key in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----"]
        {
            let why = file(key).build_form(DateTime::UNIX_EPOCH).unwrap_err();
            assert_eq!(why, "its private_key is damaged. Make a new key for the service account");
        }
    }

    #[test]
    fn a_token_server_is_googles_where_the_file_names_none() {
        let person =
            r#"{"type":"authorized_user","client_id":"a","client_secret":"s","refresh_token":"r","account":""}"#;
        let login = GoogleLogin::parse(person).unwrap();
        assert_eq!(login.token_uri, TOKEN_URI);
        let form = login.build_form(DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(
            form.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["grant_type", "client_id", "client_secret", "refresh_token"]
        );
    }
}
