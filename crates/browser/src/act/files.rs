//! Files: downloads with safe names, and uploads from open folders.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use reveille_base::words::truncate_text;
use serde_json::json;

use super::{point::CheckMode, pointer::ClickKind};
use crate::{
    browser::Browser,
    error::{Fault, blocked, wrong},
    events::{BrowserState, DownloadProgress, DownloadState, FileChooser},
    look::clean::clean_line,
    verb::BrowserOutcome,
};

/// Maximum length of a file's name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// Maximum number of files of one upload.
const MAX_UPLOADS: usize = 20;

/// Files by their first bytes.
const KINDS: [FileKind; 12] = [
    FileKind { start: b"%PDF-", name: "PDF" },
    FileKind { start: b"\x89PNG", name: "PNG picture" },
    FileKind { start: b"\xff\xd8\xff", name: "JPEG picture" },
    FileKind { start: b"GIF8", name: "GIF picture" },
    FileKind { start: b"PK\x03\x04", name: "ZIP archive or office document" },
    FileKind { start: b"\x1f\x8b", name: "gzip archive" },
    FileKind { start: b"\x7fELF", name: "program" },
    FileKind { start: b"MZ", name: "Windows program" },
    FileKind { start: b"#!", name: "script" },
    FileKind { start: b"\xcf\xfa\xed\xfe", name: "Mac program" },
    FileKind { start: b"<!DOCTYPE", name: "web page" },
    FileKind { start: b"<?xml", name: "XML" },
];

/// A kind of file.
struct FileKind {
    start: &'static [u8],
    name: &'static str,
}

/// Downloads that ended since the last report.
#[derive(Default)]
pub(super) struct ArrivedFiles {
    pub(super) reports: Vec<String>,
    pub(super) files: Vec<PathBuf>,
}

impl Browser {
    /// Gives finished downloads their names, and reports what became of all since the last report.
    pub(super) fn collect_downloads(&self) -> ArrivedFiles {
        let ended: Vec<DownloadState> = self.shared.with(|state| {
            let is_new =
                |download: &&mut DownloadState| !download.is_reported && download.progress != DownloadProgress::Running;
            state
                .downloads
                .iter_mut()
                .filter(is_new)
                .map(|download| {
                    download.is_reported = true;
                    download.clone()
                })
                .collect()
        });
        let mut arrived = ArrivedFiles::default();
        for download in ended {
            let stored = self.options.downloads.join(&download.guid);
            let name = clean_line(&safe_name(&download.suggested_name), MAX_NAME_CHARS);
            match download.progress {
                DownloadProgress::Completed => {
                    match keep_download(&stored, &self.options.downloads, &download.suggested_name) {
                        Ok(path) => {
                            let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                            let kind = describe_kind(&path);
                            let size = path.metadata().map_or(download.bytes, |found| found.len());
                            let from = clean_line(&truncate_text(&download.url, 150), 150);
                            arrived.reports.push(format!("Downloaded {shown}: {kind}, {size} bytes, from {from}."));
                            arrived.files.push(path);
                        }
                        Err(error) => arrived.reports.push(format!("The download {name} couldn't be kept: {error}.")),
                    }
                }
                DownloadProgress::TooLarge => {
                    std::fs::remove_file(&stored).ok();
                    let most = self.options.max_download_bytes >> 20;
                    arrived.reports.push(format!("The download {name} is larger than {most} MiB and was cancelled."));
                }
                _ => arrived.reports.push(format!("The download {name} was broken off.")),
            }
        }
        arrived
    }

