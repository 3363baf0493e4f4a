//! The routes to Claude with their authentication: Anthropic's own API, Amazon Bedrock, and Google Cloud.
//!
//! All three accept the same conversation. They differ in the address, the authentication and a few fields around the conversation, which
//! `Route` holds. [`super::Anthropic`] sends the requests.

use std::{path::PathBuf, sync::Arc};

use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use reveille_base::{clock::Clock, redact::Secret};

use super::{
    OptionsError,
    google::GoogleTokens,
    sigv4::{AwsKeys, SigningScope, Unsigned},
};
use crate::ModelError;

/// The API version in the header.
const API_VERSION: &str = "2023-06-01";
/// The API version on Google's servers, a field of the body.
const VERTEX_VERSION: &str = "vertex-2023-10-16";
/// The signed service name of Bedrock's Messages API.
const MANTLE_SERVICE: &str = "bedrock-mantle";
/// The signed service name of Bedrock's older servers.
const RUNTIME_SERVICE: &str = "bedrock";
/// Beginning of the older servers' host names.
const RUNTIME_HOST: &str = "bedrock-runtime";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A server with credentials. Without `Debug`, since an address may contain a password.
#[derive(Clone)]
pub enum ClaudeRoute {
    /// Anthropic's own API.
    Api {
        /// The server's address, such as `https://api.anthropic.com`.
        base_url: String,
        /// The account's key.
        api_key: Secret,
    },
    /// The Messages API of Amazon Bedrock.
    Bedrock {
        /// The AWS region, such as `us-east-1`.
        region: String,
        /// Replaces the region's own server.
        base_url: Option<String>,
        /// The credentials.
        login: BedrockLogin,
        /// The clock for the time in signatures.
        clock: Arc<dyn Clock>,
    },
    /// Claude on Google Cloud.
    Vertex {
        /// The project that pays.
        project: String,
        /// The location, such as `global` or `europe-west1`.
        location: String,
        /// The workspace of models that Anthropic runs. `None` for models that Google runs.
        workspace: Option<String>,
        /// Replaces the location's own server.
        base_url: Option<String>,
        /// The file with a service account's key or a person's login.
        login: PathBuf,
        /// The clock for expiring tokens.
        clock: Arc<dyn Clock>,
    },
}

/// Credentials for AWS.
#[derive(Debug, Clone)]
pub enum BedrockLogin {
    /// A key for Bedrock alone.
    Bearer(Secret),
    /// An access key that signs requests.
    Keys(AwsKeys),
}

/// The wording of error messages on a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteWords {
    /// The server's name in the middle of a sentence.
    pub(super) server: &'static str,
    /// The setting of the address.
    pub(super) address: &'static str,
    /// The setting of the key.
    pub(super) key: &'static str,
    /// The meaning of HTTP 401.
    pub(super) unknown: &'static str,
    /// The meaning of HTTP 402.
    pub(super) unpaid: &'static str,
    /// The meaning of HTTP 403.
    pub(super) forbidden: &'static str,
}

pub(super) const API_WORDS: RouteWords = RouteWords {
    server: "the Claude API",
    address: "ANTHROPIC_BASE_URL",
    key: "ANTHROPIC_API_KEY",
    unknown: "your API key was rejected, please check ANTHROPIC_API_KEY",
    unpaid: "your Claude account needs payment",
    forbidden: "your API key isn't allowed to do this",
};

const BEARER_WORDS: RouteWords = RouteWords {
    server: "Amazon Bedrock",
    address: "BEDROCK_BASE_URL",
    key: "AWS_BEARER_TOKEN_BEDROCK",
    unknown: "AWS rejected your Bedrock key, please check AWS_BEARER_TOKEN_BEDROCK",
    unpaid: "your AWS account needs payment",
    forbidden: "AWS refused: check AWS_BEARER_TOKEN_BEDROCK and AWS_REGION, and whether your account may use the model",
};

const SIGNED_WORDS: RouteWords = RouteWords {
    key: "AWS_ACCESS_KEY_ID or AWS_SESSION_TOKEN",
    unknown: "AWS rejected your access key, please check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    forbidden: "AWS refused: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION, whether \
                your account may use the model, and this machine's clock",
    ..BEARER_WORDS
};

const VERTEX_WORDS: RouteWords = RouteWords {
    server: "Google Cloud",
    address: "VERTEX_BASE_URL",
    key: "the token that Google gave",
    unknown: "Google rejected its own token, please make a new login for GOOGLE_APPLICATION_CREDENTIALS",
    unpaid: "your Google Cloud project needs payment",
    forbidden: "Google refused: the login needs a role that may use models in GOOGLE_CLOUD_PROJECT (Vertex AI User), and the model must \
        be enabled in the project",
};

