//! What renews an open page: server-sent events that say which part has changed. To be built.

use std::sync::Arc;

use axum::Router;

use super::site::PageSite;

/// `/live`.
pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
}
