//! Health on the page: what is wrong, why it matters and what to do; looking touches nothing.

use super::{ServedPage, TestEnv};

#[test]
fn what_is_wrong_is_told_with_its_fix_and_repaired_by_a_button_alone() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let lock = env.brain().join(".git/index.lock");
    let page = ServedPage::open(&env);
    let well = page.get("/health").ok();
    assert!(well.contains("In order") && well.contains("Disk space"), "{well}");
    assert!(!well.contains("Repair what can be repaired") && well.contains("Left out here"), "{well}");

    std::fs::write(&lock, "").unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
    std::fs::write(env.brain().join("memory/agent-memory/semantic-memory.md"), "# Semantic memory\n\nUnder\n-----\n")
        .unwrap();
    let broken = page.get("/health").ok();
    for told in ["lock files that no git program holds", "Everything I remember is in it", "It can be repaired here"] {
        assert!(broken.contains(told), "{told}: {broken}");
    }
    page.get("/health?all=true").ok();
    assert!(lock.exists(), "looking touches nothing");

    let mended = page.get(&page.post("/health/repair", &[("", "")]).see_other()).ok();
    assert!(
        mended.contains("Repaired: The memory&#39;s repository.")
            || mended.contains("Repaired: The memory's repository."),
        "{mended}"
    );
    assert!(!lock.exists());
    let nothing = page.get("/health?repaired=%3Cb%3Eyou").ok();
    assert!(nothing.contains("Nothing was repaired") && !nothing.contains("<b>you"), "{nothing}");
}

#[test]
fn a_person_is_told_what_only_they_can_do() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env.git(&["checkout", "-q", "-b", "elsewhere"]);
    let page = ServedPage::open(&env);
    let told = page.get("/health").ok();
    assert!(told.contains("What to do:") && told.contains("<code>git "), "{told}");
}

#[test]
fn before_the_first_wake_there_is_a_page_too() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    for (path, said) in [
        ("/health", "nothing yet"),
        ("/memory", "I don't remember anything yet"),
        ("/questions", "No open questions"),
        ("/settings", "Name and time zone"),
        ("/settings/all", "TIMEZONE"),
        ("/settings/assistant", "Reveille"),
        ("/settings/jobs", "No jobs yet"),
        ("/settings/telegram", "Nobody yet"),
    ] {
        let shown = page.get(path).ok();
        assert!(shown.contains(said), "{path}: {shown}");
    }
    assert!(!env.brain().exists(), "looking makes nothing");
}
