//! Which verbs a person has to allow first. [`judge_verb`] is pure; [`crate::Browser::consider`] gathers its facts.
//!
//! Moving around within what pages offer is free. These ask:
//! - submitting a form, uploading, and typing into a secret field;
//! - a button whose label says that it pays, sends, publishes, deletes or signs in;
//! - an address that neither a page nor a person named.

mod gather;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    look::clean::clean_line,
    verb::{TabAct, Verb},
};

/// Words on buttons that do more than move around, in English, German, French and Spanish.
const ACTING_WORDS: [&str; 62] = [
    "pay",
    "buy",
    "order now",
    "place order",
    "checkout",
    "purchase",
    "subscribe",
    "donate",
    "book",
    "reserve",
    "send",
    "submit",
    "publish",
    "post",
    "share",
    "tweet",
    "reply",
    "delete",
    "remove",
    "cancel subscription",
    "sign in",
    "log in",
    "login",
    "sign up",
    "register",
    "create account",
    "authorize",
    "authorise",
    "allow",
    "grant",
    "confirm",
    "accept offer",
    "transfer",
    "withdraw",
    "bezahlen",
    "zahlen",
    "kaufen",
    "bestellen",
    "buchen",
    "senden",
    "absenden",
    "abschicken",
    "veröffentlichen",
    "löschen",
    "anmelden",
    "einloggen",
    "registrieren",
    "bestätigen",
    "zulassen",
    "payer",
    "acheter",
    "commander",
    "envoyer",
    "publier",
    "supprimer",
    "connexion",
    "pagar",
    "comprar",
    "enviar",
    "publicar",
    "eliminar",
    "iniciar sesión",
];

/// The verdict on a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// It only moves around.
    Free,
    /// A person has to allow it.
    Asks(TrustQuestion),
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustQuestion {
    /// What would be done, and where. Names from the page are untrusted.
    pub what: String,
    /// The values that would leave this machine.
    pub values: Vec<FormValue>,
}

/// A value of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormValue {
    /// The field's label. Untrusted.
    pub label: String,
    /// The value; `None` if it is secret.
    pub value: Option<String>,
}

/// The facts of the element that a verb acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ElementFacts {
    /// The tag in lower case.
    pub tag: String,
    /// The label. Untrusted.
    pub label: String,
    /// The address that it links to.
    pub link: Option<String>,
    /// True if a click submits its form.
    pub submits: bool,
    /// True for a field.
    pub is_field: bool,
    /// True for a field for a password, a code or a card number.
    pub is_secret: bool,
    /// The form around it.
    pub form: Option<FormFacts>,
}

/// The facts of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FormFacts {
    /// Where it is sent.
    pub action: String,
    /// True if it holds a secret field.
    pub has_secret: bool,
    /// Its values.
    pub values: Vec<FormValue>,
}

/// The facts that decide whether a verb asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustFacts {
    /// The address of the page.
    pub page: String,
    /// The element that the verb acts on.
    pub element: Option<ElementFacts>,
    /// True if a page has linked to the address, or a person named it.
    pub is_known_address: bool,
    /// The message of the dialog that is open. Untrusted.
    pub dialog: Option<String>,
}

