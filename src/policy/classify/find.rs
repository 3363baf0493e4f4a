//! `find`: an expression of tests and printing does no harm; actions that delete, run or write do.

use super::{Rated, Risk};

/// Tests and actions without an argument.
const BARE: [&str; 30] = [
    "-print",
    "-print0",
    "-ls",
    "-empty",
    "-not",
    "-and",
    "-or",
    "-a",
    "-o",
    "-prune",
    "-quit",
    "-true",
    "-false",
    "-xdev",
    "-mount",
    "-depth",
    "-follow",
    "-readable",
    "-writable",
    "-executable",
    "-nouser",
    "-nogroup",
    "-daystart",
    "-noleaf",
    "!",
    "(",
    ")",
    ",",
    "-d",
    "-x",
];

/// Tests and actions with one.
const VALUED: [&str; 34] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-lname",
    "-ilname",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-newermt",
    "-maxdepth",
    "-mindepth",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-samefile",
    "-printf",
];

pub(super) fn rate(arguments: &[&str]) -> Rated {
    if arguments.contains(&"-delete") {
        return Rated::new(Risk::Destructive, "`find -delete` deletes everything that it finds.");
    }
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_known = match *word {
            "-H" | "-L" | "-P" | "--help" | "--version" => true,
            word if VALUED.contains(&word) => words.next().is_some(),
            word => BARE.contains(&word) || !word.starts_with('-'),
        };
        if !is_known {
            return Rated::dangerous(format!("`{word}` of `find` isn't known to only look."));
        }
    }
    Rated::safe()
}
