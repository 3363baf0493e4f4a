//! Time: what was missed, clocks that change, jump and go back, and each thing once.

use super::campaign_schedule;

/// Every zone at least once. The campaign goes on from there.
#[test]
fn no_schedule_doubles_or_skips_in_any_zone() {
    let failures: Vec<String> = (0..700).filter_map(|seed| campaign_schedule::trial(seed).err()).collect();
    assert!(failures.is_empty(), "{} of 700:\n{}", failures.len(), failures[..failures.len().min(9)].join("\n"));
}
