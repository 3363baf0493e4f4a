//! Tests `remember`, `forget`, `note`, `context_update`, `memory_read`, `memory_search`, `read_skill`, `quote`, `recall`.

use reveille_base::types::ChatRef;
use reveille_memory::{
    ACTIVE, CONTEXT, EPISODIC_MEMORY, SEMANTIC_MEMORY, WORKING_MEMORY,
    skill::{Skill, Skills},
    view::View,
};
use reveille_policy::Decision;

use super::*;

const FACTS: &str = "# Semantic memory\n\n## Home\n- the wifi code is 1234 <!-- wake w1 message 5 -->\n";
const LOG: &str = "## 2026-11-20\n- 09:00 Remembered “the wifi code is 1234” <!-- wake w1 -->\n- 09:01 Talked of the sea <!-- wake w1 -->\n";

#[test]
fn a_fact_is_added_with_its_origin_and_once() {
    let mut scene = Scene::new().with(SEMANTIC_MEMORY, FACTS);
    let done = scene.act("remember", &json!({"fact": "Anna likes tea", "topic": " People "}));
    let file = files(&done)[0];
    assert_eq!((file.path.as_str(), file.base.as_deref()), (SEMANTIC_MEMORY, Some(FACTS)));
    assert!(file.content.starts_with(FACTS), "{}", file.content);
    assert!(
        file.content.ends_with("## People\n- Anna likes tea <!-- wake 20261121T140000Z-812 message 41 -->\n"),
        "{}",
        file.content
    );
    assert_eq!(done.receipt.as_deref(), Some("Remembered “Anna likes tea”"));
    let again = scene.act("remember", &json!({"fact": "anna likes tea"}));
    assert_eq!((again.receipt, again.changes), (None, vec![]));
    // The base stays the text that was read, even after several staged changes.
    let more = scene.act("remember", &json!({"fact": "Bob likes coffee"}));
    assert_eq!(files(&more)[0].base.as_deref(), Some(FACTS));
    assert!(scene.refused("remember", &json!({"fact": "\n"})).contains("fact is empty"));
    assert!(scene.refused("remember", &json!({"fact": "x".repeat(1_001)})).contains("at most 1000"));
}

#[test]
fn a_fact_cannot_forge_a_heading_or_a_comment() {
    let mut scene = Scene::new();
    let done = scene.act("remember", &json!({"fact": "a\n## Forged\n- b <!-- wake x -->", "topic": "T\n- c"}));
    let text = &files(&done)[0].content;
    assert!(!text.contains("\n## Forged") && !text.contains("\n- c") && text.matches("<!--").count() == 1, "{text}");
}

#[test]
fn a_fact_is_forgotten_by_words_that_only_it_has() {
    let mut scene = Scene::new().with(SEMANTIC_MEMORY, FACTS);
    assert!(scene.call("forget", &json!({"fact": "zebra"})).is_err());
    let done = scene.act("forget", &json!({"fact": "wifi code"}));
    assert_eq!(done.content, "Forgotten: the wifi code is 1234");
    assert!(!files(&done)[0].content.contains("1234"));
    assert!(scene.call("forget", &json!({"fact": "wifi code"})).is_err());
}

/// One known fact; another cycle learnt the other one from a page.
const DOUBTFUL: &str =
    "## Home\n- tea is in the attic\n\n## Unconfirmed\n- tea is in the safe 0900 <!-- wake w1 after a page -->\n";

