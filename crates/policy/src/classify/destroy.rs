//! Irreversible damage: erased files and disks, rewritten histories, stopped machines. The tables match generously, in any spelling of an
//! option, since a false match costs only a question.

use super::git;

/// The number of files above which `rm` counts as a deletion in bulk.
const MAX_REMOVED: usize = 5;

/// The damage of a command.
#[derive(Debug)]
pub(crate) struct Destruction {
    /// The damage, as a sentence.
    pub(crate) what: String,
    /// `true` if only files are damaged. Nothing is lost then if the command can write only to the scratch folder, or if a copy restores
    /// the files. A command against the whole machine or home still needs approval, so that a person sees the attempt.
    pub(crate) is_files: bool,
}

/// Programs that erase files with any arguments.
const ERASERS: [&str; 5] = ["shred", "srm", "wipe", "scrub", "truncate"];

/// Programs that destroy more than files with any arguments.
const ALWAYS: [&str; 32] = [
    "wipefs",
    "blkdiscard",
    "fdisk",
    "sfdisk",
    "cfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "mkswap",
    "mke2fs",
    "mdadm",
    "cryptsetup",
    "lvremove",
    "vgremove",
    "pvremove",
    "lvreduce",
    "userdel",
    "groupdel",
    "deluser",
    "dropdb",
    "dropuser",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "telinit",
    "debugfs",
    "hdparm",
    "nvme",
    "badblocks",
    "newfs",
    "zerofree",
];

/// Finds the damage of a command: to machines, disks, processes or remote data, else to files.
pub(super) fn find_destruction(name: &str, arguments: &[&str]) -> Option<Destruction> {
    let more = find_damage_beyond_files(name, arguments).map(|what| (what, false));
    let is_all = || arguments.iter().any(|word| is_everything(word));
    let (what, is_files) = more.or_else(|| Some((find_file_damage(name, arguments)?, !is_all())))?;
    Some(Destruction { what: format!("`{name}` {what}."), is_files })
}

fn find_damage_beyond_files(name: &str, arguments: &[&str]) -> Option<&'static str> {
    let has = |words: &[&str]| arguments.iter().any(|word| words.contains(word));
    let all = || arguments.join(" ").to_lowercase();
    let what = match name {
        _ if ALWAYS.contains(&name) || name.starts_with("mkfs") => "destroys data or stops the machine",
        "dd" if arguments.iter().any(|word| word.strip_prefix("of=").is_some_and(is_disk)) => "writes over a disk",
        "cp" | "tee" | "install" if arguments.iter().any(|word| is_disk(word)) => "writes over a disk",
        "kill" | "pkill" | "killall" | "skill" if has(&["-1", "0", "--"]) && has(&["-1", "0"]) => "ends every process",
        "killall5" => "ends every process",
        "pkill" | "killall" if has(&[".", ".*", ""]) => "ends every process",
        "crontab" if has_flag(arguments, "r") => "deletes every scheduled job",
        "iptables" | "ip6tables" | "nft" if has(&["-F", "--flush", "flush"]) => "deletes every rule of the firewall",
        "systemctl" if has(&["poweroff", "reboot", "halt", "kexec", "rescue", "emergency"]) => "stops the machine",
        "init" if has(&["0", "6"]) => "stops the machine",
        "diskutil"
            if ["erase", "partition", "reformat", "zero", "secureerase"].iter().any(|verb| all().contains(verb)) =>
        {
            "erases a disk"
        }
        "tmutil" if has(&["delete", "deletelocalsnapshots"]) => "deletes backups",
        "zpool" | "zfs" if has(&["destroy", "rollback"]) => "destroys a file system",
        "docker" | "podman" | "nerdctl" if has(&["prune", "rm", "rmi", "down"]) => {
            "deletes containers, images or volumes"
        }
        "docker-compose" if has(&["down", "rm"]) => "deletes containers or volumes",
        "kubectl" | "oc" | "helm" if has(&["delete", "uninstall", "drain"]) => "deletes from a cluster",
        "terraform" | "tofu" | "pulumi" | "vagrant" if has(&["destroy"]) => "destroys machines",
        "aws" | "gcloud" | "gsutil" | "az" | "doctl" | "heroku" | "fly" if destroys_remotely(arguments) => {
            "deletes something kept elsewhere"
        }
        "gh" | "glab" | "hub" if has(&["delete"]) => "deletes something kept elsewhere",
        "npm" | "cargo" | "gem" if has(&["unpublish", "yank"]) => "withdraws a published package",
        "psql" | "mysql" | "mariadb" | "mongosh" | "redis-cli" if destroys_rows(&all()) => "deletes from a database",
        "restic" | "borg" if has(&["forget", "prune", "delete"]) => "deletes backups",
        "git" => return git::destroys_remotely(arguments),
        _ => return None,
    };
    Some(what)
}

