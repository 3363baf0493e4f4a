//! Error pages. Each tells the problem, that nothing was changed, and the next step, instead of a bare code.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::html;

use reveille_git::RepoError;
use reveille_store::StoreError;

use super::frame::{PagePlace, render_frame};

/// The reason for an error page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// The database is unusable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The memory is unreadable.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The requested thing doesn't exist. The text describes that for people.
    #[error("{0}")]
    Missing(String),
    /// The input is unacceptable. The text describes that for people.
    #[error("{0}")]
    Refused(String),
    /// A bug in Reveille.
    #[error("something went wrong while I built this page; the log says more")]
    Broken,
}

impl PageError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Store(_) | Self::Repo(_) | Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let title = match self {
            Self::Missing(_) => "Not found",
            Self::Refused(_) => "Not accepted",
            Self::Store(_) | Self::Repo(_) | Self::Broken => "That didn't work",
        };
        let page = render_frame(PagePlace::Elsewhere, title, &html! { p { (self) } });
        (self.status(), page).into_response()
    }
}

/// Renders a page for a bare status code.
pub(super) fn render_status(status: StatusCode) -> Response {
    let why = match status {
        StatusCode::METHOD_NOT_ALLOWED => "This page doesn't accept that kind of request. Nothing was changed.",
        status if status.is_client_error() => {
            "I couldn't read what was sent. Nothing was changed. Go back and try again."
        }
        _ => "Something went wrong while I built this page; the log says more.",
    };
    (status, render_frame(PagePlace::Elsewhere, "That didn't work", &html! { p { (why) } })).into_response()
}

/// Answers any unknown path.
pub(super) async fn answer_unknown_path() -> PageError {
    PageError::Missing("There is no such page.".to_owned())
}
