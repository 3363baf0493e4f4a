//! How many real shell lines run unasked, and what they leave: measured by running them, each behind another command of its cycle, with a
//! repository of the person's granted for writing.
//!
//! The lines aren't ours to bring along: `REVEILLE_SHELL_COMMANDS` names a file of them, a JSON string a line.
//! `REVEILLE_SHELL_COMMANDS=FILE cargo nextest run --run-ignored only shell_share` takes a quarter of an hour for 2,000.

use std::collections::BTreeMap;

use serde_json::json;

use reveille_base::types::ApprovalAnswer;

use super::{
    exec_shell::{contents, granted, questions},
    support::story::with_claude,
    support::{
        claude::{Block, Reply},
        database::cycles::Step,
        env::{CHAT, variable},
    },
};

/// Lines of one cycle. More would be more than its time.
const OF_A_CYCLE: usize = 20;
/// Of all lines so many run unasked at least, in percent.
const LEAST_PERCENT: usize = 90;

#[test]
#[ignore = "it needs a file of shell lines, named by REVEILLE_SHELL_COMMANDS, and a quarter of an hour"]
fn of_real_lines_nine_in_ten_run_unasked_and_nothing_but_the_scratch_changes() {
    let file =
        variable("REVEILLE_SHELL_COMMANDS").expect("NOT RUN: REVEILLE_SHELL_COMMANDS names no file of shell lines");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("NOT RUN: {file} can't be read: {error}"));
    let lines: Vec<String> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (telegram, claude, env) = with_claude();
    let work = granted(&env, "[shell]\ntimeout_s = 2\n");
    let (home, outside) = (env.path("home"), env.path("outside"));
    for folder in [&home, &outside] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("file"), "the person's\n").unwrap();
    }
    let all = || [&work, &home, &outside].map(|folder| contents(folder));
    let before = all();
    let mut decisions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (n, lines_of_cycle) in lines.chunks(OF_A_CYCLE).enumerate() {
        // Before each line the shell is led back to the repository, since some lines lead elsewhere or end it.
        let blocks: Vec<Block> = lines_of_cycle
            .iter()
            .enumerate()
            .flat_map(|(k, line)| {
                let enter = json!({"command": format!("cd {} # {k}", work.display())});
                [
                    Block::tool(&format!("enter_{n}_{k}"), "bash", enter),
                    Block::tool(&format!("line_{n}_{k}"), "bash", json!({"command": line})),
                ]
            })
            .collect();
        claude.answer_with(move |request| {
            let turns = request.json["messages"].as_array().into_iter().flatten();
            let is_first = turns.filter(|message| message["role"] == "assistant").count() == 0;
            if is_first { Reply::tools(blocks.clone()) } else { Reply::text("Done.") }
        });
        env.receive(CHAT, &format!("run lines for me, batch {n}"));
        while env.once()["outcome"] == "parked" {
            let mut store = env.store();
            let asked = store.approvals().last_approvals(1).unwrap().remove(0);
            assert!(
                store.approvals_mut().decide_approval(asked.id, ApprovalAnswer::No, asked.asked_at.unwrap()).unwrap()
            );
        }
        let is_of_batch = |step: &Step| step.field("call").as_str().unwrap().starts_with(&format!("line_{n}_"));
        let mut judged = env.steps("judged");
        judged.retain(is_of_batch);
        assert_eq!(judged.len(), lines_of_cycle.len(), "each line was judged once");
        for of_line in judged {
            let k: usize = of_line.field("call").as_str().unwrap().rsplit('_').next().unwrap().parse().unwrap();
            let decision = of_line.field("verdict")["decision"].as_str().unwrap().to_owned();
            decisions.entry(decision).or_default().push(lines_of_cycle[k].clone());
        }
        assert!(all() == before, "nothing outside the scratch has changed by {lines_of_cycle:#?}");
        // What they have left there fills the disk by and by.
        std::fs::remove_dir_all(env.workspace().join("scratch")).unwrap();
    }
    let unasked = decisions.get("allow").map_or(0, Vec::len);
    let percent = 100.0 * unasked as f64 / lines.len() as f64;
    println!("{unasked} of {} lines ran unasked: {percent:.1} %; {} questions", lines.len(), questions(&telegram));
    for (decision, lines) in decisions.iter().filter(|(decision, _)| *decision != "allow") {
        println!("{decision}:");
        lines.iter().for_each(|line| println!("    {line}"));
    }
    assert!(unasked * 100 >= lines.len() * LEAST_PERCENT, "{percent:.1} %");
}
