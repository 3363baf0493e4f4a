//! Opens a page or a document on the person's desktop with its default program, or starts an installed application.
//!
//! Applications are given by their registered names and never by a path. Other targets are web addresses, and
//! documents of kinds that are displayed rather than run: a desktop may start other files as programs.

use std::{io, path::Path, time::Duration};

use reqwest::Url;

use reveille_base::process::{self, ProcessError, Spec};

/// How long to watch the opener for an early failure. The program keeps running afterwards.
const WATCHED_FOR: Duration = Duration::from_secs(3);
/// Interval between two checks of the opener.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(20);
/// Maximum length of an address, in bytes.
pub const MAX_URL_BYTES: usize = 2_000;
/// File extensions of documents. Viewers don't run any content of these kinds by themselves.
const SHOWN: [&str; 30] = [
    "pdf", "txt", "md", "csv", "log", "png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "avif", "mp3",
    "m4a", "ogg", "opus", "flac", "wav", "mp4", "webm", "mov", "mkv", "docx", "xlsx", "pptx", "odt", "epub",
];

/// Why nothing was opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This machine has no desktop.
    #[error("This machine has no desktop that I could open it on.")]
    NoDesktop,
    /// The opener isn't installed.
    #[error("{0}, so nothing can be opened here.")]
    NoOpener(ProcessError),
    /// The opener couldn't be started.
    #[error("{0}.")]
    Start(#[from] ProcessError),
    /// The opener failed at once.
    #[error("{program} reported a failure ({how}).")]
    Failed {
        /// The program.
        program: &'static str,
        /// The exit status.
        how: String,
    },
    /// Waiting for the opener failed.
    #[error("I can't tell whether it worked: {0}.")]
    Unknown(#[from] io::Error),
}

/// Returns true for an address (a scheme and a colon) as opposed to a path.
pub fn is_address(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Checks and normalizes a web address.
///
/// # Errors
/// A sentence with the reason.
pub fn web_address(target: &str) -> Result<String, String> {
    if target.len() > MAX_URL_BYTES {
        return Err(format!("The address has more than {MAX_URL_BYTES} bytes."));
    }
    let url = Url::parse(target).map_err(|_| "It isn't a web address.".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("Only addresses that begin with http:// or https:// are opened.".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("The address holds a name or a password.".to_owned());
    }
    Ok(url.into())
}

/// Maximum length of an application's name, in bytes.
const MAX_APP_BYTES: usize = 100;

/// A checked target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An absolute path, or a web address.
    Thing(String),
    /// An application's name.
    App(String),
}

impl Target {
    /// Returns the name for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Thing(name) | Self::App(name) => name,
        }
    }

    /// Returns the opener's program and its arguments.
    fn choose_opener(&self) -> (&'static str, Vec<&str>) {
        match (self, cfg!(target_os = "macos")) {
            (Self::Thing(thing), true) => ("open", vec![thing]),
            (Self::Thing(thing), false) => ("xdg-open", vec![thing]),
            (Self::App(name), true) => ("open", vec!["-a", name]),
            (Self::App(name), false) => ("gtk-launch", vec![name]),
        }
    }
}

/// Checks an application's name, which must not be a path or an option.
///
/// # Errors
/// A sentence with the reason.
pub fn app_name(name: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_alphanumeric() || " ._-+&()".contains(c);
    let begins_well = name.starts_with(char::is_alphanumeric);
    if name.len() > MAX_APP_BYTES || !begins_well || !name.chars().all(is_good) {
        return Err(format!(
            "An app is given by its name, of {MAX_APP_BYTES} bytes at most, that begins with a letter or a digit and isn't a path."
        ));
    }
    Ok(name.to_owned())
}

/// Returns true if the file extension is that of a document.
pub fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
    ending.is_some_and(|ending| SHOWN.contains(&ending.as_str()))
}

/// Opens a checked target. The opened program keeps running.
pub async fn open_target(target: &Target) -> Result<(), OpenError> {
    let (program, args) = target.choose_opener();
    let has_desktop = cfg!(target_os = "macos")
        || process::is_inherited_variable("DISPLAY")
        || process::is_inherited_variable("WAYLAND_DISPLAY");
    if !has_desktop {
        return Err(OpenError::NoDesktop);
    }
    let mut child = process::start_detached(&Spec::new(program).args(args).without_env(&process::OURS)).map_err(
        |error| match error {
            ProcessError::NotFound { .. } => OpenError::NoOpener(error),
            error => OpenError::Start(error),
        },
    )?;
    let watched = async {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok::<_, io::Error>(status);
            }
            tokio::time::sleep(LOOKED_AT_EVERY).await;
        }
    };
    match tokio::time::timeout(WATCHED_FOR, watched).await {
        Ok(Ok(status)) if !status.success() => Err(OpenError::Failed { program, how: process::describe_exit(status) }),
        Ok(Err(error)) => Err(OpenError::Unknown(error)),
        // Some openers run as long as their window.
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        for address in [
            "https://example.org",
            "HTTP://example.org",
            "mailto:a@b",
            "javascript:alert(1)",
            "file:///etc",
            "x-a.b+c:d",
        ] {
            assert!(is_address(address), "{address}");
        }
        for path in ["a.pdf", "/a:b", "notes/a:b.pdf", ":a", "1a:b", "./x:y", "C:\\x"] {
            assert!(!is_address(path), "{path}");
        }
    }

    #[test]
    fn only_the_webs_addresses_are_opened() {
        assert_eq!(web_address("HTTPS://Example.org/a b?q=ü").as_deref(), Ok("https://example.org/a%20b?q=%C3%BC"));
        for address in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "mailto:a@b.org",
            "data:text/html,x",
            "ssh://host",
            "https://",
            "http:",
            "https://user@example.org",
            "https://user:word@example.org",
            "vscode://file/x",
            "smb://host/share",
            "-a",
        ] {
            assert!(web_address(address).is_err(), "{address}");
        }
        assert!(web_address(&format!("https://example.org/{}", "a".repeat(MAX_URL_BYTES))).is_err());
    }

    #[test]
    fn an_app_is_a_name_and_no_path_or_option() {
        for name in ["Calendar", "org.gnome.Calendar", "Visual Studio Code", "Zürich 2"] {
            assert_eq!(app_name(name).as_deref(), Ok(name));
        }
        for name in ["", "-a", "/bin/sh", "../x", "a/b", "a\\b", ".hidden", " x", "a\nb", "a;b", "$HOME", "a\u{202e}b"]
        {
            assert!(app_name(name).is_err(), "{name:?}");
        }
        assert!(app_name(&"a".repeat(MAX_APP_BYTES + 1)).is_err());
    }

    #[test]
    fn only_what_is_shown_and_not_run_is_a_document() {
        for path in ["a.pdf", "b.PNG", "deep/c.tar.md"] {
            assert!(is_document(Path::new(path)), "{path}");
        }
        for path in [
            "a",
            "a.desktop",
            "a.sh",
            "a.html",
            "a.svg",
            "a.app",
            "a.command",
            "a.jar",
            "a.exe",
            "a.docm",
            "a.xls",
            "a.url",
            "a.webloc",
            "a.pdf.desktop",
            ".pdf",
            "pdf",
            "a.scpt",
            "a.AppImage",
            "a.py",
        ] {
            assert!(!is_document(Path::new(path)), "{path}");
        }
    }
}
