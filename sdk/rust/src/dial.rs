//! Opens connections to the server, for HTTP and for the socket.
use std::io;

use hyper::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::error::Error;

/// A connection, plain or TLS.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The address of the server.
#[derive(Clone)]
pub(crate) struct Server {
    host: String,
    port: u16,
    /// Prefixed to every path.
    base: String,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsConnector>,
}

impl Server {
    /// Reads an address such as `https://chat.example.com`.
    pub(crate) fn at(url: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::BadUrl(format!("{url}: {why}"));
        let uri: Uri = url.parse().map_err(|_| bad("not an address"))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") if cfg!(feature = "tls") => true,
            Some("https") => return Err(bad("build with the feature `tls`")),
            _ => return Err(bad("it begins with http:// or https://")),
        };
        let host = uri.host().ok_or_else(|| bad("it has no host"))?.to_owned();
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let base = uri.path().trim_end_matches('/').to_owned();
        #[cfg(feature = "tls")]
        let tls = is_secure.then(connector).transpose()?;
        Ok(Self {
            host,
            port,
            base,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// The value of the `Host` header.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> io::Result<Box<dyn Io>> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, self.port)).await?;
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let name = rustls::pki_types::ServerName::try_from(host.to_owned());
            let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            return Ok(Box::new(tls.connect(name, stream).await?));
        }
        Ok(Box::new(stream))
    }
}

/// TLS with the certificates that the system trusts.
#[cfg(feature = "tls")]
fn connector() -> Result<tokio_rustls::TlsConnector, Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::BadUrl(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(std::sync::Arc::new(config).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_perhaps_more() {
        let server = Server::at("http://localhost:8080/chat/").unwrap();
        assert_eq!(server.name(), "localhost:8080");
        assert_eq!(server.path("/ws"), "/chat/ws");
        assert_eq!(Server::at("http://example.com").unwrap().name(), "example.com:80");
        for bad in ["example.com", "ftp://example.com", "", "http://"] {
            assert!(matches!(Server::at(bad), Err(Error::BadUrl(_))), "{bad}");
        }
    }
}
