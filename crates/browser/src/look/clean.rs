//! Removal of characters that are invisible to people but visible to a model.

use reveille_base::words;

/// Returns a text as one line without unseen characters, of limited length in characters.
pub(crate) fn clean_line(text: &str, max_chars: usize) -> String {
    let seen: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).filter(|c| !is_unseen(*c)).collect();
    words::truncate_text(&words::one_line(&seen), max_chars)
}

/// Joiners of Arabic, Persian, Indian scripts and emoji stay.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
