//! A further address, asked for by another program of the same person: over a socket that only they can open, so that none ever
//! stands in a log. Whoever connects is told one.

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

use super::PageSite;

/// How long an address may take to be handed over.
const HANDING_OVER: Duration = Duration::from_secs(5);
/// The longest address, in bytes.
const MAX_ADDRESS_BYTES: u64 = 1024;
/// How long to pause when nobody can be accepted (no descriptors are left, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Makes the socket's folder, which is the person's alone.
///
/// # Errors
/// It can't be made.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    create_private_dirs(dir)
}

/// Opens the socket. Whoever holds the page's lock may: a socket that stands there is a dead server's.
///
/// # Errors
/// Something else than a socket stands there, and stays; or it can't be opened there: a path of more than some 100 bytes is too long for a socket.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    remove(path)?;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes the socket, if one stands there.
///
/// # Errors
/// Something else stands there, and stays; or it can't be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "what stands there is no socket, and was left as it is"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Hands out addresses until it is dropped.
pub async fn hand_out(listener: &UnixListener, site: &Arc<PageSite>) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if let Err(error) = tokio::time::timeout(HANDING_OVER, hand_over(stream, site)).await.unwrap_or(Ok(())) {
            tracing::warn!(%error, "an address couldn't be handed over");
        }
    }
}

async fn hand_over(mut stream: UnixStream, site: &PageSite) -> io::Result<()> {
    is_ours(&stream)?;
    let address = site.mint().map_err(io::Error::other)?;
    stream.write_all(address.expose().as_bytes()).await?;
    stream.shutdown().await
}

/// Asks a running page for an address.
///
/// # Errors
/// None runs, or it gives none.
pub async fn ask(path: &Path) -> io::Result<Secret> {
    let asked = async {
        let stream = UnixStream::connect(path).await?;
        is_ours(&stream)?;
        let mut address = String::new();
        stream.take(MAX_ADDRESS_BYTES).read_to_string(&mut address).await?;
        match address.is_empty() {
            true => Err(io::Error::other("it gave no address")),
            false => Ok(Secret::new(address)),
        }
    };
    tokio::time::timeout(HANDING_OVER, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Whoever is at the other end runs as the same person.
fn is_ours(stream: &UnixStream) -> io::Result<()> {
    let (theirs, ours) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    match theirs == ours {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("user {theirs} is at the other end"))),
    }
}
