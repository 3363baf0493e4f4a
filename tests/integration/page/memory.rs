//! The memory on the page: found, read, edited and given back as the person's own, and nothing of it lost.

use super::{Answered, ServedPage, TestEnv};
use crate::{
    support::story::{end_well, start_wake, wait_for_request, with_claude},
    support::{claude::Reply, http::Gate},
};

const FACTS: &str = "memory/agent-memory/semantic-memory.md";
const LOG: &str = "memory/agent-memory/episodic-memory.md";

/// A world whose memory knows a few things.
fn world() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["--once", "--say", "remember that the wifi code is 1234"]).ok();
    env
}

/// A hidden field's value.
#[track_caller]
fn field(html: &str, name: &str) -> String {
    let from = html.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("no {name} in {html}")).1;
    from.split('"').next().unwrap().to_owned()
}

fn file(path: &str) -> String {
    format!("/memory/file?path={}", path.replace('/', "%2F"))
}

/// Sends an edit of the version that is named.
fn edit(page: &ServedPage<'_>, path: &str, version: &str, text: &str) -> Answered {
    page.post("/memory/edit", &[("path", path), ("version", version), ("text", &text.replace('\n', "\r\n"))])
}

fn version(page: &ServedPage<'_>, path: &str) -> String {
    field(&page.get(&format!("/memory/edit?path={path}")).ok(), "version")
}

#[test]
fn what_is_known_is_found_and_leads_to_its_line_and_to_who_said_it() {
    let env = world();
    let page = ServedPage::open(&env);
    let listed = page.get("/memory").ok();
    assert!(listed.contains("Standing orders") && listed.contains(&file(FACTS)), "{listed}");

    let found = page.get("/memory?q=wifi+code").ok();
    let line = env.memory(FACTS).lines().position(|line| line.contains("wifi")).unwrap() + 1;
    assert!(found.contains("the wifi code is 1234") || found.contains("The wifi code is 1234"), "{found}");
    assert!(found.contains(&format!("{}#L{line}\"", file(FACTS))) && found.contains("its words"), "{found}");
    let nothing = page.get("/memory?q=zebra%3Cscript%3E").ok();
    assert!(nothing.contains("I have no notes about “zebra&lt;script&gt;”"), "{nothing}");

    let read = page.get(&file(FACTS)).ok();
    assert!(read.contains(&format!("id=\"L{line}\"")) && read.contains("What changed"), "{read}");
    let wake = env.trailer("Wake-Id");
    assert!(read.contains(&format!("href=\"/wakes/{wake}\"")), "{read}");
    let why = page.get(&format!("/memory/why?path={FACTS}&line={line}")).ok();
    assert!(why.contains("remember that the wifi code is 1234") && why.contains(&wake), "{why}");
}

#[test]
fn only_documents_of_the_memory_are_read() {
    let env = world();
    std::fs::write(env.workspace().join("secret.md"), "keep out").unwrap();
    std::os::unix::fs::symlink(env.workspace().join("secret.md"), env.brain().join("memory/link.md")).unwrap();
    let page = ServedPage::open(&env);
    for path in
        ["../secret.md", "memory/../../secret.md", "memory/link.md", "/etc/passwd", ".git/config", "", "claude.md%00"]
    {
        for view in ["file", "edit", "why", "restore"] {
            let answered = page.get(&format!("/memory/{view}?path={path}&line=1&at=HEAD"));
            assert_eq!(answered.status, 404, "{view} {path}: {answered:#?}");
            assert!(!answered.body.contains("keep out"), "{answered:#?}");
        }
        let sent = edit(&page, path, "0", "mine");
        assert_eq!(sent.status, 404, "{path}: {sent:#?}");
    }
    assert_eq!(std::fs::read_to_string(env.workspace().join("secret.md")).unwrap(), "keep out");
}

#[test]
fn an_edit_is_the_persons_commit_and_the_text_is_as_it_was_typed() {
    let env = world();
    let context = "memory/project-memory/context.md";
    env.write_memory(context, "# Context\r\n\r\n- energy: low\r\n- one\n");
    let page = ServedPage::open(&env);
    let before = env.git(&["rev-parse", "HEAD"]);
    let form = page.get(&format!("/memory/edit?path={context}")).ok();
    assert!(form.contains("# Context\r\n\r\n- energy: low"), "{form}");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), before, "looking changes nothing");

    let sent = edit(&page, context, &field(&form, "version"), "# Context\n\n- energy: high\n- one\n- <b>two</b>\n");
    let read = page.get(&sent.see_other()).ok();
    assert!(read.contains("Saved as a commit in your name.") && read.contains("&lt;b&gt;two"), "{read}");
    assert!(!read.contains("<b>"), "{read}");
    // Each line keeps its end.
    assert_eq!(env.memory(context), "# Context\r\n\r\n- energy: high\r\n- one\n- <b>two</b>\r\n");
    assert_eq!(env.git(&["log", "-1", "--format=%s %an"]), format!("Edit {context} Owner"));
    // What stood there uncommitted is a commit of its own.
    assert!(env.git(&["show", "HEAD~1:memory/project-memory/context.md"]).contains("energy: low"));
    assert_eq!(env.git(&["status", "--short"]), "");

    // As it came: nothing changed.
    let at = env.git(&["rev-parse", "HEAD"]);
    let sent = edit(&page, context, &version(&page, context), "# Context\n\n- energy: high\n- one\n- <b>two</b>\n");
    assert!(page.get(&sent.see_other()).ok().contains("Nothing changed"));
    assert_eq!(env.git(&["rev-parse", "HEAD"]), at);
    env.check_sound();
}

