//! TLS to a PostgreSQL server, by the TLS library that the whole program uses. The server has to show a certificate for its name, from
//! a known authority or from one in the file `sslrootcert`.

use std::{
    future::Future,
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::TlsConnector;

/// The authorities trusted to certify a server.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts the known authorities, or only those in this file.
    ///
    /// # Errors
    /// A description of the file's fault.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(path) => {
                let unreadable = |why: &dyn std::fmt::Display| {
                    format!("the certificates in {} can't be read: {why}", path.display())
                };
                for certificate in CertificateDer::pem_file_iter(path).map_err(|why| unreadable(&why))? {
                    roots.add(certificate.map_err(|why| unreadable(&why))?).map_err(|why| unreadable(&why))?;
                }
                if roots.is_empty() {
                    return Err(unreadable(&"there are none"));
                }
            }
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|why| why.to_string())?;
        Ok(Self(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = TlsDial;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<TlsDial> {
        // The client also calls this for a socket in the file system, which has no name and is never encrypted.
        let name = ServerName::try_from(domain).ok().map(|name| name.to_owned());
        Ok(TlsDial { connector: Arc::clone(&self.0).into(), name })
    }
}

/// One connection before its handshake.
pub(crate) struct TlsDial {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl TlsConnect<Socket> for TlsDial {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("a certificate can't contain the server's name"))?;
            self.connector.connect(name, stream).await.map(Encrypted).map_err(describe_certificate_error)
        })
    }
}

/// Describes a fault of the server's certificate, and the remedy. Returns another error as it is.
fn describe_certificate_error(error: io::Error) -> io::Error {
    use rustls::{CertificateError as Wrong, Error};
    let Some(Error::InvalidCertificate(wrong)) = error.get_ref().and_then(|inner| inner.downcast_ref()) else {
        return error;
    };
    let words = match wrong {
        Wrong::UnknownIssuer => {
            "no known authority has signed the server's certificate: sslrootcert in DATABASE_URL can name another authority's file"
        }
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
            "the server's certificate is for another host name than the one in DATABASE_URL"
        }
        Wrong::Expired | Wrong::ExpiredContext { .. } | Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
            "the server's certificate has expired, or isn't valid yet; or this machine's clock is wrong"
        }
        // The library has no variant for this case.
        wrong if wrong.to_string().contains("CaUsedAsEndEntity") => {
            "the server shows an authority's own certificate: it needs a certificate that the authority issued to it"
        }
        _ => return error,
    };
    io::Error::other(words)
}

/// An encrypted connection.
pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, room)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