/// A checked route to one model.
pub(super) struct Route {
    pub(super) url: Url,
    pub(super) words: RouteWords,
    /// The constant headers of every request.
    headers: HeaderMap,
    proof: Proof,
    /// The first fields of the body.
    pub(super) first_fields: String,
    /// True if the server caches conversations by itself. Otherwise we mark the end of the last message for caching.
    pub(super) caches_by_itself: bool,
    /// The secrets to mask in answers.
    pub(super) secrets: Vec<Secret>,
}

/// The authentication of a request besides its constant headers.
enum Proof {
    None,
    Signature { keys: AwsKeys, region: String, service: &'static str, clock: Arc<dyn Clock> },
    Token(GoogleTokens),
}

impl Route {
    /// Checks a route to the model with this id.
    pub(super) fn new(route: ClaudeRoute, model: &str) -> Result<Self, OptionsError> {
        match route {
            ClaudeRoute::Api { base_url, api_key } => Self::for_api(&base_url, &api_key, model),
            ClaudeRoute::Bedrock { region, base_url, login, clock } => {
                let base = base_url.unwrap_or_else(|| format!("https://bedrock-mantle.{region}.api.aws/anthropic"));
                Self::for_bedrock(&base, region, login, clock, model)
            }
            ClaudeRoute::Vertex { project, location, workspace, base_url, login, clock } => {
                let url = vertex_url(base_url, &project, &location, workspace.as_deref(), model)?;
                let is_run_by_anthropic = workspace.is_some();
                let (headers, first_fields) = if is_run_by_anthropic {
                    (build_base_headers(), format_model_field(model))
                } else {
                    (HeaderMap::from_iter([(CONTENT_TYPE, JSON)]), format!(r#""anthropic_version":"{VERTEX_VERSION}""#))
                };
                let proof = Proof::Token(GoogleTokens::new(login, clock));
                let secrets = find_password(&url);
                // Anthropic's own servers support everything that its API does.
                let caches_by_itself = is_run_by_anthropic;
                Ok(Self { url, words: VERTEX_WORDS, headers, proof, first_fields, caches_by_itself, secrets })
            }
        }
    }

    fn for_api(base_url: &str, api_key: &Secret, model: &str) -> Result<Self, OptionsError> {
        let url = messages_url(base_url, API_WORDS.address)?;
        let mut headers = build_base_headers();
        headers.insert(HeaderName::from_static("x-api-key"), secret_header(api_key, "", API_WORDS.key)?);
        let secrets = [api_key.clone()].into_iter().chain(find_password(&url)).collect();
        let (words, first_fields) = (API_WORDS, format_model_field(model));
        Ok(Self { url, words, headers, proof: Proof::None, first_fields, caches_by_itself: true, secrets })
    }

    fn for_bedrock(
        base_url: &str,
        region: String,
        login: BedrockLogin,
        clock: Arc<dyn Clock>,
        model: &str,
    ) -> Result<Self, OptionsError> {
        let url = messages_url(base_url, BEARER_WORDS.address)?;
        let (mut headers, mut secrets) = (build_base_headers(), find_password(&url));
        let (words, proof) = match login {
            BedrockLogin::Bearer(key) => {
                headers.insert(AUTHORIZATION, secret_header(&key, "Bearer ", BEARER_WORDS.key)?);
                secrets.push(key);
                (BEARER_WORDS, Proof::None)
            }
            BedrockLogin::Keys(keys) => {
                secrets.push(keys.secret_access_key.clone());
                secrets.extend(keys.session_token.clone());
                let is_runtime =
                    url.host_str().is_some_and(|host| host.split('.').any(|label| label.starts_with(RUNTIME_HOST)));
                let service = if is_runtime { RUNTIME_SERVICE } else { MANTLE_SERVICE };
                (SIGNED_WORDS, Proof::Signature { keys, region, service, clock })
            }
        };
        Ok(Self {
            url,
            words,
            headers,
            proof,
            first_fields: format_model_field(model),
            caches_by_itself: false,
            secrets,
        })
    }

    /// Builds the headers of a request with this body, signed if needed.
    pub(super) async fn build_headers(&self, body: &[u8], client: &Client) -> Result<HeaderMap, ModelError> {
        let mut headers = self.headers.clone();
        match &self.proof {
            Proof::None => {}
            Proof::Signature { keys, region, service, clock } => {
                let scope = SigningScope { region, service, at: clock.now() };
                self.sign(&mut headers, keys, scope, body).map_err(|error| to_account_error(&error))?;
            }
            Proof::Token(tokens) => {
                let token = tokens.ensure_token(client).await?;
                headers.insert(
                    AUTHORIZATION,
                    secret_header(&token, "Bearer ", self.words.key).map_err(|error| to_account_error(&error))?,
                );
            }
        }
        Ok(headers)
    }

    fn sign(
        &self,
        headers: &mut HeaderMap,
        keys: &AwsKeys,
        scope: SigningScope<'_>,
        body: &[u8],
    ) -> Result<(), OptionsError> {
        let (host, date, setting) = (format_host(&self.url), scope.format_date(), self.words.key);
        let mut signed = vec![("host", host.as_str()), ("x-amz-date", date.as_str())];
        if let Some(token) = &keys.session_token {
            headers.insert(HeaderName::from_static("x-amz-security-token"), secret_header(token, "", setting)?);
            signed.push(("x-amz-security-token", token.expose().trim()));
        }
        let request = Unsigned { method: "POST", path: self.url.path(), query: "", headers: &signed, body };
        let authorization = Secret::new(scope.build_authorization(keys, request));
        headers.insert(AUTHORIZATION, secret_header(&authorization, "", setting)?);
        headers.insert(HeaderName::from_static("x-amz-date"), secret_header(&Secret::new(date), "", setting)?);
        Ok(())
    }

    /// Discards a refused token. Returns true if another attempt is worthwhile.
    pub(super) fn discard_token(&self) -> bool {
        matches!(&self.proof, Proof::Token(tokens) if tokens.forget())
    }

    /// Returns the secrets to mask in answers, with the token in use.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let token = if let Proof::Token(tokens) = &self.proof { tokens.secret() } else { None };
        self.secrets.iter().cloned().chain(token).collect()
    }
}

fn to_account_error(error: &OptionsError) -> ModelError {
    ModelError::Account { why: error.to_string() }
}

fn build_base_headers() -> HeaderMap {
    let version = HeaderName::from_static("anthropic-version");
    HeaderMap::from_iter([(CONTENT_TYPE, JSON), (version, HeaderValue::from_static(API_VERSION))])
}

fn format_model_field(model: &str) -> String {
    format!(r#""model":{}"#, serde_json::Value::from(model))
}

fn secret_header(secret: &Secret, scheme: &str, setting: &'static str) -> Result<HeaderValue, OptionsError> {
    let bare = secret.expose().trim();
    let value = HeaderValue::from_str(&format!("{scheme}{bare}")).ok().filter(|_| !bare.is_empty());
    let mut value = value.ok_or(OptionsError::ApiKey { setting })?;
    value.set_sensitive(true);
    Ok(value)
}

fn find_password(url: &Url) -> Vec<Secret> {
    url.password().map(Secret::new).into_iter().collect()
}

/// Returns the host as written in the request.
fn format_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn messages_url(base_url: &str, setting: &'static str) -> Result<Url, OptionsError> {
    http_url(&format!("{}/v1/messages", base_url.trim_end_matches('/')), setting)
}

fn http_url(url: &str, setting: &'static str) -> Result<Url, OptionsError> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or(OptionsError::BaseUrl { setting })
}

/// Builds Google's URL for a model. The path names the model unless Anthropic runs it.
fn vertex_url(
    base_url: Option<String>,
    project: &str,
    location: &str,
    workspace: Option<&str>,
    model: &str,
) -> Result<Url, OptionsError> {
    let setting = VERTEX_WORDS.address;
    let base = base_url.unwrap_or_else(|| match (workspace, location) {
        (Some(_), _) => "https://claude.googleapis.com/v1".to_owned(),
        (None, "global") => "https://aiplatform.googleapis.com/v1".to_owned(),
        // These locations span several countries.
        (None, "us" | "eu") => format!("https://aiplatform.{location}.rep.googleapis.com/v1"),
        (None, _) => format!("https://{location}-aiplatform.googleapis.com/v1"),
    });
    let mut url = http_url(&base, setting)?;
    let mut segments = vec!["projects", project, "locations", location];
    let method = format!("{model}:streamRawPredict");
    match workspace {
        Some(workspace) => segments.extend(["workspaces", workspace, "invoke", "v1", "messages"]),
        None => segments.extend(["publishers", "anthropic", "models", &method]),
    }
    url.path_segments_mut().map_err(|()| OptionsError::BaseUrl { setting })?.pop_if_empty().extend(segments);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vertex(location: &str, workspace: Option<&str>) -> String {
        vertex_url(None, "my-project", location, workspace, "claude-sonnet-5-5@20260901").unwrap().to_string()
    }

    #[test]
    fn googles_host_depends_on_the_location() {
        let tail = "publishers/anthropic/models/claude-sonnet-5-5@20260901:streamRawPredict";
        for (location, host) in [
            ("global", "aiplatform.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
            ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
        ] {
            let expected = format!("https://{host}/v1/projects/my-project/locations/{location}/{tail}");
            assert_eq!(vertex(location, None), expected);
        }
        assert_eq!(
            vertex("global", Some("wrkspc_1")),
            "https://claude.googleapis.com/v1/projects/my-project/locations/global/workspaces/wrkspc_1/invoke/v1/messages"
        );
    }
}
