//! Writing where nothing may be written. Outside, each attempt leaves everything as it was.

use super::{
    attempts::{Attempt, as_root, attempt},
    world::{KEYS, OURS, World},
};

/// Ways to change the plain file F, each taken back.
const WAYS: [(&str, &str); 14] = [
    ("appending", "printf '' >> \"$F\""),
    ("truncating a copy over it", "cp -p \"$F\" ./kept && cp ./kept \"$F\"; R=$?; rm -f ./kept; exit $R"),
    ("removing it", "cp -p \"$F\" ./kept && rm -f \"$F\" && mv ./kept \"$F\""),
    ("renaming it", "mv \"$F\" \"$F.new\" && mv \"$F.new\" \"$F\""),
    ("another put in its place", "cp -p \"$F\" ./kept && mv -f ./kept \"$F\""),
    ("a link to it", "ln -s \"$F\" ./link && printf '' >> ./link; R=$?; rm -f ./link; exit $R"),
    ("its mode", "M=$(stat -c %a \"$F\") && chmod 600 \"$F\" && chmod $M \"$F\""),
    ("its times", "\"$P\" utime \"$F\""),
    ("its owner", "chown \"$(id -u)\" \"$F\""),
    ("editing in place", "sed -i 's/^$//' \"$F\""),
    ("its length", "truncate -s +0 \"$F\""),
    ("the root of one's own process", "printf '' >> \"/proc/self/root$F\""),
    ("a descriptor opened again", "exec 3<\"$F\" && printf '' >> /proc/self/fd/3"),
    ("a hard link", "ln \"$F\" ./hard && printf '' >> ./hard; R=$?; rm -f ./hard; exit $R"),
];
const TARGETS: [(&str, &str); 3] = [
    ("somebody's file", "$B/outside/file"),
    ("the standing orders", "$W/brain/claude.md"),
    ("the shell's start", "$H/.bashrc"),
];

