//! The page's sessions: single-use addresses, and the cookies issued for them. Everything is kept in memory only, as digests.
//!
//! Times come from [`reveille_base::clock::read_awake_time`], a clock that nobody can set.

use std::time::Duration;

use reveille_base::{
    random::{self, NoRandomness},
    redact::Secret,
};

/// Lifetime of an unused address.
pub const TICKET_LASTS: Duration = Duration::from_secs(600);
/// Lifetime of a session without requests.
const SESSION_LASTS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum unused addresses; a new one replaces the oldest.
const MAX_TICKETS: usize = 8;
/// Maximum sessions; a new one replaces the least recently used.
const MAX_SESSIONS: usize = 16;
/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

pub(super) type Digest = [u8; 32];

/// The mark of a session: its cookie's digest.
#[derive(Clone, Copy)]
pub(super) struct SessionMark(Digest);

impl SessionMark {
    /// Returns the mark of a cookie's session, known or not.
    pub(super) fn from_cookie(cookie: &str) -> Self {
        Self(hash_token(cookie))
    }

    /// Returns the bytes, for a digest over them.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Compares in constant time.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        is_same(&self.0, &other.0)
    }
}

/// The valid tickets and sessions.
#[derive(Debug, Default)]
pub(super) struct PageSessions {
    /// Tickets with their time of creation, oldest first.
    tickets: Vec<(Digest, Duration)>,
    /// Sessions with their time of last use.
    sessions: Vec<(Digest, Duration)>,
}

impl PageSessions {
    /// Creates the single-use ticket of an address.
    ///
    /// # Errors
    /// The system gave no random bytes for the ticket.
    pub(super) fn create_ticket(&mut self, now: Duration) -> Result<Secret, NoRandomness> {
        let token = create_token()?;
        self.tickets.retain(|(_, made)| now.saturating_sub(*made) < TICKET_LASTS);
        if self.tickets.len() >= MAX_TICKETS {
            self.tickets.remove(0);
        }
        self.tickets.push((hash_token(token.expose()), now));
        Ok(token)
    }

    /// Exchanges a ticket for a cookie. `None` if the ticket is unknown, used or expired.
    ///
    /// # Errors
    /// The system gave no random bytes for the cookie. The ticket stays valid.
    pub(super) fn redeem_ticket(&mut self, ticket: &str, now: Duration) -> Result<Option<Secret>, NoRandomness> {
        self.tickets.retain(|(_, made)| now.saturating_sub(*made) < TICKET_LASTS);
        let ticket = hash_token(ticket);
        if !self.tickets.iter().fold(false, |found, (known, _)| found | is_same(known, &ticket)) {
            return Ok(None);
        }
        let cookie = create_token()?;
        self.tickets.retain(|(known, _)| !is_same(known, &ticket));
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.sort_by_key(|(_, used)| *used);
            self.sessions.remove(0);
        }
        self.sessions.push((hash_token(cookie.expose()), now));
        Ok(Some(cookie))
    }

    /// Renews the session of a cookie. Returns `true` if the cookie is known.
    pub(super) fn renew_session(&mut self, cookie: &str, now: Duration) -> bool {
        self.sessions.retain(|(_, used)| now.saturating_sub(*used) < SESSION_LASTS);
        let cookie = hash_token(cookie);
        let mut is_known = false;
        for (known, used) in &mut self.sessions {
            if is_same(known, &cookie) {
                *used = now;
                is_known = true;
            }
        }
        is_known
    }
}

fn create_token() -> Result<Secret, NoRandomness> {
    Ok(Secret::new(random::format_hex(&random::generate_bytes::<TOKEN_BYTES>()?)))
}

pub(super) fn hash_token(token: &str) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, token.as_bytes()).as_ref());
    bytes
}

/// Compares digests in constant time.
pub(super) fn is_same(a: &Digest, b: &Digest) -> bool {
    a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_address_works_once_and_not_for_long() {
        let mut entrance = PageSessions::default();
        let (first, second) = (entrance.create_ticket(s(0)).unwrap(), entrance.create_ticket(s(1)).unwrap());
        assert!(entrance.redeem_ticket("", s(1)).unwrap().is_none());
        let cookie = entrance.redeem_ticket(first.expose(), s(599)).unwrap().unwrap();
        assert!(entrance.redeem_ticket(first.expose(), s(599)).unwrap().is_none(), "the ticket works twice");
        assert!(entrance.redeem_ticket(second.expose(), s(601)).unwrap().is_none(), "an expired ticket works");
        assert!(entrance.renew_session(cookie.expose(), s(600)) && !entrance.renew_session(first.expose(), s(600)));
        assert!(!entrance.renew_session("", s(600)));
    }

    #[test]
    fn a_browser_is_forgotten_after_a_week_away() {
        let mut entrance = PageSessions::default();
        let ticket = entrance.create_ticket(s(0)).unwrap();
        let cookie = entrance.redeem_ticket(ticket.expose(), s(0)).unwrap().unwrap();
        let day = 24 * 3600;
        assert!(entrance.renew_session(cookie.expose(), s(6 * day)));
        assert!(entrance.renew_session(cookie.expose(), s(12 * day)));
        assert!(!entrance.renew_session(cookie.expose(), s(19 * day)));
    }

    #[test]
    fn the_number_of_addresses_and_browsers_is_bounded() {
        let mut entrance = PageSessions::default();
        let tickets: Vec<Secret> = (0..9).map(|n| entrance.create_ticket(s(n)).unwrap()).collect();
        assert!(entrance.redeem_ticket(tickets[0].expose(), s(9)).unwrap().is_none(), "the oldest ticket still works");
        let cookies: Vec<Secret> = (10..27)
            .map(|n| {
                let ticket = entrance.create_ticket(s(n)).unwrap();
                entrance.redeem_ticket(ticket.expose(), s(n)).unwrap().unwrap()
            })
            .collect();
        assert!(
            !entrance.renew_session(cookies[0].expose(), s(30)) && entrance.renew_session(cookies[16].expose(), s(30))
        );
    }
}
