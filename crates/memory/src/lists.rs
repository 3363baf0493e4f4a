//! Lists in the semantic memory, such as `## Shopping list`: one section per list and one line per item.

use super::{
    facts::{Fact, Facts, add_item, edit_facts, is_same},
    sections::Document,
    text::{detect_line_ending, escape_start, format_comment, one_line, split_words},
};

/// The maximum length of an item, in characters.
const MAX_ITEM_CHARS: usize = 200;
/// The maximum length of the comment that names an item's origin, in characters.
const MAX_ORIGIN_CHARS: usize = 200;

/// A list after items were added or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedList {
    /// The document's new text.
    pub text: String,
    /// The added or removed items.
    pub changed: Vec<String>,
    /// The items that were already on the list (when adding) or weren't on it (when removing).
    pub unchanged: Vec<String>,
}

/// Returns the items of a list. `None` if there is no such list.
pub fn list_items(text: &str, list: &str) -> Option<Vec<Fact>> {
    let (facts, _) = Facts::parse(text);
    let mut topics = facts.topics.into_iter().filter(|topic| is_same(&topic.title, list)).peekable();
    topics.peek().is_some().then(|| topics.flat_map(|topic| topic.facts).collect())
}

/// Returns the names of all lists.
pub fn list_names(text: &str) -> Vec<String> {
    let (facts, _) = Facts::parse(text);
    facts.topics.into_iter().map(|topic| topic.title).filter(|title| title.ends_with(" list")).collect()
}

/// Adds items to a list, creating the list if needed. Duplicates are skipped.
pub fn add_items(text: &str, list: &str, things: &[String], origin: &str) -> ChangedList {
    let mut done = ChangedList { text: text.to_owned(), changed: Vec::new(), unchanged: Vec::new() };
    for thing in things.iter().map(|thing| one_line(thing, MAX_ITEM_CHARS)) {
        let present = list_items(&done.text, list).unwrap_or_default();
        if present.iter().any(|item| is_same(&item.text, &thing)) {
            done.unchanged.push(thing);
            continue;
        }
        let document = Document::split(&done.text);
        let eol = detect_line_ending(text);
        let line = format!("- {} {}{eol}", escape_start(&thing), format_comment(origin, MAX_ORIGIN_CHARS));
        let section = document.sections().find(|part| is_same(&part.title, list));
        done.text = match section {
            Some(part) => add_item(&document, part, &line),
            None => document.append(&format!("## {list}{eol}{line}")),
        };
        done.changed.push(thing);
    }
    done
}

/// Removes items from a list: for each name the exact match, else the only item with all its words.
pub fn remove_items(text: &str, list: &str, things: &[String]) -> ChangedList {
    let present = list_items(text, list).unwrap_or_default();
    let mut done = ChangedList { text: text.to_owned(), changed: Vec::new(), unchanged: Vec::new() };
    let mut lines = Vec::new();
    for thing in things {
        match find_item(&present, thing) {
            Some(item) if !lines.contains(&item.line) => {
                lines.push(item.line);
                done.changed.push(item.text.clone());
            }
            _ => done.unchanged.push(thing.clone()),
        }
    }
    done.text = edit_facts(text, |fact, _| lines.contains(&fact.line).then(String::new));
    done
}

fn find_item<'i>(items: &'i [Fact], thing: &str) -> Option<&'i Fact> {
    let wanted = split_words(thing);
    let has_all = |item: &&Fact| {
        let own = split_words(&item.text);
        !wanted.is_empty() && wanted.iter().all(|word| own.contains(word))
    };
    let same = items.iter().find(|item| is_same(&item.text, thing) || split_words(&item.text) == wanted);
    same.or_else(|| {
        let mut fits = items.iter().filter(has_all);
        fits.next().filter(|_| fits.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "Shopping list";
    const ORIGIN: &str = "wake 20261121T140302Z-812 message 41";

    fn named(items: Option<Vec<Fact>>) -> Vec<String> {
        items.unwrap_or_default().into_iter().map(|item| item.text).collect()
    }

    fn owned(things: &[&str]) -> Vec<String> {
        things.iter().map(|thing| (*thing).to_owned()).collect()
    }

    #[test]
    fn items_are_added_to_a_list_once_and_removed() {
        let facts = "## People\n- milk makes Anna ill\n";
        assert_eq!(list_items(facts, LIST), None);
        let put_on = add_items(facts, LIST, &owned(&["milk", "oat biscuits", "Milk"]), ORIGIN);
        assert_eq!((put_on.changed.len(), put_on.unchanged), (2, owned(&["Milk"])));
        assert_eq!(named(list_items(&put_on.text, "shopping list")), ["milk", "oat biscuits"]);
        let taken = remove_items(&put_on.text, LIST, &owned(&["milk", "biscuit", "bread"]));
        assert_eq!((taken.changed, taken.unchanged), (owned(&["milk", "oat biscuits"]), owned(&["bread"])));
        assert_eq!(named(list_items(&taken.text, LIST)), Vec::<String>::new());
        assert!(taken.text.starts_with(facts), "{}", taken.text);
    }

    #[test]
    fn a_word_shared_by_several_items_removes_none() {
        let text = add_items("", LIST, &owned(&["oat milk", "soy milk"]), ORIGIN).text;
        assert_eq!(remove_items(&text, LIST, &owned(&["milk"])).text, text);
    }
}
