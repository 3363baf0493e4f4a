//! `str_replace_based_edit_tool`: views and edits text files. Name and arguments are those on which models were
//! trained; the access rules are ours.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_media::content::{self, Content};
use reveille_policy as policy;
use reveille_policy::Risk;
use reveille_sandbox::exec::{
    Exec,
    beneath::{BeneathKind, PathUse, Place, Stamp, Whose},
    edits::{self, Edit as Step},
};

use super::{Done, Outcome, Refusal, Tool, Touched, World, files};

/// The tool's name.
pub const EDITOR: &str = "str_replace_based_edit_tool";
/// The tool's type, known from the models' training.
const TRAINED: &str = "text_editor_20250728";
/// Maximum size of a viewed or written file, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum bytes of a file shown by one call.
const MAX_SHOWN_BYTES: usize = 20 * 1024;
/// The depth of a folder listing.
const LISTED_DEPTH: usize = 2;
/// Maximum number of listed entries.
const MAX_LISTED: usize = 500;

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Command {
    View,
    Create,
    StrReplace,
    Insert,
    UndoEdit,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// view: a file's lines, or a folder's entries. create: a new file. str_replace: old_str, which must occur in the file exactly
    /// once, becomes new_str. insert: lines after a line. undo_edit: undoes this wake's last edit of the file.
    command: Command,
    /// The file or folder. Relative paths are in the scratch folder.
    path: String,
    /// view: the first and the last line, from 1; -1 is the end.
    #[serde(default)]
    view_range: Option<[i64; 2]>,
    /// create: the file's content.
    #[serde(default)]
    file_text: Option<String>,
    /// str_replace: the text to replace.
    #[serde(default)]
    old_str: Option<String>,
    /// str_replace: the replacement; nothing when left out.
    #[serde(default)]
    new_str: Option<String>,
    /// insert: the line after which to insert; 0 is the beginning.
    #[serde(default)]
    insert_line: Option<usize>,
    /// insert: the lines.
    #[serde(default)]
    insert_text: Option<String>,
}

pub(super) fn define_tool() -> Tool {
    Tool::new_acting(
        EDITOR,
        "Look at text files and folders, create files and edit them: in the scratch folder, and in folders that your person has \
         granted. The memory has tools of its own.",
        Effect::Once,
        |args: Edit, world, exec| Box::pin(std::future::ready(run(&args, world, exec))),
    )
    .for_owner()
    .with_risk(Risk::Caution)
    .with_targets(|args: &Edit| Touched::Path { path: args.path.clone().into(), is_write: args.command != Command::View })
    .with_trained_type(TRAINED)
}

fn run(args: &Edit, world: &World, exec: &mut Exec) -> Outcome {
    let access = if args.command == Command::View { PathUse::Read } else { PathUse::Write };
    let place = files::list_roots(world, exec)?.resolve(&args.path, access)?;
    match args.command {
        Command::View => view_place(args, &place, world),
        Command::Create => create_file(args, &place, exec),
        Command::StrReplace => {
            let old = require_argument(args.old_str.as_deref(), "old_str")?;
            edit_file(&place, exec, |text| {
                let (whole, line) = edits::replace_once(text, old, args.new_str.as_deref().unwrap_or_default())?;
                Ok((whole, format!("Replaced it in line {line} of {}.", args.path)))
            })
        }
        Command::Insert => {
            let line = args.insert_line.ok_or_else(|| refuse_missing("insert_line"))?;
            let new = require_argument(args.insert_text.as_deref().or(args.new_str.as_deref()), "insert_text")?;
            edit_file(&place, exec, |text| {
                Ok((edits::insert_lines(text, line, new)?, format!("Inserted it after line {line} of {}.", args.path)))
            })
        }
        Command::UndoEdit => undo_edit(&place, exec),
    }
}

fn require_argument<'a>(argument: Option<&'a str>, name: &str) -> Result<&'a str, Refusal> {
    argument.ok_or_else(|| refuse_missing(name))
}

fn refuse_missing(name: &str) -> Refusal {
    Refusal::new(format!("{name} is missing, which this command needs. Nothing was done."))
}

fn view_place(args: &Edit, place: &Place, world: &World) -> Outcome {
    let mut whole = String::new();
    let content = match place.kind()? {
        Some(BeneathKind::Folder) if args.view_range.is_some() => {
            return Err(Refusal::new("view_range is for files, and this is a folder. Nothing was done."));
        }
        Some(BeneathKind::Folder) => {
            let is_kept_back = files::build_exclusion(world.means.rules.clone(), &[EDITOR], Some(&args.path));
            let lines = vec![format!("{}/", place.path().display())];
            let mut listing = Listing { is_kept_back: &is_kept_back, lines, kept_back: 0 };
            listing.add_folder(place, 1)?;
            listing.render()
        }
        _ => {
            whole = read_text(place)?.0;
            edits::number_lines(&whole, args.view_range, MAX_SHOWN_BYTES)
                .map_err(|why| Refusal::new(format!("{why} Nothing was done.")))?
        }
    };
    // fault: files-words-nobodys
    Ok(Done { content, taint: files::find_origin(place, &whole, world), ..Done::default() })
}