    /// Starts a download by a click, or not, and waits until none runs.
    pub(crate) async fn download(&mut self, reference: Option<&str>) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let count = self.shared.with(|state| state.downloads.len());
        if let Some(reference) = reference {
            let point = self.find_box(reference, CheckMode::Act).await?.point;
            self.click_point(point, ClickKind::Single).await?;
            let current = self.current;
            let begun = |state: &mut BrowserState| {
                let is_held = state.tab(current).is_some_and(|tab| tab.dialog.is_some());
                (state.downloads.len() > count || is_held).then_some(())
            };
            if self.shared.wait_for(self.options.patience.state, begun).await.is_none() {
                return self.report(&before, "Clicked, but no download began.").await;
            }
        } else if self.shared.with(|state| state.downloads.iter().all(|download| download.is_reported)) {
            return Err(wrong("No download is running."));
        }
        let ended = |state: &mut BrowserState| {
            state.downloads.iter().all(|download| download.progress != DownloadProgress::Running).then_some(())
        };
        let done = match self.shared.wait_for(self.options.patience.download, ended).await {
            Some(()) => "The download has ended.",
            None => "The download is still running.",
        };
        self.report(&before, done).await
    }

    /// Puts files into a field or the chooser that a button opens.
    pub(crate) async fn upload(&mut self, reference: &str, files: &[PathBuf]) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let paths = self.check_uploads(files)?;
        let address = self.find_node(reference).await?;
        let function = "function () { return this.matches && this.matches('input[type=file]'); }";
        let is_field = self.call_on_reference(reference, function, &[]).await? == true;
        let chooser = if is_field {
            FileChooser { session: address.session, node: address.node }
        } else {
            self.open_chooser(reference).await?
        };
        let params = json!({"files": paths, "backendNodeId": chooser.node});
        self.call_page(&chooser.session, "DOM.setFileInputFiles", params).await?;
        let names: Vec<String> =
            paths.iter().map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect();
        self.report(&before, &format!("Chosen: {}.", names.join(", "))).await
    }

    async fn open_chooser(&mut self, reference: &str) -> Result<FileChooser, Fault> {
        self.shared.with(|state| state.tab_mut(self.current).map(|tab| tab.file_chooser = None));
        let point = self.find_box(reference, CheckMode::Act).await?.point;
        self.click_point(point, ClickKind::Single).await?;
        let current = self.current;
        let opened = |state: &mut BrowserState| state.tab_mut(current).and_then(|tab| tab.file_chooser.take());
        let found = self.shared.wait_for(self.options.patience.answer, opened).await;
        found.ok_or_else(|| blocked(format!("{reference} was clicked, but it asks for no files.")))
    }

    /// Checks that files lie in an open folder.
    fn check_uploads(&self, files: &[PathBuf]) -> Result<Vec<PathBuf>, Fault> {
        if files.is_empty() || files.len() > MAX_UPLOADS {
            return Err(wrong(format!("Name 1 to {MAX_UPLOADS} files.")));
        }
        let folders: Vec<PathBuf> =
            self.options.uploads.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        let check = |file: &PathBuf| {
            let found = file.canonicalize().ok().filter(|path| path.is_file());
            let path = found.ok_or_else(|| wrong(format!("There is no file {}.", file.display())))?;
            match folders.iter().any(|folder| path.starts_with(folder)) {
                true => Ok(path),
                false => Err(wrong(format!("{} lies in no folder that is open for uploads.", file.display()))),
            }
        };
        files.iter().map(check).collect()
    }
}

/// Moves a finished download to a safe name that isn't taken.
fn keep_download(stored: &Path, folder: &Path, suggested: &str) -> std::io::Result<PathBuf> {
    let name = safe_name(suggested);
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) => (stem.to_owned(), format!(".{ending}")),
        None => (name, String::new()),
    };
    for number in 1..1_000 {
        let again = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{stem}{again}{ending}"));
        // A link fails if the name is taken, whereas a rename would replace the file.
        match std::fs::hard_link(stored, &path) {
            Ok(()) => {
                std::fs::remove_file(stored)?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// A file's name without folders, unseen characters or a special start.
fn safe_name(suggested: &str) -> String {
    let last = suggested.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean = clean_line(last, usize::MAX);
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ' | '(' | ')' | '+' | ',' | '@');
    let name: String = clean.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches(['.', '-', ' ', '_', '~']).trim_end_matches(['.', ' ']);
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if ending.chars().count() <= 10 && !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    let stem: String = stem.chars().take(MAX_NAME_CHARS).collect();
    if stem.is_empty() { format!("download{ending}") } else { format!("{stem}{ending}") }
}

/// The kind of a file by its first bytes, whatever its name says.
fn describe_kind(path: &Path) -> &'static str {
    let mut start = [0; 16];
    let count = std::fs::File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let start = start.get(..count).unwrap_or_default();
    let known = KINDS.iter().find(|kind| start.starts_with(kind.start)).map(|kind| kind.name);
    known.unwrap_or(if start.iter().all(|byte| *byte >= 9 && *byte != 127) { "text" } else { "binary file" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_are_safe() {
        for (suggested, safe) in [
            ("invoice 7.pdf", "invoice 7.pdf"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\x.exe", "x.exe"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\u{202e}fdp.exe", "afdp.exe"),
            ("a\0b\n.txt", "a b .txt"),
            ("", "download"),
            ("...", "download"),
            ("~$x;y|z.doc", "$x_y_z.doc".trim_start_matches('$')),
            ("grüße.txt", "grüße.txt"),
        ] {
            assert_eq!(safe_name(suggested), safe, "{suggested:?}");
        }
        assert!(safe_name(&format!("{}.pdf", "a".repeat(500))).len() < 110);
    }

    #[test]
    fn a_download_replaces_no_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.pdf"), "mine").unwrap();
        std::fs::write(folder.path().join("guid"), "%PDF-1.7").unwrap();
        let path = keep_download(&folder.path().join("guid"), folder.path(), "a.pdf").unwrap();
        assert_eq!(path, folder.path().join("a-2.pdf"));
        assert_eq!(std::fs::read_to_string(folder.path().join("a.pdf")).unwrap(), "mine");
        assert_eq!(describe_kind(&path), "PDF");
        assert!(!folder.path().join("guid").exists());
    }
}
