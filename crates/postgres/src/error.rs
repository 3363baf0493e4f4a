//! Errors of the server, and of the connection to it.

use std::{error::Error as _, fmt};

/// Error of a statement or of its connection.
#[derive(Debug, Clone)]
pub struct PostgresError {
    /// The server's code (SQLSTATE); `None` if the error isn't the server's.
    code: Option<String>,
    text: String,
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PostgresError {}

impl PostgresError {
    /// An error of the connection.
    pub(crate) fn from_connection(text: &str) -> Self {
        Self { code: None, text: text.to_owned() }
    }

    /// An error found by this program, with the server's code for such an error.
    pub(crate) fn with_code(code: &str, text: &str) -> Self {
        Self { code: Some(code.to_owned()), text: text.to_owned() }
    }

    /// Returns whether another transaction interfered, so that the caller may try again.
    pub fn is_busy(&self) -> bool {
        // lock_not_available, serialization_failure, deadlock_detected
        self.has_code(&["55P03", "40001", "40P01"])
    }

    /// Returns whether the server's disk is full.
    pub fn is_full(&self) -> bool {
        self.has_code(&["53100"])
    }

    /// Returns whether the server found its own files damaged.
    pub fn is_damaged(&self) -> bool {
        self.has_code(&["XX001", "XX002"])
    }

    /// Returns whether the connection is gone: the server sent no code, or a code that ends the session.
    pub(crate) fn is_connection_lost(&self) -> bool {
        self.code.as_ref().is_none_or(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03")
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let answer = error.as_db_error().map(|answer| (answer.code().code().to_owned(), answer.message().to_owned()));
        match answer {
            Some((code, message)) => Self { text: format!("PostgreSQL says: {message} ({code})"), code: Some(code) },
            None => {
                let why = error.source().map_or_else(String::new, |why| format!(": {why}"));
                // The client itself refuses values that don't fit their column.
                let code = error.to_string().contains("serializ").then(|| "22000".to_owned());
                Self { code, text: format!("PostgreSQL: {error}{why}") }
            }
        }
    }
}
