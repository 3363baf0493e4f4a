//! Sandboxes that were built otherwise than they should be: for each, an attempt is named that notices. Most of what is kept out
//! is kept out twice, so that some variants have to break both.

use super::{network::Listeners, world::World};

/// Drops a word and the words after it that belong to it.
fn without(words: &[String], word: &str, belonging: usize) -> Vec<String> {
    let at = words.iter().position(|found| found == word).unwrap_or_else(|| panic!("{word} isn't there"));
    words.iter().take(at).chain(words.iter().skip(at + 1 + belonging)).cloned().collect()
}

/// Without our launcher: bubblewrap alone.
fn alone(words: &[String]) -> Vec<String> {
    let launcher = words.iter().position(|word| word == "confined").unwrap();
    let (head, tail) = (&words[..launcher - 1], &words[launcher + 4..]);
    head.iter().chain(tail).cloned().collect()
}

/// Without bubblewrap: our launcher alone, with its rules.
fn launcher(words: &[String]) -> Vec<String> {
    let at = words.iter().position(|word| word == "confined").unwrap();
    std::iter::once(env!("CARGO_BIN_EXE_wake").to_owned()).chain(words[at..].iter().cloned()).collect()
}

/// The arguments without what makes a path what it is: an option, values of it, and the path once or twice.
fn without_place(words: &[String], path: &str) -> Vec<String> {
    let end = words.iter().position(|word| word == "--").unwrap();
    let mut kept: Vec<String> = Vec::new();
    let (mut words, options) =
        (words.iter().cloned().enumerate().peekable(), ["--tmpfs", "--remount-ro", "--ro-bind", "--bind"]);
    while let Some((at, word)) = words.next() {
        let source = words.peek().map(|(_, next)| next.clone()).unwrap_or_default();
        let is_it = at < end && options.contains(&word.as_str()) && (source == path || source == "/dev/null");
        if !is_it {
            kept.push(word);
            continue;
        }
        let (_, first) = words.next().unwrap();
        if first == path && (word == "--tmpfs" || word == "--remount-ro") {
            // Its permissions, which stand before it, would be those of the next one.
            if kept.len() > 1 && kept[kept.len() - 2] == "--perms" {
                kept.truncate(kept.len() - 2);
            }
            continue;
        }
        let (_, second) = words.next().unwrap();
        if second != path {
            kept.extend([word, first, second]);
        }
    }
    kept
}

/// From the words that build a sandbox to those that build it otherwise.
type Breaking<'a> = dyn Fn(&[String]) -> Vec<String> + 'a;

struct Case<'a> {
    name: &'a str,
    script: String,
    breaking: Box<Breaking<'a>>,
}

fn case<'a>(name: &'a str, script: impl Into<String>, breaking: impl Fn(&[String]) -> Vec<String> + 'a) -> Case<'a> {
    Case { name, script: script.into(), breaking: Box::new(breaking) }
}

