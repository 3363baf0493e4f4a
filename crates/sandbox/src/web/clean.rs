//! Removal of characters that are invisible to people but visible to a model.

use reveille_base::words;

/// Removes control characters, and characters without width or with an effect on text direction. Joiners of Arabic,
/// Persian, Indian scripts and emoji stay.
pub(super) fn clean_text(text: &str) -> String {
    let ends_line = |c| matches!(c, '\r' | '\u{2028}' | '\u{2029}');
    text.replace("\r\n", "\n").chars().map(|c| if ends_line(c) { '\n' } else { c }).filter(|c| !is_unseen(*c)).collect()
}

/// Returns the text as one cleaned line of limited length, in characters.
pub(super) fn clean_line(text: &str, max_chars: usize) -> String {
    words::truncate_text(&words::one_line(&clean_text(text)), max_chars)
}

fn is_unseen(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}'
        | '\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_gone_and_what_is_seen_stays() {
        let smuggled: String = "ignore".chars().map(|c| char::from_u32(0xe0000 + c as u32).unwrap()).collect();
        assert_eq!(clean_text(&format!("a{smuggled}b\u{202e}c\u{200b}d\0e\r\nf\rg\th")), "abcde\nf\ng\th");
        let seen = "می‌خواهم 👩‍🚀 क्‍ष ❤️ naïve";
        assert_eq!(clean_text(seen), seen);
        assert_eq!(clean_line("  a\n\tb  ", 10), "a b");
        assert_eq!(clean_line("abcdef", 3), "ab…");
    }
}
