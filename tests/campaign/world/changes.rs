//! The story of a command that changes a person's files, without a question since they are copied first, and of the undo of its wake.
//! No interruption may lose a file: in the end each is as before, or its copy is kept.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::json;

use super::{
    Program, World,
    asks::{self, RUN},
    files::files,
};
use crate::support::{
    claude::{ClaudeRequest, Reply},
    env::{CHAT, TestEnv},
};

const SAID: &str = "remember that the wifi code is 1234, and tidy up my folder";
/// The granted folder and its files.
const FOLDER: &str = "home/work";
const FILES: [(&str, &str); 4] = [("a.txt", "one"), ("b.txt", "two"), ("sub/c.txt", "three"), ("d.txt", "four")];
/// Relative to the command's own folder in the scratch, since each copy of the world lies elsewhere.
const COMMAND: &str = "cd ../../../../home/work && rm -r sub && echo changed > a.txt && mv b.txt e.txt && mkdir new && echo more > new/f.txt";
/// The beginning of a temporary file's name during an undo.
const TEMPORARY: &str = ".reveille-back-";

/// Grants the folder, and asks for the work.
pub(super) fn say(env: &TestEnv) {
    for (name, text) in FILES {
        let path = env.path(FOLDER).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let policy = env.workspace().join("policy.toml");
    fs::write(&policy, "[files]\nwrite = [\"~/work\"]\n").unwrap();
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).unwrap();
    env.receive(CHAT, SAID);
}

pub(super) fn mind(request: &ClaudeRequest) -> Reply {
    asks::reply_with(request, SAID, json!({ "command": COMMAND, "writes": true }))
}

/// A line of the log in comparable form: the undone wake and the number of restored files vary.
pub(super) fn comparable(line: String) -> Option<String> {
    let varies = ["Gave back ", "Not undone, changed since: "].iter().any(|beginning| line.starts_with(beginning));
    let undid = "Undid the wake ";
    (!varies).then(|| if line.starts_with(undid) { undid.to_owned() } else { line })
}

impl World {
    /// The cycle of the command, which may have run.
    pub(super) fn changing_cycle(&self) -> Option<String> {
        self.env.query(&format!(
            "SELECT max(cycle_id) FROM cycle_journal WHERE kind = 'called' AND json_extract(body, '$.call') = '{RUN}'"
        ))
    }

    /// Tells whether an undo was requested.
    pub(super) fn is_undo_asked(&self) -> bool {
        self.env.query::<i64>("SELECT count(*) FROM undos") > 0
    }

    /// Tells whether the command is asked about, as it must be if no copy could be made. Nobody answers in this story.
    pub(crate) fn asks_without_a_copy(&self) -> bool {
        let asked = "SELECT count(*) FROM approvals WHERE state = 'pending'";
        self.program == Program::Changing && self.changing_cycle().is_none() && self.env.query::<i64>(asked) > 0
    }

    /// Checks that the person's files are as before. After an interrupted command, a file may differ if its copy is kept.
    pub(crate) fn check_given_back(&self) -> Result<(), String> {
        let (folder, copies) = (self.env.path(FOLDER), self.env.workspace().join("copies"));
        let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap_or_default());
        let kept: BTreeMap<PathBuf, Vec<u8>> = files(&copies).into_iter().map(read).collect();
        let is_known = kept.keys().any(|path| path.ends_with("after.json"));
        let is_kept = |text: &str| kept.values().any(|bytes| bytes == text.as_bytes());
        let there: BTreeMap<PathBuf, Vec<u8>> = files(&folder).into_iter().map(read).collect();
        for (name, text) in FILES {
            match there.get(&folder.join(name)) {
                Some(found) if found == text.as_bytes() => {}
                Some(_) if !is_known && is_kept(text) => {}
                found => return Err(format!("{name} is {found:?}; known: {is_known}, kept: {}", is_kept(text))),
            }
        }
        let theirs = |path: &&PathBuf| !FILES.iter().any(|(name, _)| folder.join(name) == **path);
        match there.keys().filter(theirs).find(|path| is_known || path.to_string_lossy().contains(TEMPORARY)) {
            Some(path) => Err(format!("{} is left", path.display())),
            None => Ok(()),
        }
    }

    /// Requests the undo of the command's wake, unless already requested.
    pub(super) fn undo_changes(&self) -> Result<(), String> {
        let Some(cycle) = self.changing_cycle().filter(|_| !self.is_undo_asked()) else { return Ok(()) };
        let ran = self.env.wake(&["undo", &cycle]);
        if ran.code == 0 { Ok(()) } else { Err(format!("it isn't undone: {ran:#?}")) }
    }
}
