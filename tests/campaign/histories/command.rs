//! The commands of a history. Each carries its own seed for further draws, so leaving one out doesn't change the others.

use fastrand::Rng;

/// Commands of one history.
const LENGTH: usize = 80;

/// A command, with the seed of its own draws.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) act: Act,
    pub(super) seed: u64,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The bot stores a batch: messages, edits, commands with their answers, strangers.
    Accept,
    /// The channel delivers an earlier batch again.
    AcceptAgain,
    /// Somebody speaks on this machine.
    Say,
    /// Another wake begins and takes over from the running one.
    TakeOver,
    /// The wake does this many next steps; if no wake runs, one begins.
    Work(u8),
    /// The wake is killed.
    Kill,
    /// Everything is killed with an open transaction.
    Reboot,
    /// A wake without its lease continues writing.
    OldHolder,
    /// The bot takes a part of its own answers to send.
    BotClaims,
    /// The bot learns the result of its sending.
    BotSettles,
    /// The bot is killed, or only looks dead and reports later.
    KillBot,
    /// A presumed-dead sender reports.
    LateReport,
    /// The terminal's replies are shown.
    Show,
    /// A person lets a message be tried afresh.
    Retry,
    /// A person takes a message out of the queue.
    Drop,
    /// Time passes, in seconds.
    Pass(u32),
    /// The clock is set back, in seconds.
    JumpBack(u32),
    /// Another model is configured.
    SwitchModel,
}

/// The emphasis of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Temper {
    /// A mixture of everything.
    Even,
    /// Wakes are killed early.
    Deadly,
    /// The model's server often rejects conversations.
    Refusing,
}

/// The history of a seed.
pub(super) fn history(seed: u64) -> (Temper, Vec<Command>) {
    let mut random = Rng::with_seed(seed);
    let temper =
        *random.choice(&[Temper::Even, Temper::Even, Temper::Deadly, Temper::Refusing]).unwrap_or(&Temper::Even);
    (temper, (0..LENGTH).map(|_| Command { act: act(temper, &mut random), seed: random.u64(..) }).collect())
}

/// Draws a command, with chances in percent.
fn act(temper: Temper, random: &mut Rng) -> Act {
    let most_steps = if temper == Temper::Deadly { 6 } else { 24 };
    match random.u32(0..100) {
        0..6 => Act::Accept,
        6..8 => Act::AcceptAgain,
        8..9 => Act::Say,
        9..12 => Act::TakeOver,
        12..52 => Act::Work(random.u8(1..=most_steps)),
        52..62 => Act::Kill,
        62..64 => Act::Reboot,
        64..68 => Act::OldHolder,
        68..73 => Act::BotClaims,
        73..77 => Act::BotSettles,
        77..79 => Act::KillBot,
        79..80 => Act::LateReport,
        80..82 => Act::Show,
        82..84 => Act::Retry,
        84..85 => Act::Drop,
        85..97 => Act::Pass(*random.choice(&[1, 30, 61, 600, 3_600, 90_000]).unwrap_or(&1)),
        97..99 => Act::JumpBack(random.u32(1..100_000)),
        _ => Act::SwitchModel,
    }
}
