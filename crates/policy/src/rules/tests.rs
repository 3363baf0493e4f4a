use super::*;

fn problems(text: &str) -> Vec<(usize, String)> {
    Rules::parse(text).unwrap_err().into_iter().map(|problem| (problem.line, problem.what)).collect()
}

#[test]
fn the_example_is_a_policy() {
    let rules = Rules::parse(super::super::EXAMPLE).unwrap().with_home(Some(Path::new("/home/anna")));
    assert_eq!(rules.len(), 5);
    assert_eq!(rules.writable_folders(), [Path::new("/home/anna/work")]);
    assert_eq!(rules.readable_folders().len(), 2);
    assert_eq!(rules.hosts(), [Host { name: "api.github.com".to_owned(), port: 443 }]);
    assert_eq!(rules.shell_timeout(), Some(Duration::from_secs(120)));
    assert_eq!(
        rules.describe_rules().first().unwrap(),
        "line 11: allow command cargo check|build|test|clippy … (it builds my own projects)"
    );
}

#[test]
fn every_problem_is_told_at_once_with_its_line() {
    let text = "\
[[rule]]
command = [\"git\", \"push\"]
decision = \"alow\"
match = [\"git pull\"]

[[rule]]
tool = \"x\"
decision = \"ask\"
matches = [\"x\"]

[files]
read = [\"notes\", \"/a/../b\"]
wirte = []

[network]
hosts = [\"https://x\", \"*.example.com:443\", \"a:0\"]

[shell]
timeout_s = \"5\"

[limits]
";
    let lines: Vec<usize> = problems(text).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 6, 9, 12, 12, 13, 16, 16, 16, 19, 21]);
}

#[test]
fn what_isn_t_toml_is_told_with_its_line() {
    let found = problems("[shell]\ntimeout_s = \n");
    assert_eq!(found.first().unwrap().0, 2, "{found:?}");
}

#[test]
fn a_rule_s_own_examples_are_tried() {
    let rule = |rest: &str| format!("[[rule]]\n{rest}\n");
    for (text, line, said) in [
        (
            "command = \"git push\"\ndecision = \"deny\"\nmatch = [\"git pull\"]",
            4,
            "doesn't match its own example `git pull`",
        ),
        ("command = \"git\"\ndecision = \"deny\"\nmatch = [\"git x\"]\nnot_match = [\"git y\"]", 5, "matches `git y`"),
        ("command = \"ls\"\ndecision = \"allow\"\nmatch = [\"ls; rm x\"]", 4, "doesn't match"),
        ("command = \"ls\"\ndecision = \"allow\"\nmatch = [\"ls $(x)\"]", 4, "doesn't match"),
        ("path = \"~/a/*\"\ndecision = \"deny\"\nmatch = [\"~/a/b/c\"]", 4, "doesn't match"),
        ("host = \"*.x.org\"\ndecision = \"deny\"\nmatch = [\"https://x.org\"]", 4, "doesn't match"),
        ("tool = \"mcp_*\"\ndecision = \"deny\"\nmatch = [\"web\"]", 4, "doesn't match"),
        ("tool = \"x\"\ndecision = \"deny\"", 1, "needs `match`"),
        ("decision = \"deny\"\nmatch = [\"x\"]", 1, "needs a `tool`"),
        ("tool = \"x\"\nmatch = [\"x\"]", 1, "needs a `decision`"),
        ("path = \"/a\"\nhost = \"b\"\ndecision = \"deny\"\nmatch = [\"/a\"]", 1, "only one of these"),
        ("command = \"** x\"\ndecision = \"deny\"\nmatch = [\"x\"]", 2, "name a program"),
        ("tool = \"reply\"\ndecision = \"ask\"\nmatch = [\"reply\"]", 1, "`reply` never asks"),
        ("path = \"a/b\"\ndecision = \"deny\"\nmatch = [\"a/b\"]", 2, "absolute"),
    ] {
        let found = problems(&rule(text));
        assert!(found.iter().any(|(at, what)| *at == line && what.contains(said)), "{text}: {found:?}");
    }
}

#[test]
fn what_never_asks_can_be_denied_and_a_pattern_that_means_more_says_what_it_spares() {
    let rule =
        |tool: &str, decision: &str| format!("[[rule]]\ntool = {tool:?}\ndecision = {decision:?}\nmatch = [\"note\"]");
    assert!(Rules::parse(&rule("note", "deny")).is_ok());
    let said = Rules::parse(&rule("no*", "ask")).unwrap().describe_rules();
    assert_eq!(said, ["line 1: ask tool no*; note never ask, whatever it says"]);
    assert_eq!(Rules::parse(&rule("no*", "deny")).unwrap().describe_rules(), ["line 1: deny tool no*"]);
}

#[test]
fn hosts_are_exact_names_and_ports() {
    for (text, is_host) in [
        ("api.github.com:443", true),
        ("API.github.com:443", true),
        ("127.0.0.1:8080", true),
        ("[::1]:80", true),
        ("github.com", false),
        ("github.com:", false),
        ("github.com:99999", false),
        ("me@github.com:443", false),
        ("a b:1", false),
        ("*:443", false),
        ("-a.com:1", false),
        (":1", false),
    ] {
        let parsed = Rules::parse(&format!("[network]\nhosts = [{text:?}]"));
        assert_eq!(parsed.is_ok(), is_host, "{text}");
    }
}

#[test]
fn without_a_home_what_is_in_it_is_not_granted() {
    let rules = Rules::parse("[files]\nwrite = [\"~/work\"]").unwrap();
    assert!(rules.writable_folders().is_empty() && !rules.is_granted(Path::new("~/work/x"), true));
    assert!(rules.with_scratch(Path::new("/scratch")).is_granted(Path::new("/scratch/x"), true));
}

#[test]
fn what_forbids_a_path_forbids_whatever_a_disk_may_take_for_it_and_what_allows_is_exact() {
    let rule = |decision: &str| {
        let path = "~/Notes/\u{e4}rzte/**";
        let text = format!("[[rule]]\npath = {path:?}\ndecision = {decision:?}\nmatch = [\"~/Notes/\u{e4}rzte/a\"]");
        Rules::parse(&text).unwrap().with_home(Some(Path::new("/home/anna")))
    };
    let (deny, ask, allow) = (rule("deny"), rule("ask"), rule("allow"));
    for (below, is_same) in [
        ("Notes/\u{e4}rzte/diary.md", true),
        ("notes/\u{c4}RZTE/diary.md", false),
        ("Notes/a\u{308}rzte/diary.md", false),
        ("Notes/\u{e4}rz\u{200d}te/diary.md", false),
        ("Note\u{17f}/\u{e4}rzte/diary.md", false),
    ] {
        let path = Path::new("/home/anna").join(below);
        assert!(deny.is_denied("view_image", &path) && ask.keeps_back("view_image", &path), "{below}");
        assert_eq!(allow.decide("view_image", &RuleQuestion::Path(&path)).is_some(), is_same, "{below}");
    }
    assert!(!deny.is_denied("view_image", Path::new("/home/anna/Notes/arzte/diary.md")));
}

#[test]
fn a_rule_that_names_a_verb_as_an_argument_is_told_the_verbs_own_tool() {
    let rule = |tool: &str, arguments: &str| {
        format!("[[rule]]\ntool = \"{tool}\"\narguments = {arguments}\ndecision = \"allow\"\n")
    };
    let said = problems(&rule("tasks", "{ do = \"add\", title = \"Water\" }"));
    assert!(
        said.len() == 1 && said[0].1.contains("`tool = \"task_add\"`") && said[0].1.contains("would match no call"),
        "{said:?}"
    );
    let said = problems(&rule("tasks", "{ do = \"fly\" }"));
    assert!(said[0].1.contains("task_add, task_update"), "{said:?}");
    assert!(Rules::parse(&rule("task_add", "{ title = \"Water\" }")).is_ok());
}
