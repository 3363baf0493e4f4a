//! Resolution of a target to checked addresses, and a client that can only dial those.
//!
//! A name is looked up once. All its addresses are checked and passed to the connector, so the name isn't resolved
//! again between check and use.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};

use reveille_base::net_guard::why_not_public;

use super::{Web, WebError, address::DialTarget};

/// Maximum number of addresses used of one name.
const MAX_ADDRESSES: usize = 16;
/// The user agent. Some servers answer only clients that call themselves compatible.
const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; Reveille/", env!("CARGO_PKG_VERSION"), ")");

/// A pending name lookup.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A name resolver.
pub trait Names: fmt::Debug + Send + Sync {
    /// Returns all addresses of a name.
    fn resolve_name<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemNames;

impl Names for SystemNames {
    fn resolve_name<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

impl Web {
    /// Returns a target's addresses after checking all of them.
    pub(super) async fn resolve_target(&self, target: &DialTarget) -> Result<Vec<SocketAddr>, WebError> {
        let found = match target.literal {
            Some(address) => vec![address],
            None => self.names.resolve_name(&target.host).await.map_err(|_| {
                WebError::Unreachable("No address was found for this host: it may be misspelt, or the network is down.")
            })?,
        };
        if found.is_empty() {
            return Err(WebError::Unreachable("This host has no address."));
        }
        // One private address refuses the whole name, because a mixed name suggests an attack.
        // fault: address-isnt-judged-dialled
        let refused = found.iter().copied().find_map(why_not_public).filter(|_| !target.is_granted);
        if let Some(what) = refused {
            return Err(WebError::NotPublic { what, is_redirect: target.is_redirect });
        }
        Ok(found.into_iter().take(MAX_ADDRESSES).map(|address| SocketAddr::new(address, target.port)).collect())
    }
}

/// The only name that a client can resolve, with its addresses.
struct Pinned {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let answer: Result<Addrs, Box<dyn std::error::Error + Send + Sync>> = if name.as_str() == self.host {
            Ok(Box::new(self.addresses.clone().into_iter()))
        } else {
            Err("this client dials one host".into())
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Builds a client for one request to one host: no redirects, no proxy from the environment, no cookies, no referer.
/// (A literal address bypasses the resolver and was checked as such.)
pub(super) fn build_client(
    target: &DialTarget,
    addresses: Vec<SocketAddr>,
    connect_timeout: Duration,
) -> Result<Client, WebError> {
    Client::builder()
        .dns_resolver(Arc::new(Pinned { host: target.host.clone(), addresses }))
        // fault: redirects-followed-unseen
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .user_agent(USER_AGENT)
        .connect_timeout(connect_timeout)
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|_| WebError::Unreachable("No connection can be made on this machine."))
}

#[cfg(test)]
mod tests;