#[test]
fn a_sandbox_with_a_part_left_out_is_noticed() {
    let world = World::new();
    let listeners = Listeners::start(&world);
    let speaking = super::network::attempts(&world, &listeners);
    let at = |path: &str| world.base().join(path).canonicalize().unwrap().display().to_string();
    let (ssh, policy, env) = (at("home/.ssh"), at("workspace/policy.toml"), at("granted/project/.env"));
    let (workspace, brain) = (at("workspace"), at("workspace/brain"));
    let first = |what: &str| speaking.iter().find(|attempt| attempt.name.ends_with(what)).unwrap().script.clone();
    let cases = [
        case("the keys aren't hidden", "grep -q SECRET \"$H/.ssh/id_ed25519\"", |words| {
            alone(&without_place(words, &ssh))
        }),
        case(
            "the settings of a granted directory aren't hidden",
            "grep -q SECRET \"$B/granted/project/.env\"",
            |words| without_place(words, &env),
        ),
        case("the workspace isn't covered", "grep -q SECRET \"$W/messages.db\"", |words| {
            alone(&without_place(words, &workspace))
        }),
        case("the workspace and the policy are open", "grep -q SECRET \"$W/policy.toml\"", |words| {
            alone(&without_place(&without_place(words, &workspace), &policy))
        }),
        case("the brain is writable", "touch \"$W/brain/new\" && rm \"$W/brain/new\"", |words| {
            alone(words)
                .iter()
                .scan(None, |before: &mut Option<String>, word| {
                    let is_it = before.as_deref() == Some("--ro-bind") && *word == brain;
                    *before = Some(word.clone());
                    Some((is_it, word.clone()))
                })
                .fold(Vec::new(), |mut kept, (is_it, word)| {
                    if is_it && let Some(option) = kept.last_mut() {
                        *option = "--bind".to_owned();
                    }
                    kept.push(word);
                    kept
                })
        }),
        case("the root is writable", "touch \"$B/outside/new\" && rm \"$B/outside/new\"", |words| {
            let mut words = alone(words);
            let root = words.iter().position(|word| word == "--ro-bind").unwrap();
            words[root] = "--bind".to_owned();
            words
        }),
        case("/tmp is everybody's", first("a daemon in /tmp"), |words| alone(&without_place(words, "/tmp"))),
        case("the network is the machine's", first("TCP on loopback"), |words| without(words, "--unshare-net", 0)),
        case("abstract sockets are the machine's", first("an abstract socket"), |words| {
            alone(&without(words, "--unshare-net", 0))
        }),
        case("processes are seen", "[ $(ls -d /proc/[0-9]* | wc -l) -gt 12 ]", |words| {
            without(words, "--unshare-pid", 0)
        }),
        case("namespaces can be made", "unshare -U true", |words| alone(&without(words, "--disable-userns", 0))),
        case(
            "namespaces are refused by bubblewrap alone",
            "unshare -u true || \"$P\" clone 0 && ! grep -q 'Seccomp:.2' /proc/self/status",
            alone,
        ),
        case("keys by the kernel", "\"$P\" key", alone),
        case("io_uring", "\"$P\" io_uring", alone),
        case("letters typed into the terminal", "\"$P\" typing", alone),
        case("tracing", "\"$P\" traced", alone),
        case("daemons by their path", "cd \"$B/outside\" && \"$P\" unix s", alone),
        case("core files", "[ \"$(ulimit -H -c)\" != 0 ]", alone),
        case("others' files are read-only by the launcher alone", "\"$P\" utime \"$B/outside/file\"", launcher),
        case("the network by the launcher alone", first("TCP on loopback"), launcher),
        case("the machine's name", "[ \"$(uname -n)\" != sandbox ]", |words| {
            without(&without(words, "--hostname", 1), "--unshare-uts", 0)
        }),
    ];
    for Case { name, script, breaking } in &cases {
        let whole = world.inside(script);
        assert_ne!(whole.code, 0, "{name}: it succeeds in the whole one: {whole:?}");
        let broken = world.inside_a_broken_one(script, breaking);
        assert_eq!(broken.code, 0, "{name}: nobody notices: {broken:?}");
    }
}

/// Each half alone keeps the keys out and what isn't granted unwritten: that is what two are for.
#[test]
fn either_half_alone_keeps_what_matters_most() {
    let world = World::new();
    for script in [
        "grep -q SECRET \"$H/.ssh/id_ed25519\"",
        "grep -q SECRET \"$W/policy.toml\"",
        "grep -q SECRET \"$W/brain/.git/config\"",
        "printf '' >> \"$B/outside/file\"",
        "touch \"$W/brain/new\"",
        "touch \"$H/.config/x.desktop\"",
    ] {
        for (half, breaking) in [("bubblewrap", alone as fn(&[String]) -> Vec<String>), ("the launcher", launcher)] {
            let ran = world.inside_a_broken_one(script, breaking);
            ran.assert_never_tells("sandbox:");
            assert!(ran.code != 0, "{half} alone: {script}: {ran:?}");
        }
    }
}
