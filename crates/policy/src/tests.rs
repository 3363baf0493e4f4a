//! Tests the corpus (commands that can lose something must ask, harmless ones never do) and each voice of the judgement.

use super::*;

const AT_SMART: Circumstances<'_> =
    Circumstances { autonomy: Autonomy::Smart, taint: None, is_sandboxed: true, uncovered: None, tainted_write: None };
const WRITES: Access = Access { writes: true, network: false };
const NETWORK: Access = Access { writes: false, network: true };
const LEVELS: [Autonomy; 3] = [Autonomy::AskAll, Autonomy::Smart, Autonomy::Full];

/// A command without any access.
fn command(text: &str) -> Subject<'_> {
    given(text, Access::default())
}

fn given(text: &str, access: Access) -> Subject<'_> {
    Subject {
        tool: "bash",
        risk: Risk::Dangerous,
        effect: Effect::Once,
        is_free: false,
        reach: access.reach(),
        what: What::Shell { text, access },
        arguments: "",
    }
}

fn call(tool: &str, risk: Risk) -> Subject<'_> {
    Subject {
        tool,
        risk,
        effect: Effect::Once,
        is_free: false,
        reach: Reach::Within,
        what: What::Plain,
        arguments: "{}",
    }
}

fn path(path: &str, is_write: bool) -> Subject<'_> {
    Subject { what: What::Path { path: Path::new(path), is_write }, ..call("edit", Risk::Caution) }
}

fn smart(subject: &Subject, rules: &str) -> Verdict {
    judge(subject, &Rules::parse(rules).unwrap().with_home(Some(Path::new("/home/anna"))), &AT_SMART)
}

#[test]
fn a_rule_about_exact_arguments_allows_that_call_and_lifts_no_other_no() {
    let rules = |more: &str| {
        let rule = "[[rule]]\ntool = \"bash\"\narguments = { command = \"gh pr list\", network = true }\ndecision = \"allow\"\n";
        Rules::parse(&format!("{rule}{more}")).unwrap()
    };
    let exact = r#"{"network":true,"command":"gh pr list"}"#;
    let judged = |text, arguments, more: &str, circumstances: &Circumstances<'_>| {
        judge(&Subject { arguments, ..given(text, NETWORK) }, &rules(more), circumstances).decision
    };
    let smart = |text, arguments, more: &str| judged(text, arguments, more, &AT_SMART);
    assert_eq!(smart("gh pr list", exact, ""), Decision::Allow);
    for other in [
        r#"{"command":"gh pr list"}"#,
        r#"{"command":"gh pr list ","network":true}"#,
        r#"{"command":"gh pr list","network":true,"writes":true}"#,
        r#"{"command":"gh pr list","network":1}"#,
        "",
    ] {
        assert_eq!(smart("gh pr list", other, ""), Decision::Ask, "{other}");
    }
    let ruled = |decision: &str| format!("[[rule]]\ncommand = \"gh\"\ndecision = \"{decision}\"\nmatch = [\"gh x\"]\n");
    assert_eq!(smart("gh pr list", exact, &ruled("ask")), Decision::Ask);
    assert_eq!(smart("gh pr list", exact, &ruled("deny")), Decision::Deny);
    let tainted = Circumstances { taint: Some("a page"), ..AT_SMART };
    assert_eq!(judged("gh pr list", exact, "", &tainted), Decision::Ask);
    let bare = Circumstances { is_sandboxed: false, ..AT_SMART };
    assert_eq!(judged("gh pr list", exact, "", &bare), Decision::Ask);
    // The command's own text counts, even if a rule allows its arguments.
    assert_eq!(smart("reboot", exact, ""), Decision::Ask);
    let tool =
        |arguments| judge(&Subject { arguments, ..call("bash", Risk::Dangerous) }, &rules(""), &AT_SMART).decision;
    assert_eq!([exact, "{}"].map(tool), [Decision::Allow, Decision::Ask]);
}

