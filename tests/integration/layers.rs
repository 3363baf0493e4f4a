//! Who imports whom, read from the source: no circle between the modules of the application, nor between the parts of the crates `store`
//! and `cycle`.
//!
//! A path counts wherever it stands, in a `use` or in code; what stands in tests doesn't. What a `mod.rs` only passes on counts as
//! imported from where it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Names from the crate's root, such as `["cycle", "lock"]`.
type Names = Vec<String>;
type Graph = BTreeMap<String, BTreeSet<String>>;

/// A module, and the paths of ours that it names.
struct Module {
    path: Names,
    uses: Vec<Names>,
    /// What it passes on: its own name for it, and where that is.
    passes_on: Vec<(Names, Names)>,
}

fn source(folder: &str) -> Vec<Module> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut modules = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                if name != "tests" && name != "bin" {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" && name != "lib.rs" {
                let names = path.strip_prefix(&root).unwrap().with_extension("");
                let mut names: Names = names.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
                names.pop_if(|name| name == "mod");
                let tokens: TokenStream = fs::read_to_string(&path).unwrap().parse().unwrap();
                modules.push(module(names, tokens));
            }
        }
    }
    modules
}

fn module(path: Names, tokens: TokenStream) -> Module {
    let (mut uses, mut passes_on) = (Vec::new(), Vec::new());
    let all: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for at in 0..all.len() {
        let is = |ahead: usize, text: &str| all.get(at + ahead).is_some_and(|token| token.to_string() == text);
        let use_at = if is(1, "use") { 1 } else { 2 };
        if is(0, "pub") && is(use_at, "use") {
            let (mut leaves, mut next) = (Vec::new(), at + use_at + 1);
            tree(&all, &mut next, Names::new(), &path, &mut leaves);
            let named = |leaf: Names| Some((path.iter().cloned().chain([leaf.last()?.clone()]).collect(), leaf));
            passes_on.extend(leaves.into_iter().filter_map(named));
        }
    }
    let is = |at: usize, text: &str| all.get(at).is_some_and(|token: &TokenTree| token.to_string() == text);
    let of_ours = (0..all.len()).filter(|at| is(*at, "mod") && is(at + 2, ";"));
    let children: BTreeSet<String> = of_ours.filter_map(|at| Some(all.get(at + 1)?.to_string())).collect();
    read(tokens, &path, &children, &mut uses);
    Module { path, uses, passes_on }
}