pub(super) fn attempts(_: &World) -> Vec<Attempt> {
    let onto = |root: &str, path: &str| {
        attempt(
            format!("write to {path} in {root}"),
            format!("printf '' >> \"{root}/{path}\" && grep -q SECRET \"{root}/{path}\""),
        )
    };
    let mut all: Vec<Attempt> = KEYS.iter().step_by(3).map(|key| onto("$H", key)).collect();
    all.extend(OURS.iter().map(|ours| onto("$W", ours)));
    all.extend(WAYS.iter().flat_map(|(way, script)| {
        let of =
            move |(what, path): &(&str, &str)| attempt(format!("{what}: {way}"), format!("F=\"{path}\"\n{script}"));
        TARGETS.iter().map(of)
    }));
    let new = [
        ("the workspace", "$W/new"),
        ("the brain", "$W/brain/new"),
        ("the brain's hooks", "$W/brain/.git/hooks/post-commit"),
        ("the skills", "$W/brain/skill.md"),
        ("the logs", "$W/logs/new"),
        ("received files", "$W/files/new"),
        ("the home", "$H/new"),
        ("what starts with the desktop", "$H/.config/x.desktop"),
        ("keys that open the door", "$H/.ssh/authorized_keys"),
        ("others' files", "$B/outside/new"),
        ("a place up from the granted one", "$B/granted/../new"),
        ("hidden by a link", "$B/elsewhere/azure/new"),
    ];
    all.extend(new.map(|(what, path)| {
        attempt(format!("a new file in {what}"), format!("touch \"{path}\" && [ \"$(stat -c %d:%s \"{path}\")\" = \"$(stat -c %d \"$B\"):0\" ] && rm -f \"{path}\""))
    }));
    let other = [
        ("a new directory outside", "mkdir \"$B/outside/dir\" && rmdir \"$B/outside/dir\""),
        ("a pipe outside", "mkfifo \"$B/outside/pipe\" && rm \"$B/outside/pipe\""),
        ("a link outside", "ln -s x \"$B/outside/link\" && rm \"$B/outside/link\""),
        (
            "a granted file moved out",
            "mv \"$B/granted/project/readme\" \"$B/outside/readme\" && mv \"$B/outside/readme\" \"$B/granted/project/readme\"",
        ),
        (
            "a project's settings removed",
            "mv \"$B/granted/project/.env\" \"$B/granted/project/.env.old\" && mv \"$B/granted/project/.env.old\" \"$B/granted/project/.env\"",
        ),
        (
            "others put over a project's settings",
            "cp \"$B/granted/project/.env\" \"$B/granted/x\" && mv -f \"$B/granted/x\" \"$B/granted/project/.env\"; R=$?; rm -f \"$B/granted/x\"; exit $R",
        ),
        (
            "the policy by a link of one's own",
            "ln -s \"$W/policy.toml\" ./p && printf '' >> ./p && grep -q SECRET ./p; R=$?; rm -f ./p; exit $R",
        ),
        ("the scratch moved away", "mv \"$W/work\" \"$W/work2\" && mv \"$W/work2\" \"$W/work\""),
        (
            "a file in /tmp that others see",
            "touch \"/tmp/${B##*/}\" && [ \"$(stat -c %d /tmp)\" = \"$(stat -c %d /)\" -o ! -e /run/reveille ] && rm -f \"/tmp/${B##*/}\"",
        ),
    ];
    all.extend(other.map(|(name, script)| attempt(name, script)));
    // A program that runs as the person, whoever starts it, outlives the sandbox.
    let calls = ["fchmod", "fchmodat", "fchmodat2", "open", "tmpfile", "openat2", "mknodat"].into_iter();
    let old = ["chmod", "old-open", "creat", "mknod"].into_iter().filter(|_| cfg!(target_arch = "x86_64"));
    all.extend(calls.chain(old).flat_map(|call| {
        // What has no name yet is made in a folder.
        let name = if call == "tmpfile" { "" } else { "set-id" };
        [("user", "4000"), ("group", "2000")].map(|(whose, bit)| {
            let script = format!("\"$P\" set-id {call}:{bit} \"$B/granted/{name}\"");
            attempt(format!("a file that runs as its {whose}, by {call}"), script)
        })
    }));
    // A directory that isn't there on this machine is there for the moment.
    let new_in = |dir: &str| {
        format!(
            "D={dir}; M=; [ -d $D ] || {{ mkdir -p $D || exit 1; M=yes; }}; touch $D/x && rm $D/x; R=$?; [ -z \"$M\" ] || rmdir $D; exit $R"
        )
    };
    let of_root: [(&str, &str); 15] = [
        ("accounts", "printf '' >> /etc/passwd"),
        ("a program", "touch /usr/local/bin/x && rm /usr/local/bin/x"),
        ("the system's clockwork", &new_in("/etc/cron.d")),
        ("what programs keep", &new_in("/var/lib")),
        ("what was added by hand", &new_in("/opt")),
        ("a service", &new_in("/etc/systemd/system")),
        ("a daemon's directory", "touch /run/x && [ ! -e /run/reveille ] && rm /run/x"),
        (
            "what handles crashes",
            "P=$(cat /proc/sys/kernel/core_pattern) && printf '%s' \"$P\" > /proc/sys/kernel/core_pattern",
        ),
        ("what loads modules", "P=$(cat /proc/sys/kernel/hostname) && printf '%s' \"$P\" > /proc/sys/kernel/hostname"),
        ("the machine's memory of files", "exec 3>/proc/sys/vm/drop_caches"),
        (
            "settings in /sys",
            "F=/sys/kernel/mm/transparent_hugepage/enabled; V=$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $F) && echo $V > $F",
        ),
        (
            "its control group",
            "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do [ -e $f ] && exec 3>>$f && exit 0; done; exit 1",
        ),
        ("the kernel's log", "exec 3>/dev/kmsg"),
        ("the library that is loaded into everything", "touch /etc/ld.so.preload.x && rm /etc/ld.so.preload.x"),
        ("the boot", "touch /boot/x && rm /boot/x"),
    ];
    all.extend(of_root.map(|(name, script)| as_root(format!("write to {name}"), script)));
    all
}
