//! Parses slightly damaged JSON: exports come from many programs, and people cut or edit them.

use serde_json::Value;

use super::encoding::decode_lossy;

/// Parses JSON, repairing errors with a clear meaning. `None` if it isn't understood.
pub(super) fn parse_json(raw: &[u8]) -> Option<Value> {
    serde_json::from_slice(raw).ok().or_else(|| serde_json::from_str(&repair_json(&decode_lossy(raw))).ok())
}

/// Repairs lone surrogates, bare control characters and unknown escapes in strings, and commas before a closing bracket. Words and numbers
/// invalid in JSON become null.
pub(super) fn repair_json(text: &str) -> String {
    let mut repaired = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => repair_string(rest, &mut repaired),
            ',' => {
                let next = rest.get(1..).unwrap_or_default().trim_start();
                if !next.starts_with(['}', ']']) {
                    repaired.push(',');
                }
                1
            }
            '{' | '}' | '[' | ']' | ':' => {
                repaired.push(first);
                1
            }
            _ if first.is_whitespace() => {
                repaired.push(' ');
                first.len_utf8()
            }
            _ => {
                let ends = |c: char| matches!(c, '"' | ',' | '{' | '}' | '[' | ']' | ':') || c.is_whitespace();
                let word = rest.split(ends).next().unwrap_or(rest);
                let is_known = serde_json::from_str::<Value>(word).is_ok();
                repaired.push_str(if is_known { word } else { "null" });
                word.len()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    repaired
}

/// Repairs the string at the beginning of a text, and returns its original length.
fn repair_string(text: &str, repaired: &mut String) -> usize {
    repaired.push('"');
    let mut at = 1;
    let rest = |at: usize| text.get(at..).unwrap_or_default();
    while let Some(c) = rest(at).chars().next() {
        at += c.len_utf8();
        match c {
            '"' => {
                repaired.push('"');
                return at;
            }
            '\\' => match rest(at).chars().next() {
                Some('u') => match parse_escape(rest(at - 1)) {
                    Some(0xd800..0xdc00) => match parse_escape(rest(at + 5)) {
                        Some(0xdc00..0xe000) => {
                            repaired.push_str(rest(at - 1).get(..12).unwrap_or_default());
                            at += 11;
                        }
                        _ => {
                            repaired.push_str("\\ufffd");
                            at += 5;
                        }
                    },
                    Some(0xdc00..0xe000) => {
                        repaired.push_str("\\ufffd");
                        at += 5;
                    }
                    Some(_) => {
                        repaired.push_str(rest(at - 1).get(..6).unwrap_or_default());
                        at += 5;
                    }
                    None => repaired.push_str("\\\\"),
                },
                Some(escape @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                    repaired.extend(['\\', escape]);
                    at += 1;
                }
                _ => repaired.push_str("\\\\"),
            },
            c if c < ' ' => repaired.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => repaired.push(c),
        }
    }
    repaired.push('"');
    at
}

/// Parses an escape `\uXXXX` at the beginning of a text.
fn parse_escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.chars().all(|c| c.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}
