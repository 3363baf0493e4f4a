//! Reveille through its front door: one binary, a file for each story.

// `cfg(test)` holds for all of this; said aloud, it lets clippy know that helpers here may unwrap.
#[cfg(test)]
mod units;
