//! What an attempt is, and what is done with a table of them.

use super::world::World;

/// An act as a shell script, which exits with 0 if and only if it succeeded.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) name: String,
    pub(super) script: String,
    /// Only root can do it outside, so that only root's run can show that it is the sandbox that refuses.
    pub(super) needs_root: bool,
}

pub(super) fn attempt(name: impl Into<String>, script: impl Into<String>) -> Attempt {
    Attempt { name: name.into(), script: script.into(), needs_root: false }
}

pub(super) fn as_root(name: impl Into<String>, script: impl Into<String>) -> Attempt {
    Attempt { needs_root: true, ..attempt(name, script) }
}

/// Each succeeds outside and fails inside. All failures of a table are told at once.
#[track_caller]
pub(super) fn all_fail(world: &World, attempts: &[Attempt]) {
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for Attempt { name, script, needs_root } in attempts {
        if *needs_root && !world.is_root {
            println!("not tried, since it needs root: {name}");
            continue;
        }
        tried += 1;
        let outside = world.outside(script);
        if outside.code != 0 {
            wrong.push(format!("CONTROL {name}: fails outside: {outside:?}"));
            continue;
        }
        let inside = world.inside(script);
        if inside.code == 0 {
            wrong.push(format!("ESCAPE {name}: succeeds inside: {inside:?}"));
        } else if inside.notices().contains("sandbox:") || inside.notices().contains("bwrap:") || inside.code == 127 {
            wrong.push(format!("NOT RUN {name}: {inside:?}"));
        }
    }
    println!("{tried} attempts");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    world.is_untouched();
}
