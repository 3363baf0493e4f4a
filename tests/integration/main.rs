//! Reveille through its front door: one binary, a file for each story.

mod units;
