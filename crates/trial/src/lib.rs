//! Repeats recorded cycles ([`replay`]) and tries prepared cases ([`eval`]), to show the effect of a changed prompt, model or program.
//! Trials have no effects: no tool acts, no message is sent, and only temporary memory is written. The cost alone is real, and charged to
//! the usual ledger ([`booked`]).

pub mod booked;
pub mod eval;
pub mod replay;