fn find_file_damage(name: &str, arguments: &[&str]) -> Option<&'static str> {
    let has = |words: &[&str]| arguments.iter().any(|word| words.contains(word));
    let is_recursive = || has_flag(arguments, "rR") || has_long_option(arguments, "--recursive");
    let what = match name {
        _ if ERASERS.contains(&name) => "erases files",
        // fault: folders-end-danger-among
        "rm" | "grm" if is_recursive() => "deletes a folder and everything in it",
        "rm" | "grm" if arguments.iter().filter(|word| !word.starts_with('-')).count() > MAX_REMOVED => {
            "deletes many files"
        }
        "rm" | "grm" | "unlink" | "rmdir" if arguments.iter().any(|word| is_wide(word)) => {
            "deletes everything that a pattern matches, or something at the root"
        }
        "dd" if arguments.iter().any(|word| word.starts_with("of=")) => "writes over a file",
        "find" | "gfind" if has(&["-delete"]) => "deletes everything it finds",
        "fd" | "fdfind" if has(&["-x", "-X", "--exec", "--exec-batch"]) && has(&["rm", "shred"]) => {
            "deletes everything it finds"
        }
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "xattr" if is_recursive() => {
            "changes the rights to a whole folder"
        }
        "mv" if has(&["/dev/null"]) => "moves a file to nowhere",
        "rsync" if arguments.iter().any(|word| word.starts_with("--del") || *word == "--remove-source-files") => {
            "deletes files that the other side doesn't have"
        }
        "tar" | "gtar" | "bsdtar" if has_long_option(arguments, "--remove-files") || has(&["--recursive-unlink"]) => {
            "deletes the files that it packed"
        }
        "zip" if has_flag(arguments, "m") || has(&["--move"]) => "deletes the files that it packed",
        "history" if has_flag(arguments, "c") => "deletes the history",
        "sqlite3" | "duckdb" if destroys_rows(&arguments.join(" ")) => "deletes from a database",
        "git" => return git::describe_file_damage(arguments),
        _ => return None,
    };
    Some(what)
}

/// Returns `true` if a group of short options holds one of the letters.
pub(super) fn has_flag(arguments: &[&str], letters: &str) -> bool {
    let is_short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    arguments.iter().filter(is_short).any(|word| word.contains(|c| letters.contains(c)))
}

/// Returns `true` if a long option is given, in full or abbreviated.
pub(super) fn has_long_option(arguments: &[&str], whole: &str) -> bool {
    let names = arguments.iter().filter_map(|word| word.split('=').next());
    names.into_iter().any(|name| name.len() > 2 && whole.starts_with(name))
}

fn is_wide(word: &str) -> bool {
    matches!(word, "/" | "~" | "." | ".." | "/*" | "~/" | "$HOME" | "./") || word.contains('*')
}

/// Returns `true` if a word stands for the whole machine or home.
fn is_everything(word: &str) -> bool {
    match word.trim_end_matches(['/', '*']) {
        "" => word.starts_with('/'),
        whole => ["~", "$HOME", "${HOME}"].contains(&whole),
    }
}

fn is_disk(word: &str) -> bool {
    ["/dev/sd", "/dev/nvme", "/dev/hd", "/dev/vd", "/dev/disk", "/dev/mapper", "/dev/mmc"]
        .iter()
        .any(|disk| word.starts_with(disk))
}

fn destroys_remotely(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| {
        ["rm", "rb", "destroy", "terminate"].contains(word)
            || ["delete", "remove", "terminate-"].iter().any(|verb| word.starts_with(verb))
            || word.ends_with(":destroy")
    })
}

fn destroys_rows(text: &str) -> bool {
    let text = text.to_lowercase();
    ["drop ", "delete ", "truncate ", "flushall", "flushdb", "dropdatabase", "deletemany"]
        .iter()
        .any(|verb| text.contains(verb))
}
