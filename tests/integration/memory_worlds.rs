//! The labelled set of `scripts/bench-memory`: made from a seed, the same everywhere, and as large as its figures say.

use std::collections::{BTreeMap, BTreeSet};

#[path = "../../benches/memory/bank.rs"]
mod bank;
#[path = "../../benches/memory/draw.rs"]
mod draw;
#[path = "../../benches/memory/words.rs"]
mod words;
#[path = "../../benches/memory/worlds.rs"]
mod worlds;

use worlds::{Evidence, SEED, STYLES, World};

fn bytes(worlds: &[World]) -> String {
    let mut all = String::new();
    for world in worlds {
        for turn in &world.turns {
            let speaker = turn.speaker.as_deref().unwrap_or_default();
            all.push_str(&format!("{} {} {speaker} {}\n", turn.at, turn.chat, turn.text));
        }
        for (path, document) in &world.documents {
            all.push_str(&format!("{path} {document}\n"));
        }
        for question in &world.questions {
            all.push_str(&format!("{} {} {}", question.style, question.scene, question.text));
            for evidence in &question.evidence {
                match evidence {
                    Evidence::Turn(at) => all.push_str(&format!(" {at}")),
                    Evidence::Line { path, text } => all.push_str(&format!(" {path} {text}")),
                }
            }
        }
    }
    all
}

#[test]
fn equal_seeds_give_equal_worlds() {
    let hash = |text: &str| {
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let whole = bytes(&worlds::worlds(SEED));
    assert_eq!(whole, bytes(&worlds::worlds(SEED)));
    assert_ne!(whole, bytes(&worlds::worlds(SEED + 1)));
    // The published figures are of this set. A change of the banks or the generator changes it.
    assert_eq!(format!("{:016x}", hash(&whole)), "f00893e545f15080");
}

#[test]
fn the_set_is_as_large_as_its_figures_say() {
    let worlds = worlds::worlds(SEED);
    assert!(worlds.iter().map(|world| world.turns.len()).sum::<usize>() >= 10_000);
    let questions: Vec<_> = worlds.iter().flat_map(|world| &world.questions).collect();
    assert!(questions.len() >= 900);
    for style in STYLES {
        let count = questions.iter().filter(|question| question.style == style).count();
        assert!(count >= 100, "{style}: {count}");
    }
    // A multi-hop question has its answer in two places.
    assert!(questions.iter().all(|question| question.evidence.len() == if question.style == "multi" { 2 } else { 1 }));
}

#[test]
fn every_answer_is_where_its_label_says_and_few_questions_have_two_labels() {
    for world in worlds::worlds(SEED) {
        let mut labels: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for question in &world.questions {
            assert!(!question.text.contains(['{', '}']), "{}", question.text);
            labels.entry(&question.text).or_default().insert(format!("{:?}", question.evidence));
            for evidence in &question.evidence {
                match evidence {
                    Evidence::Turn(at) => assert!(world.turns[*at].speaker.is_some(), "{}", question.text),
                    Evidence::Line { path, text } => assert!(world.documents[path].contains(text), "{path}: {text}"),
                }
            }
        }
        let twice: Vec<_> = labels.iter().filter(|(_, labels)| labels.len() > 1).collect();
        assert!(twice.len() * 100 < world.questions.len(), "{}: {twice:#?}", world.name);
        assert!(world.turns.iter().all(|turn| !turn.text.contains(['{', '}'])));
        assert!(world.turns.is_sorted_by_key(|turn| turn.at));
        assert!(world.turns.iter().all(|turn| turn.at.date() <= world.asked_on));
    }
}