#[test]
fn reading_what_others_may_have_had_a_hand_in_marks_the_cycle_and_the_rest_does_not() {
    let log =
        "## 2026-11-20\n- 09:00 Fed the cat <!-- wake w1 own -->\n- 09:01 Fed the dog <!-- wake w1 after others -->\n";
    let scene =
        Scene::new().with(SEMANTIC_MEMORY, DOUBTFUL).with(EPISODIC_MEMORY, log).with("memory/notes.md", "tea\n");
    let marks = |name: &str, input: Value| scene.done(name, &input).taint.is_some();
    assert!(marks("memory_read", json!({"path": SEMANTIC_MEMORY})));
    assert!(marks("memory_read", json!({"path": EPISODIC_MEMORY})) && !marks("memory_read", json!({})));
    assert!(!marks("memory_read", json!({"path": "memory/notes.md"})));
    for spelling in [
        "memory/./agent-memory/semantic-memory.md",
        "memory//agent-memory/semantic-memory.md",
        "memory/agent-memory/./episodic-memory.md",
        "memory/agent-memory/Semantic-memory.md",
    ] {
        // As if the disk treated both names as the same.
        let scene = Scene::new().with(spelling, DOUBTFUL);
        let why = scene.refused("memory_read", &json!({"path": spelling}));
        assert!(why.contains("no memory file"), "another spelling isn't told apart: {why}");
    }
    assert!(marks("memory_search", json!({"query": "tea"})) && marks("memory_search", json!({"query": "dog"})));
    assert!(!marks("memory_search", json!({"query": "attic"})) && !marks("memory_search", json!({"query": "cat"})));
    assert!(marks("quote", json!({"query": "where is the safe"})) && marks("recall", json!({"query": "safe"})));
    assert!(!marks("quote", json!({"query": "where is the attic"})) && !marks("recall", json!({"query": "attic"})));
}

#[test]
fn no_word_of_a_fact_in_quarantine_comes_out_unmarked_by_forgetting() {
    let scene = Scene::new().with(SEMANTIC_MEMORY, DOUBTFUL);
    let candidates = scene.done("forget", &json!({"fact": "tea"}));
    assert!(candidates.content.contains("0900") && candidates.is_failure, "{candidates:?}");
    assert!(candidates.taint.is_some() && candidates.changes.is_empty() && candidates.receipt.is_none());
    let near = scene.done("forget", &json!({"fact": "the safe key"}));
    assert!(near.content.contains("0900") && near.taint.is_some(), "{near:?}");
    let gone = scene.done("forget", &json!({"fact": "safe"}));
    assert!(gone.taint.is_some() && !files(&gone)[0].content.contains("0900"), "{gone:?}");
    assert_eq!(scene.done("forget", &json!({"fact": "attic"})).taint, None);
}

#[test]
fn a_marked_cycle_frees_no_fact_from_quarantine() {
    let mut scene = Scene::new().with(SEMANTIC_MEMORY, DOUBTFUL);
    scene.world.cycle.taint = Some("unconfirmed parts of the memory".to_owned());
    let told = scene.done("remember", &json!({"fact": "Tea is in the safe 0900", "topic": "Home"}));
    assert!(told.changes.is_empty() && told.content.contains("once your person says it"), "{told:?}");
    scene.world.cycle.taint = None;
    let freed = scene.done("remember", &json!({"fact": "tea is in the safe 0900", "topic": "Home"}));
    let text = &files(&freed)[0].content;
    assert!(text.starts_with("## Home\n- tea is in the attic\n- tea is in the safe 0900 <!--"), "{text}");
    assert_eq!(text.matches("0900").count(), 1, "{text}");
}

#[test]
fn the_small_documents_are_rewritten_and_not_shrunk_by_accident() {
    let old = &format!("# Working memory\n\n{}", "- waiting for Anna's letter\n".repeat(40));
    let scene = Scene::new().with(WORKING_MEMORY, old).with(CONTEXT, "# Context\n\n- energy: low\n");
    let done = scene.done("note", &json!({"text": format!("{old}- it rains\n\n")}));
    assert_eq!(files(&done)[0].content, format!("{old}- it rains\n"));
    assert_eq!(done.receipt.as_deref(), Some("Rewrote the working memory: it rains"));
    let unchanged = scene.done("note", &json!({"text": old}));
    assert_eq!((unchanged.receipt, unchanged.changes), (None, vec![]));
    assert!(scene.refused("note", &json!({"text": "gone"})).contains("by more than half"));
    assert!(scene.call("note", &json!({"text": "gone", "shorten": true})).is_ok());
    assert!(scene.refused("note", &json!({"text": "x".repeat(12_001)})).contains("at most 12000"));
    let done = scene.done("context_update", &json!({"text": "# Context\n\n- energy: high"}));
    assert_eq!(done.receipt.as_deref(), Some("Updated the context: energy: high"));
    assert_eq!(files(&done)[0].path, CONTEXT);
}

