//! Which verbs a person has to allow first. [`judge_verb`] is pure; [`Browser::consider`] gathers its facts.
//!
//! Moving around within what pages offer is free. Sending something asks: submitting a form, uploading, typing into a
//! secret field, a button whose label says that it pays, sends, publishes, deletes or signs in, and an address that
//! neither a page nor a person named.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    browser::Browser,
    cdp::CallError,
    error::{BrowserError, Fault},
    look::clean::clean_line,
    references::NodeAddress,
    scripts,
    verb::{Place, TabAct, Verb},
};

/// Words on buttons that do more than move around, in the languages that our pages mostly have.
const ACTING_WORDS: [&str; 62] = [
    "pay", "buy", "order now", "place order", "checkout", "purchase", "subscribe", "donate", "book", "reserve", "send",
    "submit", "publish", "post", "share", "tweet", "reply", "delete", "remove", "cancel subscription", "sign in", "log in",
    "login", "sign up", "register", "create account", "authorize", "authorise", "allow", "grant", "confirm", "accept offer",
    "transfer", "withdraw", "bezahlen", "zahlen", "kaufen", "bestellen", "buchen", "senden", "absenden", "abschicken",
    "veröffentlichen", "löschen", "anmelden", "einloggen", "registrieren", "bestätigen", "zulassen", "payer", "acheter",
    "commander", "envoyer", "publier", "supprimer", "connexion", "pagar", "comprar", "enviar", "publicar", "eliminar",
    "iniciar sesión",
];

/// Whether a verb may be carried out at once.
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
        Verb::Press { key, .. } if is_sending_key(key) => match (element.is_field, &element.form) {
            (true, Some(_)) => ask("Send a form by Enter", facts, element),
            _ => judge_click(facts, element),
        },
        Verb::Upload { files, .. } => {
            let names = files.iter().map(|file| FormValue { label: "File".to_owned(), value: Some(file.display().to_string()) });
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
    let aside = if origin(to) == origin(&facts.page) { String::new() } else { format!(", from a page of {}", origin(&facts.page)) };
    let what = format!("{what}{named} to {}{aside}", origin(to));
    let is_sent = element.submits || element.is_field;
    Trust::Asks(TrustQuestion { what, values: if is_sent { form.values } else { Vec::new() } })
}

fn is_sending_key(key: &str) -> bool {
    let last = key.rsplit('+').next().unwrap_or_default().trim().to_lowercase();
    matches!(last.as_str(), "enter" | "return" | "space") || key == " "
}

/// Finds an acting word at the bounds of words.
fn has_acting_word(label: &str) -> bool {
    let words: Vec<String> =
        label.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let label = format!(" {} ", words.join(" "));
    ACTING_WORDS.iter().any(|word| label.contains(&format!(" {word} ")))
}

fn origin(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "an unknown place".to_owned())
}

impl Browser {
    /// Judges a verb on the page as it is. `named` are the addresses that a person named.
    ///
    /// # Errors
    /// As for [`Browser::run`]: the element may be gone, or the page may hang.
    pub async fn consider(&mut self, verb: &Verb, named: &[String]) -> Result<Trust, BrowserError> {
        let element = match self.describe_element(verb).await {
            Ok(element) => element,
            Err(Fault::Told(error)) => return Err(error),
            // The verb itself reports what is wrong with the page.
            Err(Fault::Call(CallError::Dialog)) => None,
            Err(Fault::Call(error)) => return Err(BrowserError::TryOnce(error.to_string())),
        };
        let facts = TrustFacts {
            page: self.address(),
            element,
            is_known_address: self.is_known_address(verb, named),
            dialog: self.open_dialog().map(|dialog| dialog.message),
        };
        Ok(judge_verb(verb, &facts))
    }

    fn is_known_address(&self, verb: &Verb, named: &[String]) -> bool {
        let (Verb::Navigate { url } | Verb::Tabs(TabAct::Open { url })) = verb else { return false };
        let Ok(url) = Url::parse(url) else { return false };
        let is_named = named.iter().any(|named| is_same_address(named, &url));
        is_named || self.seen_links.contains(url.as_str())
    }

    async fn describe_element(&mut self, verb: &Verb) -> Result<Option<ElementFacts>, Fault> {
        let address = match verb {
            Verb::Click(place) | Verb::DoubleClick(place) | Verb::Drag { from: place, .. } => self.find_place_node(place).await?,
            Verb::Type { reference, .. } | Verb::Upload { reference, .. } => Some(self.find_node(reference).await?),
            Verb::Press { reference: Some(reference), .. } => Some(self.find_node(reference).await?),
            Verb::Press { .. } => return self.describe_focused().await,
            _ => None,
        };
        let Some(address) = address else { return Ok(None) };
        let is_secret = self.secrets.contains(&address);
        let facts = self.call_on_node(&address, scripts::DESCRIBE, &[]).await?;
        Ok(serde_json::from_value(facts).ok().map(|facts: ElementFacts| {
            ElementFacts { is_secret: facts.is_secret || is_secret, ..facts }
        }))
    }

    async fn describe_focused(&mut self) -> Result<Option<ElementFacts>, Fault> {
        let function = format!(
            "function () {{ let e = document.activeElement; while (e && e.shadowRoot && e.shadowRoot.activeElement) \
             e = e.shadowRoot.activeElement; return e ? ({}).call(e) : null; }}",
            scripts::DESCRIBE
        );
        let tab = self.ensure_tab().await?;
        let facts = self.call_in_frame(&tab.frame, &function, &[]).await?;
        Ok(serde_json::from_value(facts).ok())
    }

