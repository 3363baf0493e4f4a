//! Stores: a world with a word of its own in each, which is read by cycles of every kind, backed up, forgotten, left to grow old, and
//! shared.

use std::{collections::BTreeSet, path::Path};

use serde_json::json;

use super::{
    plants::{OWNER, holds, is_table, names, world_of},
    table::{Row, agree, read},
};
use crate::{
    support::story::{last, results, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv, sandbox_visible_dir},
    },
};

const BOB: i64 = 5555;
/// What the cells of who reads it say of a store that nobody's words are in.
const NO_WORDS: &str = "no words";

fn rows() -> Vec<Row> {
    read("Stores")
}

#[track_caller]
fn row<'a>(rows: &'a [Row], store: &str) -> &'a Row {
    rows.iter().find(|row| row.name == store).unwrap_or_else(|| panic!("the store {store:?} has no row"))
}

/// Compares one column with what was seen of each planted store.
#[track_caller]
fn compare(column: &str, seen: impl IntoIterator<Item = (&'static str, String)>) {
    let rows = rows();
    let differences = seen.into_iter().filter_map(|(store, cell)| {
        let said = row(&rows, store).cell(column).to_owned();
        (said != cell).then(|| format!("{store}: {column} is {cell:?}, not {said:?}"))
    });
    agree(&differences.collect::<Vec<_>>());
}

#[test]
fn each_store_with_words_is_planted_in_and_each_planted_one_has_a_row() {
    let planted: BTreeSet<&str> = names().into_iter().collect();
    let rows = rows();
    let mut differences = Vec::new();
    for store in &planted {
        row(&rows, store);
    }
    for row in rows.iter().filter(|row| row.cell("owner") != NO_WORDS) {
        if !planted.contains(row.name.as_str()) {
            differences.push(format!("{} has words, and no test plants one there", row.name));
        }
    }
    for row in rows.iter().filter(|row| row.cell("owner") == NO_WORDS) {
        let is_of_tables = row.named("lies in").iter().all(|place| is_table(place));
        let (backup, machines) = (row.cell("backup"), row.cell("two machines"));
        if row.cell("forget") != NO_WORDS || is_of_tables && (backup, machines) != ("yes", "PostgreSQL") {
            differences
                .push(format!("{}: rows of the database are in a backup and shared, and hold no words", row.name));
        }
    }
    agree(&differences);
}

#[test]
fn each_table_each_folder_and_each_kind_of_document_lies_in_a_store() {
    let env = TestEnv::new();
    env.wake(&["say", "remember that cats purr"]).ok();
    let lies_in: BTreeSet<String> = rows().iter().flat_map(|row| row.named("lies in")).collect();
    let mut differences = Vec::new();
    let tables: BTreeSet<String> = env.tables().into_iter().collect();
    differences.extend(tables.difference(&lies_in).map(|table| format!("no store lies in the table {table}")));
    let gone = lies_in.iter().filter(|place| is_table(place));
    differences.extend(gone.filter(|place| !tables.contains(*place)).map(|place| format!("there is no table {place}")));
    // Folders and files of a workspace: those that are there, and those that the source names.
    let mut entries: BTreeSet<String> = std::fs::read_dir(env.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for source in ["crates/config/src/lib.rs", "src/backup/create.rs", "src/backup/manifest.rs"] {
        entries.extend(named_in_workspace(source));
    }
    let is_covered = |name: &str| {
        lies_in.iter().any(|place| match place.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => place.split('/').next() == Some(name),
        })
    };
    let left = entries.iter().filter(|name| !is_covered(name));
    differences.extend(left.map(|name| format!("no store lies in {name} of the workspace")));
    // Documents, by the constants of the crate that knows them.
    let memory = std::fs::read_to_string(source_of("crates/memory/src/lib.rs")).unwrap()
        + &std::fs::read_to_string(source_of("crates/memory/src/job.rs")).unwrap();
    let documents = memory.split("= \"memory/").skip(1).map(|rest| rest.split('"').next().unwrap());
    for document in documents {
        let place = format!("brain/memory/{document}");
        if !lies_in.iter().any(|known| known.trim_end_matches('/') == place) {
            differences.push(format!("no store lies in {place}"));
        }
    }
    agree(&differences);
}

fn source_of(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The names that a source file joins to the workspace or lists as a backup's.
fn named_in_workspace(source: &str) -> Vec<String> {
    let text = std::fs::read_to_string(source_of(source)).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap();
    let joined = text.split("workspace_dir.join(\"").skip(1).chain(text.split("media_dir.join(\"").skip(1));
    joined.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn a_backup_holds_what_its_column_says() {
    let env = TestEnv::new();
    let words = world_of(&env, OWNER);
    let rows = rows();
    let restored = |name: &str, more: &[&str]| {
        let file = env.path(name).display().to_string();
        env.wake(&[&["backup", "create", &file], more].concat()).ok();
        let other = TestEnv::new();
        other.wake(&["backup", "restore", &file]).ok();
        other
    };
    let (plain, whole) = (restored("plain.tar", &[]), restored("whole.tar", &["--with-secrets"]));
    compare(
        "backup",
        words.iter().map(|(store, word)| {
            let lies_in = row(&rows, store).named("lies in");
            assert!(holds(&env, &lies_in, word), "{store}: the word isn't where it was planted");
            let cell = match (holds(&plain, &lies_in, word), holds(&whole, &lies_in, word)) {
                (true, _) => "yes",
                (false, true) => "`--with-secrets`",
                (false, false) => "no",
            };
            (*store, cell.to_owned())
        }),
    );
}

#[test]
fn forgetting_takes_out_what_its_column_says() {
    let env = TestEnv::new();
    let words = world_of(&env, OWNER);
    let rows = rows();
    let seen: Vec<_> = words
        .iter()
        .map(|(store, word)| {
            let lies_in = row(&rows, store).named("lies in");
            let ran = env.wake(&["memory", "forget", "--yes", word]);
            let is_left = || holds(&env, &lies_in, word);
            let cell = match (is_left(), ran.code) {
                (false, _) => "yes",
                (true, 1) => "finish it first",
                // What else stays is said: the history, and what stays by its nature.
                (true, _) if ran.notices().contains("still holds it") => {
                    env.wake(&["memory", "forget", "--yes", "--purge", word]).ok();
                    if is_left() { "no" } else { "`--purge`" }
                }
                (true, _) if ran.notices().contains("Stays: ") => "named",
                (true, _) => "no",
            };
            (*store, cell.to_owned())
        })
        .collect();
    compare("forget", seen);
}

#[test]
fn retention_takes_out_what_its_column_says() {
    let mut env = TestEnv::new();
    let words = world_of(&env, OWNER);
    let rows = rows();
    let held = |env: &TestEnv| -> BTreeSet<&'static str> {
        let held = words.iter().filter(|(store, word)| holds(env, &row(&rows, store).named("lies in"), word));
        held.map(|(store, _)| *store).collect()
    };
    // A clock that has leapt is watched for an hour first.
    let mut after = |days: &[&str]| {
        for at in days {
            env.at(at);
            env.wake(&["--once"]).ok();
        }
        held(&env)
    };
    let week = after(&["2026-11-30T14:00:00Z", "2026-11-30T15:30:00Z", "2026-11-30T15:40:00Z"]);
    let year = after(&["2027-12-30T14:00:00Z", "2027-12-30T15:30:00Z", "2027-12-30T15:40:00Z"]);
    compare(
        "retention",
        words.iter().map(|(store, _)| {
            let cell = match (week.contains(store), year.contains(store)) {
                (false, _) => "7 days",
                (true, false) => "`KEEP_DAYS`",
                (true, true) => "stays",
            };
            (*store, cell.to_owned())
        }),
    );
}

#[test]
fn another_machine_gets_by_git_what_its_column_says() {
    let (mut one, mut other) = (TestEnv::new(), TestEnv::new());
    let remote = one.bare_remote("remote.git").display().to_string();
    for env in [&mut one, &mut other] {
        env.set("REPO_URL", &remote);
    }
    let words = world_of(&one, OWNER);
    one.git(&["push", "-q", "origin", "HEAD:main"]);
    other.wake(&["--once"]).ok();
    let rows = rows();
    compare(
        "two machines",
        words.iter().map(|(store, word)| {
            let lies_in = row(&rows, store).named("lies in");
            // Tables are seen by the other one in a store that both share.
            let is_of_tables = lies_in.iter().all(|place| is_table(place));
            let cell = match holds(&other, &lies_in, word) {
                true => "git",
                false if is_of_tables => "PostgreSQL",
                false if lies_in.iter().all(|place| ["files/", "voice/"].contains(&place.as_str())) => "`MEDIA_DIR`",
                false => "no",
            };
            (*store, cell.to_owned())
        }),
    );
}

/// An assistant whose workspace is a folder of a fleet, and what of its stores stands outside that.
#[cfg(target_os = "linux")]
#[test]
fn a_fleet_keeps_each_store_in_its_assistants_own_folder() {
    let mut env = TestEnv::within(&sandbox_visible_dir());
    env.unset("WORKSPACE_DIR").unset("DATABASE_URL");
    let (dir, settings) = (env.path("fleet"), env.path("ben.env"));
    std::fs::write(&settings, "TIMEZONE=Europe/Berlin\nQUIET_HOURS=none\nREFLECT_AT=none\n").unwrap();
    let fleet = dir.display().to_string();
    env.wake(&["fleet", "init", &fleet]);
    env.wake(&["fleet", "add", &fleet, "ben", "--env", &settings.display().to_string()]).ok();
    let bens = dir.join("assistants/ben");
    std::os::unix::fs::symlink(&bens, env.workspace()).unwrap();
    env.set("WORKSPACE_DIR", &bens.display().to_string());
    let words = world_of(&env, 0);
    env.unset("WORKSPACE_DIR").wake(&["--fleet", &fleet, "--once", "--workers", "1"]).ok();
    let others = |word: &str| env.run("grep", &["-rlaF", "--exclude-dir=ben", word, &fleet]).stdout;
    let rows = rows();
    compare(
        "fleet",
        words.iter().map(|(store, word)| {
            let is_own = holds(&env, &row(&rows, store).named("lies in"), word) && others(word).is_empty();
            (*store, if is_own { "own" } else { "shared" }.to_owned())
        }),
    );
}

#[cfg(feature = "postgres")]
#[test]
fn machines_with_one_database_see_each_others_rows() {
    let Some(url) = crate::support::postgres::new_database() else {
        eprintln!("NOT RUN: PostgreSQL isn't installed here");
        return;
    };
    let (mut one, mut other) = (TestEnv::new(), TestEnv::new());
    let media = one.path("media").display().to_string();
    for env in [&mut one, &mut other] {
        env.set("DATABASE_URL", &url).set("MEDIA_DIR", &media);
    }
    let words = world_of(&one, OWNER);
    let rows = rows();
    let mut differences = Vec::new();
    for (store, word) in &words {
        let row = row(&rows, store);
        let lies_in = row.named("lies in");
        let is_seen = holds(&other, &lies_in, word);
        if is_seen != (row.cell("two machines") == "PostgreSQL") {
            differences.push(format!("{store}: seen by a machine with the same database: {is_seen}"));
        }
    }
    agree(&differences);
}

/// A cycle that looks for each word by every tool that reads; all that it was shown.
fn pry(claude: &FakeClaude, env: &TestEnv, words: &[(&'static str, String)]) -> String {
    let files = [
        "claude.md",
        "memory/agent-memory/semantic-memory.md",
        "memory/agent-memory/episodic-memory.md",
        "memory/agent-memory/days/2026-11.md",
        "memory/agent-memory/archive/2025-11.md",
        "memory/agent-memory/working-memory.md",
        "memory/project-memory/context.md",
        "memory/project-memory/active.md",
        "memory/project-memory/garden.md",
        "memory/project-memory/plans/photos.md",
        "memory/jobs/quiet.md",
        "memory/imported/notes.md",
        "memory/people/anna.md",
        "memory/chats/5555/working-memory.md",
        "memory/gone.md",
    ];
    let read =
        files.iter().enumerate().map(|(n, path)| Block::tool(&format!("r{n}"), "memory_read", json!({"path": path})));
    let looked = words.iter().enumerate();
    let looked = looked.map(|(n, (_, word))| Block::tool(&format!("s{n}"), "memory_search", json!({"query": word})));
    let others = [
        Block::tool("o1", "task_list", json!({})),
        Block::tool("o2", "reminder_list", json!({})),
        Block::tool("o3", "read_skill", json!({"name": "tea"})),
        Block::tool("o4", "read_attachment", json!({})),
        Block::tool("o5", "brain_log", json!({"n": 50})),
        Block::tool("o6", "brain_diff", json!({"id": env.git(&["rev-parse", "HEAD"])})),
    ];
    claude.expect(Reply::tools(read.chain(looked).chain(others).collect()));
    claude.expect(Reply::text("Nothing."));
    env.once();
    let request = last(claude);
    let said = results(&request).into_iter().map(|(text, _)| text).collect::<Vec<_>>().join("\n");
    format!("{}\n{}\n{said}", request.json["system"], request.json["messages"][0])
}

/// What a cycle was shown of each store.
fn shown(text: &str, words: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    words
        .iter()
        .map(|(store, word)| (*store, if text.contains(word.as_str()) { "yes" } else { "no" }.to_owned()))
        .collect()
}

#[test]
fn the_owners_cycles_read_what_their_column_says() {
    let (_telegram, claude, env) = with_claude();
    let words = world_of(&env, OWNER);
    env.receive(CHAT, "what do you know?");
    compare("owner", shown(&pry(&claude, &env, &words), &words));
}

#[test]
fn a_tainted_cycle_reads_what_its_column_says() {
    let (_telegram, claude, env) = with_claude();
    let words = world_of(&env, OWNER);
    let id = env.receive(CHAT, "what do you know?");
    env.forward_from(id, "Eve");
    compare("tainted cycle", shown(&pry(&claude, &env, &words), &words));
}

#[test]
fn a_guests_cycle_reads_what_its_column_says() {
    let read_by_bob = |planted_for: i64| {
        let (_telegram, claude, mut env) = with_claude();
        env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB}")).set("OWNER_CHAT_ID", &CHAT.to_string());
        let words = world_of(&env, planted_for);
        env.receive(BOB, "what do you know?");
        (shown(&pry(&claude, &env, &words), &words), words)
    };
    let ((owners, _), (own, _)) = (read_by_bob(CHAT), read_by_bob(BOB));
    compare(
        "guest",
        owners.into_iter().zip(own).map(|((store, of_owner), (_, of_bob))| {
            let cell = match (of_owner.as_str(), of_bob.as_str()) {
                ("yes", _) if store == "a guest's own memory" => "theirs",
                ("yes", _) => "yes",
                (_, "yes") => "theirs",
                _ => "no",
            };
            (store, cell.to_owned())
        }),
    );
}

#[test]
fn a_standing_job_reads_what_its_column_says() {
    let (_telegram, claude, mut env) = with_claude();
    let words = world_of(&env, OWNER);
    env.write_memory("memory/jobs/prying.md", "---\nwhen: every day at 16:00\n---\nSay what you know.\n");
    env.once();
    env.at("2026-11-21T15:01:00Z");
    compare("standing job", shown(&pry(&claude, &env, &words), &words));
}

/// What a chat that is kept on this machine leaves, and another chat's cycle reads, which a model elsewhere answers.
#[test]
fn a_model_elsewhere_reads_of_a_local_chat_what_its_column_says() {
    let (_telegram, claude, env) = with_claude();
    let words = world_of(&env, 0);
    env.wake(&["say", "/local"]).ok();
    env.receive(CHAT, "what do you know?");
    compare("`/local`", shown(&pry(&claude, &env, &words), &words));
}
