//! Hands further addresses and the codes of pending changes to other programs of the same person, over a socket that only they can open.
//! Thus neither ever appears in a log. Every connection sends one request, a line, and gets one answer.

use std::{
    convert::Infallible,
    fs::Permissions,
    io,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};

use reveille_base::{file::create_private_dirs, redact::Secret};

use super::{PageSite, settings};

/// Longest time for handing over an address.
const HANDING_OVER: Duration = Duration::from_secs(5);
/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// Maximum bytes of a request.
const MAX_REQUEST_BYTES: u64 = 16;
/// The request for an address.
const ADDRESS: &str = "address\n";
/// The request for the codes of all pending changes.
const CODES: &str = "codes\n";
/// The pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Creates the socket's private directory.
///
/// # Errors
/// The directory can't be created.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    create_private_dirs(dir)
}

/// Opens the socket. Only the holder of the page's lock may call this, so that an existing socket belongs to a dead server.
///
/// # Errors
/// Another kind of file exists there, which stays, or the socket can't be created. Paths over about 100 bytes are too long for a socket.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    remove(path)?;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes the socket if it exists.
///
/// # Errors
/// Another kind of file exists there, which stays, or the socket can't be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "that path isn't a socket, so I left it as it is")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Hands out addresses and codes until the future is dropped.
pub async fn hand_out(listener: &UnixListener, site: &Arc<PageSite>) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if let Err(error) = tokio::time::timeout(HANDING_OVER, hand_over(stream, site)).await.unwrap_or(Ok(())) {
            tracing::warn!(%error, "an address or a code couldn't be handed over");
        }
    }
}

async fn hand_over(mut stream: UnixStream, site: &PageSite) -> io::Result<()> {
    is_ours(&stream)?;
    let mut request = String::new();
    (&mut stream).take(MAX_REQUEST_BYTES).read_to_string(&mut request).await?;
    let answer = match request.as_str() {
        CODES => settings::issue_codes(site).map_err(io::Error::other)?,
        _ => site.create_address().map_err(io::Error::other)?,
    };
    stream.write_all(answer.expose().as_bytes()).await?;
    stream.shutdown().await
}

/// Asks a running page for an address.
///
/// # Errors
/// There is no running page, or it sends no address.
pub async fn request_address(path: &Path) -> io::Result<Secret> {
    let address = request(path, ADDRESS).await?;
    match address.expose().is_empty() {
        true => Err(io::Error::other("the page gave no address")),
        false => Ok(address),
    }
}

/// Asks a running page for the codes of all pending changes, as a text for the person. Codes from before are void. Empty if nothing
/// waits for a code.
///
/// # Errors
/// There is no running page.
pub async fn request_codes(path: &Path) -> io::Result<Secret> {
    request(path, CODES).await
}

async fn request(path: &Path, what: &str) -> io::Result<Secret> {
    let asked = async {
        let mut stream = UnixStream::connect(path).await?;
        is_ours(&stream)?;
        stream.write_all(what.as_bytes()).await?;
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer).await?;
        Ok(Secret::new(answer))
    };
    tokio::time::timeout(HANDING_OVER, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Checks that the other end runs as the same user.
fn is_ours(stream: &UnixStream) -> io::Result<()> {
    let (theirs, ours) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    match theirs == ours {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("user {theirs} is at the other end"))),
    }
}
