//! Whether the key is good and the model is there: one request that costs nothing.

use super::{Anthropic, transient};
use crate::ModelError;

impl Anthropic {
    /// Asks the server about the model. Only Anthropic's own API has an answer.
    ///
    /// # Errors
    /// As a turn's: a key or a model that the server doesn't know, a server that can't be reached.
    pub async fn look_up(&self) -> Result<(), ModelError> {
        let client = self.client()?;
        let mut url = self.route.url.clone();
        // It ends in `/v1/messages`.
        url.path_segments_mut()
            .map_err(|()| transient("ANTHROPIC_BASE_URL can't be used".to_owned()))?
            .pop()
            .extend(["models", &self.model]);
        let request = client.get(url).headers(self.route.head(b"", client).await?).timeout(self.total_timeout);
        let response = self.unless_silent(request.send()).await?;
        if response.status().as_u16() == 200 { Ok(()) } else { Err(self.refused(response).await.0) }
    }
}
