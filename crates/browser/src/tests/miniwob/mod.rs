//! Task pages of the package `miniwob`, solved by a script that sees only what looks return.
//!
//! The pages aren't part of this repository: `REVEILLE_TEST_PEERS` names the folder that holds `miniwob/html`.

mod solver;
mod tasks;

use std::path::PathBuf;

use tempfile::TempDir;

use self::solver::Solver;
use super::{World, options, program, site::Site};
use crate::Browser;

/// The folder of the pages; `None` if they aren't there.
#[expect(clippy::disallowed_methods, reason = "names the pages for tests")]
fn pages() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("REVEILLE_TEST_PEERS")?).join("miniwob/html");
    folder.exists().then_some(folder)
}

/// Gives the pages a fixed seed, and more time than people have.
fn prepare_file(path: &str, body: Vec<u8>) -> Vec<u8> {
    if path != "core/core.js" {
        return body;
    }
    let text = String::from_utf8(body).unwrap().replace("EPISODE_MAX_TIME = 10000", "EPISODE_MAX_TIME = 120000");
    format!("{text}\nMath.seedrandom('seven');\n").into_bytes()
}

async fn start(folder: PathBuf) -> Option<World> {
    let program = program()?;
    let (site, temporary) = (Site::serve_folder(folder, prepare_file), TempDir::new().unwrap());
    let browser = Browser::start(options(program, &temporary, &site)).await.unwrap();
    Some(World { browser, site, folder: temporary })
}

#[tokio::test]
#[ignore = "prints the looks of all tasks"]
async fn print_all_looks() {
    let Some(folder) = pages() else { return };
    let Some(mut world) = start(folder.clone()).await else { return };
    let mut names: Vec<String> = std::fs::read_dir(folder.join("miniwob"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".html"))
        .collect();
    names.sort();
    for name in names {
        world.open(&format!("/miniwob/{name}")).await;
        let started = world.click("START").await;
        let look = world.done(r#"{"verb": "look", "whole": true}"#).await;
        println!("=== {name} {} {}\n{look}", started.is_ok(), look.len());
    }
}

/// Tasks that looks suffice for.
const TASKS: [&str; 76] = [
    "buy-ticket",
    "choose-date",
    "choose-date-easy",
    "choose-date-medium",
    "choose-date-nodelay",
    "choose-list",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-transfer",
    "click-collapsible",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
    "click-collapsible-nodelay",
    "click-color",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-menu-2",
    "click-option",
    "click-scroll-list",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "click-widget",
    "copy-paste",
    "copy-paste-2",
    "drag-items",
    "drag-sort-numbers",
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-important",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "enter-date",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "enter-time",
    "find-greatest",
    "find-word",
    "focus-text",
    "focus-text-2",
    "form-sequence-2",
    "generate-number",
    "guess-number",
    "login-user",
    "login-user-popup",
    "multi-layouts",
    "multi-orderings",
    "navigate-tree",
    "odd-or-even",
    "order-food",
    "phone-book",
    "read-table",
    "read-table-2",
    "search-engine",
    "simple-algebra",
    "simple-arithmetic",
    "social-media",
    "social-media-all",
    "social-media-some",
    "text-transform",
    "unicode-test",
    "use-autocomplete",
    "use-autocomplete-nodelay",
    "use-spinner",
];

/// Minimum number of tasks that have to be solved.
const MIN_SOLVED: usize = 57;

#[tokio::test]
async fn tasks_are_solved_by_looks_alone() {
    let Some(folder) = pages() else {
        eprintln!("NOT RUN: the task pages: REVEILLE_TEST_PEERS names no folder with miniwob");
        return;
    };
    let Some(mut world) = start(folder).await else { return };
    let (mut solved, mut unsolved, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for name in TASKS {
        world.open(&format!("/miniwob/{name}.html")).await;
        world.click("START").await.unwrap();
        let mut solver = Solver::new(&mut world);
        solver.look().await;
        let result = solver.solve(name).await;
        solver.look().await;
        let reward = solver.reward();
        bytes.append(&mut solver.look_bytes);
        if reward > 0.0 {
            solved.push(name);
        } else {
            unsolved.push(format!("{name}: reward {reward}: {result:?}"));
        }
    }
    bytes.sort_unstable();
    println!(
        "solved {} of {}; a look has {} tokens in the median, {} at most",
        solved.len(),
        TASKS.len(),
        bytes[bytes.len() / 2] / 4,
        bytes[bytes.len() - 1] / 4
    );
    println!("{}", unsolved.join("\n"));
    assert!(solved.len() >= MIN_SOLVED, "{} solved; not:\n{}", solved.len(), unsolved.join("\n"));
}
