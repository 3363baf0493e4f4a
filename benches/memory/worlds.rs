//! Generates worlds from the text banks and a seed: conversations, notes, and questions with the places of their answers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};

use super::{
    bank::{Ask, Bank, Scene, banks},
    draw::Draw,
    words::{asked, time_named, typed},
};

/// The seed of the worlds whose figures are published.
pub(crate) const SEED: u64 = 17;
/// The minimum number of turns in one world.
const TURNS: usize = 2_700;
/// The number of times that a scene happens to different people, and then to some of them again.
const HAPPENINGS: usize = 7;
const AGAIN: usize = 3;
/// The share of questions that use the statement's own words instead of a paraphrase.
const REMEMBERED: f64 = 0.7;
/// The number of uninformative lines in each world's log.
const NOTES: usize = 260;
/// Days that stay in the log itself; older ones are in the archive.
const LOG_DAYS: u64 = 60;
const GROUP: i64 = -1_000_017;

/// The styles of questions.
pub(crate) const STYLES: [&str; 6] = ["exact", "paraphrase", "time", "person", "multi", "negation"];
/// The maximum number of questions in one wording, by style.
const ASKED_EACH: [(&str, usize); STYLES.len()] =
    [("exact", 2), ("paraphrase", 3), ("time", 4), ("person", 4), ("multi", 5), ("negation", 4)];

pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) turns: Vec<Turn>,
    /// The text of each document, by its path below the workspace.
    pub(crate) documents: BTreeMap<String, String>,
    pub(crate) questions: Vec<Question>,
    /// The last day, on which the questions are asked.
    pub(crate) asked_on: NaiveDate,
}

/// One message.
pub(crate) struct Turn {
    pub(crate) chat: i64,
    /// `None` for the assistant.
    pub(crate) speaker: Option<String>,
    pub(crate) text: String,
    pub(crate) at: NaiveDateTime,
}

pub(crate) struct Question {
    pub(crate) style: &'static str,
    pub(crate) text: String,
    pub(crate) evidence: Vec<Evidence>,
    /// The name of the scene. Questions of one scene are alike.
    pub(crate) scene: String,
}

/// The place of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// An index into `World::turns`.
    Turn(usize),
    /// A line that holds this text in this document.
    Line { path: String, text: String },
}

pub(crate) fn worlds(seed: u64) -> Vec<World> {
    banks().iter().enumerate().map(|(at, bank)| Maker::new(bank, seed.wrapping_mul(1_000) + at as u64).make()).collect()
}

/// One occurrence of a scene.
struct Happening<'a> {
    scene: &'a Scene,
    person: String,
    other: String,
    /// For each slot: its name, its value as said, and the value in other words.
    filled: Vec<(String, String, String)>,
    days: [NaiveDate; 2],
    evidence: [Option<Place>; 2],
}

/// The place of a scene's part: its block, or a line of a document.
#[derive(Clone)]
enum Place {
    Block(usize),
    Line { path: String, text: String },
}

/// Turns that follow each other.
struct Block {
    day: NaiveDate,
    chat: i64,
    turns: Vec<(Option<String>, String)>,
    /// The index of the turn that holds an answer.
    answer: Option<usize>,
}

struct Maker<'a> {
    bank: &'a Bank,
    draw: Draw,
    blocks: Vec<Block>,
    log: BTreeMap<NaiveDate, Vec<String>>,
    facts: BTreeMap<String, Vec<String>>,
    tasks: Vec<(NaiveDate, String, String)>,
    papers: BTreeMap<String, Vec<(NaiveDate, String)>>,
    start: NaiveDate,
}

impl<'a> Maker<'a> {
    fn new(bank: &'a Bank, seed: u64) -> Self {
        Self {
            bank,
            draw: Draw::new(seed),
            blocks: Vec::new(),
            log: BTreeMap::new(),
            facts: BTreeMap::new(),
            tasks: Vec::new(),
            papers: BTreeMap::new(),
            start: bank.start.parse().unwrap(),
        }
    }

