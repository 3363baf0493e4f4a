//! Decoding bytes to text, by byte order mark, the server's label, the page's label, or a guess.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes of a page searched for its encoding label (the HTML standard's figure).
const PRESCAN_BYTES: usize = 1_024;

/// The form of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextForm {
    /// A page, which may name its own encoding.
    Html,
    Plain,
}

/// Decodes a page or a text. Invalid bytes become replacement characters.
pub(super) fn decode(bytes: &[u8], declared: Option<&str>, form: TextForm) -> String {
    let said = || declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    let in_page = || (form == TextForm::Html).then(|| find_meta_encoding(bytes)).flatten();
    let looks = || if is_utf8(bytes) { UTF_8 } else { WINDOWS_1252 };
    // `decode` itself gives precedence to a byte order mark.
    let encoding = said().or_else(in_page).unwrap_or_else(looks);
    encoding.decode(bytes).0.into_owned()
}

/// Decodes XML, and drops the control characters that feeds contain although XML forbids them.
///
/// A byte order mark decides. Labels of servers and prologues often conflict, usually because one is an unintended
/// default. Valid UTF-8 is decoded as such despite any label, and a UTF-8 label on other text is ignored. Of two other
/// labels the server's wins, except Latin, the servers' default.
pub(super) fn decode_xml(bytes: &[u8], declared: Option<&str>) -> String {
    let said = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    let server = said.filter(|label| *label != WINDOWS_1252);
    let can_be = |label: &&Encoding| *label != UTF_8 && (![UTF_16LE, UTF_16BE].contains(label) || has_nulls(bytes));
    let other = [server, find_xml_encoding(bytes)].into_iter().flatten().find(can_be);
    let text = match (Encoding::for_bom(bytes), detect_utf16(bytes)) {
        (Some((encoding, length)), _) if encoding == UTF_8 => decode_mixed(bytes.split_at(length).1),
        (Some((encoding, _)), _) | (None, Some(encoding)) => encoding.decode(bytes).0.into_owned(),
        (None, None) if is_mostly_utf8(bytes) => decode_mixed(bytes),
        (None, None) => other.unwrap_or(WINDOWS_1252).decode(bytes).0.into_owned(),
    };
    // A program may prepend its mark to another program's mark.
    text.trim_start_matches('\u{feff}').chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t')).collect()
}

/// Detects UTF-16 without a mark by the beginning of XML or JSON.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [b'<' | b'{', 0, first, 0, ..] if *first != 0 => Some(UTF_16LE),
        [0, b'<' | b'{', 0, first, ..] if *first != 0 => Some(UTF_16BE),
        _ => None,
    }
}

fn has_nulls(bytes: &[u8]) -> bool {
    bytes.iter().take(PRESCAN_BYTES).any(|byte| *byte == 0)
}

/// Returns the label in `<?xml … encoding="…"?>`.
fn find_xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let (head, _) = bytes.split_at(bytes.len().min(PRESCAN_BYTES));
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, prologue) = head.split_once("<?xml")?;
    let (prologue, _) = prologue.split_once('>')?;
    let (_, label) = prologue.split_once("encoding")?;
    let label = label.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    Encoding::for_label(label.split(['"', '\'', '?', ' ']).next()?.as_bytes())
}

/// Returns true if most of the non-ASCII text is valid UTF-8. Pure ASCII doesn't count, since other encodings look the same.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut right, mut wrong) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        right += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += usize::from(!chunk.invalid().is_empty());
    }
    right > wrong
}

/// Decodes UTF-8 with inserted foreign pieces. Those are decoded as Windows-1252, the browsers' default.
fn decode_mixed(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0);
    }
    text
}

/// Returns true for UTF-8. A character at the end may be cut by the limit if earlier text is non-ASCII UTF-8.
fn is_utf8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && !bytes.split_at(error.valid_up_to()).0.is_ascii(),
    }
}

/// Returns the label in a page: `<meta charset=…>` or `<meta http-equiv=… content="…; charset=…">`.
fn find_meta_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let (head, _) = bytes.split_at(bytes.len().min(PRESCAN_BYTES));
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.split("<meta").skip(1).find_map(|meta| {
        let (meta, _) = meta.split_once('>')?;
        let (_, label) = meta.split_once("charset")?;
        let label = label.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let label = label.split(['"', '\'', ';', '/', ' ', '\t', '\n']).next()?;
        match Encoding::for_label(label.as_bytes()) {
            // The label was readable as ASCII, so the page isn't UTF-16.
            Some(encoding) if !encoding.is_ascii_compatible() => Some(UTF_8),
            encoding => encoding,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_then_server_then_page_then_looks() {
        let latin = b"caf\xe9";
        assert_eq!(decode(latin, Some("ISO-8859-1"), TextForm::Plain), "café");
        assert_eq!(decode(latin, None, TextForm::Plain), "café");
        assert_eq!(decode("café".as_bytes(), None, TextForm::Plain), "café");
        assert_eq!(decode("\u{feff}café".as_bytes(), Some("iso-8859-1"), TextForm::Plain), "café");
        assert_eq!(decode(b"\xff\xfec\0a\0", Some("utf-8"), TextForm::Plain), "ca");
        assert_eq!(decode(b"<meta charset=koi8-r>\xc4\xc1", None, TextForm::Html), "<meta charset=koi8-r>да");
        let equiv = b"<META http-equiv=Content-Type content=\"text/html; charset=windows-1251\">\xe4\xe0";
        assert!(decode(equiv, None, TextForm::Html).ends_with("да"));
        assert!(decode(b"<meta charset=utf-16>caf\xc3\xa9", None, TextForm::Html).ends_with("café"));
        assert_eq!(decode(b"\x93\xfa\x96\x7b", Some("Shift_JIS"), TextForm::Html), "日本");
    }

    #[test]
    fn a_wrong_word_costs_characters_and_nothing_else() {
        assert_eq!(decode(b"caf\xe9!", Some("utf-8"), TextForm::Plain), "caf\u{fffd}!");
        assert_eq!(decode("café".as_bytes(), Some("no-such-charset"), TextForm::Plain), "café");
        let (cut, _) = "été".as_bytes().split_at(4);
        assert_eq!(decode(cut, None, TextForm::Plain), "ét\u{fffd}");
    }
}
