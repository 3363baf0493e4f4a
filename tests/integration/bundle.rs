//! `health bundle`: what goes with a report of a fault, and that nobody's words and no secret do.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zip::ZipArchive;

use super::{
    support::story::with_claude,
    support::{
        claude::{API_KEY, Block, Reply},
        env::{CHAT, TestEnv},
        spelled::{shown_in, spelled},
        telegram::TOKEN,
    },
};

/// A secret that only a wrong setting holds.
const WRONG: &str = "wrong-place-0a1b2c3d4e5f";
/// A secret of an MCP server.
const PEER: &str = "peer-key-9f8e7d6c5b4a";

/// The files of an archive by their names.
fn files(path: &Path) -> BTreeMap<String, String> {
    let mut archive = ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    (0..archive.len())
        .map(|at| {
            let mut file = archive.by_index(at).unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            (file.name().to_owned(), text)
        })
        .collect()
}

/// Makes a bundle that must come about; gives its files and what was said on standard error.
#[track_caller]
fn bundle(env: &TestEnv, name: &str) -> (BTreeMap<String, String>, String) {
    let path = env.path(name);
    let ran = env.health(&["bundle", &path.display().to_string()]).ok();
    assert_eq!(ran.stdout, format!("{}\n", path.display()));
    (files(&path), ran.notices().to_owned())
}

fn append(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, before + text).unwrap();
}

/// Writes words, and all that must not be shown, where they come to stand when something goes wrong.
fn put_everywhere(env: &TestEnv, words: &str, all: &str) {
    let quoted = format!("{words} {all}").replace('\'', "''");
    for sql in [
        format!("UPDATE cycles SET error = '{quoted}', reasons = '[\"{words}\"]', trigger = '{words}'"),
        format!(
            "INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at) VALUES ({CHAT}, '{quoted}', 'UTC', '2027-01-01T00:00', '2027-01-01T00:00:00Z', '2026-11-21T00:00:00Z')"
        ),
        format!(
            "INSERT INTO jobs (name, read_from, zone, created_at, written_at, seen, failures, error) VALUES ('photos', 'x', 'UTC', '2026-11-21T00:00:00Z', '2026-11-21T00:00:00Z', '{quoted}', 9, '{quoted}')"
        ),
        format!(
            "INSERT INTO job_runs (name, started_at, ended_at, state, found, output) VALUES ('photos', '2026-11-21T00:00:00Z', '2026-11-21T00:00:01Z', 'failed', '{quoted}', '{quoted}')"
        ),
        format!(
            "INSERT INTO upkeep (name, failures, error) VALUES ('push', 5, '{quoted}') ON CONFLICT (name) DO UPDATE SET failures = 5, error = excluded.error"
        ),
        format!("UPDATE outgoing_messages SET taint = '{quoted}'"),
    ] {
        env.execute(&sql);
    }
}