    fn make(mut self) -> World {
        let mut all: Vec<Vec<Happening<'a>>> = Vec::new();
        for scene in &self.bank.scenes {
            let mut happenings = self.happen(scene);
            for happening in &mut happenings {
                self.tell(happening);
            }
            for _ in 0..2 {
                self.mislead(scene);
            }
            all.push(happenings);
        }
        self.note_idly();
        let (turns, places) = self.converse();
        let mut documents = BTreeMap::new();
        self.write(&mut documents);
        let mut questions = Vec::new();
        for happenings in &all {
            self.ask(happenings, &places, &mut questions);
        }
        let asked_on = self.start + Days::new(self.bank.days);
        World { name: self.bank.name, turns, documents, questions, asked_on }
    }

    fn day(&mut self, from: u64, to: u64) -> NaiveDate {
        self.start + Days::new(from + self.draw.below(usize::try_from(to - from).unwrap()) as u64)
    }

    /// Draws people, values and days: different people first, then some of them again.
    fn happen(&mut self, scene: &'a Scene) -> Vec<Happening<'a>> {
        let is_once = scene.slots.is_empty();
        let (mut people, mut others) = (self.bank.people.clone(), self.bank.others.clone());
        self.draw.shuffle(&mut people);
        self.draw.shuffle(&mut others);
        let combinations: usize = scene.slots.iter().map(|(_, values)| values.len()).product();
        let count = if is_once { 1 } else { HAPPENINGS.min(combinations) };
        let is_timed = scene.questions.iter().any(|ask| ask.text.contains("{when}"));
        let again = if is_timed { AGAIN } else { 0 };
        let (mut happenings, mut seen) = (Vec::<Happening<'a>>::new(), BTreeSet::new());
        for turn in 0..count + again {
            let back = if turn < count { turn } else { (turn - count) / 2 };
            let person = people[back % people.len()].clone();
            let mut other = others[back % others.len()].clone();
            if other == person {
                other.clone_from(&others[(back + 1) % others.len()]);
            }
            let mut filled = Vec::new();
            for _ in 0..20 {
                filled = self.fill(scene);
                if seen.insert(format!("{filled:?}")) {
                    break;
                }
            }
            let later = !scene.later.is_empty();
            let first = self.day(0, self.bank.days - if later { 60 } else { 1 });
            let gap = 5 + self.draw.below(50) as u64;
            happenings.push(Happening {
                scene,
                person,
                other,
                filled,
                days: [first, first + Days::new(gap)],
                evidence: [None, None],
            });
        }
        happenings
    }

    fn fill(&mut self, scene: &Scene) -> Vec<(String, String, String)> {
        let mut filled: Vec<(String, String, String)> = Vec::new();
        for (name, values) in &scene.slots {
            let value = self.draw.one(values);
            filled.push((name.clone(), value.said.clone(), value.other.clone()));
        }
        filled
    }

    fn tell(&mut self, happening: &mut Happening<'_>) {
        for (part, wordings) in [&happening.scene.first, &happening.scene.later].into_iter().enumerate() {
            if wordings.is_empty() {
                continue;
            }
            let wording = fill_slots(self.draw.one(wordings).as_str(), happening);
            let day = happening.days[part];
            let place = match parse_note(&wording) {
                Some((kind, text)) => self.note(kind, &text, day, happening),
                None => self.say(&wording, day, happening),
            };
            happening.evidence[part] = Some(place);
        }
    }

    /// Adds a small dialogue: `Q: a question // P: an answer`. A star marks the answer if it isn't the last turn.
    fn say(&mut self, wording: &str, day: NaiveDate, happening: &Happening<'_>) -> Place {
        let mut turns = Vec::new();
        let mut answer = None;
        let mut asker = happening.other.clone();
        for (at, turn) in wording.split(" // ").enumerate() {
            let (tag, text) = match turn.split_once(": ") {
                Some((tag @ ("P" | "Q" | "P*" | "Q*"), text)) => (tag, text),
                _ => ("P", turn),
            };
            if tag.ends_with('*') {
                answer = Some(at);
            }
            let is_asked = tag.starts_with('Q') && self.bank.people.len() > 1;
            if is_asked && turns.iter().any(|(speaker, _)| *speaker == Some(asker.clone())) {
                asker = self.somebody_but(&happening.person);
            }
            let speaker = if is_asked { asker.clone() } else { happening.person.clone() };
            turns.push((Some(speaker), typed(text, &mut self.draw)));
        }
        let mut answer = answer.unwrap_or(turns.len() - 1);
        // Sometimes another person interrupts.
        if turns.len() > 1 && self.draw.happens(0.3) {
            let line = self.chatter();
            let speaker = self.somebody_but(&happening.person);
            turns.insert(answer, (Some(speaker), line));
            answer += 1;
        }
        let is_private = turns.len() == 1 && (self.bank.people.len() == 1 || self.draw.happens(0.25));
        let chat = if is_private { self.chat_of(&happening.person) } else { GROUP };
        let id = self.blocks.len();
        self.blocks.push(Block { day, chat, turns, answer: Some(answer) });
        Place::Block(id)
    }

    fn chat_of(&self, person: &str) -> i64 {
        100 + self.bank.people.iter().position(|one| one == person).unwrap_or(99) as i64
    }

    fn somebody_but(&mut self, person: &str) -> String {
        loop {
            let somebody = self.draw.one(&self.bank.people).clone();
            if somebody != person || self.bank.people.len() == 1 {
                return somebody;
            }
        }
    }

    fn note(&mut self, kind: &str, text: &str, day: NaiveDate, happening: &Happening<'_>) -> Place {
        match kind {
            "facts" => {
                let topic = if self.bank.people.len() == 1 { &happening.other } else { &happening.person };
                self.facts.entry(topic.clone()).or_default().push(text.to_owned());
                Place::Line { path: "memory/agent-memory/semantic-memory.md".to_owned(), text: text.to_owned() }
            }
            "log" => {
                self.log.entry(day).or_default().push(text.to_owned());
                Place::Line { path: self.log_path(day), text: text.to_owned() }
            }
            "task" => {
                let (title, next) = text.split_once(" :: ").unwrap();
                self.tasks.push((day, title.to_owned(), next.to_owned()));
                Place::Line { path: "memory/project-memory/backlog.md".to_owned(), text: next.to_owned() }
            }
            paper => {
                self.papers.entry(paper.to_owned()).or_default().push((day, text.to_owned()));
                Place::Line { path: paper_path(paper), text: text.to_owned() }
            }
        }
    }

    fn log_path(&self, day: NaiveDate) -> String {
        let last = self.start + Days::new(self.bank.days);
        if last - day > chrono::Duration::days(LOG_DAYS as i64) {
            format!("memory/agent-memory/archive/{}.md", day.format("%Y-%m"))
        } else {
            "memory/agent-memory/episodic-memory.md".to_owned()
        }
    }

    /// Adds distracting sentences of the scene, by anyone, on any day, that answer no question.
    fn mislead(&mut self, scene: &Scene) {
        for line in &scene.near {
            let person = self.draw.one(&self.bank.people).clone();
            let other = self.draw.one(&self.bank.others).clone();
            let filled = self.fill(scene);
            let day = self.day(0, self.bank.days);
            let told = Happening { scene, person, other, filled, days: [day, day], evidence: [None, None] };
            let text = typed(&fill_slots(line, &told), &mut self.draw);
            let speaker = self.somebody_but(&told.person);
            let chat = if self.bank.people.len() == 1 { self.chat_of(&speaker) } else { GROUP };
            self.blocks.push(Block { day, chat, turns: vec![(Some(speaker), text)], answer: None });
        }
    }

    fn note_idly(&mut self) {
        for _ in 0..NOTES {
            let line = self.draw.one(&self.bank.chatter.notes).clone();
            let text = self.fill_chatter(&line);
            let day = self.day(0, self.bank.days);
            self.log.entry(day).or_default().push(text);
        }
    }

    fn chatter(&mut self) -> String {
        let mut text = self.one_saying();
        if self.draw.happens(0.35) {
            let more = self.one_saying();
            text = format!("{text} {more}");
        }
        typed(&text, &mut self.draw)
    }

    fn one_saying(&mut self) -> String {
        let line = self.draw.one(&self.bank.chatter.lines).clone();
        self.fill_chatter(&line)
    }

    fn fill_chatter(&mut self, line: &str) -> String {
        let mut text = line.to_owned();
        for (name, values) in &self.bank.chatter.slots {
            let mark = format!("{{{name}}}");
            while text.contains(&mark) {
                text = text.replacen(&mark, self.draw.one::<String>(values), 1);
            }
        }
        let person = self.draw.one(&self.bank.others).clone();
        let other = self.draw.one(&self.bank.others).clone();
        capital(&text.replace("{P}", &person).replace("{O}", &person).replace("{Q}", &other))
    }

    /// Orders all blocks by day, with chatter before, between and after. Returns the turns, and the turn of each block's answer.
    fn converse(&mut self) -> (Vec<Turn>, BTreeMap<usize, usize>) {
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_by_key(|at| (self.blocks[*at].day, self.blocks[*at].chat, *at));
        let told: usize = self.blocks.iter().map(|block| block.turns.len()).sum();
        let idle = TURNS.saturating_sub(told) as f64 / order.len() as f64;
        let (mut turns, mut places) = (Vec::new(), BTreeMap::new());
        let mut clock = self.start.and_time(NaiveTime::MIN);
        for id in order {
            let (day, chat) = (self.blocks[id].day, self.blocks[id].chat);
            let morning = day.and_hms_opt(7, u32::try_from(self.draw.below(60)).unwrap(), 0).unwrap();
            clock = clock.max(morning);
            let around = self.draw.below((idle * 2.0) as usize + 2);
            let before = self.draw.below(around + 1);
            for _ in 0..before {
                self.idle_turn(chat, &mut clock, &mut turns);
            }
            let block = std::mem::take(&mut self.blocks[id].turns);
            for (at, (speaker, text)) in block.into_iter().enumerate() {
                if self.blocks[id].answer == Some(at) {
                    places.insert(id, turns.len());
                }
                self.push(chat, speaker, text, &mut clock, &mut turns);
            }
            for _ in before..around {
                self.idle_turn(chat, &mut clock, &mut turns);
            }
        }
        (turns, places)
    }

    fn idle_turn(&mut self, chat: i64, clock: &mut NaiveDateTime, turns: &mut Vec<Turn>) {
        let speaker = match usize::try_from(chat - 100) {
            Ok(at) => self.bank.people.get(at).unwrap_or(&self.bank.people[0]).clone(),
            Err(_) => self.draw.one(&self.bank.people).clone(),
        };
        let text = self.chatter();
        self.push(chat, Some(speaker), text, clock, turns);
    }

    /// Adds one turn, and sometimes the assistant's answer to it.
    fn push(
        &mut self,
        chat: i64,
        speaker: Option<String>,
        text: String,
        clock: &mut NaiveDateTime,
        turns: &mut Vec<Turn>,
    ) {
        let pause = 20 + self.draw.below(400) as i64;
        *clock += chrono::Duration::seconds(pause);
        turns.push(Turn { chat, speaker, text, at: *clock });
        let share = if chat == GROUP { self.bank.answers } else { 0.85 };
        if self.draw.happens(share) {
            *clock += chrono::Duration::seconds(5);
            let text = self.draw.one(&self.bank.chatter.assistant).clone();
            turns.push(Turn { chat, speaker: None, text, at: *clock });
        }
    }

    fn write(&mut self, documents: &mut BTreeMap<String, String>) {
        for (day, lines) in std::mem::take(&mut self.log) {
            let path = self.log_path(day);
            let page = documents.entry(path).or_insert_with(|| "# Episodic memory\n".to_owned());
            page.push_str(&format!("\n## {day}\n\n"));
            for line in lines {
                let (hour, minute) = (7 + self.draw.below(15), self.draw.below(60));
                page.push_str(&format!("- {hour:02}:{minute:02} {line}\n"));
            }
        }
        let mut facts = "# Semantic memory\n".to_owned();
        for (topic, lines) in &self.facts {
            facts.push_str(&format!("\n## {topic}\n\n"));
            for line in lines {
                facts.push_str(&format!("- {line}\n"));
            }
        }
        documents.insert("memory/agent-memory/semantic-memory.md".to_owned(), facts);
        let mut tasks = "# Backlog\n".to_owned();
        for (day, title, next) in &self.tasks {
            tasks.push_str(&format!("\n## {title}\n\n- status: waiting\n- touched: {day}\n- next: {next}\n"));
        }
        documents.insert("memory/project-memory/backlog.md".to_owned(), tasks);
        for (paper, entries) in &mut self.papers {
            entries.sort();
            let mut page = format!("# {paper}\n");
            for (day, text) in entries {
                page.push_str(&format!("\n{text}\n(noted on {day})\n"));
            }
            documents.insert(paper_path(paper), page);
        }
    }

    /// Adds the questions of one scene that have a single answer; ambiguous ones are left out.
    fn ask(&mut self, happenings: &[Happening<'_>], places: &BTreeMap<usize, usize>, questions: &mut Vec<Question>) {
        let Some(scene) = happenings.first().map(|one| one.scene) else { return };
        for ask in &scene.questions {
            let mut order: Vec<usize> = (0..happenings.len()).collect();
            self.draw.shuffle(&mut order);
            let (style, most) = *ASKED_EACH.iter().find(|(style, _)| *style == ask.style).unwrap();
            let template = if self.draw.happens(REMEMBERED) { ask.text.replace("'}", "}") } else { ask.text.clone() };
            let texts: Vec<String> = happenings.iter().map(|one| fill_slots(&template, one)).collect();
            let mut asked_so_far = 0;
            for at in order {
                if asked_so_far == most {
                    break;
                }
                let rivals: Vec<usize> =
                    (0..happenings.len()).filter(|other| *other != at && texts[*other] == texts[at]).collect();
                let Some(text) = self.named_in_time(ask, &texts[at], at, &rivals, happenings) else { continue };
                let evidence: Vec<Evidence> = [ask.parts.0, ask.parts.1]
                    .into_iter()
                    .zip(&happenings[at].evidence)
                    .filter(|(is_asked, _)| *is_asked)
                    .filter_map(|(_, place)| match place.as_ref()? {
                        Place::Block(id) => Some(Evidence::Turn(places[id])),
                        Place::Line { path, text } => Some(Evidence::Line { path: path.clone(), text: text.clone() }),
                    })
                    .collect();
                let text = if style == "exact" { self.forget_words(&text) } else { text };
                let text = capital(&asked(&text, &mut self.draw));
                questions.push(Question { style, text, evidence, scene: scene.name.clone() });
                asked_so_far += 1;
            }
        }
    }

    /// Usually shortens a list of words to three, as some people do.
    fn forget_words(&mut self, text: &str) -> String {
        let mut words: Vec<&str> = text.split(' ').collect();
        if text.ends_with('?') || self.draw.happens(0.4) {
            return text.to_owned();
        }
        while words.len() > 3 {
            words.remove(self.draw.below(words.len()));
        }
        words.join(" ")
    }

    fn named_in_time(
        &mut self,
        ask: &Ask,
        text: &str,
        at: usize,
        rivals: &[usize],
        happenings: &[Happening<'_>],
    ) -> Option<String> {
        if !ask.text.contains("{when}") {
            return rivals.is_empty().then(|| text.to_owned());
        }
        for _ in 0..8 {
            let (named, from, to) = time_named(happenings[at].days[0], &mut self.draw);
            if rivals.iter().all(|rival| happenings[*rival].days[0] < from || happenings[*rival].days[0] > to) {
                return Some(text.replace("{when}", &named));
            }
        }
        None
    }
}

fn paper_path(paper: &str) -> String {
    format!("memory/notes/{}.md", paper.to_lowercase().replace(' ', "-"))
}

/// Splits `facts: text`, `log: text`, `task: title :: text`, `doc(Name): text`.
fn parse_note(wording: &str) -> Option<(&str, String)> {
    let (kind, text) = wording.split_once(": ")?;
    let kind = match kind {
        "facts" | "log" | "task" => kind,
        _ => kind.strip_prefix("doc(")?.strip_suffix(')')?,
    };
    Some((kind, capital(text)))
}

fn fill_slots(text: &str, happening: &Happening<'_>) -> String {
    let mut text = text.to_owned();
    // Twice, since a value may name a person.
    for _ in 0..2 {
        for (slot, said, other) in &happening.filled {
            text = text.replace(&format!("{{{slot}'}}"), other).replace(&format!("{{{slot}}}"), said);
        }
    }
    text = text.replace("{P}", &happening.person).replace("{Q}", &happening.other).replace("{O}", &happening.other);
    match text.split_once(' ') {
        Some((tag @ ("P:" | "Q:" | "P*:" | "Q*:"), rest)) => format!("{tag} {}", capital(rest)),
        _ => capital(&text),
    }
}

fn capital(text: &str) -> String {
    if ["facts: ", "log: ", "task: ", "doc("].iter().any(|kind| text.starts_with(kind)) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
