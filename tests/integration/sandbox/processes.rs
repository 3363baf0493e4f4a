//! Other processes, and the variables of ours.

use super::{
    attempts::{Attempt, as_root, attempt},
    world::World,
};

pub(super) fn attempts(world: &World) -> Vec<Attempt> {
    let list = [
        ("see it", "test -d /proc/$V && grep -q sleep /proc/$V/comm"),
        ("see it in a list", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -qa 'sleep 100[0]'"),
        ("ask whether it lives", "kill -0 $V && grep -q sleep /proc/$V/comm"),
        ("stop it and let it go on", "kill -STOP $V && kill -CONT $V"),
        ("ask by the system call", "\"$P\" kill $V 0 && grep -q sleep /proc/$V/comm"),
        ("hold it by a descriptor", "\"$P\" pidfd $V && grep -q sleep /proc/$V/comm"),
        ("trace it", "\"$P\" attach $V"),
        ("read its memory", "\"$P\" peek $V"),
        ("read its variables", "tr '\\0' '\\n' < /proc/$V/environ | grep -q SLEEPERS_TOKEN"),
        ("see its program", "readlink /proc/$V/exe | grep -q sleep"),
        ("see its files", "ls -l /proc/$V/fd | grep -q 0"),
        ("enter its directory", "cd /proc/$V/cwd"),
        ("make it wait", "renice -n 5 -p $V"),
        ("bind it to a processor", "taskset -p 1 $V || taskset -p 3 $V"),
        ("count more than a handful", "[ $(ls -d /proc/[0-9]* | wc -l) -gt 12 ]"),
        ("find another's token", "grep -qas SLEEPERS_TOKEN /proc/[0-9]*/environ"),
        ("its limits", "prlimit --pid $V --core"),
        ("trace oneself", "\"$P\" traced"),
        ("read one's own memory as another's", "\"$P\" peek"),
        ("take a descriptor of a process", "\"$P\" getfd"),
        ("compare processes", "\"$P\" kcmp"),
        ("variables of ours", "env | grep -q ^CARGO_"),
        ("a variable of ours by name", "test -n \"$CARGO_PKG_NAME\""),
        (
            "variables of ours in the first process",
            "grep -qas CARGO_PKG_NAME /proc/1/environ || grep -qas CARGO_PKG_NAME /proc/$PPID/environ",
        ),
        ("variables of ours in any process", "grep -qas CARGO_PKG_NAME /proc/[0-9]*/environ"),
        ("the person's home by its variable", "test \"$HOME\" != \"$PWD\""),
        ("new rights by a program that gives them", "! grep -q 'NoNewPrivs:.1' /proc/self/status"),
        ("leave a core file", "[ \"$(ulimit -H -c)\" != 0 ]"),
    ];
    let victim = world.sleeper();
    let of_victim = |script: &str| format!("V={victim}\n{script}");
    let mut all: Vec<Attempt> =
        list.map(|(name, script)| attempt(format!("another's process: {name}"), of_victim(script))).to_vec();
    all.push(as_root("another's process: become another user", "\"$P\" setuid"));
    all.push(as_root(
        "another's process: give a file away",
        "touch ./mine && chown 12345 ./mine; R=$?; rm -f ./mine; exit $R",
    ));
    all.push(as_root("another's process: become another user by su", "su -s /bin/sh nobody -c true"));
    all
}
