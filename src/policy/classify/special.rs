//! Programs whose arguments aren't options and files: a few fixed forms of each do no harm.

use super::{
    Rated, is_number,
    options::{Operands, Options},
};

/// Programs that say their version and do nothing else when asked for it.
const VERSIONED: [&str; 30] = [
    "python", "python3", "pip", "pip3", "node", "npm", "ruby", "perl", "php", "java", "javac", "rustc", "cargo",
    "rustup", "go", "gcc", "g++", "clang", "cc", "make", "cmake", "bash", "docker", "curl", "wget", "ssh", "tar",
    "gzip", "sqlite3", "vim",
];

/// The risk of a program with forms of its own; `None` if it has none, and for `--help` and the like of other tables.
pub(super) fn rate(name: &str, arguments: &[&str]) -> Option<Rated> {
    let is_harmless = match (name, arguments) {
        (_, ["--version"]) if VERSIONED.contains(&name) => true,
        ("python" | "python3" | "php", ["-V"]) | ("node" | "ruby" | "perl", ["-v"]) => true,
        ("go", ["version"]) | ("java", ["-version"]) | ("ssh", ["-V"]) => true,
        ("echo", _) => true,
        ("printf", [format, values @ ..]) => printf(format, values),
        ("test", words) => test(words),
        // `command` with anything else is looked through.
        ("command", ["-v" | "-V", names @ ..]) => names.iter().all(|name| !name.starts_with('-')),
        ("history", []) => true,
        ("history", [lines]) => lines.bytes().all(|byte| byte.is_ascii_digit()),
        ("date", ["-I" | "-Is" | "-Iseconds" | "-Iminutes" | "-Ihours"]) => true,
        ("date", _) => return None,
        // All of them would show the keys among them.
        ("printenv", [name]) => {
            matches!(*name, "PATH" | "HOME" | "LANG" | "SHELL" | "USER" | "PWD" | "TZ" | "TERM" | "TMPDIR")
        }
        ("env" | "printenv", _) => false,
        ("crontab", ["-l"]) | ("mount" | "ifconfig" | "ulimit", []) | ("ulimit", ["-a"]) => true,
        ("tar", [form, rest @ ..]) => lists_archive(form, rest),
        ("unzip", ["-l" | "-v" | "-t" | "-Z1", rest @ ..]) | ("zipinfo", rest) | ("gzip", ["-l", rest @ ..]) => {
            rest.iter().all(|word| !word.starts_with('-'))
        }
        ("ip", words) => ip(words),
        ("systemctl", [verb, rest @ ..]) => systemctl(verb, rest),
        _ => return None,
    };
    let refused = || Rated::dangerous(format!("I don't know this form of `{name}` to be harmless."));
    Some(if is_harmless { Rated::safe() } else { refused() })
}

/// `printf -v` and `%n` set a variable, and a variable's subscript is evaluated.
fn printf(format: &str, values: &[&str]) -> bool {
    let mut conversions =
        format.split('%').skip(1).map(|rest| rest.trim_start_matches(|c: char| " #+-.*'0123456789hjlLqtz".contains(c)));
    !format.starts_with('-')
        && !conversions.any(|conversion| conversion.starts_with('n'))
        && !values.iter().any(|value| value.contains('[') && value.contains(['$', '`']))
}

/// `test` evaluates subscripts of variables (`-v`, `-R`): only its plain operators are known.
fn test(words: &[&str]) -> bool {
    const OPERATORS: [&str; 36] = [
        "-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-n", "-z", "-S", "-p", "-b", "-c", "-G", "-O", "-u",
        "-g", "-k", "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o", "!",
        "-N",
    ];
    words.iter().all(|word| OPERATORS.contains(word) || !word.starts_with('-') && !word.contains(['[', '$', '`']))
}

/// Listing a local archive. A name with a colon is a host's to tar.
fn lists_archive(form: &str, rest: &[&str]) -> bool {
    let letters = form.strip_prefix('-').unwrap_or(form);
    let lists = letters.contains('t') && letters.ends_with('f') && letters.chars().all(|c| "tvzjJf".contains(c));
    lists && !rest.is_empty() && rest.iter().all(|word| !word.starts_with('-') && !word.contains(':'))
}

fn ip(words: &[&str]) -> bool {
    let words = match words {
        ["-4" | "-6" | "-br" | "-brief" | "-j" | "-s" | "-c", rest @ ..] => rest,
        words => words,
    };
    let is_object =
        |word: &str| matches!(word, "a" | "addr" | "address" | "r" | "route" | "link" | "l" | "neigh" | "n" | "rule");
    match words {
        [object] | [object, "show" | "list"] => is_object(object),
        [object, "show", device] => is_object(object) && device.chars().all(|c| c.is_ascii_alphanumeric()),
        ["route", "get", address] => address.chars().all(|c| c.is_ascii_hexdigit() || ".:".contains(c)),
        _ => false,
    }
}

fn systemctl(verb: &str, rest: &[&str]) -> bool {
    const VERBS: [&str; 11] = [
        "status",
        "is-active",
        "is-enabled",
        "is-failed",
        "is-system-running",
        "list-units",
        "list-unit-files",
        "list-timers",
        "list-sockets",
        "show",
        "cat",
    ];
    let options = Options {
        flags: "al",
        valued: "nt",
        longs: "no-pager all full lines= type= state= user failed no-legend plain property= value",
        operands: Operands::Names,
    };
    // `-n` and a number are all that may come before the verb's own words.
    VERBS.contains(&verb) && (options.read(rest).is_ok() || rest.iter().all(|word| is_number(word)))
}