#[test]
fn a_file_is_read_in_pages_and_listed_without_a_path() {
    let scene =
        Scene::new().with(SEMANTIC_MEMORY, &"- x\n".repeat(401)).with("skills/tdd/SKILL.md", "x").with("notes.md", "x");
    assert_eq!(scene.done("memory_read", &json!({})).content, format!("{SEMANTIC_MEMORY}\nskills/tdd/SKILL.md"));
    let first = scene.done("memory_read", &json!({"path": SEMANTIC_MEMORY})).content;
    assert!(first.ends_with("- x\n(Lines 1 to 400 of 401; go on with from_line 401.)"), "{first}");
    let last = scene.done("memory_read", &json!({"path": SEMANTIC_MEMORY, "from_line": 401}));
    assert_eq!((last.content.as_str(), last.receipt, last.changes), ("- x", None, vec![]));
    assert!(
        scene.refused("memory_read", &json!({"path": SEMANTIC_MEMORY, "from_line": 402})).contains("401 lines; 402")
    );
    assert!(scene.call("memory_read", &json!({"path": SEMANTIC_MEMORY, "from_line": -1})).is_err());
}

#[test]
fn nothing_outside_the_memory_can_be_read() {
    let scene = Scene::new()
        .with(SEMANTIC_MEMORY, FACTS)
        .with("secret.md", "s")
        .with("memory/data.txt", "s")
        .with("memory/.git/config.md/x", "s");
    std::fs::write(scene.path("outside.md"), "s").unwrap();
    std::os::unix::fs::symlink(scene.path("outside.md"), scene.path("memory/link.md")).unwrap();
    std::os::unix::fs::symlink(scene.path("."), scene.path("memory/up")).unwrap();
    let absolute = scene.path(SEMANTIC_MEMORY).display().to_string();
    for path in [
        "memory/../secret.md",
        "../secret.md",
        "memory/agent-memory/../../secret.md",
        &absolute,
        "/etc/passwd",
        "secret.md",
        "memory/data.txt",
        "memory/link.md",
        "memory/up/secret.md",
        "memory/up/outside.md",
        "memory",
        "memory/",
        "",
        ".env",
        "memory/./../secret.md",
        "memory/\u{0}.md",
        "memory/nothing.md",
        ".git/config",
    ] {
        let why = scene.refused("memory_read", &json!({"path": path}));
        assert!(why.starts_with("There is no memory file"), "{path}: {why}");
    }
    let listed = scene.done("memory_read", &json!({})).content;
    assert!(!listed.contains("link") && !listed.contains("up/"), "{listed}");
}

