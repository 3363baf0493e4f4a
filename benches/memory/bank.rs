//! The hand-written banks as values. `worlds/README.md` describes their form.

use std::collections::BTreeMap;

/// The material of one world.
pub(crate) struct Bank {
    pub(crate) name: &'static str,
    pub(crate) people: Vec<String>,
    /// The people who are talked about; `people` if the file names nobody.
    pub(crate) others: Vec<String>,
    /// As `YYYY-MM-DD`.
    pub(crate) start: String,
    pub(crate) days: u64,
    /// The share of messages in the main chat the assistant answers, from 0 to 1.
    pub(crate) answers: f64,
    pub(crate) scenes: Vec<Scene>,
    pub(crate) chatter: Chatter,
}

/// One kind of event, in several wordings, with its possible questions.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) name: String,
    pub(crate) slots: Vec<(String, Vec<Value>)>,
    /// The first mention.
    pub(crate) first: Vec<String>,
    /// A later mention of the same: an update, or the other half of an answer.
    pub(crate) later: Vec<String>,
    pub(crate) questions: Vec<Ask>,
    /// Sentences with the same words but no answer.
    pub(crate) near: Vec<String>,
}

/// A value as said, and in other words.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) said: String,
    pub(crate) other: String,
}

#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) style: String,
    /// Parts that hold the answer: the first, the later one, or both.
    pub(crate) parts: (bool, bool),
    pub(crate) text: String,
}

/// Sentences without importance, and the values for their slots.
#[derive(Default, Clone)]
pub(crate) struct Chatter {
    pub(crate) lines: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) assistant: Vec<String>,
    pub(crate) slots: BTreeMap<String, Vec<String>>,
}

const WORLDS: [(&str, &str); 4] = [
    ("family", include_str!("worlds/family.txt")),
    ("firm", include_str!("worlds/firm.txt")),
    ("journal", include_str!("worlds/journal.txt")),
    ("forum", include_str!("worlds/forum.txt")),
];
const CHATTER: &str = include_str!("worlds/chatter.txt");

pub(crate) fn banks() -> Vec<Bank> {
    WORLDS.iter().map(|(name, text)| read(name, text)).collect()
}

fn read(name: &'static str, text: &str) -> Bank {
    let mut bank = Bank {
        name,
        people: Vec::new(),
        others: Vec::new(),
        start: String::new(),
        days: 0,
        answers: 0.12,
        scenes: Vec::new(),
        chatter: chatter(name),
    };
    let mut once = 0;
    for line in text.lines() {
        let Some((mark, rest)) = line.split_once(' ') else { continue };
        match mark {
            "#" => {}
            "people:" => bank.people = list(rest),
            "others:" => bank.others = list(rest),
            "start:" => rest.clone_into(&mut bank.start),
            "days:" => bank.days = rest.parse().unwrap(),
            "answers:" => bank.answers = rest.parse().unwrap(),
            "=" => bank.scenes.push(Scene { name: rest.to_owned(), ..Scene::default() }),
            "*" => {
                once += 1;
                bank.scenes.push(fact(format!("once{once}"), rest));
            }
            _ => add(bank.scenes.last_mut().unwrap(), mark, rest),
        }
    }
    if bank.others.is_empty() {
        bank.others.clone_from(&bank.people);
    }
    bank
}

fn add(scene: &mut Scene, mark: &str, rest: &str) {
    match mark {
        "$" => {
            let (name, values) = rest.split_once(": ").unwrap();
            scene.slots.push((name.to_owned(), list(values).iter().map(|value| Value::read(value)).collect()));
        }
        "-" => scene.first.push(rest.to_owned()),
        "+" => scene.later.push(rest.to_owned()),
        "?" => scene.questions.push(ask(rest)),
        "~" => scene.near.push(rest.to_owned()),
        other => panic!("{}: what is {other:?}?", scene.name),
    }
}

/// Reads `first mention ## style: question ## style: question`.
fn fact(name: String, line: &str) -> Scene {
    let mut parts = line.split(" ## ");
    let first = vec![parts.next().unwrap().to_owned()];
    Scene { name, first, questions: parts.map(ask).collect(), ..Scene::default() }
}

fn ask(line: &str) -> Ask {
    let (head, text) = line.split_once(": ").unwrap();
    let (style, part) = head.split_once('@').unwrap_or((head, ""));
    let parts = match (part, style) {
        ("1", _) => (true, false),
        ("2", _) => (false, true),
        (_, "multi") => (true, true),
        _ => (true, false),
    };
    let style = if style == "para" { "paraphrase" } else { style };
    Ask { style: style.to_owned(), parts, text: text.trim().to_owned() }
}

impl Value {
    fn read(text: &str) -> Self {
        let (said, other) = text.split_once(" = ").unwrap_or((text, text));
        Self { said: said.trim().to_owned(), other: other.trim().to_owned() }
    }
}

fn chatter(world: &str) -> Chatter {
    let mut all = Chatter::default();
    let mut section = "";
    for line in CHATTER.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((name, values)) = line.strip_prefix("$ ").and_then(|rest| rest.split_once(": ")) {
            all.slots.insert(name.to_owned(), list(values));
        } else if let Some(saying) = line.strip_prefix("- ") {
            match section {
                "notes" => all.notes.push(saying.to_owned()),
                "assistant" => all.assistant.push(saying.to_owned()),
                name if name == "all" || name == world => all.lines.push(saying.to_owned()),
                _ => {}
            }
        }
    }
    all
}

fn list(text: &str) -> Vec<String> {
    text.split(" | ").map(|value| value.trim().to_owned()).collect()
}
