//! Tests the tools that act on files and on the machine: their output, the text they mark as untrusted, and their limits.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use reveille_base::types::ChatRef;
use reveille_git::Repo;
use reveille_memory::view::View;
use reveille_policy::{Decision, Reach};

use super::*;

/// The folder that relative paths start from.
const SCRATCH: &str = "scratch/looks/work";

/// A scene in which tools may act: a workspace with a scratch folder beside the memory, and granted folders.
struct Handy {
    scene: Scene,
    exec: Exec,
    folder: tempfile::TempDir,
}

impl Handy {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in [SCRATCH, "mine", "looked-at"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let mut scene = Scene::new();
        let path_below = |name: &str| folder.path().join(name).display().to_string();
        let policy = format!("[files]\nread = [{:?}]\nwrite = [{:?}]\n", path_below("looked-at"), path_below("mine"));
        let rules = reveille_policy::Rules::parse(&policy).unwrap();
        scene.world.means.rules = rules.with_scratch(&folder.path().join(SCRATCH));
        let shelter = std::rc::Rc::new(assumed_shelter(&folder.path().join("scratch")));
        let exec = Exec::new(shelter, scene.world.means.rules.clone());
        Self { scene, exec, folder }
    }

    fn path_of(&self, path: &str) -> PathBuf {
        match path.strip_prefix("scratch") {
            Some(below) => self.folder.path().join(format!("{SCRATCH}{below}")),
            None => self.folder.path().join(path),
        }
    }

    fn run(&mut self, name: &str, input: &Value) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (world, exec) = (&self.scene.world, &mut self.exec);
        runtime.block_on(Registry::for_thinking_model().run(name, &input.to_string(), world, exec))
    }

    #[track_caller]
    fn done(&mut self, name: &str, input: &Value) -> Done {
        self.run(name, input).unwrap_or_else(|refusal| panic!("{input}: {refusal}"))
    }

    #[track_caller]
    fn refused(&mut self, name: &str, input: &Value) -> String {
        match self.run(name, input) {
            Err(refusal) => refusal.to_string(),
            Ok(done) => panic!("{input}: {done:?}"),
        }
    }

    fn edit(&mut self, input: &Value) -> Outcome {
        self.run(EDITOR, input)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path_of(path)).unwrap()
    }
}

#[test]
fn a_file_is_created_viewed_edited_and_undone_step_by_step() {
    let mut handy = Handy::new();
    let path = handy.path_of("mine/notes.txt").display().to_string();
    let created = handy.done(EDITOR, &json!({"command": "create", "path": path, "file_text": "one\ntwo\n"}));
    assert_eq!((created.receipt.as_deref(), created.taint), (Some("Created the file notes.txt"), None));
    let seen = handy.done(EDITOR, &json!({"command": "view", "path": path}));
    assert_eq!((seen.content.as_str(), seen.receipt), ("     1\tone\n     2\ttwo", None));
    assert_eq!(seen.taint.as_deref(), Some("a file (notes.txt)"));
    handy.done(EDITOR, &json!({"command": "str_replace", "path": path, "old_str": "two", "new_str": "2"}));
    handy.done(EDITOR, &json!({"command": "insert", "path": path, "insert_line": 1, "insert_text": "and"}));
    assert_eq!(handy.text("mine/notes.txt"), "one\nand\n2\n");
    for after in ["one\n2\n", "one\ntwo\n"] {
        handy.done(EDITOR, &json!({"command": "undo_edit", "path": path}));
        assert_eq!(handy.text("mine/notes.txt"), after);
    }
    let gone = handy.done(EDITOR, &json!({"command": "undo_edit", "path": path}));
    assert!(gone.content.contains("gone again") && !handy.path_of("mine/notes.txt").exists());
    assert!(
        handy
            .refused(EDITOR, &json!({"command": "undo_edit", "path": path}))
            .contains("no edit of this file left to undo")
    );
}

