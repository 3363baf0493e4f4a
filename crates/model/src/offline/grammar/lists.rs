//! Parses commands for lists: shopping, packing, films to see. Each list is a section of its own in the semantic memory. Patterns are
//! written as described at [`reveille_base::schedule::words::Cursor::match_phrase`].

use chrono::DateTime;

use reveille_base::zone::Tz;

use super::{OfflineCommand, Reading, sentence::Sentence};

/// The list for anything bought.
const SHOPPING: &str = "Shopping list";
/// Words that name no list: those of tasks and reminders, and words around a name.
const NO_NAME: &str = "task|tasks|todo|to-do|todos|reminder|reminders|my|the|our|a|an|this|that|your|on|to|from|of|off|for|and|is|long|whole|full|active|\
                       open|current|me|is|what|what's|check";
/// Words before an item that aren't part of its name.
const JOINTS: &str = "?and ?also";
/// The same before something to buy: "some milk".
pub(super) const TO_BUY: &str = "?and ?also ?some|the|more ?of";
/// Maximum words of an item.
const MAX_ITEM_WORDS: usize = 10;

pub(super) fn parse_list(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    if let Some(command) = parse_show(sentence) {
        return Some(Reading::Command(command));
    }
    let command = parse_add(sentence).or_else(|| parse_take(sentence)).or_else(|| parse_clear(sentence))?;
    Some(if sentence.is_bare_question() { Reading::Question } else { Reading::Command(command) })
}

/// Parses a list's name at the beginning: "my shopping list", "the list of films". Also returns the rest.
fn parse_list_name<'t>(sentence: &Sentence<'t>) -> Option<(String, Sentence<'t>)> {
    let bare = sentence.skip_phrase("?my|the|our|a");
    if let Some(end) = bare.cursor().match_phrase("shopping|groceries|grocery") {
        let end = end.skip("list|lists");
        return Some((SHOPPING.to_owned(), bare.skip_to(end)));
    }
    let (first, second) = (bare.cursor(), bare.cursor().next());
    let is_name = |text: &str| text.starts_with(char::is_alphabetic) && !NO_NAME.split('|').any(|word| word == text);
    let named = |words: usize| bare.part_until(words).text();
    if is_name(first.text()) && second.text() == "list" {
        return Some((format_list_name(named(1)), bare.part_from(2)));
    }
    let is_long = is_name(first.text()) && is_name(second.text()) && second.next().text() == "list";
    is_long.then(|| (format_list_name(named(2)), bare.part_from(3)))
}

/// Builds a list's name: "packing" becomes "Packing list".
fn format_list_name(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    let name: String = first.chain(chars.as_str().to_lowercase().chars()).collect();
    format!("{name} list")
}

/// Returns the list if a sentence is nothing but its name, as in "my shopping list, please".
fn whole_list(sentence: &Sentence<'_>) -> Option<String> {
    let (list, rest) = parse_list_name(&sentence.body())?;
    rest.is_all_of("?please ?now ?right ?now ?again ?so ?far ?today ?then ?too ?also ?as ?well ?, ?please|thanks")
        .then_some(list)
}

/// Parses "We're out of pasta, put it on the shopping list".
fn run_out(sentence: &Sentence<'_>) -> Option<OfflineCommand> {
    const OUT: &str =
        "?i'm|we're|i|we|i've|we've ?am|are|have ?ran|run|nearly|almost ?completely ?running out|low of|on";
    let rest = sentence.strip_phrase(OUT)?;
    let at = (1..rest.len()).find(|at| rest.part_from(*at).cursor().match_phrase(",|-|–|and|so").is_some())?;
    let order = rest.part_from(at).strip_phrase(",|-|–|and|so")?.skip_phrase("?and|so ?please ?can|could ?you");
    let list = whole_list(&order.strip_phrase("put|add|stick ?it|that|them|some ?more ?back on|onto|to")?)?;
    build_add(list, &rest.part_until(at))
}

