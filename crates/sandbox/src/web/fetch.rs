//! Fetching a URL's bytes. This module follows redirects itself, and checks each like the first address and by a
//! person's rules. Bytes and time are limited.

use reqwest::{
    Response, Url,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
};

use super::{Gate, Web, WebError, address::DialTarget, body::Body, dial, page::format_origin};

/// A response.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The final address.
    pub(super) url: Url,
    /// The server's content type.
    pub(super) content_type: Option<String>,
    /// The unpacked body.
    pub(super) body: Vec<u8>,
    /// True if the body was cut.
    pub(super) is_cut: bool,
}

/// A request.
pub(super) struct Ask<'a> {
    pub(super) url: &'a str,
    /// Extra headers for that host only; a request with extra headers follows no redirects.
    pub(super) headers: HeaderMap,
    /// The check of redirects.
    pub(super) gate: Gate<'a>,
}

impl Web {
    /// Sends a request, follows redirects, and reads the body up to the limit.
    pub(super) async fn fetch(&self, ask: Ask<'_>) -> Result<Fetched, WebError> {
        let late = WebError::Unreachable("The server took too long, so I gave up.");
        tokio::time::timeout(self.limits.timeout, self.follow_redirects(ask)).await.map_err(|_| late)?
    }

    async fn follow_redirects(&self, ask: Ask<'_>) -> Result<Fetched, WebError> {
        let redirects = if ask.headers.is_empty() { self.limits.redirects } else { 0 };
        let mut target = DialTarget::parse_url(ask.url, &self.grants)?;
        for _ in 0..=redirects {
            let response = self.send_request(&target, &ask.headers).await?;
            let status = response.status();
            if status.is_redirection() {
                let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
                let next = target.resolve_redirect(location.ok_or(WebError::Status(status.as_u16()))?, &self.grants)?;
                // fault: redirect-passes-persons-rules
                if let Some(why) = (ask.gate)(&next.url) {
                    return Err(WebError::KeptBack { to: next.url.into(), by: format_origin(&target.url), why });
                }
                target = next;
            } else if status.is_success() {
                return self.read_response(target.url, response).await;
            } else {
                return Err(WebError::Status(status.as_u16()));
            }
        }
        Err(WebError::Redirect("The server redirects again and again, so I gave up."))
    }

    async fn send_request(&self, target: &DialTarget, headers: &HeaderMap) -> Result<Response, WebError> {
        let addresses = self.resolve_target(target).await?;
        let client = dial::build_client(target, addresses.clone(), self.limits.connect_timeout)?;
        let request = client
            .get(target.url.clone())
            .header(ACCEPT, HeaderValue::from_static("text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5"))
            .header(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))
            .headers(headers.clone());
        let response = request.send().await.map_err(|error| translate_error(&error))?;
        // True by construction, but checked because all safety depends on it.
        match response.remote_addr() {
            Some(dialled) if addresses.contains(&dialled) => Ok(response),
            _ => Err(WebError::Unreachable("The connection led to another address than expected, so I closed it.")),
        }
    }

    async fn read_response(&self, url: Url, mut response: Response) -> Result<Fetched, WebError> {
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let mut body = Body::new(response.headers(), self.limits.body_bytes)?;
        while let Some(piece) = response.chunk().await.map_err(|error| translate_error(&error))? {
            if !body.add_piece(&piece)? {
                break;
            }
        }
        let (body, is_cut) = body.finish()?;
        Ok(Fetched { url, content_type, body, is_cut })
    }
}

/// Describes a connection error in our own words. The original error could quote the server: a certificate, a header, the URL.
fn translate_error(error: &reqwest::Error) -> WebError {
    WebError::Unreachable(match (error.is_connect(), error.is_timeout()) {
        (_, true) => "The server took too long, so I gave up.",
        (true, _) => "No connection was made: nobody answers there, or the encryption could not be agreed on.",
        (false, false) => "The connection broke before everything had arrived.",
    })
}