/// A folder listing, one entry per line.
struct Listing<'a> {
    /// Returns true if the person's rules exclude a path from listings.
    is_kept_back: &'a dyn Fn(&Path) -> bool,
    lines: Vec<String>,
    kept_back: usize,
}

impl Listing<'_> {
    /// Adds a folder's entries, without hidden and private ones. Stops at one entry above the maximum.
    fn add_folder(&mut self, place: &Place, depth: usize) -> Result<(), Refusal> {
        let indent = "  ".repeat(depth);
        for entry in place.list()? {
            if self.lines.len() > MAX_LISTED {
                return Ok(());
            }
            if entry.name.starts_with('.') || policy::is_private(&entry.name) {
                continue;
            }
            if (self.is_kept_back)(&place.path().join(&entry.name)) {
                self.kept_back += 1;
                continue;
            }
            let name = entry.name.escape_debug();
            self.lines.push(match entry.kind {
                BeneathKind::Folder => format!("{indent}{name}/"),
                BeneathKind::File => format!("{indent}{name}"),
                BeneathKind::Other => format!("{indent}{name} (a link or a device, not followed)"),
            });
            if entry.kind == BeneathKind::Folder && depth < LISTED_DEPTH {
                let inner = place.join(&entry.name)?;
                // Unreadable folders are listed by name.
                if self.add_folder(&inner, depth + 1).is_err() {
                    self.lines.push(format!("{indent}  (can't be opened)"));
                }
            }
        }
        Ok(())
    }

    fn render(mut self) -> String {
        if self.lines.len() > MAX_LISTED {
            self.lines.truncate(MAX_LISTED);
            self.lines.push("(There is more; look into one of the folders, or use find_files.)".to_owned());
        }
        if self.kept_back > 0 {
            let note = format!("(Files and folders that your person's rules exclude: {}.)", self.kept_back);
            self.lines.push(note);
        }
        self.lines.join("\n")
    }
}

/// Reads a file's text, with a stamp that detects later changes.
fn read_text(place: &Place) -> Result<(String, Stamp), Refusal> {
    let (bytes, stamp) = place.read(MAX_FILE_BYTES)?;
    if let Content::Image { .. } = content::sniff(&bytes) {
        return Err(Refusal::new("It is a picture: view_image shows it. Nothing was done."));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    Ok((text.ok_or_else(|| Refusal::new("It isn't text in UTF-8. Nothing was done."))?, stamp))
}

fn create_file(args: &Edit, place: &Place, exec: &mut Exec) -> Outcome {
    let text = require_argument(args.file_text.as_deref(), "file_text")?;
    check_size(text)?;
    let is_there = place.kind().is_ok_and(|kind| kind.is_some());
    let before = match place.folder_owner() {
        // The cycle may overwrite its own files.
        Whose::Scratch if is_there => Some(read_text(place)?),
        _ if is_there => {
            return Err(Refusal::new(format!(
                "{} already exists, and create doesn't overwrite: edit it with str_replace. Nothing was done.",
                args.path
            )));
        }
        _ => None,
    };
    place.write(text.as_bytes(), before.as_ref().map(|(_, stamp)| stamp))?;
    let verb = if before.is_some() { "Overwrote" } else { "Created" };
    exec.edits.push(Step {
        path: place.path().to_owned(),
        before: before.map(|(text, _)| text),
        after: text.to_owned(),
    });
    let content = format!("{verb} {}, {} bytes.", place.path().display(), text.len());
    Ok(Done { content, receipt: Some(format!("{verb} the file {}", place.name())), ..Done::default() })
}

/// Edits an existing file with the function `edit`, which returns the new text and a report.
fn edit_file(place: &Place, exec: &mut Exec, edit: impl FnOnce(&str) -> Result<(String, String), String>) -> Outcome {
    let (before, stamp) = read_text(place)?;
    let (after, told) = edit(&before).map_err(|why| Refusal::new(format!("{why} Nothing was done.")))?;
    check_size(&after)?;
    place.write(after.as_bytes(), Some(&stamp))?;
    exec.edits.push(Step { path: place.path().to_owned(), before: Some(before), after });
    Ok(Done { content: told, receipt: Some(format!("Edited the file {}", place.name())), ..Done::default() })
}

fn undo_edit(place: &Place, exec: &mut Exec) -> Outcome {
    let Some(step) = exec.edits.find_last(place.path()) else {
        return Err(Refusal::new("This wake has no edit of this file left to undo. Nothing was done."));
    };
    let (now, stamp) = read_text(place)?;
    if now != step.after {
        return Err(Refusal::new("Somebody else has changed the file since; it stays as it is."));
    }
    let content = match &step.before {
        Some(before) => {
            place.write(before.as_bytes(), Some(&stamp))?;
            "The last edit is undone: the file has its former content."
        }
        None => {
            place.remove(&stamp)?;
            "The file was new; it is gone again."
        }
    };
    exec.edits.pop(place.path());
    let receipt = Some(format!("Undid the last edit of the file {}", place.name()));
    Ok(Done { content: content.to_owned(), receipt, ..Done::default() })
}

fn check_size(text: &str) -> Result<(), Refusal> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Refusal::new(format!(
            "The file would have {} bytes, and at most {MAX_FILE_BYTES} are written. Nothing was done.",
            text.len()
        )));
    }
    Ok(())
}