#[test]
fn an_edit_by_somebody_else_is_not_undone() {
    let mut handy = Handy::new();
    handy.done(EDITOR, &json!({"command": "create", "path": "a.txt", "file_text": "ours"}));
    fs::write(handy.path_of("scratch/a.txt"), "theirs").unwrap();
    let why = handy.refused(EDITOR, &json!({"command": "undo_edit", "path": "a.txt"}));
    assert!(
        why.contains("Somebody else has changed the file since") && handy.text("scratch/a.txt") == "theirs",
        "{why}"
    );
}

#[test]
fn only_scratch_files_are_overwritten_and_that_can_be_undone() {
    let mut handy = Handy::new();
    for path in ["scratch/a.txt", "mine/a.txt"] {
        fs::write(handy.path_of(path), "old").unwrap();
    }
    let done = handy.done(EDITOR, &json!({"command": "create", "path": "a.txt", "file_text": "new"}));
    assert!(done.content.starts_with("Overwrote ") && handy.text("scratch/a.txt") == "new");
    handy.done(EDITOR, &json!({"command": "undo_edit", "path": "./a.txt"}));
    assert_eq!(handy.text("scratch/a.txt"), "old");
    let path = handy.path_of("mine/a.txt");
    let why = handy.refused(EDITOR, &json!({"command": "create", "path": path, "file_text": "new"}));
    assert!(why.contains("doesn't overwrite") && handy.text("mine/a.txt") == "old", "{why}");
}

#[test]
fn a_wrong_edit_changes_nothing_and_says_what_is_wrong() {
    let mut handy = Handy::new();
    fs::write(handy.path_of("scratch/a.txt"), "x\ny\nx\n").unwrap();
    fs::write(handy.path_of("scratch/b.bin"), b"\xff\xfe\0").unwrap();
    fs::write(handy.path_of("looked-at/c.txt"), "c").unwrap();
    fs::write(handy.path_of("scratch/big.txt"), "x".repeat(9 << 20)).unwrap();
    symlink(handy.path_of("looked-at"), handy.path_of("scratch/link")).unwrap();
    let granted = handy.path_of("looked-at/c.txt");
    for (input, why) in [
        (
            json!({"command": "str_replace", "path": "a.txt", "old_str": "x", "new_str": "z"}),
            "more than once, in lines 1, 3",
        ),
        (json!({"command": "str_replace", "path": "a.txt", "old_str": "z"}), "isn't in the file exactly as given"),
        (json!({"command": "str_replace", "path": "a.txt"}), "old_str is missing"),
        (json!({"command": "insert", "path": "a.txt", "insert_line": 9, "insert_text": "z"}), "the file has 3 lines"),
        (json!({"command": "insert", "path": "a.txt", "insert_line": 1}), "insert_text is missing"),
        (json!({"command": "insert", "path": "a.txt", "insert_text": "z"}), "insert_line is missing"),
        (json!({"command": "create", "path": "new.txt"}), "file_text is missing"),
        (
            json!({"command": "create", "path": "new.txt", "file_text": "x".repeat(9 << 20)}),
            "at most 8388608 are written",
        ),
        (json!({"command": "view", "path": "b.bin"}), "isn't text"),
        (json!({"command": "view", "path": "big.txt"}), "at most 8388608 are read"),
        (json!({"command": "view", "path": "none.txt"}), "There is no none.txt."),
        (json!({"command": "view", "path": "a.txt", "view_range": [4, 5]}), "the file has 3 lines"),
        (json!({"command": "view", "path": ".", "view_range": [1, 2]}), "this is a folder"),
        (json!({"command": "view", "path": "link/c.txt"}), "links aren't followed"),
        (json!({"command": "create", "path": "link/d.txt", "file_text": ""}), "links aren't followed"),
        (json!({"command": "str_replace", "path": granted, "old_str": "c", "new_str": "d"}), "may be written"),
        (json!({"command": "view", "path": "/etc/passwd"}), "may be read"),
        (json!({"command": "delete", "path": "a.txt"}), "unknown variant"),
    ] {
        let refused = handy.refused(EDITOR, &input);
        assert!(refused.contains(why) && refused.contains("Nothing was done."), "{input}: {refused}");
    }
    assert_eq!(handy.text("scratch/a.txt"), "x\ny\nx\n");
    assert_eq!(fs::read_dir(handy.path_of("looked-at")).unwrap().count(), 1);
    assert!(!handy.path_of("scratch/new.txt").exists());
}