/// Judges a verb by its facts.
pub fn judge_verb(verb: &Verb, facts: &TrustFacts) -> Trust {
    let none = ElementFacts::default();
    let element = facts.element.as_ref().unwrap_or(&none);
    match verb {
        Verb::Navigate { url } | Verb::Tabs(TabAct::Open { url }) => judge_address(url, facts),
        Verb::Click(place) | Verb::DoubleClick(place) => {
            if facts.element.is_none() && place.picture.is_some() {
                return ask("Click on a drawn part of the page", facts, element);
            }
            judge_click(facts, element)
        }
        Verb::Type { enter: true, .. } if element.form.is_some() => ask("Send a form by Enter", facts, element),
        Verb::Type { .. } if element.is_secret => ask("Type into a secret field", facts, element),
        Verb::Type { enter: true, .. } => ask("Type a text and send it by Enter", facts, element),
        Verb::Press { key, .. } if is_sending_key(key) => judge_sending_key(key, facts, element),
        Verb::Download { reference: Some(_) } => judge_click(facts, element),
        Verb::Upload { files, .. } => {
            let names = files
                .iter()
                .map(|file| FormValue { label: "File".to_owned(), value: Some(file.display().to_string()) });
            let what = format!("Give files to {}", origin(&facts.page));
            Trust::Asks(TrustQuestion { what, values: names.collect() })
        }
        Verb::Drag { .. } if has_acting_word(&element.label) => ask("Drag", facts, element),
        Verb::Dialog { answer: crate::verb::DialogAnswer::Accept, text } => {
            let said = facts.dialog.as_deref().unwrap_or_default();
            let value = text.iter().map(|text| FormValue { label: said.to_owned(), value: Some(text.clone()) });
            let what = format!("Answer \"{}\" on {} with OK", clean_line(said, 200), origin(&facts.page));
            Trust::Asks(TrustQuestion { what, values: value.collect() })
        }
        _ => Trust::Free,
    }
}

fn judge_click(facts: &TrustFacts, element: &ElementFacts) -> Trust {
    if element.submits {
        return ask("Send a form", facts, element);
    }
    if !element.is_field && has_acting_word(&element.label) {
        return ask("Click", facts, element);
    }
    // A page's own link within its site is free, and so is one to elsewhere: the page named it, not the model.
    Trust::Free
}

/// Enter sends what a field holds, and Enter or Space press a button.
fn judge_sending_key(key: &str, facts: &TrustFacts, element: &ElementFacts) -> Trust {
    // The focus lies in a frame, or nobody knows where.
    let is_unknown = facts.element.is_none() || element.tag == "iframe";
    if is_unknown || element.is_field && !is_space(key) {
        return ask("Press a key that may send something", facts, element);
    }
    if element.is_field { Trust::Free } else { judge_click(facts, element) }
}

fn judge_address(url: &str, facts: &TrustFacts) -> Trust {
    if facts.is_known_address || url == "about:blank" {
        return Trust::Free;
    }
    let value = FormValue { label: "Address".to_owned(), value: Some(url.to_owned()) };
    Trust::Asks(TrustQuestion { what: format!("Open an address on {}", origin(url)), values: vec![value] })
}

fn ask(what: &str, facts: &TrustFacts, element: &ElementFacts) -> Trust {
    let label = clean_line(&element.label, 100);
    let named = if label.is_empty() { String::new() } else { format!(" (\"{label}\")") };
    let form = element.form.clone().unwrap_or_default();
    let to = if form.action.is_empty() { &facts.page } else { &form.action };
    let aside = if origin(to) == origin(&facts.page) {
        String::new()
    } else {
        format!(", from a page of {}", origin(&facts.page))
    };
    let what = format!("{what}{named} to {}{aside}", origin(to));
    let is_sent = element.submits || element.is_field;
    Trust::Asks(TrustQuestion { what, values: if is_sent { form.values } else { Vec::new() } })
}

fn is_sending_key(key: &str) -> bool {
    is_space(key) || matches!(last_key(key).as_str(), "enter" | "return")
}

fn is_space(key: &str) -> bool {
    key == " " || last_key(key) == "space"
}

fn last_key(key: &str) -> String {
    key.rsplit('+').next().unwrap_or_default().trim().to_lowercase()
}

/// Finds an acting word at the bounds of words.
fn has_acting_word(label: &str) -> bool {
    let words: Vec<String> = label
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let label = format!(" {} ", words.join(" "));
    ACTING_WORDS.iter().any(|word| label.contains(&format!(" {word} ")))
}

fn origin(url: &str) -> String {
    Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_else(|| "an unknown place".to_owned())
}
