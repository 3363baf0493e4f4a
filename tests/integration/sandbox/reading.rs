//! Reading what is out of reach: by every name, and by every way around a name.

use super::{
    attempts::{Attempt, as_root, attempt},
    world::{KEYS, OURS, World},
};

/// Ways to read the file T, whose directory is D and name N. A file that is moved goes back to where it was.
const WAYS: [(&str, &str); 17] = [
    ("a symbolic link of one's own", "ln -s \"$T\" ./link && grep -q SECRET ./link; R=$?; rm -f ./link; exit $R"),
    ("a link to its directory", "ln -s \"$D\" ./dir && grep -q SECRET \"./dir/$N\"; R=$?; rm -f ./dir; exit $R"),
    ("the directory entered first", "cd \"$D\" && grep -q SECRET \"./$N\""),
    (
        "a relative path",
        "grep -q SECRET \"$(realpath --relative-to=. \"$D\")/$N\" 2>/dev/null || grep -q SECRET \"../../../../../../../../../..$T\"",
    ),
    ("the root of one's own process", "grep -q SECRET \"/proc/self/root$T\""),
    (
        "the working directory of one's own process",
        "grep -q SECRET \"/proc/self/cwd/../..${T#$B}\" || (cd / && grep -q SECRET \"/proc/self/cwd$T\")",
    ),
    ("the root of any process", "for r in /proc/[0-9]*/root; do grep -qs SECRET \"$r$T\" && exit 0; done; exit 1"),
    ("a hard link", "ln \"$T\" ./hard && grep -q SECRET ./hard; R=$?; rm -f ./hard; exit $R"),
    (
        "a hard link beside it",
        "ln \"$T\" \"$B/granted/hard\" && grep -q SECRET \"$B/granted/hard\"; R=$?; rm -f \"$B/granted/hard\"; exit $R",
    ),
    ("moving it here", "mv \"$T\" ./moved && { grep -q SECRET ./moved; R=$?; mv ./moved \"$T\"; exit $R; }"),
    (
        "renaming its directory",
        "mv \"$D\" \"$D.away\" && { grep -q SECRET \"$D.away/$N\"; R=$?; mv \"$D.away\" \"$D\"; exit $R; }",
    ),
    ("copying its directory", "cp -r \"$D\" ./copy; grep -rqs SECRET ./copy; R=$?; rm -rf ./copy; exit $R"),
    ("an archive of its directory", "tar -cf - -C \"$D\" . 2>/dev/null | grep -qa SECRET"),
    ("a search from above", "find \"$B\" -name \"$N\" -exec grep -qs SECRET {} \\; -print 2>/dev/null | grep -q ."),
    ("a pattern for its name", "cat \"$D\"/* \"$D\"/.[!.]* 2>/dev/null | grep -qa SECRET"),
    ("an open descriptor", "exec 3<\"$T\" && grep -q SECRET <&3"),
    ("blocks", "dd if=\"$T\" bs=64 count=1 2>/dev/null | grep -qa SECRET"),
];
/// What the ways are tried on: one of each kind of place.
const TARGETS: [(&str, &str); 5] = [
    ("a key", "$H/.ssh/id_ed25519"),
    ("the brain's git", "$W/brain/.git/config"),
    ("the policy", "$W/policy.toml"),
    ("the database", "$W/messages.db"),
    ("a project's settings", "$B/granted/project/.env"),
];

pub(super) fn attempts(world: &World) -> Vec<Attempt> {
    let by_name =
        |root: &str, path: &str| attempt(format!("read {path} in {root}"), format!("grep -q SECRET \"{root}/{path}\""));
    let mut all: Vec<Attempt> = KEYS.iter().map(|key| by_name("$H", key)).collect();
    all.extend(OURS.iter().map(|ours| by_name("$W", ours)));
    all.extend(WAYS.iter().flat_map(|(way, script)| {
        TARGETS.iter().map(move |(what, path)| {
            let script = format!("T=\"{path}\"\nD=\"${{T%/*}}\"\nN=\"${{T##*/}}\"\n{script}");
            attempt(format!("{what} by {way}"), script)
        })
    }));
    all.extend(
        [
            ("read what a hidden link leads to, there", "grep -q SECRET \"$B/elsewhere/azure/token\""),
            ("read what a hidden link leads to, by it", "grep -q SECRET \"$H/.azure/token\""),
            ("read a key by a link that a person made", "grep -q SECRET \"$H/keys/id_ed25519\""),
            ("read a key by a link in a granted directory", "grep -q SECRET \"$B/granted/key\""),
            ("read a project's other settings", "grep -q SECRET \"$B/granted/project/.env.local\""),
            ("read a file that a setting names for a key", "grep -q SECRET \"$B/granted/named-key\""),
            ("read it by another name", "ln \"$B/granted/named-key\" ./key && grep -q SECRET ./key; R=$?; rm -f ./key; exit $R"),
            ("read the workspace by a link to it", "grep -q SECRET \"$B/outside/workspace/messages.db\""),
            ("list the keys", "ls \"$H/.ssh\" | grep -q id_ed25519"),
            ("list the workspace", "ls -a \"$W\" | grep -q messages.db"),
            ("list the brain's hooks", "ls \"$W/brain/.git/hooks\" | grep -q pre-commit"),
            ("ask for a key's size", "test -s \"$H/.ssh/id_ed25519\""),
            ("ask git about the brain", "git -c safe.directory='*' --git-dir=\"$W/brain/.git\" config --file \"$W/brain/.git/config\" --list 2>&1 | grep -q 'bad config'"),
            ("map it into memory", "cmp -n 6 \"$H/.netrc\" \"$W/policy.toml\""),
            ("a key's handle", "\"$P\" handle \"$H/.ssh/id_ed25519\""),
            ("a key opened as a path", "\"$P\" open \"$H/.ssh/id_ed25519\" 0x200000"),
        ]
        .map(|(name, script)| attempt(name, script)),
    );
    all.push(as_root("read the passwords' hashes", "grep -q root /etc/shadow"));
    all.push(as_root("read the old passwords' hashes", "cat /etc/shadow- /etc/shadow | grep -q root"));
    all.push(as_root("read kernel messages", "dd if=/dev/kmsg bs=8192 count=1 iflag=nonblock 2>/dev/null | grep -q ."));
    all.push(attempt("files of others in /tmp", format!("test -e {}", world.in_tmp().display())));
    all
}