#[test]
fn a_rule_about_exact_arguments_lets_no_command_write_where_no_copy_covers_it() {
    let rules =
        "[[rule]]\ntool = \"bash\"\narguments = { command = \"touch x\", writes = true }\ndecision = \"allow\"\n";
    let subject = Subject { arguments: r#"{"command":"touch x","writes":true}"#, ..given("touch x", WRITES) };
    let asking = Circumstances { autonomy: Autonomy::AskAll, ..AT_SMART };
    for (uncovered, decision) in [(None, Decision::Allow), (Some("it is too much"), Decision::Ask)] {
        let verdict = judge(&subject, &Rules::parse(rules).unwrap(), &Circumstances { uncovered, ..asking });
        assert_eq!(verdict.decision, decision, "{verdict:?}");
    }
}

#[test]
fn a_rule_about_exact_arguments_allows_nothing_once_text_by_others_was_read() {
    let rules = "[[rule]]\ntool = \"bash\"\narguments = { command = \"ls\" }\ndecision = \"allow\"\n";
    let subject = Subject { arguments: r#"{"command":"ls"}"#, ..command("ls") };
    let asking = Circumstances { autonomy: Autonomy::AskAll, ..AT_SMART };
    for (taint, decision) in [(None, Decision::Allow), (Some("a page"), Decision::Ask)] {
        let verdict = judge(&subject, &Rules::parse(rules).unwrap(), &Circumstances { taint, ..asking });
        assert_eq!(verdict.decision, decision, "{verdict:?}");
    }
}

#[test]
fn a_rule_about_exact_arguments_names_its_tool_and_only_allows() {
    let wrong = |rule: &str| Rules::parse(&format!("[[rule]]\n{rule}")).is_err();
    assert!(!wrong("tool = \"x\"\narguments = {}\ndecision = \"allow\""));
    for rule in [
        "arguments = {}\ndecision = \"allow\"",
        "tool = \"mcp__*\"\narguments = {}\ndecision = \"allow\"",
        "tool = \"x\"\narguments = {}\ndecision = \"deny\"",
        "tool = \"x\"\narguments = []\ndecision = \"allow\"",
        "tool = \"x\"\narguments = { at = 2026-11-24 }\ndecision = \"allow\"",
        "tool = \"x\"\narguments = {}\npath = \"/a\"\ndecision = \"allow\"",
    ] {
        assert!(wrong(rule), "{rule}");
    }
}

/// A line of the corpus: literal, or a JSON string.
fn decoded(line: &str) -> String {
    let is_json = line.starts_with('"') && line.contains('\\') || matches!(line, "\"\"" | "\" \"");
    if is_json { serde_json::from_str(line).unwrap_or_else(|_| line.to_owned()) } else { line.to_owned() }
}

/// A harmful command, and its risk without a sandbox.
struct Harmful {
    risk: &'static str,
    /// Destroys more than files.
    is_beyond: bool,
    text: String,
}

fn hostile() -> impl Iterator<Item = Harmful> {
    include_str!("corpus/hostile.txt").lines().map(|line| {
        let (risk, text) = line.split_once(": ").unwrap();
        let is_beyond = risk == "beyond";
        Harmful { risk: if is_beyond { "destructive" } else { risk }, is_beyond, text: decoded(text) }
    })
}

#[test]
fn no_hostile_command_runs_without_a_question_where_it_can_lose_something() {
    assert!(hostile().count() >= 300, "{}", hostile().count());
    let mut wrong = Vec::new();
    let too_much = Some("it is too much");
    for Harmful { risk, is_beyond, text } in hostile() {
        for (access, uncovered) in [(WRITES, too_much), (NETWORK, None), (WRITES, None), (Access::default(), None)] {
            let is_contained = !access.network && uncovered.is_none();
            if is_contained && !is_beyond {
                continue;
            }
            let smart = Circumstances { uncovered, ..AT_SMART };
            let verdict = judge(&given(&text, access), &Rules::default(), &smart);
            let full = Circumstances { autonomy: Autonomy::Full, ..smart };
            let at_full = judge(&given(&text, access), &Rules::default(), &full);
            let holds_at_full = risk != "destructive" && access == NETWORK || at_full.decision == Decision::Ask;
            if verdict.decision != Decision::Ask || verdict.risk.name() != risk || !holds_at_full {
                wrong.push(format!("{risk}: {text:?}\n    {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_command_asks_that_can_destroy_nothing_but_the_scratch_and_what_is_copied() {
    for Harmful { text, .. } in hostile().filter(|harmful| !harmful.is_beyond) {
        for (access, risk) in [(Access::default(), Risk::Safe), (WRITES, Risk::Caution)] {
            let decided = LEVELS.map(|autonomy| {
                let verdict = judge(&given(&text, access), &Rules::default(), &Circumstances { autonomy, ..AT_SMART });
                assert_eq!(verdict.risk, risk, "{text:?}");
                verdict.decision
            });
            assert_eq!(decided, [Decision::Ask, Decision::Allow, Decision::Allow], "{text:?}");
        }
    }
}

#[test]
fn a_harmful_command_keeps_its_risk_behind_a_harmless_one() {
    let uncovered = Circumstances { uncovered: Some("it is too much"), ..AT_SMART };
    for Harmful { risk, text, .. } in hostile() {
        // Alone these are empty, or the start of a statement that continues on the next line.
        if text.trim().is_empty() || text.ends_with(['&', '|']) {
            continue;
        }
        for behind in
            [format!("ls && {text}"), format!("git status; {text}"), format!("cat a | {text}"), format!("{text}\nls")]
        {
            let verdict = judge(&given(&behind, WRITES), &Rules::default(), &uncovered);
            assert_eq!(verdict.decision, Decision::Ask, "{behind:?} {verdict:?}");
            assert!(risk != "destructive" || verdict.risk == Risk::Destructive, "{behind:?} {verdict:?}");
        }
    }
}

#[test]
fn each_risk_asks_at_the_levels_of_the_table() {
    let table = [
        (Risk::Safe, [true, false, false]),
        (Risk::Caution, [true, false, false]),
        (Risk::Dangerous, [true, true, false]),
        (Risk::Destructive, [true, true, true]),
    ];
    for (risk, asks) in table {
        let decided = LEVELS.map(|autonomy| {
            judge(&call("x", risk), &Rules::default(), &Circumstances { autonomy, ..AT_SMART }).decision
                == Decision::Ask
        });
        assert_eq!(decided, asks, "{risk:?}");
    }
}

#[test]
fn what_never_asks_can_be_denied_all_the_same() {
    let free = Subject { is_free: true, ..call("reply", Risk::Safe) };
    let denied = "[[rule]]\ntool = \"reply\"\ndecision = \"deny\"\nmatch = [\"reply\"]\n";
    assert_eq!(smart(&free, denied).decision, Decision::Deny);
    assert_eq!(smart(&Subject { tool: "note", ..free }, denied).decision, Decision::Allow);
}

#[test]
fn planning_answering_and_reading_memory_never_ask() {
    let asking = Circumstances {
        autonomy: Autonomy::AskAll,
        taint: Some("a web page"),
        is_sandboxed: false,
        uncovered: None,
        tainted_write: None,
    };
    let free = Subject { is_free: true, ..call("reply", Risk::Safe) };
    let memory = Subject { effect: Effect::Read, ..call("memory_read", Risk::Safe) };
    let refused = Rules::from_problems(&[RulesProblem { line: 3, what: "it is wrong".to_owned() }]);
    assert_eq!(judge(&free, &refused, &asking).decision, Decision::Allow);
    assert_eq!(judge(&memory, &Rules::default(), &asking).decision, Decision::Allow);
    // The model's own notes outlive the cycle; they ask only after untrusted text.
    let note = Subject { reach: Reach::Persists, ..free };
    assert_eq!(judge(&note, &refused, &asking).decision, Decision::Ask);
    assert_eq!(judge(&note, &refused, &Circumstances { taint: None, ..asking }).decision, Decision::Allow);
    // A file of the machine isn't memory.
    let file = Subject { effect: Effect::Read, ..path("notes.md", false) };
    assert_eq!(judge(&file, &Rules::default(), &asking).decision, Decision::Ask);
}

#[test]
fn what_steers_asks_whatever_allows_it() {
    let rules = Rules::parse("[[rule]]\ntool = \"*\"\ndecision = \"allow\"\nmatch = [\"x\"]").unwrap();
    let full = Circumstances { autonomy: Autonomy::Full, ..AT_SMART };
    for is_free in [true, false] {
        let steers = Subject { is_free, reach: Reach::Steers, ..call("skill_write", Risk::Safe) };
        assert_eq!(judge(&steers, &rules, &full).decision, Decision::Ask);
    }
}

#[test]
fn after_untrusted_bytes_what_leaves_or_persists_asks() {
    let tainted = Circumstances { taint: Some("https://example.com"), autonomy: Autonomy::Full, ..AT_SMART };
    for (reach, decision) in
        [(Reach::Within, Decision::Allow), (Reach::Leaves, Decision::Ask), (Reach::Persists, Decision::Ask)]
    {
        let verdict = judge(&Subject { reach, ..call("x", Risk::Caution) }, &Rules::default(), &tainted);
        assert_eq!(verdict.decision, decision, "{reach:?}");
        assert_eq!(verdict.reasons.concat().contains("example.com"), decision == Decision::Ask);
    }
    // A copy doesn't change that either: the effect lasts.
    for (access, decision) in [(Access::default(), Decision::Allow), (NETWORK, Decision::Ask), (WRITES, Decision::Ask)]
    {
        assert_eq!(judge(&given("touch a", access), &Rules::default(), &tainted).decision, decision, "{access:?}");
    }
}

#[test]
fn without_a_sandbox_every_command_asks_and_says_so() {
    let bare = Circumstances { autonomy: Autonomy::Full, is_sandboxed: false, ..AT_SMART };
    let verdict = judge(&command("ls"), &Rules::default(), &bare);
    assert_eq!(verdict.decision, Decision::Ask);
    assert!(verdict.reasons.concat().contains("no sandbox"), "{verdict:?}");
}

const ALLOW_CARGO: &str =
    "[[rule]]\ncommand = [\"cargo\", [\"test\", \"build\"]]\ndecision = \"allow\"\nmatch = [\"cargo test\"]";

#[test]
fn an_allowing_rule_lifts_the_question_whether_to_write_and_that_of_the_table() {
    let judged = |text: &str, access, rules: &str, circumstances: &Circumstances<'_>| {
        judge(&given(text, access), &Rules::parse(rules).unwrap(), circumstances).decision
    };
    let uncovered = Circumstances { uncovered: Some("it is too much"), ..AT_SMART };
    for (access, circumstances) in [(WRITES, uncovered), (NETWORK, AT_SMART)] {
        for allowed in ["cargo test --all", "cd work && cargo build"] {
            assert_eq!(judged(allowed, access, ALLOW_CARGO, &circumstances), Decision::Allow, "{allowed}");
        }
        for asks in [
            "cargo publish",
            "cargo test && curl x",
            "cargo test $(id)",
            "cargo test > out",
            "./cargo test",
            "A=b cargo test",
            "sh -c 'cargo test'",
        ] {
            assert_eq!(judged(asks, access, ALLOW_CARGO, &circumstances), Decision::Ask, "{asks}");
        }
    }
    let asking = Circumstances { autonomy: Autonomy::AskAll, ..AT_SMART };
    assert_eq!(judged("cargo test", Access::default(), ALLOW_CARGO, &asking), Decision::Allow);
    assert_eq!(judged("cargo test; ls", Access::default(), ALLOW_CARGO, &asking), Decision::Ask);
    let everything = "[[rule]]\ntool = \"*\"\ndecision = \"allow\"\nmatch = [\"bash\"]";
    assert_eq!(judged("cargo publish", WRITES, everything, &uncovered), Decision::Allow);
    for asks in ["rm -rf x", "echo $(id)", "git push --force"] {
        assert_eq!(judged(asks, WRITES, everything, &uncovered), Decision::Ask, "{asks}");
    }
    let bare = Circumstances { is_sandboxed: false, ..AT_SMART };
    assert_eq!(judged("cargo test", Access::default(), everything, &bare), Decision::Ask);
    let tainted = Circumstances { taint: Some("a page"), ..AT_SMART };
    for access in [WRITES, NETWORK] {
        assert_eq!(judged("cargo test", access, everything, &tainted), Decision::Ask);
    }
}

#[test]
fn a_rule_that_allows_is_void_where_untrusted_text_had_a_hand_in_what_it_may_run() {
    let at = |time: &str| DateTime::parse_from_rfc3339(time).unwrap().to_utc();
    let written = Some(at("2026-11-24T12:00:00Z"));
    let exact = "[[rule]]\ntool = \"bash\"\narguments = { command = \"make\" }\ndecision = \"allow\"\n";
    let own = "[[rule]]\ncommand = \"make\"\ndecision = \"allow\"\nmatch = [\"make\"]\n";
    let earlier = at("2026-11-24T11:00:00Z");
    let later = at("2026-11-24T13:00:00Z");
    for autonomy in LEVELS {
        for (rules, access) in [(exact, WRITES), (exact, NETWORK), (own, WRITES), (own, NETWORK)] {
            let subject = Subject { arguments: r#"{"command":"make"}"#, ..given("make", access) };
            let judged = |made: Option<DateTime<Utc>>, tainted_write| {
                let rules = Rules::parse(rules).unwrap().with_rule_times(|_| made);
                judge(&subject, &rules, &Circumstances { autonomy, tainted_write, ..AT_SMART })
            };
            for made in [None, Some(earlier), written] {
                let verdict = judged(made, written);
                assert_eq!(verdict.decision, Decision::Ask, "{rules} {made:?}");
                assert!(verdict.reasons.iter().any(|why| why.contains("You allowed this for good")), "{verdict:?}");
                assert_eq!(judged(made, None).decision, Decision::Allow, "{rules}");
            }
            assert_eq!(judged(Some(later), written).decision, Decision::Allow, "{rules}");
        }
    }
    // A command without access can do no harm.
    let rules = Rules::parse(own).unwrap();
    let nothing = judge(&command("make"), &rules, &Circumstances { tainted_write: written, ..AT_SMART });
    assert_eq!(nothing.decision, Decision::Allow);
    // The later of two rules for a command counts; of two commands each needs a rule of its own.
    let both = Rules::parse(&format!("{own}{exact}"))
        .unwrap()
        .with_rule_times(|line| Some(if line == 1 { earlier } else { later }));
    let circumstances = Circumstances { autonomy: Autonomy::AskAll, tainted_write: written, ..AT_SMART };
    let subject = Subject { arguments: r#"{"command":"make"}"#, ..given("make", WRITES) };
    assert_eq!(judge(&subject, &both, &circumstances).decision, Decision::Allow);
    let two = format!("{own}{}", own.replace("make", "ls"));
    let two = Rules::parse(&two).unwrap().with_rule_times(|line| Some(if line == 1 { earlier } else { later }));
    assert_eq!(judge(&given("ls", WRITES), &two, &circumstances).decision, Decision::Allow);
    assert_eq!(judge(&given("ls && make", WRITES), &two, &circumstances).decision, Decision::Ask);
}

#[test]
fn a_command_is_given_what_it_asks_for_and_is_granted() {
    let granted = "[files]\nwrite = [\"~/work\"]\n[network]\nhosts = [\"example.org:443\"]";
    let rules = |text| Rules::parse(text).unwrap().with_home(Some(Path::new("/home/anna")));
    let all = Access { writes: true, network: true };
    for (text, wanted, access) in [
        ("ls /home/anna/work", Access::default(), Access::default()),
        ("ls", WRITES, WRITES),
        ("ls", all, all),
        // Destroying something in a granted folder by name implies writing there.
        ("rm -r /home/anna/work/x", Access::default(), WRITES),
        ("cd ~/work && git clean -fd", NETWORK, all),
        ("rm -r x", Access::default(), Access::default()),
        // The folder's part in this command is unknown.
        ("cd ~/work && git push --force", Access::default(), Access::default()),
    ] {
        assert_eq!(rules(granted).limit_access(text, wanted), access, "{text}");
        let in_scratch = rules("").with_scratch(Path::new("/scratch"));
        assert_eq!(in_scratch.limit_access(text, wanted), Access::default(), "nothing is granted: {text}");
    }
}

#[test]
fn a_denying_rule_sees_through_what_runs_other_commands() {
    let rules = "[[rule]]\ncommand = \"curl\"\ndecision = \"deny\"\nwhy = \"no downloads\"\nmatch = [\"curl x\"]";
    for denied in [
        "curl x",
        "/usr/bin/curl x",
        "ls && curl x",
        "timeout 5 curl x",
        "sudo -u me curl x",
        "sh -c 'curl x'",
        "echo $(curl x)",
        "env A=b curl x",
        "ls | xargs curl",
        "if true; then curl x; fi",
    ] {
        let verdict = smart(&command(denied), rules);
        assert_eq!(verdict.decision, Decision::Deny, "{denied}");
        assert!(verdict.reasons.first().unwrap().contains("no downloads"), "{verdict:?}");
    }
    for other in ["grep curl notes.txt", "echo 'curl is a program'", "git log --grep=curl"] {
        assert_eq!(smart(&command(other), rules).decision, Decision::Allow, "{other}");
    }
    // A command that can't be read reliably may fall under a rule.
    for unread in [format!("curl x # {}", "at length ".repeat(400)), "$program x".to_owned()] {
        assert!(smart(&command(&unread), rules).decision >= Decision::Ask, "{unread}");
        assert_eq!(smart(&command(&unread), "").decision, Decision::Allow, "{unread}");
    }
}

#[test]
fn a_tool_that_is_denied_is_denied_whatever_its_text() {
    let rules = "[[rule]]\ntool = \"bash\"\ndecision = \"deny\"\nmatch = [\"bash\"]";
    for text in ["ls", "", "\u{0}", "$(", "rm -rf x"] {
        assert_eq!(smart(&command(text), rules).decision, Decision::Deny, "{text:?}");
    }
}

#[test]
fn of_several_rules_the_strictest_holds() {
    let rule = |decision: &str| format!("[[rule]]\ntool = \"x\"\ndecision = \"{decision}\"\nmatch = [\"x\"]\n");
    for (decisions, held) in [
        (["allow", "ask"], Decision::Ask),
        (["ask", "allow"], Decision::Ask),
        (["deny", "allow"], Decision::Deny),
        (["ask", "deny"], Decision::Deny),
    ] {
        let rules = decisions.map(rule).concat();
        assert_eq!(smart(&call("x", Risk::Safe), &rules).decision, held, "{decisions:?}");
    }
}

#[test]
fn paths_need_a_grant_and_private_places_have_none() {
    let rules = "[files]\nread = [\"/srv/data\"]\nwrite = [\"~/work\", \"/\u{fc}ber\"]";
    for (target, is_write, decision) in [
        ("notes.md", true, Decision::Allow),
        ("a/b.md", false, Decision::Allow),
        ("../b.md", false, Decision::Ask),
        ("/srv/data/x", false, Decision::Allow),
        ("/srv/data/x", true, Decision::Ask),
        ("/srv/database", false, Decision::Ask),
        ("/srv/data/../x", false, Decision::Ask),
        ("/home/anna/work/x", true, Decision::Allow),
        ("/home/anna/x", false, Decision::Ask),
        ("/home/anna/work/.git/config", true, Decision::Deny),
        ("/home/anna/work/.GIT/hooks/x", true, Decision::Deny),
        ("/home/anna/.ssh/id_rsa", false, Decision::Deny),
        (".env", false, Decision::Deny),
        ("policy.toml", true, Decision::Deny),
        ("messages.db-wal", false, Decision::Deny),
        ("", false, Decision::Deny),
        ("a\nb", false, Decision::Deny),
    ] {
        assert_eq!(smart(&path(target, is_write), rules).decision, decision, "{target:?} {is_write}");
    }
}

#[test]
fn a_rule_about_a_path_or_a_host_holds_for_it() {
    let rules = "[[rule]]\npath = \"~/work/secret/**\"\ndecision = \"deny\"\nmatch = [\"~/work/secret/a\"]\n\
        [[rule]]\nhost = \"*.example.com\"\ndecision = \"deny\"\nmatch = [\"https://a.example.com/x\"]\n\
        [files]\nread = [\"~/work\"]";
    assert_eq!(smart(&path("/home/anna/work/secret/a/b", false), rules).decision, Decision::Deny);
    assert_eq!(smart(&path("/home/anna/work/a", false), rules).decision, Decision::Allow);
    let url = |url| Subject { what: What::Url(url), reach: Reach::Leaves, ..call("web_fetch", Risk::Caution) };
    for (address, decision) in [
        ("https://www.example.com/", Decision::Deny),
        ("https://WWW.EXAMPLE.COM./", Decision::Deny),
        ("https://example.org/", Decision::Allow),
        ("https://example.org/?https://www.example.com", Decision::Allow),
        ("https://me:pw@example.org/", Decision::Ask),
        ("file:///etc/passwd", Decision::Ask),
        ("not an address", Decision::Ask),
    ] {
        assert_eq!(smart(&url(address), rules).decision, decision, "{address}");
    }
}

#[test]
fn a_refused_file_makes_everything_ask_and_says_where_it_is_wrong() {
    let problems = Rules::parse("[shell]\ntimeout_s = 0").unwrap_err();
    let verdict = judge(&command("ls"), &Rules::from_problems(&problems), &AT_SMART);
    assert_eq!(verdict.decision, Decision::Ask);
    assert!(verdict.reasons.concat().contains("line 2"), "{verdict:?}");
}

#[test]
fn every_verdict_has_a_reason() {
    for autonomy in LEVELS {
        for subject in [command("ls"), command("rm x"), command(""), path("a", true), call("x", Risk::Caution)] {
            let verdict = judge(&subject, &Rules::default(), &Circumstances { autonomy, ..AT_SMART });
            assert!(verdict.reasons.iter().all(|reason| !reason.is_empty()) && !verdict.reasons.is_empty());
        }
    }
}
