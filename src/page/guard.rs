//! Who is answered. To be built: Host, Origin, `Sec-Fetch-Site`, the cookie, and the headers of each answer.

use std::sync::Arc;

use axum::Router;

use super::site::PageSite;

/// Puts the guard before all views.
pub(super) fn before(views: Router<Arc<PageSite>>, _site: &Arc<PageSite>) -> Router<Arc<PageSite>> {
    views
}
