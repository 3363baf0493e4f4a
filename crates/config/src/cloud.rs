//! What Claude needs on Amazon Bedrock and on Google Cloud.

use std::path::{Path, PathBuf};

use reveille_base::redact::Secret;

/// Where `gcloud auth application-default login` keeps a person's login, below their home.
const GCLOUD_LOGIN: &str = ".config/gcloud/application_default_credentials.json";

/// How Bedrock is reached.
#[derive(Debug, Clone, Default)]
pub struct BedrockSettings {
    /// Such as `us-east-1` (`AWS_REGION`).
    pub region: Option<String>,
    /// In place of the region's own server, without a slash at the end (`BEDROCK_BASE_URL`).
    pub base_url: Option<String>,
    /// A key for Bedrock alone (`AWS_BEARER_TOKEN_BEDROCK`). It goes before the access key.
    pub bearer_token: Option<Secret>,
    /// Which access key signs (`AWS_ACCESS_KEY_ID`).
    pub access_key_id: Option<String>,
    /// That key (`AWS_SECRET_ACCESS_KEY`).
    pub secret_access_key: Option<Secret>,
    /// What temporary keys are accompanied by (`AWS_SESSION_TOKEN`).
    pub session_token: Option<Secret>,
}

/// How Google Cloud is reached.
#[derive(Debug, Clone, Default)]
pub struct VertexSettings {
    /// The project that pays (`GOOGLE_CLOUD_PROJECT`).
    pub project: Option<String>,
    /// Such as `global` or `europe-west1` (`GOOGLE_CLOUD_LOCATION`).
    pub location: String,
    /// The file with a service account's key or a person's own login (`GOOGLE_APPLICATION_CREDENTIALS`).
    pub login: Option<PathBuf>,
    /// The workspace, where Anthropic runs the models; none: Google does (`VERTEX_WORKSPACE`).
    pub workspace: Option<String>,
    /// In place of the location's own server, without a slash at the end (`VERTEX_BASE_URL`).
    pub base_url: Option<String>,
}

impl BedrockSettings {
    /// What isn't set and has to be, in words; none: it can be asked.
    pub fn lack(&self) -> Option<&'static str> {
        if self.region.is_none() {
            return Some("there is no AWS_REGION");
        }
        let is_signing = self.access_key_id.is_some() && self.secret_access_key.is_some();
        let is_known = self.bearer_token.is_some() || is_signing;
        (!is_known)
            .then_some("there is neither AWS_BEARER_TOKEN_BEDROCK nor AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY")
    }

    /// Its keys.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.bearer_token.iter().chain(&self.secret_access_key).chain(&self.session_token)
    }
}

impl VertexSettings {
    /// What isn't set and has to be, in words; none: it can be asked.
    pub fn lack(&self) -> Option<&'static str> {
        match (&self.project, &self.login) {
            (None, _) => Some("there is no GOOGLE_CLOUD_PROJECT"),
            (Some(_), None) => Some(
                "there is no login: run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
            ),
            (Some(_), Some(_)) => None,
        }
    }
}

/// The login that Google's own tool has made, if it has.
pub(super) fn gcloud_login(home: Option<&Path>) -> Option<PathBuf> {
    home.map(|home| home.join(GCLOUD_LOGIN)).filter(|path| path.exists())
}
