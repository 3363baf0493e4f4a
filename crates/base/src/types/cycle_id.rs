//! The form of a cycle's id.

/// Returns true for a cycle's id: `20261121T090300Z-812`, or `…-812-2` for the second cycle of a process. A person's
/// `plan-holiday.md` has another form.
pub fn is_cycle_id(id: &str) -> bool {
    let Some((stamp, numbers)) = id.split_once('-') else {
        return false;
    };
    let is_stamp = stamp.len() == 16 && stamp.ends_with('Z') && stamp.chars().nth(8) == Some('T');
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (pid, count) = numbers.split_once('-').unwrap_or((numbers, "1"));
    is_stamp && is_number(pid) && is_number(count) && stamp.bytes().filter(u8::is_ascii_digit).count() == 14
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_files_count() {
        for ours in ["20261121T090300Z-812", "20261121T090300Z-1-12"] {
            assert!(is_cycle_id(ours), "{ours}");
        }
        for theirs in [
            "holiday",
            "20261121-812",
            "20261121T090300Z",
            "20261121T090300Z-",
            "20261121T090300Z-x",
            "20261121T090300Z-1-",
            "20261121T090300Z-1-2-3",
            "x0261121T090300Z-1",
        ] {
            assert!(!is_cycle_id(theirs), "{theirs}");
        }
    }
}