    async fn find_place_node(&mut self, place: &Place) -> Result<Option<NodeAddress>, Fault> {
        if let Some(reference) = &place.reference {
            return Ok(Some(self.find_node(reference).await?));
        }
        let (Some(name), Some(x), Some(y)) = (&place.picture, place.x, place.y) else { return Ok(None) };
        self.find_picture_node(name, x, y).await
    }
}

/// Compares an address that a person named with a URL. A person leaves out the scheme and the last slash.
fn is_same_address(named: &str, url: &Url) -> bool {
    let named = named.trim();
    let candidates = [named.to_owned(), format!("https://{named}"), format!("http://{named}")];
    candidates.iter().filter_map(|text| Url::parse(text).ok()).any(|named| named.as_str() == url.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(element: ElementFacts) -> TrustFacts {
        TrustFacts { page: "https://shop.example/cart".to_owned(), element: Some(element), ..TrustFacts::default() }
    }

    fn click() -> Verb {
        Verb::Click(Place { reference: Some("r1".to_owned()), ..Place::default() })
    }

    fn labelled(label: &str) -> TrustFacts {
        facts(ElementFacts { tag: "button".to_owned(), label: label.to_owned(), ..ElementFacts::default() })
    }

    #[test]
    fn moving_around_is_free() {
        for label in ["Next page", "Details", "Display settings", "Payment history", "Postal code", "Menu", "Orders"] {
            assert_eq!(judge_verb(&click(), &labelled(label)), Trust::Free, "{label}");
        }
        let link = ElementFacts { tag: "a".to_owned(), label: "More".to_owned(), link: Some("https://shop.example/2".to_owned()), ..ElementFacts::default() };
        assert_eq!(judge_verb(&click(), &facts(link)), Trust::Free);
        assert_eq!(judge_verb(&Verb::Back, &TrustFacts::default()), Trust::Free);
    }

    #[test]
    fn acting_words_ask() {
        for label in ["Pay 20 €", "Jetzt kaufen", "Sign in", "Log in with Google", "DELETE", "Send message", "Veröffentlichen"] {
            assert!(matches!(judge_verb(&click(), &labelled(label)), Trust::Asks(_)), "{label}");
        }
    }

    #[test]
    fn a_form_shows_its_values_without_secrets() {
        let value = |label: &str, value: Option<&str>| FormValue { label: label.to_owned(), value: value.map(str::to_owned) };
        let values = vec![value("Name", Some("Ada")), value("Password", None)];
        let form = FormFacts { action: "https://other.example/send".to_owned(), has_secret: true, values: values.clone() };
        let button = ElementFacts { submits: true, label: "Go".to_owned(), form: Some(form.clone()), ..ElementFacts::default() };
        let Trust::Asks(question) = judge_verb(&click(), &facts(button)) else { panic!("it asks") };
        assert_eq!(question.what, "Send a form (\"Go\") to other.example, from a page of shop.example");
        assert_eq!(question.values, values);
        let field = ElementFacts { is_field: true, form: Some(form), ..ElementFacts::default() };
        let enter = Verb::Press { key: "Enter".to_owned(), reference: None };
        assert!(matches!(judge_verb(&enter, &facts(field.clone())), Trust::Asks(_)));
        let typed = |enter| Verb::Type { reference: "r1".to_owned(), text: "x".to_owned(), append: false, enter };
        assert!(matches!(judge_verb(&typed(true), &facts(field.clone())), Trust::Asks(_)));
        assert_eq!(judge_verb(&typed(false), &facts(field.clone())), Trust::Free);
        let secret = ElementFacts { is_secret: true, ..field };
        assert!(matches!(judge_verb(&typed(false), &facts(secret)), Trust::Asks(_)));
    }

    #[test]
    fn an_address_that_nobody_named_asks() {
        let open = Verb::Navigate { url: "https://evil.example/?q=secret".to_owned() };
        let Trust::Asks(question) = judge_verb(&open, &TrustFacts::default()) else { panic!("it asks") };
        assert_eq!(question.values[0].value.as_deref(), Some("https://evil.example/?q=secret"));
        let known = TrustFacts { is_known_address: true, ..TrustFacts::default() };
        assert_eq!(judge_verb(&open, &known), Trust::Free);
        assert!(is_same_address("shop.example", &Url::parse("https://shop.example/").unwrap()));
        assert!(!is_same_address("shop.example", &Url::parse("https://shop.example/?a=b").unwrap()));
    }

    #[test]
    fn uploads_and_accepted_dialogs_ask() {
        let upload = Verb::Upload { reference: "r1".to_owned(), files: vec!["a.pdf".into()] };
        assert!(matches!(judge_verb(&upload, &TrustFacts::default()), Trust::Asks(_)));
        let answer = |answer| Verb::Dialog { answer, text: None };
        let facts = TrustFacts { dialog: Some("Delete all?".to_owned()), ..TrustFacts::default() };
        assert!(matches!(judge_verb(&answer(crate::verb::DialogAnswer::Accept), &facts), Trust::Asks(_)));
        assert_eq!(judge_verb(&answer(crate::verb::DialogAnswer::Dismiss), &facts), Trust::Free);
    }
}