fn parse_add(sentence: &Sentence<'_>) -> Option<OfflineCommand> {
    if let Some(command) = run_out(sentence) {
        return Some(command);
    }
    if let Some(end) = sentence.cursor().match_phrase("add|put|stick|throw|write|pop|get|chuck ?also") {
        let rest = sentence.skip_to(end);
        // "Add to the shopping list: milk".
        if let Some(end) = rest.cursor().match_phrase("to|on|onto|in")
            && let Some((list, items)) = parse_list_name(&rest.skip_to(end))
        {
            return build_add(list, &items);
        }
        return (1..rest.len()).rev().find_map(|index| {
            let list = whole_list(&rest.part_from(index).strip_phrase("to|on|onto|in|into")?)?;
            build_add(list, &rest.part_until(index))
        });
    }
    // "Make a list called altos: Ines, Beate".
    if let Some(rest) =
        sentence.strip_phrase("start|make|create|begin|new ?a|an|another ?new list ?called|named|of|for ?the|my|our")
        && let Some(colon) =
            (1..rest.len().min(5)).find(|at| rest.part_from(*at).cursor().match_phrase(":|with|-").is_some())
    {
        return build_add(format_list_name(rest.part_until(colon).text()), &rest.part_from(colon + 1));
    }
    // "New list: things for the allotment": a name, and no items yet.
    if let Some(name) = sentence.strip_phrase("start|make|create|begin|new ?a|an|another ?new list :|called|named") {
        let is_name = !name.text().contains(',') && name.body().is_body() && name.body().len() <= 5;
        let name = name.body().skip_phrase("things|stuff for|to ?the|my").skip_phrase("the|my");
        return is_name.then(|| OfflineCommand::ListShow { list: Some(format_list_name(name.text())) });
    }
    // "Start a packing list with socks".
    if let Some(rest) = sentence.strip_phrase("start|make|create|begin|new")
        && let Some((list, items)) = parse_list_name(&rest.skip_phrase("?a|an|another ?new"))
    {
        let is_named = items.cursor().match_phrase("for|of").is_some();
        return build_add(list, &if is_named { items } else { items.strip_phrase("with|:|,")? });
    }
    // "Shopping list: milk, eggs".
    let (list, rest) = parse_list_name(sentence)?;
    if rest.cursor().match_phrase("for|of").is_some() && rest.part_until(rest.len().min(6)).has_word(":") {
        return build_add(list, &rest);
    }
    let colon = rest.cursor().match_phrase(":|-|–")?;
    build_add(list, &rest.skip_to(colon))
}

fn build_add(list: String, items: &Sentence<'_>) -> Option<OfflineCommand> {
    // "… for Denmark: rain jacket".
    let colon = (1..items.len().min(5)).find(|at| items.part_from(*at).cursor().text() == ":");
    let items = &match colon {
        Some(at) if items.cursor().match_phrase("for|of").is_some() => items.part_from(at + 1),
        // "Start a packing list for Lisbon": no items yet.
        None if items.cursor().match_phrase("for|of").is_some() => {
            return Some(OfflineCommand::ListShow { list: Some(list) });
        }
        _ => *items,
    };
    let items = split_items(items, if list == SHOPPING { TO_BUY } else { JOINTS })?;
    Some(OfflineCommand::ListAdd { list, items })
}

/// Splits an enumeration into items: "milk, eggs and a loaf of bread".
pub(super) fn split_items(sentence: &Sentence<'_>, lead: &str) -> Option<Vec<String>> {
    let body = sentence.body();
    let mut items = Vec::new();
    let mut start = 0;
    for index in 0..=body.len() {
        let is_joint = body.part_from(index).cursor().match_phrase(",|;|and|&|+|plus").is_some();
        if index < body.len() && !is_joint {
            continue;
        }
        let item = body.part_until(index).part_from(start).body().skip_phrase(lead).body().strip_quotes();
        start = index + 1;
        if item.is_blank() {
            continue;
        }
        if !item.is_body() || item.is_pronoun() || item.len() > MAX_ITEM_WORDS || item.is_negated() {
            return None;
        }
        items.push(item.text().to_owned());
    }
    (!items.is_empty()).then_some(items)
}

const SHOW: &[&str] = &[
    "what|what's|whats ?do ?i|we ?is ?have ?still ?left ?there ?on",
    "show|list|read|give|tell|open|see|display|view ?me ?us ?out ?what ?is ?what's ?on",
    "check|read ?out",
    "what|which things|items are on",
    "is ?there anything|something|sth ?left on",
    "do i|we have anything on",
    "anything ?left|still on",
    "let ?me|us see",
    "",
];

