//! Acting: what each verb does, and what it checks.

use super::World;
use crate::{BrowserError, Verb, trust::Trust};

const DESK: &str = r#"<!doctype html><title>Desk</title><h1 id=out>Ready</h1>
<script>const say = text => { document.getElementById('out').textContent = text; };</script>
<button onclick="say('clicked')" ondblclick="say('double')" oncontextmenu="say('right')">Try me</button>
<button onmouseenter="say('hovered')">Hover me</button>
<label>Name <input id=name maxlength=5></label>
<label>Notes <textarea></textarea></label>
<label>Day <input type=date></label>
<label>Fixed <input readonly value=fixed></label>
<label>Pet <select onchange="say('pet ' + this.value)"><option>Cat<option>Dog<option disabled>Bird</select></label>
<label>Many <select multiple><option>One<option>Two<option>Three</select></label>
<div contenteditable aria-label=Letter>old</div>
<button disabled onclick="say('wrong')">Disabled</button>
<button onclick="say('nothing')" style="position:absolute;left:-500px;display:none">Hidden</button>
<div style="position:relative"><button onclick="say('wrong')">Covered</button>
  <div style="position:absolute;inset:0;background:white">A banner</div></div>
<div id=source draggable=true ondragstart="event.dataTransfer.setData('text', 'it')">Drag me</div>
<div role=button tabindex=0 ondragover="event.preventDefault()" ondrop="event.preventDefault(); say('dropped ' + event.dataTransfer.getData('text'))">Drop here</div>
<input type=range aria-label=Volume min=0 max=10 value=5>
<div role=region aria-label=Box tabindex=0 style="height:50px;overflow:auto"><p style="height:500px">tall</p></div>
<button onclick="setTimeout(() => say('late text'), 400)">Later</button>
<button onclick="say(confirm('Really?') ? 'yes' : 'no')">Ask</button>
<button onclick="say(prompt('Your name?'))">Prompt</button>
<button onclick="window.open('/next')">Popup</button>
<a href=/next>Next</a> <a href=/file/bill.pdf>Bill</a>
<input type=file aria-label=Attachment onchange="say('file ' + this.files[0].name)">
<button onclick="document.querySelector('[type=file]').click()">Choose a file</button>
<form action=/sent method=post><input name=q aria-label=Query></form>"#;
const NEXT: &str = "<!doctype html><title>Next</title><h1>Next page</h1>";

async fn desk() -> Option<World> {
    let mut world = World::start(&[("/", DESK), ("/next", NEXT), ("/sent", "<h1>Sent</h1>")]).await?;
    world.open("/").await;
    Some(world)
}

