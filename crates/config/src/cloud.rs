//! Settings for Claude on Amazon Bedrock and on Google Cloud.

use std::path::{Path, PathBuf};

use reveille_base::redact::Secret;

/// The login file of `gcloud auth application-default login`, relative to the home directory.
const GCLOUD_LOGIN: &str = ".config/gcloud/application_default_credentials.json";

/// The settings for Bedrock.
#[derive(Debug, Clone, Default)]
pub struct BedrockSettings {
    /// The region, such as `us-east-1` (`AWS_REGION`).
    pub region: Option<String>,
    /// A server in place of the region's own, without a trailing slash (`BEDROCK_BASE_URL`).
    pub base_url: Option<String>,
    /// A key for Bedrock only (`AWS_BEARER_TOKEN_BEDROCK`), preferred over the access key.
    pub bearer_token: Option<Secret>,
    /// The id of the signing access key (`AWS_ACCESS_KEY_ID`).
    pub access_key_id: Option<String>,
    /// The secret of the access key (`AWS_SECRET_ACCESS_KEY`).
    pub secret_access_key: Option<Secret>,
    /// The session token of temporary keys (`AWS_SESSION_TOKEN`).
    pub session_token: Option<Secret>,
}

/// The settings for Google Cloud.
#[derive(Debug, Clone, Default)]
pub struct VertexSettings {
    /// The project that pays (`GOOGLE_CLOUD_PROJECT`).
    pub project: Option<String>,
    /// The location, such as `global` or `europe-west1` (`GOOGLE_CLOUD_LOCATION`).
    pub location: String,
    /// The file with a service account's key or a person's login (`GOOGLE_APPLICATION_CREDENTIALS`).
    pub login: Option<PathBuf>,
    /// The workspace if Anthropic runs the models; `None` if Google does (`VERTEX_WORKSPACE`).
    pub workspace: Option<String>,
    /// A server in place of the location's own, without a trailing slash (`VERTEX_BASE_URL`).
    pub base_url: Option<String>,
}

impl BedrockSettings {
    /// Describes the missing settings; `None` if complete.
    pub fn describe_missing(&self) -> Option<&'static str> {
        if self.region.is_none() {
            return Some("there is no AWS_REGION");
        }
        let is_signing = self.access_key_id.is_some() && self.secret_access_key.is_some();
        let has_key = self.bearer_token.is_some() || is_signing;
        (!has_key).then_some("neither AWS_BEARER_TOKEN_BEDROCK nor AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY is set")
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.bearer_token.iter().chain(&self.secret_access_key).chain(&self.session_token)
    }
}

impl VertexSettings {
    /// Describes the missing settings; `None` if complete.
    pub fn describe_missing(&self) -> Option<&'static str> {
        match (&self.project, &self.login) {
            (None, _) => Some("there is no GOOGLE_CLOUD_PROJECT"),
            (Some(_), None) => Some(
                "there is no login: run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
            ),
            (Some(_), Some(_)) => None,
        }
    }
}

/// The login file of the `gcloud` tool, if present.
pub(super) fn gcloud_login(home: Option<&Path>) -> Option<PathBuf> {
    home.map(|home| home.join(GCLOUD_LOGIN)).filter(|path| path.exists())
}