/// Collects the paths that begin with `crate`, `super`, `self` or one of the module's children.
fn read(tokens: TokenStream, module: &Names, children: &BTreeSet<String>, uses: &mut Vec<Names>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.to_string().replace(' ', "") == text);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        // `#[cfg(test)] mod tests { … }`
        if is(at, "#") && is(at + 1, "[cfg(test)]") && is(at + 2, "mod") {
            at += 5;
            continue;
        }
        let is_segment = is(at + 1, ":") && is(at + 2, ":") && (at < 2 || !is(at - 1, ":"));
        match token {
            TokenTree::Ident(word)
                if is_segment
                    && (["crate", "super", "self"].iter().any(|root| word == root)
                        || children.contains(&word.to_string())) =>
            {
                tree(&tokens, &mut at, Vec::new(), module, uses);
            }
            TokenTree::Group(group) => {
                read(group.stream(), module, children, uses);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Reads one path with its branches, such as `crate::a::{b, c::d}`.
fn tree(tokens: &[TokenTree], at: &mut usize, mut names: Names, module: &Names, uses: &mut Vec<Names>) {
    loop {
        match tokens.get(*at) {
            Some(TokenTree::Ident(word)) => names.push(word.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut next = 0;
                while next < inner.len() {
                    tree(&inner, &mut next, names.clone(), module, uses);
                    // Past `as name` and the comma.
                    while next < inner.len() && inner.get(next - 1).is_none_or(|token| token.to_string() != ",") {
                        next += 1;
                    }
                }
                *at += 1;
                return;
            }
            _ => {}
        }
        *at += 1;
        let goes_on = [0, 1].iter().all(|ahead| tokens.get(*at + ahead).is_some_and(|token| token.to_string() == ":"));
        if !goes_on {
            uses.push(absolute(names, module));
            return;
        }
        *at += 2;
    }
}

fn absolute(names: Names, module: &Names) -> Names {
    let mut path = if names.first().is_some_and(|name| name == "crate") { Names::new() } else { module.clone() };
    for name in names {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(path.pop()),
            _ => path.push(name),
        }
    }
    path
}

/// Who imports whom, among the parts that `part` tells of a path.
fn graph(modules: &[Module], part: impl Fn(&[String]) -> Option<String>) -> Graph {
    let passed_on: BTreeMap<&Names, &Names> =
        modules.iter().flat_map(|module| &module.passes_on).map(|(name, path)| (name, path)).collect();
    let whole = |path: &Names| -> Names {
        let ends = (1..=path.len()).rev();
        let found = ends.filter_map(|end| Some((passed_on.get(&path[..end].to_vec())?, &path[end..]))).next();
        found.map_or_else(|| path.clone(), |(passed_on, rest)| passed_on.iter().chain(rest).cloned().collect())
    };
    let parts: BTreeSet<String> = modules.iter().filter_map(|module| part(&module.path)).collect();
    let mut graph = Graph::new();
    for module in modules {
        let Some(from) = part(&module.path) else { continue };
        let uses = module.uses.iter().filter_map(|path| part(&whole(path)));
        let others = uses.filter(|to| *to != from && parts.contains(to));
        graph.entry(from.clone()).or_default().extend(others);
    }
    graph
}

/// Takes away what imports nothing that is left, over and over: what stays is in a circle, or leads to one.
fn circle(mut graph: Graph) -> Graph {
    loop {
        let done: BTreeSet<String> =
            graph.iter().filter(|(_, uses)| uses.is_empty()).map(|(name, _)| name.clone()).collect();
        if done.is_empty() {
            return graph;
        }
        graph.retain(|name, _| !done.contains(name));
        graph.values_mut().for_each(|uses| uses.retain(|name| !done.contains(name)));
    }
}

/// The room of a cycle's file. A background job has its files together, and each stands in the room of its name.
fn room(path: &Names) -> Option<String> {
    let (first, last) = (path.first()?, path.last()?);
    Some(
        match (first.as_str(), last.as_str()) {
            ("background", "look") => "look",
            ("background", "decide" | "feed_news") => "decide",
            ("background", "by_rule") => "maintain",
            ("background", "run" | "begun") => "run",
            ("background", _) => return None,
            (first, _) => first,
        }
        .to_owned(),
    )
}

/// Between the modules of the application, the areas of the store and the rooms of a cycle; and of a cycle file by file: a room's files
/// stand apart, so that each can be read alone. Between crates the compiler sees to it.
#[test]
fn nothing_imports_what_imports_it() {
    let [application, store, cycle] = ["src", "crates/store/src", "crates/cycle/src"].map(source);
    let by_folder = |modules: &[Module]| graph(modules, |path| path.first().cloned());
    let (modules, areas) = (by_folder(&application), by_folder(&store));
    let files: BTreeSet<Names> = cycle.iter().map(|module| module.path.clone()).collect();
    let rooms = graph(&cycle, |path| {
        let file = (1..=path.len()).rev().map(|end| path[..end].to_vec()).find(|file| files.contains(file))?;
        room(&file)
    });
    let of_files = graph(&cycle, |path| {
        if ["lease", "standing"].iter().any(|beside| path.first().is_some_and(|first| first == beside)) {
            return None;
        }
        let file = (1..=path.len()).rev().map(|end| path[..end].to_vec()).find(|file| files.contains(file))?;
        Some(file.join("/"))
    });
    assert!(modules["cli"].contains("bot"), "{modules:#?}");
    assert!(areas["cycles"].contains("messages") && areas["messages"].contains("chats"), "{areas:#?}");
    assert!(rooms["run"].contains("decide") && rooms["maintain"].contains("look"), "{rooms:#?}");
    assert!(of_files.len() > 30, "{of_files:#?}");
    for (parts, graph) in [("modules", modules), ("areas", areas), ("rooms", rooms), ("files", of_files)] {
        let circle = circle(graph);
        assert!(circle.is_empty(), "{parts}: {circle:#?}");
    }
}

#[test]
fn a_circle_is_seen_wherever_it_stands() {
    let module = |path: &[&str], source: &str| {
        module(path.iter().map(|name| (*name).to_owned()).collect(), source.parse().unwrap())
    };
    let found = |first: &str, second: &str| {
        let modules = [module(&["a", "x"], first), module(&["b"], second), module(&["c"], "fn f() {}")];
        !circle(graph(&modules, |path| path.first().cloned())).is_empty()
    };
    assert!(found("use crate::b::Thing;", "use crate::{c::f as g, a::x};"));
    assert!(found("fn f() { let x = vec![crate::b::new()]; }", "use super::a;"));
    assert!(found("use super::super::b::{self, Thing};", "pub(in crate::a) fn f() {}"));
    assert!(!found("use crate::b::Thing; // crate::a", "const A: &str = \"crate::a\";"));
    assert!(!found("use crate::b;", "#[cfg(test)] mod tests { use crate::a; }"));
    assert!(!found("use crate::b;", "use crate::c::a; fn a() { c::a::b() }"));
    // A parent names its child by the child's own name.
    let family = [module(&["a"], "mod x; fn f() { x::g() }"), module(&["a", "x"], "use super::h;")];
    let file = |path: &[String]| Some(if path.get(1).is_some_and(|name| name == "x") { "a/x" } else { "a" }.to_owned());
    assert_eq!(circle(graph(&family, file)).len(), 2);
    let passed_on = [
        module(&["a"], "pub(crate) use crate::b::{Thing, Other};"),
        module(&["b"], "use crate::c::f;"),
        module(&["c"], "use crate::a::Thing;"),
    ];
    assert_eq!(circle(graph(&passed_on[1..], |path| path.first().cloned())).len(), 0);
    assert_eq!(circle(graph(&passed_on, |path| path.first().cloned())).len(), 3, "two, and who leads there");
}

/// The stations of "The way of one message" are files, and few enough to be read in one go. What they ask besides is named, too.
#[test]
fn the_way_of_one_message_is_told_by_files_that_are_there() {
    const STATIONS_MAX: usize = 25;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let told = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let way = told.split("\n## ").find(|part| part.starts_with("The way of one message")).unwrap();
    let is_there = |place: &str| {
        let (first, rest) = place.split_once('/').unwrap();
        let of_crate = root.join("crates").join(first).join("src").join(rest);
        let is_module = |place: &Path| place.is_dir() || place.with_extension("rs").is_file();
        root.join(place).is_file() || is_module(&root.join("src").join(place)) || is_module(&of_crate)
    };
    let named: Vec<&str> = way.split('`').skip(1).step_by(2).filter(|word| word.contains('/')).collect();
    let missing: Vec<&&str> = named.iter().filter(|place| !is_there(place)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let stations: BTreeSet<&str> =
        way.split("**`").skip(1).filter_map(|rest| rest.split_once('`')).map(|(name, _)| name).collect();
    assert!((20..=STATIONS_MAX).contains(&stations.len()), "{}: {stations:#?}", stations.len());
}
