//! What was done, run again ([`replay`]), and what should be done, tried ([`eval`]): so that a changed prompt, model or program is seen
//! to do the same, or something else. Nothing of it happens: no tool acts, nothing is sent, and no memory but a temporary one is
//! written. Money alone is real: it is booked where all of it is ([`booked`]).

pub mod booked;
pub mod eval;
pub mod replay;
