//! Tests reading archives and folders of the kinds that people and programs make.

use std::{fs, path::PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A file of an archive. The archive is written byte by byte, so that it may be faulty.
#[derive(Debug, Clone)]
struct Packed {
    name: Vec<u8>,
    content: Vec<u8>,
    is_encrypted: bool,
    has_wrong_sum: bool,
    has_descriptor: bool,
    method: u16,
}

fn pack_file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Packed {
    Packed {
        name: name.as_ref().to_vec(),
        content: content.as_ref().to_vec(),
        is_encrypted: false,
        has_wrong_sum: false,
        has_descriptor: false,
        method: 0,
    }
}

/// Computes the checksum that an archive stores for a file.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

/// Builds an archive of uncompressed files.
fn build_archive(files: &[Packed]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for file in files {
        let start = u32::try_from(bytes.len()).unwrap();
        let flags = u16::from(file.is_encrypted) | u16::from(file.has_descriptor) << 3;
        let sum = crc32(&file.content) ^ u32::from(file.has_wrong_sum);
        let length = u32::try_from(file.content.len()).unwrap();
        let sizes = [sum.to_le_bytes(), length.to_le_bytes(), length.to_le_bytes()].concat();
        let name_length = u16::try_from(file.name.len()).unwrap().to_le_bytes();
        let head = [flags.to_le_bytes(), file.method.to_le_bytes(), [0, 0], [0x21, 0]].concat();
        let local = if file.has_descriptor { vec![0; 12] } else { sizes.clone() };
        bytes.extend([b"PK\x03\x04\x14\0".as_slice(), &head, &local, &name_length, &[0, 0], &file.name].concat());
        bytes.extend(&file.content);
        if file.has_descriptor {
            bytes.extend([b"PK\x07\x08".as_slice(), &sizes].concat());
        }
        let place = [&[0; 12][..], &start.to_le_bytes()].concat();
        list.extend([b"PK\x01\x02\x14\0\x14\0".as_slice(), &head, &sizes, &name_length, &place, &file.name].concat());
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (place, length) = (u32::try_from(bytes.len()).unwrap(), u32::try_from(list.len()).unwrap());
    let end = [&[0; 4][..], &count, &count, &length.to_le_bytes(), &place.to_le_bytes(), &[0, 0]].concat();
    [bytes, list, b"PK\x05\x06".to_vec(), end].concat()
}

fn write_file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// Lists a source's files, each with its text or the reason why it has none, then the skipped files with the reasons.
fn list_content(path: &Path) -> Result<Vec<String>, String> {
    let source = ImportSource::open(path).map_err(|error| error.to_string())?;
    let texts = source.entries().iter().map(|entry| {
        let text = source.read_text(entry, 1 << 20).unwrap_or_else(|why| format!("({why})"));
        format!("{}: {text}", entry.path)
    });
    let left_out = source.left_out().iter().map(|left| format!("- {}: {}", left.what, left.why));
    Ok(texts.chain(left_out).collect())
}

#[test]
fn archives_made_by_people_and_programs_are_read() {
    let folder = TempDir::new().unwrap();
    let note = || pack_file("a.md", "x");
    let export = |name: &str| pack_file(name, build_archive(&[pack_file("conversations.json", "[]")]));
    let many_times = |times: usize| {
        (0..times).fold(build_archive(&[note()]), |inner, _| build_archive(&[pack_file("in/in.zip", inner)]))
    };
    let hidden = "hidden files and folders";
    for (name, files, expected) in [
        ("plain", vec![note()], vec!["a.md: x".to_owned()]),
        (
            "Windows separators",
            vec![
                pack_file("Vault\\Notes\\a.md", "x"),
                pack_file("Vault\\.obsidian\\s.md", "y"),
                pack_file("Vault\\Notes\\", ""),
            ],
            vec!["Vault/Notes/a.md: x".into(), format!("- Vault/.obsidian/s.md: {hidden}")],
        ),
        (
            "paths from a root or a drive",
            vec![pack_file("/Vault/a.md", "x"), pack_file("C:\\Vault\\b.md", "y"), pack_file("./c.md", "z")],
            vec!["Vault/a.md: x".into(), "Vault/b.md: y".into(), "c.md: z".into()],
        ),
        (
            "files added by macOS",
            vec![note(), pack_file("__MACOSX/._a.md", "y"), pack_file(".DS_Store", "y"), pack_file("b/.DS_Store", "y")],
            vec![
                "a.md: x".into(),
                format!("- __MACOSX/._a.md: {hidden}"),
                format!("- .DS_Store: {hidden}"),
                format!("- b/.DS_Store: {hidden}"),
            ],
        ),
        ("code page 437", vec![pack_file(b"M\x81ller.md", "x")], vec!["Müller.md: x".into()]),
        ("Japanese letters", vec![pack_file(b"\x93\xfa\x8bL/\x83\\.md", "x")], vec!["日記/ソ.md: x".into()]),
        ("UTF-8 without its flag", vec![pack_file("日記.md", "x")], vec!["日記.md: x".into()]),
        ("names that differ in case", vec![note(), pack_file("A.md", "y")], vec!["A.md: y".into(), "a.md: x".into()]),
        (
            "one name twice",
            vec![note(), pack_file("a.md", "y")],
            vec![
                "a.md: y".into(),
                "- a.md: another file in the archive has the same name: only the last one is imported".into(),
            ],
        ),
        (
            "sizes after the file's content",
            vec![Packed { has_descriptor: true, ..note() }, pack_file("b.md", "y")],
            vec!["a.md: x".into(), "b.md: y".into()],
        ),
        (
            "one encrypted",
            vec![Packed { is_encrypted: true, ..note() }, pack_file("b.md", "y")],
            vec!["b.md: y".into(), "- a.md: encrypted in the archive".into()],
        ),
        (
            "one with an unsupported compression",
            vec![Packed { method: 12, ..note() }, pack_file("b.md", "y")],
            vec!["b.md: y".into(), "- a.md: compressed in an unsupported way".into()],
        ),
        (
            "one damaged",
            vec![Packed { has_wrong_sum: true, ..note() }, pack_file("b.md", "y")],
            vec![format!("a.md: ({DAMAGED})"), "b.md: y".into()],
        ),
        (
            "spaces and dots at the end of names",
            vec![pack_file("a /b.md ", "x"), pack_file("c.md.", "y")],
            vec!["a/b.md: x".into(), "c.md.: y".into()],
        ),
        ("a long name", vec![pack_file("x".repeat(400) + ".md", "x")], vec!["x".repeat(400) + ".md: x"]),
        (
            "an inner archive",
            vec![pack_file("Export/Part-1.zip", build_archive(&[pack_file("b/a.md", "x")]))],
            vec!["Export/b/a.md: x".into()],
        ),
        (
            "an export in two parts",
            vec![export("c-000.zip"), export("c-001.zip")],
            vec!["conversations.json: []".into(); 2],
        ),
        ("three archives deep", vec![pack_file("o/o.zip", many_times(2))], vec!["o/in/in/a.md: x".into()]),
        (
            "four archives deep",
            vec![pack_file("o/o.zip", many_times(3))],
            vec![format!("- o/in/in/in/in.zip: {INNER}")],
        ),
        (
            "an archive attached to notes",
            vec![note(), export("b.zip")],
            vec!["a.md: x".into(), "b.zip: (not text in UTF-8)".into()],
        ),
        (
            "an inner archive that isn't one",
            vec![pack_file("b.zip", "PK\x03\x04"), pack_file("c.json", "[]")],
            vec!["c.json: []".into(), format!("- b.zip: {BAD_INNER}")],
        ),
        (
            "an inner archive with a path out of its folder",
            vec![pack_file("b.zip", build_archive(&[pack_file("../a.md", "x")])), pack_file("c.json", "[]")],
            vec!["c.json: []".into(), format!("- b.zip: {BAD_INNER}")],
        ),
    ] {
        let path = write_file(&folder, "a.zip", &build_archive(&files));
        let mut shown = list_content(&path).unwrap();
        // An inner archive that isn't opened is listed with its bytes as text. Such lines aren't compared.
        shown.iter_mut().for_each(|line| line.retain(|c| c != '\0'));
        assert_eq!(
            shown.iter().filter(|line| !line.contains("PK")).collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>(),
            "{name}"
        );
    }
    // A compressed archive within an archive, and archives in a folder.
    let mut writer = zip::ZipWriter::new(File::create(folder.path().join("packed.zip")).unwrap());
    writer.start_file("b/Part-1.zip", zip::write::SimpleFileOptions::default()).unwrap();
    io::Write::write_all(&mut writer, &build_archive(&[note()])).unwrap();
    writer.finish().unwrap();
    assert_eq!(list_content(&folder.path().join("packed.zip")).unwrap(), ["b/a.md: x"]);
    let parts = TempDir::new().unwrap();
    write_file(&parts, "export/conversations-000.zip", &build_archive(&[pack_file("conversations.json", "[]")]));
    write_file(&parts, "export/users.json", b"[]");
    write_file(&parts, "export/._users.json", b"[]");
    assert_eq!(
        list_content(parts.path()).unwrap(),
        ["export/conversations.json: []", "export/users.json: []", &format!("- export/._users.json: {hidden}")]
    );
    // An interrupted download.
    let whole = build_archive(&[note()]);
    let cut = write_file(&folder, "cut.zip", &whole[..whole.len() - 9]);
    assert!(list_content(&cut).unwrap_err().contains("can't be read"));
    let up = write_file(&folder, "up.zip", &build_archive(&[note(), pack_file("../a.md", "x")]));
    assert!(list_content(&up).unwrap_err().contains("outside its folder"));
}

#[test]
fn texts_in_other_encodings_are_read() {
    let folder = TempDir::new().unwrap();
    let utf16 = [b"\xff\xfe".to_vec(), "# Käse\n".encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    for (name, bytes, expected) in [
        ("UTF-16", utf16.as_slice(), "a.md: # Käse\n"),
        ("a byte order mark", b"\xef\xbb\xbf# A\n", "a.md: # A\n"),
        ("an emoji as two surrogates", b"\xed\xa0\xbd\xed\xb8\x82", "a.md: 😂"),
        ("Latin-1", b"K\xe4se", "a.md: (not text in UTF-8)"),
    ] {
        assert_eq!(list_content(&write_file(&folder, "a.md", bytes)).unwrap(), [expected], "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn an_archive_with_any_bytes_changed_is_read_to_an_end(
        names in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let folder = TempDir::new().unwrap();
        let files: Vec<_> = names.iter().map(|name| pack_file(name, build_archive(&[pack_file(name, b"x")]))).collect();
        let mut bytes = build_archive(&files);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        drop(list_content(&write_file(&folder, "a.zip", &bytes)));
    }
}