#[tokio::test]
async fn clicks_keys_and_fields_do_what_they_say() {
    let Some(mut world) = desk().await else { return };
    for (line, verb, seen) in [
        ("Try me", r#"{"verb": "click", "ref": "REF"}"#, "# clicked"),
        ("Try me", r#"{"verb": "double_click", "ref": "REF"}"#, "# double"),
        ("Try me", r#"{"verb": "right_click", "ref": "REF"}"#, "# right"),
        ("Hover me", r#"{"verb": "hover", "ref": "REF"}"#, "# hovered"),
        ("\"Name\"", r#"{"verb": "type", "ref": "REF", "text": "Ada"}"#, "= \"Ada\""),
        ("\"Name\"", r#"{"verb": "type", "ref": "REF", "text": "Bo"}"#, "= \"Bo\""),
        ("\"Name\"", r#"{"verb": "type", "ref": "REF", "text": "b", "append": true}"#, "= \"Bob\""),
        (
            "\"Name\"",
            r#"{"verb": "type", "ref": "REF", "text": "too long"}"#,
            "Typed, but the field now holds \"too l\".",
        ),
        ("Notes", r#"{"verb": "type", "ref": "REF", "text": "one\ntwo"}"#, "Typed."),
        ("Letter", r#"{"verb": "type", "ref": "REF", "text": "Dear Ada"}"#, "Dear Ada"),
        ("Day", r#"{"verb": "type", "ref": "REF", "text": "2026-11-30"}"#, "Typed."),
        ("Pet", r#"{"verb": "select", "ref": "REF", "options": ["dog"]}"#, "# pet Dog"),
        ("Many", r#"{"verb": "select", "ref": "REF", "options": ["One", "Three"]}"#, "Selected: One, Three."),
        ("Volume", r#"{"verb": "press", "ref": "REF", "key": "ArrowRight"}"#, "= \"6\""),
        ("Volume", r#"{"verb": "type", "ref": "REF", "text": "9"}"#, "= \"9\""),
        ("Later", r#"{"verb": "click", "ref": "REF"}"#, "Clicked."),
    ] {
        let outcome = world.on(line, verb).await.unwrap_or_else(|error| panic!("{line} {verb}: {error}"));
        assert!(outcome.text.contains(seen), "{line} {verb}: {}", outcome.text);
    }
    let waited = world.done(r#"{"verb": "wait", "for": "text", "text": "late TEXT"}"#).await;
    assert!(waited.starts_with("It is so now."), "{waited}");
    let nothing = world.on("Fixed", r#"{"verb": "press", "ref": "REF", "key": "Escape"}"#).await.unwrap();
    assert!(nothing.changes.is_empty(), "{nothing:?}");
}

#[tokio::test]
async fn an_element_that_cannot_be_acted_on_is_refused_with_the_reason() {
    let Some(mut world) = desk().await else { return };
    for (line, verb, why) in [
        ("\"Disabled\"", r#"{"verb": "click", "ref": "REF"}"#, "is disabled"),
        ("\"Covered\"", r#"{"verb": "click", "ref": "REF"}"#, "is covered by div (\"A banner\")"),
        ("Fixed", r#"{"verb": "type", "ref": "REF", "text": "x"}"#, "is read-only"),
        ("Try me", r#"{"verb": "type", "ref": "REF", "text": "x"}"#, "isn't a field for text"),
        ("Pet", r#"{"verb": "type", "ref": "REF", "text": "x"}"#, "use `select`"),
        ("Pet", r#"{"verb": "select", "ref": "REF", "options": ["Fish"]}"#, "It has: Cat, Dog, Bird."),
        ("Pet", r#"{"verb": "select", "ref": "REF", "options": ["Bird"]}"#, "\"Bird\" is disabled"),
        ("Pet", r#"{"verb": "select", "ref": "REF", "options": ["Cat", "Dog"]}"#, "exactly one"),
        ("Day", r#"{"verb": "type", "ref": "REF", "text": "tomorrow"}"#, "Dates are written"),
        ("Try me", r#"{"verb": "press", "ref": "REF", "key": "Hyper"}"#, "isn't a key"),
    ] {
        let error = world.on(line, verb).await.unwrap_err().to_string();
        assert!(error.contains(why), "{line} {verb}: {error}");
    }
    let page = world.done(r#"{"verb": "look", "whole": true}"#).await;
    assert!(!page.contains("wrong") && !page.contains("\"Hidden\""), "{page}");
    for (verb, why) in [
        (r#"{"verb": "navigate", "url": "file:///etc/passwd"}"#, "Only http and https"),
        (r#"{"verb": "navigate", "url": "example"}"#, "isn't an address"),
        (r#"{"verb": "navigate", "url": "http://127.0.0.1/"}"#, "isn't on the public internet"),
        (r#"{"verb": "tabs", "act": "switch", "tab": 99}"#, "There is no tab 99"),
        (r#"{"verb": "dialog", "answer": "accept"}"#, "No dialog is open"),
        (r#"{"verb": "download"}"#, "No download is running"),
        (r#"{"verb": "click", "picture": "p9", "x": 1, "y": 1}"#, "no picture p9"),
        (r#"{"verb": "click"}"#, "Give either `ref`"),
    ] {
        let error = world.run(verb).await.unwrap_err().to_string();
        assert!(error.contains(why), "{verb}: {error}");
    }
}

#[tokio::test]
async fn dragging_and_scrolling_move_things() {
    let Some(mut world) = desk().await else { return };
    let (from, to) = (world.reference("Drag me").await, world.reference("Drop here").await);
    let dragged =
        world.done(&format!(r#"{{"verb": "drag", "from": {{"ref": "{from}"}}, "to": {{"ref": "{to}"}}}}"#)).await;
    assert!(dragged.contains("# dropped it"), "{dragged}");
    let part = world.on("region \"Box\"", r#"{"verb": "scroll", "ref": "REF", "direction": "bottom"}"#).await.unwrap();
    assert!(part.text.contains("Scrolled; now at 4"), "{part:?}");
    let scrolled = world.done(r#"{"verb": "scroll", "direction": "bottom"}"#).await;
    assert!(scrolled.contains("Scrolled;") || scrolled.contains("doesn't scroll further"), "{scrolled}");
}

#[tokio::test]
async fn dialogs_hold_the_page_until_they_are_answered() {
    let Some(mut world) = desk().await else { return };
    let asked = world.click("\"Ask\"").await.unwrap();
    assert_eq!(asked.changes, ["A dialog opened (confirm): \"Really?\""]);
    let refused = world.run(r#"{"verb": "look"}"#).await.unwrap_err();
    assert!(matches!(refused, BrowserError::AnswerDialog { .. }), "{refused:?}");
    let answered = world.done(r#"{"verb": "dialog", "answer": "accept"}"#).await;
    assert!(answered.contains("# yes"), "{answered}");
    world.click("\"Ask\"").await.unwrap();
    assert!(world.done(r#"{"verb": "dialog", "answer": "dismiss"}"#).await.contains("# no"));
    world.click("Prompt").await.unwrap();
    assert!(world.done(r#"{"verb": "dialog", "answer": "accept", "text": "Grace"}"#).await.contains("# Grace"));
}

#[tokio::test]
async fn tabs_and_history_are_followed() {
    let Some(mut world) = desk().await else { return };
    let opened = world.click("Popup").await.unwrap();
    assert!(opened.changes.iter().any(|change| change.contains("opened a new tab")), "{opened:?}");
    let list = world.done(r#"{"verb": "tabs", "act": "list"}"#).await;
    assert!(list.contains("Tab 1 (current): \"Desk\"") && list.contains("Tab 2: \"Next\""), "{list}");
    let old = world.reference("Try me").await;
    assert!(world.done(r#"{"verb": "tabs", "act": "switch", "tab": 2}"#).await.contains("# Next page"));
    let error = world.run(&format!(r#"{{"verb": "click", "ref": "{old}"}}"#)).await.unwrap_err().to_string();
    assert!(error.contains("is in tab 1"), "{error}");
    assert!(world.done(r#"{"verb": "tabs", "act": "close", "tab": 2}"#).await.contains("Closed tab 2."));
    assert!(world.click("\"Next\"").await.unwrap().text.contains("# Next page"));
    let back = world.done(r#"{"verb": "back"}"#).await;
    assert!(back.contains("# Ready") && back.contains("Title: Desk"), "{back}");
    let url = world.site.url("127.0.0.1", "/next");
    let opened = world.done(&format!(r#"{{"verb": "tabs", "act": "open", "url": "{url}"}}"#)).await;
    assert!(opened.contains("# Next page"), "{opened}");
    let error = world.run(r#"{"verb": "back"}"#).await.unwrap_err().to_string();
    assert!(!error.is_empty());
}

#[tokio::test]
async fn files_go_both_ways() {
    let Some(mut world) = desk().await else { return };
    let file = world.folder.path().join("uploads/letter.txt");
    std::fs::write(&file, "Dear all").unwrap();
    let outside = world.folder.path().join("secret.txt");
    std::fs::write(&outside, "no").unwrap();
    let upload =
        |path: &std::path::Path| format!(r#"{{"verb": "upload", "ref": "REF", "files": ["{}"]}}"#, path.display());
    for line in ["\"Attachment", "Choose a file"] {
        let done = world.on(line, &upload(&file)).await.unwrap_or_else(|error| panic!("{line}: {error}")).text;
        assert!(done.contains("Chosen: letter.txt."), "{done}");
    }
    assert!(world.done(r#"{"verb": "look", "whole": true}"#).await.contains("# file letter.txt"));
    let error = world.on("\"Attachment", &upload(&outside)).await.unwrap_err().to_string();
    assert!(error.contains("no folder that is open"), "{error}");
    let got = world.on("Bill", r#"{"verb": "download", "ref": "REF"}"#).await.unwrap();
    assert_eq!(got.files, [world.folder.path().join("downloads/bill.pdf")], "{got:?}");
    assert!(got.text.contains("Downloaded bill.pdf: PDF, 19 bytes"), "{}", got.text);
}

#[tokio::test]
async fn a_form_is_sent_and_the_answer_shown() {
    let Some(mut world) = desk().await else { return };
    let sent = world.on("Query", r#"{"verb": "type", "ref": "REF", "text": "a b", "enter": true}"#).await.unwrap().text;
    assert!(sent.contains("# Sent") && sent.contains("Address: "), "{sent}");
    assert!(world.site.asked().contains(&"POST /sent q=a+b".to_owned()), "{:?}", world.site.asked());
}

#[tokio::test]
async fn an_element_that_a_part_hides_is_scrolled_to_and_clicked() {
    let page = r#"<!doctype html><style>#part { height: 150px; overflow-y: scroll; width: 160px } p { height: 100px }</style>
        <div id=part><p>1</p><p>2</p><p>3</p><p>4</p><span class=reply style="cursor:pointer">Reply</span></div>
        <script>document.querySelector('.reply').addEventListener('click', () => { document.title = 'Replied'; });</script>"#;
    let Some(mut world) = World::start(&[("/", page)]).await else { return };
    world.open("/").await;
    let clicked = world.click("Reply").await.unwrap().text;
    assert!(clicked.contains("Title: Replied"), "{clicked}");
}

#[tokio::test]
async fn a_form_asks_with_its_values_and_its_own_links_are_free() {
    let page = r#"<!doctype html><form action=/sent method=post><label>Name <input name=n value=Ada></label>
        <label>Code <input name=c type=password value=hunter22></label><button>Go on</button></form>
        <a href=/next>Next</a><button>Delete account</button>"#;
    let Some(mut world) = World::start(&[("/", page), ("/next", NEXT)]).await else { return };
    world.open("/").await;
    let (send, delete) = (world.reference("Go on").await, world.reference("Delete account").await);
    let click = |reference: &str| Verb::Click(World::place(reference));
    let Trust::Asks(question) = world.browser.consider(&click(&send), &[]).await.unwrap() else { panic!("it asks") };
    assert!(question.what.starts_with("Send a form (\"Go on\") to 127.0.0.1"), "{question:?}");
    let values: Vec<_> = question.values.iter().map(|field| (field.label.as_str(), field.value.as_deref())).collect();
    assert_eq!(values, [("Name", Some("Ada")), ("Code", None)]);
    assert!(matches!(world.browser.consider(&click(&delete), &[]).await.unwrap(), Trust::Asks(_)));
    let link = world.reference("\"Next\"").await;
    assert_eq!(world.browser.consider(&click(&link), &[]).await.unwrap(), Trust::Free);
    let open = |url: String| Verb::Navigate { url };
    let (linked, composed) = (world.site.url("127.0.0.1", "/next"), world.site.url("127.0.0.1", "/next?q=Ada"));
    assert_eq!(world.browser.consider(&open(linked), &[]).await.unwrap(), Trust::Free);
    assert!(matches!(world.browser.consider(&open(composed.clone()), &[]).await.unwrap(), Trust::Asks(_)));
    assert_eq!(world.browser.consider(&open(composed.clone()), &[composed]).await.unwrap(), Trust::Free);
}
