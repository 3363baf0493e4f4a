//! The bearer token of the HTTP server, created once and kept in a private file of the workspace.

use std::{
    io,
    path::{Path, PathBuf},
};

use reveille_base::{
    file,
    random::{self, NoRandomness},
    redact::Secret,
};
use reveille_config::read_private;

/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// The reason there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The existing file isn't trustworthy; a person has to repair or remove it.
    #[error("{}: {why}. Remove it and a new one is made.", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file can't be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No randomness is available.
    #[error("{0}, so that no token can be made")]
    NoRandomness(#[from] NoRandomness),
}

/// Creates an unguessable random text of letters and digits.
///
/// # Errors
/// The system provides no randomness.
pub fn generate() -> Result<Secret, TokenError> {
    Ok(Secret::new(random::format_hex(&random::generate_bytes::<TOKEN_BYTES>()?)))
}

/// Returns the token in a file; `None` if the file is missing or not trustworthy.
pub fn load(path: &Path) -> Option<Secret> {
    let text = read_private(path).ok()?.text;
    Some(text.trim()).filter(|token| token.len() >= TOKEN_BYTES).map(Secret::new)
}

/// Returns the token in a file, which is created if missing.
///
/// # Errors
/// The file belongs to another user, is readable by others, holds no token, or can't be written.
pub fn load_or_make(path: &Path) -> Result<Secret, TokenError> {
    let unusable = |why: String| TokenError::Unusable { path: path.to_owned(), why };
    match path.symlink_metadata() {
        Ok(_) => {
            let file = read_private(path).map_err(unusable)?;
            if file.readable_by_others {
                return Err(unusable("other users can read it".to_owned()));
            }
            load(path).ok_or_else(|| unusable("it holds no token".to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = generate()?;
            save(path, token.expose()).map_err(|source| TokenError::Write { path: path.to_owned(), source })?;
            Ok(token)
        }
        Err(source) => Err(TokenError::Write { path: path.to_owned(), source }),
    }
}

fn save(path: &Path, token: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        file::create_private_dirs(dir)?;
    }
    file::write_private(path, format!("{token}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_readable_only_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp/token");
        assert_eq!(load(&path), None);
        let made = load_or_make(&path).unwrap();
        assert_eq!(made.expose().len(), 2 * TOKEN_BYTES);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(load_or_make(&path).unwrap(), made);

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(load_or_make(&path).unwrap_err().to_string().contains("can read it"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "\n").unwrap();
        assert!(load_or_make(&path).unwrap_err().to_string().contains("no token"));
    }
}
