//! Questions about verbs, as values.

use super::*;
use crate::verb::{ActPlace, DialogAnswer};

fn facts(element: ElementFacts) -> TrustFacts {
    TrustFacts { page: "https://shop.example/cart".to_owned(), element: Some(element), ..TrustFacts::default() }
}

fn click() -> Verb {
    Verb::Click(ActPlace { reference: Some("r1".to_owned()), ..ActPlace::default() })
}

fn labelled(label: &str) -> TrustFacts {
    facts(ElementFacts { tag: "button".to_owned(), label: label.to_owned(), ..ElementFacts::default() })
}

#[test]
fn moving_around_is_free() {
    for label in ["Next page", "Details", "Display settings", "Payment history", "Postal code", "Menu", "Orders"] {
        assert_eq!(judge_verb(&click(), &labelled(label)), Trust::Free, "{label}");
    }
    let link = ElementFacts {
        tag: "a".to_owned(),
        label: "More".to_owned(),
        link: Some("https://shop.example/2".to_owned()),
        ..ElementFacts::default()
    };
    assert_eq!(judge_verb(&click(), &facts(link)), Trust::Free);
    assert_eq!(judge_verb(&Verb::Back, &TrustFacts::default()), Trust::Free);
}

#[test]
fn acting_words_ask() {
    for label in
        ["Pay 20 €", "Jetzt kaufen", "Sign in", "Log in with Google", "DELETE", "Send message", "Veröffentlichen"]
    {
        assert!(matches!(judge_verb(&click(), &labelled(label)), Trust::Asks(_)), "{label}");
    }
}

#[test]
fn a_form_shows_its_values_without_secrets() {
    let value =
        |label: &str, value: Option<&str>| FormValue { label: label.to_owned(), value: value.map(str::to_owned) };
    let values = vec![value("Name", Some("Ada")), value("Password", None)];
    let form = FormFacts { action: "https://other.example/send".to_owned(), has_secret: true, values: values.clone() };
    let button =
        ElementFacts { submits: true, label: "Go".to_owned(), form: Some(form.clone()), ..ElementFacts::default() };
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
}

#[test]
fn uploads_and_accepted_dialogs_ask() {
    let upload = Verb::Upload { reference: "r1".to_owned(), files: vec!["a.pdf".into()] };
    assert!(matches!(judge_verb(&upload, &TrustFacts::default()), Trust::Asks(_)));
    let answer = |answer| Verb::Dialog { answer, text: None };
    let facts = TrustFacts { dialog: Some("Delete all?".to_owned()), ..TrustFacts::default() };
    assert!(matches!(judge_verb(&answer(DialogAnswer::Accept), &facts), Trust::Asks(_)));
    assert_eq!(judge_verb(&answer(DialogAnswer::Dismiss), &facts), Trust::Free);
}

#[test]
fn keys_that_send_and_downloads_are_judged_like_clicks() {
    let press = |key: &str| Verb::Press { key: key.to_owned(), reference: None };
    let asks = |verb: &Verb, facts: &TrustFacts| matches!(judge_verb(verb, facts), Trust::Asks(_));
    let of = |tag: &str, is_field| facts(ElementFacts { tag: tag.to_owned(), is_field, ..ElementFacts::default() });
    // In a field, in a frame, or nobody knows where.
    assert!(asks(&press("Enter"), &of("textarea", true)) && asks(&press("Enter"), &of("iframe", false)));
    assert!(asks(&press("Enter"), &TrustFacts::default()) && asks(&press("Control+Enter"), &of("input", true)));
    assert!(!asks(&press("Space"), &of("input", true)) && !asks(&press("ArrowDown"), &of("input", true)));
    assert!(asks(&press("Space"), &labelled("Delete")) && !asks(&press("Enter"), &labelled("More")));
    let download = Verb::Download { reference: Some("r1".to_owned()) };
    let sends = facts(ElementFacts { submits: true, ..ElementFacts::default() });
    assert!(asks(&download, &sends) && !asks(&download, &labelled("Invoice")));
}
