//! `sed`: printing and deleting lines and replacing words in what passes through does no harm. Its other commands read, write
//! and run.

use super::Rated;

pub(super) fn rate(arguments: &[&str]) -> Rated {
    let mut words = arguments.iter().copied();
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-n" | "-E" | "-r" | "--quiet" | "--silent" | "--regexp-extended" | "--posix" => {}
            "-e" => scripts.extend(words.next()),
            "-nE" | "-En" | "-nr" | "-rn" => {}
            "-ne" => scripts.extend(words.next()),
            "--version" | "--help" => return Rated::safe(),
            word if word.starts_with('-') => {
                return Rated::dangerous(format!("`{word}` of `sed` isn't known to only read."));
            }
            word => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    let is_harmless =
        !scripts.is_empty() && scripts.iter().all(|script| script.split(';').all(|part| is_known(part.trim())));
    if is_harmless { Rated::safe() } else { Rated::dangerous("I can't tell that this `sed` script only reads.") }
}

/// `s/…/…/gI`, `5p`, `2,7d`, `$p`, `/words/p`: nothing else.
fn is_known(command: &str) -> bool {
    replaces(command) || {
        let Some(address) = command.strip_suffix(['p', 'd', 'q', '=']) else { return false };
        address.split(',').count() <= 2 && address.split(',').all(is_address)
    }
}

fn is_address(address: &str) -> bool {
    let is_line = |address: &str| address.bytes().all(|byte| byte.is_ascii_digit());
    match address.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(pattern) => is_pattern(pattern),
        None => address == "$" || is_line(address),
    }
}

fn replaces(command: &str) -> bool {
    let Some((delimiter, rest)) = command.strip_prefix('s').and_then(|rest| {
        let delimiter = rest.chars().next().filter(|c| "/|,#:@".contains(*c))?;
        Some((delimiter, rest.get(1..)?))
    }) else {
        return false;
    };
    match rest.split(delimiter).collect::<Vec<_>>().as_slice() {
        [pattern, replacement, flags] => {
            let is_flag = |c: char| "gIp".contains(c) || c.is_ascii_digit();
            is_pattern(pattern) && is_pattern(replacement) && flags.chars().all(is_flag)
        }
        _ => false,
    }
}

/// No delimiter within, and no escape but of what is a sign: `\n`, `\/` and their like could end a part elsewhere than here.
fn is_pattern(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let is_known = match c {
            '/' => false,
            '\\' => chars.next().is_some_and(|c| ".*[]()+?$^|{}123456789swdb-".contains(c)),
            // A bracket can hold a delimiter or a bracket, to one sed and not to another.
            '[' => chars.by_ref().take_while(|c| *c != ']').all(|c| c.is_ascii_alphanumeric() || " -_.,:^".contains(c)),
            _ => true,
        };
        if !is_known {
            return false;
        }
    }
    true
}