/// Parses "What's on the shopping list?", "what do we need to buy?", "what's on it?".
fn parse_show(sentence: &Sentence<'_>) -> Option<OfflineCommand> {
    const BUY: &[&str] = &[
        "what ?else do|should i|we ?still need|have|want|got ?to ?buy|get ?from ?at ?the ?shop|store|supermarket|shops|market",
        "what ?else should i|we buy|get ?from ?at ?the ?shop|store|supermarket|shops|market",
        "what am i buying ?today",
    ];
    const PACKING: &[&str] = &[
        "what's|what|whats ?do|is|have|should ?i|we ?still ?left ?have|need|got ?left ?to pack|packed",
        "what ?else do|should i|we ?still ?need|have ?to pack",
    ];
    if PACKING.iter().any(|pattern| sentence.is_all_of(pattern)) {
        return Some(OfflineCommand::ListShow { list: Some("Packing list".to_owned()) });
    }
    const IT: &[&str] = &["what|what's|who|who's|whats|whos ?else ?is ?still on|in|left it|there ?now"];
    let is_any = |patterns: &[&str]| patterns.iter().any(|pattern| sentence.is_all_of(pattern));
    if is_any(BUY) && sentence.has_word("buy|get|shop|store|supermarket|shops|market|buying") {
        return Some(OfflineCommand::ListShow { list: Some(SHOPPING.to_owned()) });
    }
    if is_any(IT) {
        return Some(OfflineCommand::ListShow { list: None });
    }
    // "Is milk on the shopping list?" is answered with the whole list.
    let asked = sentence.cursor().match_phrase("is|are|do|did|have").and_then(|_| {
        (1..sentence.len()).rev().find_map(|index| whole_list(&sentence.part_from(index).strip_phrase("on|to")?))
    });
    if sentence.cursor().match_phrase("is|are|do|did|have").is_some()
        && (1..sentence.len()).any(|at| sentence.part_from(at).is_all_of("on|off it|the|there ?list ?already"))
    {
        return Some(OfflineCommand::ListShow { list: None });
    }
    let named = SHOW.iter().filter_map(|pattern| match *pattern {
        "" => Some(*sentence),
        pattern => sentence.cursor().match_phrase(pattern).map(|end| sentence.skip_to(end)),
    });
    let list = asked.or_else(|| named.into_iter().find_map(|rest| whole_list(&rest)))?;
    Some(OfflineCommand::ListShow { list: Some(list) })
}

const TAKE: &str = "remove|delete|take|cross|scratch|tick|check|strike|drop|erase";

/// Parses "Take milk off the shopping list", "cross milk and eggs off my shopping list".
fn parse_take(sentence: &Sentence<'_>) -> Option<OfflineCommand> {
    let rest = sentence.skip_to(sentence.cursor().match_phrase(TAKE)?);
    // "Tick milk off the list" names no list: it means a task or a shopping item.
    let bare = (1..rest.len()).find(|at| rest.part_from(*at).is_all_of("off|from the|my list"));
    if let Some(thing) = bare.map(|at| rest.part_until(at).body().skip_phrase("the|my")) {
        let which = thing.parse_which()?;
        let is_finished = sentence.cursor().match_phrase("cross|scratch|tick|check|strike").is_some();
        return Some(if is_finished { OfflineCommand::TaskDone { which } } else { OfflineCommand::Delete { which } });
    }
    (1..rest.len()).find_map(|index| {
        let list = whole_list(&rest.part_from(index).strip_phrase("off|from|on|out ?of ?from")?)?;
        let items = split_items(&rest.part_until(index).skip_phrase("?off"), TO_BUY)?;
        Some(OfflineCommand::ListTake { list, items })
    })
}

/// Parses "Clear the shopping list", "I bought everything on the shopping list".
fn parse_clear(sentence: &Sentence<'_>) -> Option<OfflineCommand> {
    const BOUGHT: &str = "i|we|i've|we've ?have ?just bought|got everything|all ?of ?it ?on|from";
    let verb = sentence.cursor().match_phrase("clear|empty|wipe|delete|erase|reset ?out ?everything|all ?on|from|off");
    let end = verb.or_else(|| sentence.cursor().match_phrase(BOUGHT))?;
    whole_list(&sentence.skip_to(end)).map(|list| OfflineCommand::ListClear { list })
}
