//! Converts names in archives to paths. Programs write names in their system's encoding, with its separators, and sometimes from its root.

use encoding_rs::{EUC_KR, Encoding, GBK, IBM866, SHIFT_JIS, WINDOWS_1252};

/// The encoding of an archive's names other than UTF-8.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameEncoding(Option<&'static Encoding>);

impl NameEncoding {
    /// Guesses the encoding from all non-UTF-8 names together, since a single name tells little. The default is the code page of the
    /// original PC, 437.
    pub(super) fn guess<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let names: Vec<&[u8]> = names.filter(|name| std::str::from_utf8(name).is_err()).collect();
        let all = names.join(&b'/');
        let is_foreign = |byte: &u8| !byte.is_ascii();
        let has_foreign_runs = all.windows(2).any(|pair| pair.iter().all(is_foreign));
        let is_readable = |encoding: &'static Encoding, is_letter: fn(char) -> bool| {
            let (text, _, has_errors) = encoding.decode(&all);
            !has_errors && text.chars().filter(|c| !c.is_ascii()).all(is_letter)
        };
        let found = match () {
            // In European languages, accented letters mostly stand alone.
            () if !has_foreign_runs => {
                // Latin-1 has letters from 0xc0 on, where code page 437 has symbols, except for its ß at 0xe1.
                let is_latin1 = all.iter().filter(|byte| is_foreign(byte)).all(|byte| *byte >= 0xc0 && *byte != 0xe1);
                is_latin1.then_some(WINDOWS_1252)
            }
            () if is_readable(SHIFT_JIS, is_japanese) => Some(SHIFT_JIS),
            () if is_readable(IBM866, |c| ('\u{400}'..='\u{45f}').contains(&c)) => Some(IBM866),
            () if is_readable(EUC_KR, |c| ('\u{ac00}'..='\u{d7a3}').contains(&c)) => Some(EUC_KR),
            () if is_readable(GBK, is_chinese) => Some(GBK),
            () => None,
        };
        Self(found)
    }

    /// Decodes a name. `as_page_437` is the same name, decoded as code page 437.
    pub(super) fn decode(self, raw: &[u8], as_page_437: &str) -> String {
        match (std::str::from_utf8(raw), self.0) {
            (Ok(name), _) => name.to_owned(),
            (Err(_), Some(encoding)) => encoding.decode_without_bom_handling(raw).0.into_owned(),
            (Err(_), None) => as_page_437.to_owned(),
        }
    }
}

fn is_chinese(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303f}' | '\u{4e00}'..='\u{9fff}' | '\u{ff01}'..='\u{ff5e}' | '‘'..='”' | '—' | '…' | '·')
}

fn is_japanese(c: char) -> bool {
    is_chinese(c) || matches!(c, '\u{3040}'..='\u{30ff}')
}

/// Converts a name to a path below the archive, with `/` between steps. `None` if it leads out of a folder.
pub(super) fn to_path(name: &str) -> Option<String> {
    let name = name.replace('\\', "/");
    let has_drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let name = if has_drive { name.get(2..).unwrap_or_default() } else { &name };
    let steps: Vec<&str> = name.split('/').map(str::trim).filter(|step| !matches!(*step, "" | ".")).collect();
    // fault: archives-file-leads-out
    let leads_out = name.contains('\0') || steps.contains(&"..");
    (!leads_out).then(|| steps.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_paths_below_the_archive() {
        for (name, path) in [
            ("a/b.md", Some("a/b.md")),
            ("Vault\\Notes\\a.md", Some("Vault/Notes/a.md")),
            ("Vault\\.obsidian\\s.md", Some("Vault/.obsidian/s.md")),
            ("/etc/a.md", Some("etc/a.md")),
            ("\\\\server\\a.md", Some("server/a.md")),
            ("C:\\Users\\a.md", Some("Users/a.md")),
            ("c:a.md", Some("a.md")),
            ("./a//b.md", Some("a/b.md")),
            (" a / b.md ", Some("a/b.md")),
            ("a..b/..c", Some("a..b/..c")),
            ("ä:b", Some("ä:b")),
            ("../a", None),
            ("a/../../b", None),
            ("a\\..\\b", None),
            ("a/.. /b", None),
            ("C:..\\a", None),
            ("a\0b", None),
        ] {
            assert_eq!(to_path(name).as_deref(), path, "{name:?}");
        }
    }

    #[test]
    fn names_are_decoded_in_their_systems_encoding() {
        let encoded = |encoding: &'static Encoding, name: &str| encoding.encode(name).0.into_owned();
        for (name, raw, expected) in [
            ("UTF-8 without a flag", "Müller 日記.md".as_bytes().to_vec(), "Müller 日記.md"),
            ("code page 437", b"M\x81ller.md".to_vec(), "as page 437"),
            ("code page 437, with a byte that Shift JIS uses", b"sch\x94n.md".to_vec(), "as page 437"),
            ("Latin-1", b"M\xfcller.md".to_vec(), "Müller.md"),
            ("Japanese", encoded(SHIFT_JIS, "新しいフォルダ/ソ.md"), "新しいフォルダ/ソ.md"),
            (
                "Japanese, with a backslash byte within a letter",
                encoded(SHIFT_JIS, "日記\\表\\ソ.md"),
                "日記\\表\\ソ.md",
            ),
            ("Chinese", encoded(GBK, "我的笔记/今天.md"), "我的笔记/今天.md"),
            ("Korean", encoded(EUC_KR, "나의 노트/오늘.md"), "나의 노트/오늘.md"),
            ("Russian", encoded(IBM866, "Заметки/Сегодня.md"), "Заметки/Сегодня.md"),
        ] {
            let encoding = NameEncoding::guess([raw.as_slice(), b"plain.md"].into_iter());
            assert_eq!(encoding.decode(&raw, "as page 437"), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_path_leads_out_of_the_archive(name in any::<String>(), raw in prop::collection::vec(any::<u8>(), 0..40)) {
            let decoded = NameEncoding::guess([raw.as_slice()].into_iter()).decode(&raw, "x");
            for name in [name, decoded] {
                if let Some(path) = to_path(&name) {
                    prop_assert!(!path.starts_with('/') && path.split('/').all(|step| step != ".."), "{path}");
                }
            }
        }
    }
}
