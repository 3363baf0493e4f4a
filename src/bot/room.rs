//! Watches the free disk space. Below the reserve the bot stops fetching and tells the owner once; it still answers and
//! delivers stored messages. Telegram keeps new messages for a day.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    disk::{self, Reserve, format_size},
    words::local_day_and_time,
    zone::Tz,
};
use reveille_store::{NewOutgoing, Store};

use super::BotContext;

/// How often to check for room.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long Telegram keeps updates that aren't fetched.
const TELEGRAM_KEEPS: TimeDelta = TimeDelta::hours(24);

/// The state of the disk space.
#[derive(Debug, Default)]
pub(super) struct Room {
    is_short: bool,
    /// The time when the owner was told; kept in the store, so a new bot doesn't repeat it.
    told_at: Option<DateTime<Utc>>,
    /// `true` if the store didn't take a notice. Logged once, retried with each look.
    has_complained: bool,
}

impl Room {
    /// Restores the state of the last bot.
    pub(super) fn load(store: &Store) -> reveille_store::Result<Self> {
        let told_at = store.outbox().find_shortage_time()?;
        Ok(Self { is_short: told_at.is_some(), told_at, has_complained: false })
    }

    /// Returns `true` if the bot must not fetch.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Checks the disk. Returns a notice to send when the shortage begins or ends.
    pub(super) fn check_disk(&mut self, store: &mut Store, outside: BotContext<'_>) -> Option<i64> {
        let config = outside.config;
        let free_bytes = match disk::free_bytes(&config.workspace_dir) {
            Ok(free_bytes) => free_bytes,
            Err(error) => {
                // The next write will report the problem.
                tracing::debug!(%error, "the free disk space can't be read");
                return None;
            }
        };
        self.note_free_bytes(free_bytes, config.disk_reserve);
        if self.is_short {
            // Other programs may have filled the disk meanwhile.
            disk::release_ballast(&config.workspace_dir);
        } else {
            disk::keep_ballast(&config.workspace_dir, config.disk_reserve);
        }
        let now = outside.clock.now();
        let to_owner = |text| NewOutgoing::notice(config.owner_chat, outside.redactor.redact(text));
        let stored = match (self.is_short, self.told_at) {
            (true, None) => {
                let text =
                    render_shortage(free_bytes, config.disk_reserve, &config.workspace_dir, now, config.timezone);
                store.outbox_mut().begin_shortage(&to_owner(&text), now)
            }
            (false, Some(_)) => store.outbox_mut().end_shortage(&to_owner(&render_recovery(free_bytes)), now),
            _ => return None,
        };
        match stored {
            Ok(notice) => {
                self.told_at = self.is_short.then_some(now);
                self.has_complained = false;
                notice
            }
            Err(error) => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    tracing::warn!(%error, "the owner can't be told of it yet; it is tried again until it works");
                }
                None
            }
        }
    }

    /// Takes in the free space, and logs a change of state.
    fn note_free_bytes(&mut self, free_bytes: u64, reserve: Reserve) {
        let was_short = self.is_short;
        self.is_short =
            if was_short { free_bytes < reserve.recovery_bytes() } else { reserve.is_undercut_by(free_bytes) };
        let free = format_size(free_bytes);
        match (was_short, self.is_short) {
            (false, true) => {
                let reserve = format_size(reserve.bytes());
                tracing::warn!(
                    "no more polling: {free} free on the disk, the reserve is {reserve}; Telegram keeps messages for a day"
                );
            }
            (true, false) => tracing::info!("polling again: {free} free on the disk"),
            _ => {}
        }
    }
}

fn render_shortage(free_bytes: u64, reserve: Reserve, dir: &std::path::Path, now: DateTime<Utc>, tz: Tz) -> String {
    format!(
        "My disk is nearly full: {} are free, and I keep a reserve of {} (DISK_RESERVE_MB), so I've stopped fetching \
         messages. The ones I already have are safe, and I'll answer them. Telegram keeps new ones for 24 hours, the \
         first until {}. Please free some space at `{}`. Once {} are free, I'll continue and tell you.",
        format_size(free_bytes),
        format_size(reserve.bytes()),
        local_day_and_time(now + TELEGRAM_KEEPS, tz),
        dir.display(),
        format_size(reserve.recovery_bytes()),
    )
}

/// The notice that the disk has room again. If the shortage outlasted Telegram's day, `gap` reports the lost
/// messages at the first poll.
fn render_recovery(free_bytes: u64) -> String {
    let free = format_size(free_bytes);
    format!("My disk has room again ({free}), so I'm fetching messages again, oldest first.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    const MIB: u64 = 1 << 20;

    #[test]
    fn fetching_stops_below_the_reserve_and_resumes_a_quarter_above() {
        let mut room = Room::default();
        let short: Vec<bool> = [100, 99, 100, 124, 125, 100, 99]
            .map(|mib| {
                room.note_free_bytes(mib * MIB, Reserve::from_mib(100));
                room.is_short()
            })
            .to_vec();
        assert_eq!(short, [false, true, true, true, false, false, true]);
    }

    #[test]
    fn without_a_reserve_fetching_never_stops_and_resumes_if_it_had() {
        let mut room = Room::default();
        room.note_free_bytes(0, Reserve::from_mib(0));
        assert!(!room.is_short());
        room.is_short = true;
        room.note_free_bytes(0, Reserve::from_mib(0));
        assert!(!room.is_short());
    }

    #[test]
    fn the_notice_says_what_is_kept_until_when_and_what_to_do() {
        let now = parse_time("2026-11-21T14:00:00Z").unwrap();
        let text = render_shortage(
            90 * MIB,
            Reserve::from_mib(100),
            std::path::Path::new("/w"),
            now,
            "Europe/Berlin".parse::<reveille_base::zone::Tz>().unwrap(),
        );
        for part in [
            "90.0 MiB are free",
            "are safe, and I'll answer them",
            "until Sun 22 Nov 15:00",
            "at `/w`",
            "125.0 MiB are free",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
