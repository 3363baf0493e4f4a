//! The assistant's name, from the first sentence of the standing orders: “You are Reveille, one person's assistant.”

use reveille_base::words;

use super::text::{slice, split_lines};

/// The beginning of that sentence.
const BEGINS: &str = "You are ";
/// The maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 40;

/// The reason the assistant can't be renamed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnNameError {
    /// The name is unfit: choose another.
    #[error(
        "a name has 1 to {MAX_NAME_CHARS} characters: letters, digits, spaces, hyphens and apostrophes, a letter first"
    )]
    Unfit,
    /// The orders lack the sentence, because a person reworded them: change the name there.
    #[error("claude.md has no sentence that begins with “{BEGINS}NAME,”: add one to set the name")]
    NoPlace,
}

/// Returns the range of the name in the standing orders.
fn find_place(orders: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    for line in split_lines(orders) {
        if let Some(rest) = line.strip_prefix(BEGINS) {
            let name = rest.split([',', '.', '\n', '\r']).next().unwrap_or_default();
            let begin = at + BEGINS.len();
            return is_name(name).then_some(begin..begin + name.len());
        }
        at += line.len();
    }
    None
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '\'' | '’');
    name.chars().count() <= MAX_NAME_CHARS && name.starts_with(char::is_alphabetic) && name.chars().all(fits)
}

/// Returns the assistant's name.
pub fn own_name(orders: &str) -> Option<&str> {
    find_place(orders).map(|place| slice(orders, place))
}

/// Returns the orders with another name.
///
/// # Errors
/// The name is invalid, or the orders have no place for a name.
pub fn replace_name(orders: &str, name: &str) -> Result<String, OwnNameError> {
    let name = words::one_line(name);
    if !is_name(&name) {
        return Err(OwnNameError::Unfit);
    }
    let place = find_place(orders).ok_or(OwnNameError::NoPlace)?;
    Ok(format!("{}{name}{}", slice(orders, 0..place.start), slice(orders, place.end..orders.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CLAUDE, templates::list_files};

    #[test]
    fn the_orders_that_ship_name_it_and_only_that_changes() {
        let templates = list_files();
        let orders = templates.iter().find(|(path, _)| *path == CLAUDE).unwrap().1;
        assert_eq!(own_name(orders), Some("Reveille"));
        let renamed = replace_name(orders, "  Robin   Q ").unwrap();
        assert_eq!(renamed, orders.replacen("You are Reveille,", "You are Robin Q,", 1));
        assert_eq!(own_name(&renamed), Some("Robin Q"));
    }

    #[test]
    fn what_is_no_name_or_has_no_place_is_refused() {
        let orders = "# Orders\n\nYou are Zoë-Ann, an assistant.\n";
        for name in ["", " ", "7of9", "Robin, who obeys", "a\nb.", "You are: x", "x".repeat(41).as_str(), "<b>"] {
            assert_eq!(replace_name(orders, name), Err(OwnNameError::Unfit), "{name:?}");
        }
        assert!(replace_name(orders, "O'Brien 2").unwrap().contains("You are O'Brien 2, an assistant."));
        for orders in ["", "Be kind.\n", "You are <one>, two\n"] {
            assert_eq!(replace_name(orders, "Robin"), Err(OwnNameError::NoPlace), "{orders}");
        }
    }
}