#[test]
fn no_secret_and_no_word_of_anybody_is_in_it() {
    let (_telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    let spellings: Vec<String> = [API_KEY, TOKEN, PEER].into_iter().flat_map(spelled).collect();
    let all = spellings.join(" ");

    // A message, a fact, an answer and calls, as they come about.
    env.receive(CHAT, &format!("Please keep that the zeppelin lands behind the old barn. {all}"));
    claude.expect(Reply::tools(vec![
        Block::tool("r", "remember", json!({"fact": format!("the zeppelin lands behind the old barn {API_KEY}")})),
        Block::tool("x", "zeppelin_tool", json!({"zeppelin": "aloft"})),
    ]));
    claude.expect(Reply::text("The zeppelin is noted as landing there."));
    env.once();

    // The rest of the places.
    let words = "the zeppelin lands behind the old barn";
    put_everywhere(&env, words, &all);
    fs::create_dir_all(env.brain().join("memory/jobs")).unwrap();
    env.write_memory("memory/jobs/photos.md", &format!("---\nevery: \"{words}\"\n---\n{words} {API_KEY}\n"));
    let workspace = env.workspace();
    let pretty = format!("2026-11-21T13:00:00.000Z wake[7] ERROR can't parse \"{words}\": {all}\n");
    let wrapped: Vec<String> =
        spelled(API_KEY)[3].as_bytes().chunks(9).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
    append(workspace.join("logs/wake.log"), &(pretty + &wrapped.join("\n") + "\n"));
    append(
        workspace.join("logs/bot.log"),
        &format!("{{\"timestamp\":\"2026-11-21T13:00:00.000Z\",\"message\":\"{all} {WRONG} {CHAT}4242\"}}\n"),
    );
    fs::write(
        workspace.join("mcp.toml"),
        format!("[[server]]\nname = \"peer\"\ncommand = [\"x\"]\nenv = {{ PEER_KEY = \"{PEER}\" }}\n"),
    )
    .unwrap();
    fs::set_permissions(workspace.join("mcp.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(workspace.join("zeppelin notes.txt"), words).unwrap();
    // Pasted into the wrong lines, one of them a key that isn't known anywhere else.
    env.set("AUTONOMY", WRONG).set("GEMINI_API_KEY", WRONG).set("LEASE_NAME", &format!("{WRONG}!"));

    let (files, said) = bundle(&env, "out.zip");
    let mut whole = said;
    for (name, text) in &files {
        whole.push_str(&format!("{name}\n{text}\n"));
    }
    assert!(!whole.to_lowercase().contains("zeppelin"), "{whole}");
    for secret in [API_KEY, TOKEN, PEER, WRONG] {
        assert_eq!(shown_in(&whole, secret), None, "{whole}");
    }
    for spelling in spellings {
        assert!(!whole.contains(&spelling), "{spelling}");
    }
    for told in ["\"remember\"", "\"failed\": 1", "\"unknown\"", "\"incoming_messages\"", "can't parse", "\"AUTONOMY\""]
    {
        assert!(whole.contains(told), "{told}: {whole}");
    }
    let mode = fs::metadata(env.path("out.zip")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn it_says_what_is_in_it_and_replaces_no_file() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let before = env.cycles().len();
    let (files, said) = bundle(&env, "out.zip");
    for told in ["In it: ", "Not in it: keys", "look through it"] {
        assert!(said.contains(told), "{said}");
    }
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    for name in [
        "README.txt",
        "about.json",
        "database.json",
        "health.json",
        "schema.sql",
        "settings.json",
        "sizes.json",
        "wakes.json",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    let json = |name: &str| serde_json::from_str::<Value>(&files[name]).unwrap();
    assert_eq!(json("settings.json")["set"]["TIMEZONE"]["value"], "Europe/Berlin");
    assert_eq!(json("settings.json")["set"]["WORKSPACE_DIR"]["value"], Value::Null);
    assert!(json("about.json")["version"].as_str().is_some_and(|version| version.starts_with("0.")));
    assert!(json("health.json")["checks"].as_array().is_some_and(|checks| checks.len() > 10));
    let tables = json("database.json")["tables"].as_array().unwrap().clone();
    let cycles = tables.iter().find(|table| table["name"] == "cycles").unwrap();
    assert_eq!(cycles["rows"], before);
    let again = env.health(&["bundle", &env.path("out.zip").display().to_string()]);
    again.assert_fails(1, "exists already");
    assert!(again.stdout.is_empty(), "{again:?}");
    assert_eq!(self::files(&env.path("out.zip")), files, "the first one stays");
    env.check_sound();
}

/// What may be wrong with a machine whose owner wants to report it.
#[test]
fn it_comes_about_whatever_is_broken_and_names_what_it_couldnt_read() {
    let env = TestEnv::new();
    let (files, _) = bundle(&env, "before.zip");
    assert!(files["README.txt"].contains("the workspace: "), "{}", files["README.txt"]);
    assert!(!env.workspace().exists(), "nothing is made");

    env.wake(&["--once"]).ok();
    let database = env.workspace().join("messages.db");
    if database.exists() {
        fs::write(&database, "no database at all".repeat(1_000)).unwrap();
        let (files, said) = bundle(&env, "damaged.zip");
        assert!(said.contains("Not read: the database") && files.contains_key("health.json"), "{said}");
        fs::remove_file(&database).unwrap();
        let (files, said) = bundle(&env, "gone.zip");
        assert!(said.contains("Not read: the database") && files.contains_key("sizes.json"), "{said}");
    }

    let mut wrong = TestEnv::new();
    wrong.set("WORKSPACE_DIR", "not/absolute").set("AUTONOMY", "many");
    let (files, said) = bundle(&wrong, "wrong.zip");
    assert!(said.contains("the settings don't say where it is"), "{said}");
    let settings: Value = serde_json::from_str(&files["settings.json"]).unwrap();
    let subjects = settings["wrong"].to_string();
    assert!(subjects.contains("AUTONOMY") || subjects.contains("WORKSPACE_DIR"), "{settings}");
}