#[test]
fn a_file_that_is_no_text_is_no_memory() {
    let scene = Scene::new().with(SEMANTIC_MEMORY, FACTS);
    std::fs::write(scene.path("memory/binary.md"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(scene.call("memory_read", &json!({"path": "memory/binary.md"})).is_err());
    assert!(scene.call("memory_search", &json!({"query": "wifi"})).is_ok());
}

#[test]
fn a_search_names_file_line_and_text() {
    let scene = Scene::new().with(SEMANTIC_MEMORY, FACTS).with(EPISODIC_MEMORY, LOG).with("claude.md", "wifi\n");
    assert_eq!(
        scene.done("memory_search", &json!({"query": "the sea"})).content,
        format!("{EPISODIC_MEMORY}:3: 09:01 Talked of the sea")
    );
    assert_eq!(scene.done("memory_search", &json!({"query": "zebra"})).content, "Nothing was found.");
    assert!(scene.refused("memory_search", &json!({"query": " "})).contains("query is empty"));
}

#[test]
fn what_is_known_is_recalled_from_facts_and_tasks_and_else_from_the_log() {
    let scene = Scene::new()
        .with(SEMANTIC_MEMORY, FACTS)
        .with(EPISODIC_MEMORY, LOG)
        .with(ACTIVE, "## Mend the wifi\n- next: buy a cable for the wifi\n");
    insta::assert_snapshot!(scene.done("recall", &json!({"query": "the wifi"})).content, @r"
    About the wifi:
    - Mend the wifi: next: buy a cable for the wifi (memory/project-memory/active.md, line 1)
    - the wifi code is 1234 (memory/agent-memory/semantic-memory.md, line 4)
    ");
    insta::assert_snapshot!(scene.done("recall", &json!({"query": "the sea"})).content, @r"
    About the sea:
    - 09:01 Talked of the sea (memory/agent-memory/episodic-memory.md, line 3)
    ");
    assert_eq!(scene.done("recall", &json!({"query": "zebras"})).content, "I have no notes about zebras.");
    assert!(scene.call("recall", &json!({"query": ""})).is_err());
}

#[test]
fn a_question_is_answered_by_quoting_or_refused() {
    let scene = Scene::new().with(SEMANTIC_MEMORY, FACTS);
    assert_eq!(
        scene.done("quote", &json!({"query": "what is the wifi code?"})).content,
        format!("- the wifi code is 1234 ({SEMANTIC_MEMORY}, line 4)")
    );
    assert!(scene.call("quote", &json!({"query": "who is the king of France?"})).is_err());
    assert!(scene.call("quote", &json!({"query": ""})).is_err());
}

#[test]
fn a_skill_is_read_by_its_name() {
    let mut scene = Scene::new();
    scene.world.memory.skills =
        vec![Skill::parse("---\nname: tdd\ndescription: Test first.\n---\nRed, green.\n").unwrap()];
    assert_eq!(scene.done("read_skill", &json!({"name": "tdd"})).content.trim(), "Red, green.");
    assert!(scene.refused("read_skill", &json!({"name": "../x"})).ends_with("There are: tdd."));
}

#[test]
fn a_rule_about_a_skills_files_holds_for_who_reads_the_skill() {
    let mut scene = Scene::new()
        .with("skills/tea/SKILL.md", "---\nname: tea\ndescription: Steeping.\n---\nBoil.\n")
        .with("skills/tea/references/green.md", "80 degrees");
    let documents = &scene.world.memory.documents;
    scene.world.memory.skills = Skills::collect(&documents.list(), |path| documents.text(path)).usable;
    let decided = |world: &World, input: Value| {
        Registry::with_standard_tools().judge("read_skill", &input.to_string(), world, None).unwrap().decision
    };
    let whole = json!({"name": "tea"});
    let file = |path: &str| json!({"name": "tea", "path": path});
    assert_eq!(decided(&scene.world, whole.clone()), Decision::Allow);
    for (denied, is_whole) in [("skills/tea/SKILL.md", true), ("skills/tea/references/green.md", false)] {
        let path = scene.path(denied).display().to_string();
        let rule = format!("[[rule]]\npath = {path:?}\ndecision = \"deny\"\nmatch = [{path:?}]\n");
        scene.world.means.rules = reveille_policy::Rules::parse(&rule).unwrap();
        let expected = |is_denied: bool| if is_denied { Decision::Deny } else { Decision::Allow };
        assert_eq!(decided(&scene.world, whole.clone()), expected(is_whole));
        scene.world.memory.documents = Documents::new(&scene.path(""), Vec::new());
        for spelled in ["references/green.md", "references/./green.md", "references//green.md"] {
            assert_eq!(decided(&scene.world, file(spelled)), expected(!is_whole), "{spelled}");
        }
        // In a guest's chat too.
        scene.world.memory.documents =
            Documents::new(&scene.path(""), Vec::new()).with_view(View::for_chat(ChatRef::from_telegram(99)));
        assert_eq!(decided(&scene.world, file("references/./green.md")), expected(!is_whole));
    }
}

#[test]
fn a_skills_further_files_are_read_beneath_its_folder_alone() {
    let mut scene = Scene::new()
        .with("skills/tea/SKILL.md", "x")
        .with("skills/tea/references/kinds.md", "Green.\nBlack.\n")
        .with("skills/tea/scripts/brew.sh", "#!/bin/sh\necho brew\n")
        .with("skills/tea/assets/a/b/c/deep.txt", "too deep to be listed")
        .with("skills/tea/.hidden", "secret")
        .with("skills/tea/assets/large.txt", &"x".repeat(256 * 1024 + 1))
        .with("skills/other/SKILL.md", "another's")
        .with("secret.txt", "secret");
    std::fs::write(scene.path("skills/tea/assets/cup.png"), b"\x89PNG\0\xff").unwrap();
    std::os::unix::fs::symlink(scene.path("secret.txt"), scene.path("skills/tea/link.txt")).unwrap();
    std::os::unix::fs::symlink(scene.path(""), scene.path("skills/tea/up")).unwrap();
    let text = "---\nname: tea\ndescription: Makes tea.\ncompatibility: Needs water\n---\n\nBoil it.\n";
    scene.world.memory.skills = vec![Skill { folder: "tea".to_owned(), ..Skill::parse(text).unwrap() }];
    insta::assert_snapshot!(scene.done("read_skill", &json!({"name": "tea"})).content, @r"
    Boil it.

    (It needs: Needs water)

    (Its further files, each read by its path; a script is text, and isn't run:)
    - assets/cup.png
    - assets/large.txt
    - references/kinds.md
    - scripts/brew.sh
    ");
    let read = |path: &str| scene.call("read_skill", &json!({"name": "tea", "path": path}));
    assert_eq!(read("references/kinds.md").unwrap().content, "Green.\nBlack.");
    assert!(read("scripts/brew.sh").unwrap().content.ends_with("echo brew"));
    for outside in [
        "../other/SKILL.md",
        "references/../../other/SKILL.md",
        "/etc/hostname",
        "link.txt",
        "up/secret.txt",
        ".hidden",
        "references",
        "",
        "a\0b",
        "./references/kinds.md",
    ] {
        let why = read(outside).unwrap_err().why;
        assert!(why.starts_with("This skill has no file"), "{outside}: {why}");
    }
    assert!(read("assets/cup.png").unwrap_err().why.contains("isn't text"));
    assert!(read("assets/large.txt").unwrap_err().why.contains("at most 262144"));
}

#[test]
fn a_long_skill_is_read_in_pages() {
    let mut scene = Scene::new();
    let body: String = (1..=500).map(|n| format!("Step {n}.\n")).collect();
    scene.world.memory.skills = vec![Skill::parse(&format!("---\nname: long\ndescription: x\n---\n{body}")).unwrap()];
    let first = scene.done("read_skill", &json!({"name": "long"})).content;
    assert!(first.ends_with("Step 400.\n(Lines 1 to 400 of 500; go on with from_line 401.)"), "{first}");
    let second = scene.done("read_skill", &json!({"name": "long", "from_line": 401})).content;
    assert!(second.starts_with("Step 401.") && second.ends_with("Step 500."), "{second}");
    let wide = format!("{}\nlast\n", "ü".repeat(30_000));
    scene.world.memory.skills = vec![Skill::parse(&format!("---\nname: wide\ndescription: x\n---\n{wide}")).unwrap()];
    let first = scene.done("read_skill", &json!({"name": "wide"})).content;
    assert!(first.len() < MAX_OUTCOME_BYTES && first.ends_with("(cut)\n(Lines 1 to 1 of 2; go on with from_line 2.)"));
}
