//! Checks the key and the model with one free request.

use super::{Anthropic, build_transient};
use crate::ModelError;

impl Anthropic {
    /// Asks the server about the model. Works only with Anthropic's own API.
    ///
    /// # Errors
    /// Same as for a turn: an unknown key or model, or an unreachable server.
    pub async fn look_up(&self) -> Result<(), ModelError> {
        let client = self.client()?;
        let mut url = self.route.url.clone();
        // The path ends in `/v1/messages`.
        url.path_segments_mut()
            .map_err(|()| build_transient("ANTHROPIC_BASE_URL can't be used".to_owned()))?
            .pop()
            .extend(["models", &self.model]);
        let request = client.get(url).headers(self.route.build_headers(b"", client).await?).timeout(self.total_timeout);
        let response = self.within_idle_timeout(request.send()).await?;
        if response.status().as_u16() == 200 { Ok(()) } else { Err(self.read_refusal(response).await.0) }
    }
}