#[test]
fn where_somebody_else_wrote_meanwhile_both_are_shown_and_nothing_is_lost() {
    let env = world();
    let page = ServedPage::open(&env);
    let read = version(&page, FACTS);
    let theirs = env.memory(FACTS).replace("1234", "5678");
    env.write_memory(FACTS, &theirs);
    let mine = "# Semantic memory\n\n## Mine\n- only this\n";

    let both = edit(&page, FACTS, &read, mine);
    assert_eq!(both.status, 409, "{both:#?}");
    assert!(both.body.contains("5678") && both.body.contains("- only this"), "{both:#?}");
    assert_eq!(env.memory(FACTS), theirs);
    // It is committed by now: whatever is saved then, it stays in the history.
    edit(&page, FACTS, &field(&both.body, "version"), mine).see_other();
    assert_eq!(env.memory(FACTS), mine);
    assert!(env.git(&["show", &format!("HEAD~1:{FACTS}")]).contains("5678"));
    env.check_sound();
}

#[test]
fn what_cannot_be_saved_comes_back_with_the_reason() {
    let env = world();
    let page = ServedPage::open(&env);
    let before = env.git(&["rev-parse", "HEAD"]);
    let log = env.memory(LOG);
    let refused = |sent: Answered, why: &str, kept: &str| {
        assert_eq!(sent.status, 422, "{sent:#?}");
        assert!(sent.body.contains(why) && sent.body.contains(kept), "{why}: {}", sent.body);
    };
    let as_it_was = page.get(&format!("/memory/edit?path={LOG}")).ok();
    assert!(as_it_was.contains("only be added to") && !as_it_was.contains("<textarea"), "{as_it_was}");
    let id = env.git(&["hash-object", LOG]);
    refused(edit(&page, LOG, &id, "gone"), "only be added to", "gone");

    let facts = version(&page, FACTS);
    let secret = "the key is sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    refused(edit(&page, FACTS, &facts, secret), "seems to hold a secret", "the key is");
    let long = "x".repeat(500_001);
    refused(edit(&page, FACTS, &facts, &long), "is longer than", &long);

    let given_back = page.post("/memory/restore", &[("path", LOG), ("at", &before), ("version", &id)]);
    assert_eq!(given_back.status, 422, "{given_back:#?}");
    assert_eq!((env.git(&["rev-parse", "HEAD"]), env.memory(LOG)), (before, log));

    // What the page masks it can't take back.
    env.write_memory("memory/key.md", &format!("{secret}\n"));
    let masked = page.get("/memory/edit?path=memory%2Fkey.md").ok();
    assert!(masked.contains("This page doesn") && !masked.contains("sk-ant-api03"), "{masked}");
    assert!(!page.get("/memory/file?path=memory%2Fkey.md").ok().contains("sk-ant-api03"));
}

#[test]
fn while_a_wake_is_at_work_what_was_typed_comes_back() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    let read = version(&page, FACTS);
    env.receive(4242, "Think hard.");
    let gate = Gate::default();
    claude.expect(Reply::text("Done.").stalled_after(2, &gate));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);

    let sent = edit(&page, FACTS, &read, "# Semantic memory\n- mine\n");
    assert_eq!(sent.status, 422, "{sent:#?}");
    assert!(sent.body.contains("Another wake is working") && sent.body.contains("- mine"), "{sent:#?}");
    gate.open();
    end_well(wake);
    edit(&page, FACTS, &field(&sent.body, "version"), "# Semantic memory\n- mine\n").see_other();
    assert_eq!(env.memory(FACTS), "# Semantic memory\n- mine\n");
    env.check_sound();
}

#[test]
fn an_older_version_is_asked_about_and_then_given_back() {
    let env = world();
    let context = "memory/project-memory/context.md";
    let first = env.memory(context);
    let page = ServedPage::open(&env);
    edit(&page, context, &version(&page, context), "# Context\n\n- energy: low\n").see_other();
    let at = env.git(&["log", "-1", "--format=%H", "HEAD~1", "--", context]);
    let asking = format!("/memory/restore?path={context}&at={at}");
    assert!(page.get(&file(context)).ok().contains(&format!("at={at}")));

    let head = env.git(&["rev-parse", "HEAD"]);
    let question = page.get(&asking).ok();
    assert!(question.contains("energy: low") && question.contains("Restore it"), "{question}");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head, "asking changes nothing");

    let yes = |version: &str| page.post("/memory/restore", &[("path", context), ("at", &at), ("version", version)]);
    let read = field(&question, "version");
    env.write_memory(context, "# Context\n\n- energy: lower\n");
    let anew = yes(&read);
    assert_eq!(anew.status, 409, "{anew:#?}");
    assert!(anew.body.contains("energy: lower"), "{anew:#?}");

    let given = page.get(&yes(&field(&anew.body, "version")).see_other()).ok();
    assert!(given.contains("Restored as a commit in your name."), "{given}");
    assert_eq!(env.memory(context), first);
    assert_eq!(env.git(&["log", "-1", "--format=%an"]), "Owner");
    assert!(env.git(&["show", &format!("HEAD~1:{context}")]).contains("lower"), "what stood there is kept");
    env.check_sound();
}