#[test]
fn a_folder_is_listed_without_hidden_and_private_files() {
    let mut handy = Handy::new();
    for path in ["b/c/d.txt", "a.txt", ".hidden", ".git/config", "policy.toml"] {
        let full = handy.path_of("scratch").join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, "").unwrap();
    }
    symlink("/etc", handy.path_of("scratch/etc")).unwrap();
    let listed = handy.done(EDITOR, &json!({"command": "view", "path": "."}));
    let below = listed.content.split_once('\n').unwrap().1;
    assert_eq!(below, "  a.txt\n  b/\n    c/\n  etc (a link or a device, not followed)");
    for n in 0..600 {
        fs::write(handy.path_of(&format!("looked-at/{n}.txt")), "").unwrap();
    }
    let path = handy.path_of("looked-at");
    let listed = handy.done(EDITOR, &json!({"command": "view", "path": path}));
    assert_eq!(listed.content.lines().count(), 501);
    assert!(listed.content.ends_with("(There is more; look into one of the folders, or use find_files.)"));
}

#[test]
fn files_are_found_in_all_folders_that_may_be_read() {
    let mut handy = Handy::new();
    handy.scene = std::mem::replace(&mut handy.scene, Scene::new()).with("memory/a.md", "the word\n");
    for path in ["scratch/a.txt", "mine/deep/b.txt", "looked-at/c.txt"] {
        fs::create_dir_all(handy.path_of(path).parent().unwrap()).unwrap();
        fs::write(handy.path_of(path), "nothing\nthe Word\n").unwrap();
    }
    let found = handy.done("find_files", &json!({"text": "word"}));
    for path in ["work/a.txt:2: the Word", "mine/deep/b.txt:2: ", "looked-at/c.txt:2: ", "memory/a.md:1: the word"] {
        assert!(found.content.contains(path), "{path}: {}", found.content);
    }
    assert_eq!(found.taint.as_deref(), Some("names and lines of files"));
    let path = handy.path_of("mine");
    let found = handy.done("find_files", &json!({"pattern": "*.txt", "path": path}));
    assert_eq!(found.content, handy.path_of("mine/deep/b.txt").display().to_string());
    let nothing = handy.done("find_files", &json!({"pattern": "*.pdf"}));
    assert!(nothing.content.starts_with("Nothing was found among ") && nothing.taint.is_none());
    for (input, why) in [
        (json!({}), "Say what is looked for"),
        (json!({"text": "(a"}), "isn't a regular expression"),
        (json!({"text": "x".repeat(501)}), "500 characters at most"),
        (json!({"text": "a", "path": "/etc"}), "may be read"),
        (json!({"text": "a", "path": "none"}), "There is no none"),
    ] {
        assert!(handy.refused("find_files", &input).contains(why), "{input}");
    }
}

#[test]
fn a_search_leaves_out_files_that_a_rule_keeps_back() {
    let mut handy = Handy::new();
    let memory = handy.scene.path("memory/diary.md");
    handy.scene = std::mem::replace(&mut handy.scene, Scene::new()).with("memory/diary.md", "the word\n");
    for path in ["looked-at/a.txt", "looked-at/diary.txt", "looked-at/mine/b.txt", "looked-at/mine/diary.txt"] {
        fs::create_dir_all(handy.path_of(path).parent().unwrap()).unwrap();
        fs::write(handy.path_of(path), "the word\n").unwrap();
    }
    let everywhere = json!({"text": "word"});
    assert_eq!(handy.done("find_files", &everywhere).content.lines().count(), 5, "the control");
    let folder = handy.path_of("looked-at").display().to_string();
    let rule = |tool: &str, path: &str, decision: &str| {
        format!("[[rule]]\n{tool}path = {path:?}\ndecision = {decision:?}\nmatch = [{path:?}]\n")
    };
    let memory = memory.display().to_string();
    let policy = [
        format!("[files]\nread = [{folder:?}]\n"),
        rule("", &format!("{folder}/diary.txt"), "deny"),
        rule("", &format!("{folder}/mine/diary.txt"), "deny"),
        rule("", &format!("{folder}/mine"), "ask"),
        rule("tool = \"memory_read\"\n", &memory, "deny"),
    ];
    handy.scene.world.means.rules = reveille_policy::Rules::parse(&policy.concat()).unwrap();
    let found = handy.done("find_files", &everywhere).content;
    let note = |n: usize| format!("(Files and folders that your person's rules keep from a search: {n}.)");
    assert_eq!(found, format!("{folder}/a.txt:1: the word\n{}", note(3)), "a file, a folder that asks, the memory's");
    let by_name = handy.done("find_files", &json!({"pattern": "diary*", "path": folder})).content;
    assert!(!by_name.contains("diary.txt") && by_name.ends_with(&note(2)), "{by_name}");
    // The person was asked about this path; the call runs only once approved.
    let agreed = handy.done("find_files", &json!({"text": "word", "path": format!("{folder}/mine")})).content;
    assert_eq!(agreed, format!("{folder}/mine/b.txt:1: the word\n{}", note(1)));
}

