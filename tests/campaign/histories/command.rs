//! What can happen in a history. A command carries a seed of its own for whatever else has to be drawn when it is played, so
//! that the others play as before when one is left out.

use fastrand::Rng;

/// Commands of one history.
const LENGTH: usize = 80;

/// A command, and what its own draws begin with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) act: Act,
    pub(super) seed: u64,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The bot stores a batch: messages, edits, commands with their answers, strangers.
    Accept,
    /// The channel delivers a batch again that it has delivered before.
    AcceptAgain,
    /// Somebody speaks on this machine.
    Say,
    /// A wake begins; one that is under way is taken over from.
    Wake,
    /// The wake does its next so many steps.
    Work(u8),
    /// The wake is killed.
    Kill,
    /// Everything is killed, a transaction of somebody's being in flight.
    Reboot,
    /// A wake that was taken over from goes on writing.
    OldHolder,
    /// The bot takes a part of its own answers to send.
    BotClaims,
    /// The bot hears how its sending ended.
    BotSettles,
    /// The bot is killed; it may be that it only looks dead and reports later.
    KillBot,
    /// A sender that was taken for dead reports.
    LateReport,
    /// The console's replies are shown.
    Show,
    /// A person lets a message be tried afresh.
    Retry,
    /// A person takes a message out of the queue.
    Drop,
    /// Time passes, in seconds.
    Pass(u32),
    /// The clock is set back, in seconds.
    JumpBack(u32),
    /// Another mind is configured.
    SwitchMind,
}

/// The history of a seed.
pub(super) fn history(seed: u64) -> Vec<Command> {
    let mut random = Rng::with_seed(seed);
    (0..LENGTH).map(|_| Command { act: act(&mut random), seed: random.u64(..) }).collect()
}

/// Chances in hundredths.
fn act(random: &mut Rng) -> Act {
    match random.u32(0..100) {
        0..10 => Act::Accept,
        10..12 => Act::AcceptAgain,
        12..14 => Act::Say,
        14..24 => Act::Wake,
        24..62 => Act::Work(random.u8(1..=8)),
        62..68 => Act::Kill,
        68..70 => Act::Reboot,
        70..74 => Act::OldHolder,
        74..78 => Act::BotClaims,
        78..81 => Act::BotSettles,
        81..83 => Act::KillBot,
        83..84 => Act::LateReport,
        84..86 => Act::Show,
        86..88 => Act::Retry,
        88..90 => Act::Drop,
        90..97 => Act::Pass(*random.choice(&[1, 30, 61, 600, 3_600, 90_000]).unwrap_or(&1)),
        97..98 => Act::JumpBack(random.u32(1..100_000)),
        _ => Act::SwitchMind,
    }
}