#[test]
fn a_picture_is_shown_by_its_bytes_and_within_bounds() {
    let mut handy = Handy::new();
    let png =
        |width: u8| [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01".as_slice(), &[width], b"\0\0\0\xf0\x08\x02"].concat();
    fs::write(handy.path_of("scratch/a.txt"), png(0x40)).unwrap();
    fs::write(handy.path_of("scratch/b.png"), "no picture").unwrap();
    fs::write(handy.path_of("scratch/big.png"), [png(1), vec![0; 4_000_000]].concat()).unwrap();
    let mut wide = png(0);
    wide[16..20].copy_from_slice(&9_000_u32.to_be_bytes());
    fs::write(handy.path_of("scratch/wide.png"), wide).unwrap();
    let shown = handy.done("view_image", &json!({"path": "a.txt"}));
    assert!(shown.content.ends_with("a.txt: image/png, 320×240 pixels, 26 bytes."), "{}", shown.content);
    assert_eq!(shown.taint.as_deref(), Some("a file (a.txt)"));
    let image: Value = serde_json::from_str(&shown.image.unwrap()).unwrap();
    assert_eq!((&image["type"], &image["source"]["media_type"]), (&json!("image"), &json!("image/png")));
    assert!(image["source"]["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    assert!(handy.refused("view_image", &json!({"path": "b.png"})).contains("isn't a picture"));
    assert!(handy.refused("view_image", &json!({"path": "big.png"})).contains("at most 3500000 are read"));
    assert!(handy.refused("view_image", &json!({"path": "wide.png"})).contains("9000×240"));
    assert!(handy.refused("view_image", &json!({"path": "../a.png"})).contains("leads upwards"));
    for _ in 1..8 {
        handy.done("view_image", &json!({"path": "a.txt"}));
    }
    assert!(handy.refused("view_image", &json!({"path": "a.txt"})).contains("one too many"));
    assert!(handy.refused(EDITOR, &json!({"command": "view", "path": "a.txt"})).contains("view_image"));
}

#[test]
fn the_machine_is_described_with_the_folders_that_may_be_used() {
    let mut handy = Handy::new();
    let told = handy.done("system_info", &json!({}));
    assert!(told.content.starts_with("System: ") && told.content.contains("\nMachine: "), "{}", told.content);
    for (path, what) in
        [("scratch", "scratch, yours"), ("mine", "may be read and written"), ("looked-at", "may be read")]
    {
        let line = format!("- {}: {what}", handy.path_of(path).display());
        assert!(told.content.contains(&line), "{line}: {}", told.content);
    }
    assert_eq!((told.taint, told.receipt), (None, None));
}

#[test]
fn nothing_but_pages_and_documents_is_opened() {
    let mut handy = Handy::new();
    for path in ["a.desktop", "a.pdf", "run.pdf"] {
        fs::write(handy.path_of("scratch").join(path), "").unwrap();
    }
    fs::set_permissions(handy.path_of("scratch/run.pdf"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (target, why) in [
        ("file:///etc/passwd", "Only addresses that begin with"),
        ("javascript:alert(1)", "Only addresses that begin with"),
        ("https://me:word@example.org", "a password"),
        ("a.desktop", "Only documents are opened"),
        ("run.pdf", "run as a program"),
        ("/etc/passwd", "may be read"),
        ("none.pdf", "There is no none.pdf"),
        ("--help", "Only documents are opened"),
    ] {
        let refused = handy.refused("open", &json!({"target": target}));
        assert!(refused.contains(why), "{target}: {refused}");
    }
}

/// Creates a memory with these files in its history.
fn with_history(handy: &mut Handy, files: &[(&str, &str)]) {
    let dir = handy.scene.path("brain");
    Repo::open_or_create(&dir, None, files, handy.scene.world.clock.now).unwrap();
    handy.scene.world.memory.documents = Documents::new(&dir, Vec::new());
}

/// Renders a rule about this path, for any tool or, with a line such as `tool = "…"`, for one.
fn render_rule(tool: &str, path: &Path, decision: &str) -> String {
    let path = path.display().to_string();
    format!("[[rule]]\n{tool}path = {path:?}\ndecision = {decision:?}\nmatch = [{path:?}]\n")
}

#[test]
fn the_history_tells_nothing_of_what_a_rule_keeps_back() {
    let mut handy = Handy::new();
    with_history(&mut handy, &[("memory/diary.md", "dear diary\n"), ("memory/list.md", "milk\n")]);
    let brain = handy.scene.path("brain");
    let commit = Repo::open(&brain).unwrap().history().list_commits(1).unwrap().remove(0);
    let id = commit.id.to_string();
    handy.scene.world.conversation.undoable =
        vec![Undoable { wake: "20261121T130000Z-1".to_owned(), commit: Some(id.clone()), what: None }];
    let diff = json!({"id": id});
    let all = handy.done("brain_diff", &diff).content;
    let (log, words) = (handy.done("brain_log", &json!({})).content, json!({"words": commit.subject}));
    assert!(
        all.contains("+dear diary") && all.contains("+milk") && log.ends_with(&commit.subject),
        "the control: {all}"
    );
    assert!(handy.done("brain_log", &words).content.ends_with(&commit.subject));
    handy.done("brain_revert", &json!({"wake": id}));
    let diary = brain.join("memory/diary.md");
    for (tool, decision) in [("", "deny"), ("", "ask"), ("tool = \"memory_read\"\n", "deny")] {
        handy.scene.world.means.rules = reveille_policy::Rules::parse(&render_rule(tool, &diary, decision)).unwrap();
        let told = handy.done("brain_diff", &diff).content;
        assert!(told.contains("+milk") && told.contains("left out here: 1.)"), "{told}");
        assert!(!told.contains("diary") && !told.contains(&commit.subject), "{told}");
        let log = handy.done("brain_log", &json!({})).content;
        assert!(log.starts_with(id.get(..10).unwrap()) && log.ends_with("so its message isn't shown)"), "{log}");
        assert_eq!(handy.done("brain_log", &words).content, "No such commit was found.");
        assert!(handy.refused("brain_revert", &json!({"wake": id})).contains("with /undo"));
    }
}

#[test]
fn a_folder_is_listed_without_files_that_a_rule_keeps_back() {
    let mut handy = Handy::new();
    for path in ["a/deep/diary.txt", "a/deep/list.txt", "a/private/b.txt"] {
        let full = handy.path_of("scratch").join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, "").unwrap();
    }
    let (diary, private) = (handy.path_of("scratch/a/deep/diary.txt"), handy.path_of("scratch/a/private"));
    let view = |path: &str| json!({"command": "view", "path": path});
    assert!(handy.done(EDITOR, &view("a")).content.contains("diary.txt"), "the control");
    let rules = render_rule("", &diary, "deny") + &render_rule("", &private, "ask");
    let rules = reveille_policy::Rules::parse(&rules).unwrap().with_scratch(&handy.path_of("scratch"));
    handy.scene.world.means.rules = rules;
    let listed = handy.done(EDITOR, &view("a")).content;
    let below = listed.split_once('\n').unwrap().1;
    assert_eq!(below, "  deep/\n    list.txt\n(Files and folders that your person's rules exclude: 2.)");
    // Every spelling of the path falls under the same rules.
    let editor = Registry::for_thinking_model();
    for path in ["a/deep/diary.txt", "./a//deep/diary.txt", &diary.display().to_string()] {
        let verdict = editor.judge(EDITOR, &view(path).to_string(), &handy.scene.world, None).unwrap();
        assert_eq!(verdict.decision, Decision::Deny, "{path}");
    }
}

#[test]
fn the_memorys_history_is_listed_and_shown_to_its_person_alone() {
    let mut handy = Handy::new();
    with_history(&mut handy, &[("claude.md", "# Orders\n")]);
    let log = handy.done("brain_log", &json!({}));
    assert_eq!((log.content.lines().count(), &log.taint), (1, &None));
    let id = log.content.split(' ').next().unwrap().to_owned();
    let shown = handy.done("brain_diff", &json!({"id": id}));
    assert!(shown.content.contains("+# Orders"), "{}", shown.content);
    assert!(handy.done("brain_diff", &json!({"id": id, "from_line": 3})).content.len() < shown.content.len());
    assert_eq!(handy.done("brain_log", &json!({"words": "no such words"})).content, "No such commit was found.");
    for (tool, input, why) in [
        ("brain_log", json!({"n": 0}), "1 to 50"),
        ("brain_log", json!({"n": 51}), "1 to 50"),
        ("brain_diff", json!({"id": "abc"}), "4 characters"),
        ("brain_diff", json!({"id": "zzzz"}), "There is no wake or commit"),
        ("brain_diff", json!({"id": id, "from_line": 9999}), "was asked for"),
    ] {
        assert!(handy.refused(tool, &input).contains(why), "{tool} {input}");
    }
    let brain = handy.scene.path("brain");
    let path = brain.join("claude.md");
    assert_eq!(handy.done(EDITOR, &json!({"command": "view", "path": path})).taint, None);
    // Writes the facts, and returns if the editor and the search report untrusted text.
    let mut are_tainted = |facts: &str| {
        let path = brain.join(reveille_memory::SEMANTIC_MEMORY);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, facts).unwrap();
        let found = handy.done("find_files", &json!({"text": "kept", "path": path}));
        (handy.done(EDITOR, &json!({"command": "view", "path": path})).taint.is_some(), found.taint.is_some())
    };
    assert_eq!(are_tainted("## Home\n- kept\n"), (false, true), "the search doesn't tell lines apart");
    assert_eq!(are_tainted("## Unconfirmed\n- kept <!-- wake 1 after a page -->\n"), (true, true));
    assert!(
        handy
            .refused(EDITOR, &json!({"command": "view", "path": brain.join(".git/config")}))
            .contains("out of every tool's reach")
    );
    assert!(
        handy
            .refused(EDITOR, &json!({"command": "create", "path": brain.join("new.md"), "file_text": ""}))
            .contains("may be written")
    );

    handy.scene.world.memory.documents =
        Documents::new(&brain, Vec::new()).with_view(View::for_chat(ChatRef::from_telegram(99)));
    fs::write(handy.path_of("mine/a.txt"), "the person's").unwrap();
    let granted = handy.path_of("mine/a.txt");
    for (tool, input) in [
        ("brain_log", json!({})),
        ("brain_diff", json!({"id": id})),
        (EDITOR, json!({"command": "view", "path": path})),
        (EDITOR, json!({"command": "view", "path": granted})),
        ("find_files", json!({"pattern": "*", "path": brain})),
        ("find_files", json!({"pattern": "*"})),
        ("view_image", json!({"path": granted})),
        ("system_info", json!({})),
        ("open", json!({"target": granted})),
        ("bash", json!({"command": "cat claude.md"})),
    ] {
        let why = handy.refused(tool, &input);
        if !tool.starts_with("brain") {
            assert!(why.contains("Only the owner's chats"), "{tool}: {why}");
            let verdict =
                Registry::for_thinking_model().get(tool).unwrap().judge(&input.to_string(), &handy.scene.world, None);
            assert_eq!(verdict.decision, Decision::Deny, "{tool}: nobody is asked about it");
        }
    }
    let guest_tools = Registry::for_thinking_model().filter_visible(ToolView::Guest).catalogue();
    let guest_names: Vec<&str> = guest_tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        guest_names.contains(&"reply") && !guest_names.contains(&"bash") && !guest_names.contains(&EDITOR),
        "{guest_names:?}"
    );
}

#[test]
fn the_undo_of_a_wake_is_requested_by_its_id() {
    let mut handy = Handy::new();
    let known =
        |wake: &str, commit: &str| Undoable { wake: wake.to_owned(), commit: Some(commit.to_owned()), what: None };
    handy.scene.world.conversation.undoable =
        vec![known("20261121T130000Z-1", "abcdef"), known("20261121T120000Z-2", "abcxyz")];
    let done = handy.done("brain_revert", &json!({"wake": "abcd"}));
    let wanted = Change::Undo {
        wake: "20261121T130000Z-1".to_owned(),
        chat: ChatRef::from_telegram(7),
        thread_id: Some(3),
        reply_to: Some(100),
    };
    assert_eq!(done.changes, [wanted]);
    assert_eq!(done.receipt.as_deref(), Some("Asked for the wake 20261121T130000Z-1 to be undone"));
    assert!(handy.refused("brain_revert", &json!({"wake": "20261121"})).contains("Several wakes"));
    assert!(handy.refused("brain_revert", &json!({"wake": "2025"})).contains("No wake that begins with"));
    assert!(handy.refused("brain_revert", &json!({"wake": "abc"})).contains("4 characters"));
}

#[test]
fn the_decision_for_each_call_is_as_in_this_table() {
    let mut handy = Handy::new();
    let registry = Registry::for_thinking_model();
    let granted = handy.path_of("mine/a.txt");
    let scratch = handy.path_of("scratch/a.txt");
    let judge = |world: &World, name: &str, input: Value| {
        registry.get(name).unwrap().judge(&input.to_string(), world, None).decision
    };
    for (name, input, decision) in [
        (EDITOR, json!({"command": "view", "path": "a.txt"}), Decision::Allow),
        (EDITOR, json!({"command": "create", "path": "a.txt"}), Decision::Allow),
        (EDITOR, json!({"command": "create", "path": scratch}), Decision::Allow),
        (EDITOR, json!({"command": "create", "path": granted}), Decision::Allow),
        (EDITOR, json!({"command": "view", "path": "../a.txt"}), Decision::Ask),
        (EDITOR, json!({"command": "view", "path": "/etc/passwd"}), Decision::Ask),
        (EDITOR, json!({"command": "view", "path": ".git/config"}), Decision::Deny),
        (EDITOR, json!({"command": "view", "path": "id_rsa"}), Decision::Ask),
        ("find_files", json!({"pattern": "*"}), Decision::Allow),
        ("find_files", json!({"pattern": "*", "path": "/home"}), Decision::Ask),
        ("view_image", json!({"path": "a.png"}), Decision::Allow),
        ("view_image", json!({"path": "/etc/a.png"}), Decision::Ask),
        ("system_info", json!({}), Decision::Allow),
        ("open", json!({"target": "https://example.org"}), Decision::Allow),
        ("open", json!({"target": "file:///etc/passwd"}), Decision::Ask),
        ("open", json!({"target": "/etc/a.pdf"}), Decision::Ask),
        ("brain_log", json!({}), Decision::Allow),
        ("brain_diff", json!({"id": "abcd"}), Decision::Allow),
        ("brain_revert", json!({"wake": "abcd"}), Decision::Ask),
    ] {
        assert_eq!(judge(&handy.scene.world, name, input.clone()), decision, "{name} {input}");
    }
    assert_eq!(registry.get("open").unwrap().reach, Reach::Leaves);
    assert_eq!(registry.get(EDITOR).unwrap().trained, Some("text_editor_20250728"));
    assert!(handy.edit(&json!({"command": "view", "path": "a.txt"})).is_err());
}
