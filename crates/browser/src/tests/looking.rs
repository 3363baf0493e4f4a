//! Looks: what they show, and what they don't.

use super::World;

const SHOP: &str = r#"<!doctype html><title>Shop</title>
<nav><a href=/about>About us</a></nav>
<h1>Our shop</h1><p>Open <b>daily</b> from 9 to 17.</p>
<ul><li>Apples</li><li><a href=/pears>Pears</a></li></ul>
<table><tr><th>Day</th><th>Hours</th></tr><tr><td>Monday</td><td>9-17</td></tr></table>
<form><label>Name: <input name=n value=Ada></label><label>Password <input type=password value=hunter22></label>
<label><input type=checkbox checked>News</label>
<label>Country <select><option>Austria<option selected>Germany</select></label>
<button disabled>Send</button></form>
<div id=d style="cursor:pointer" onclick="document.querySelector('h1').textContent='Clicked shop'">Fancy part</div>
<span hidden>never shown</span>"#;

#[tokio::test]
async fn a_look_is_the_page_and_then_its_changes() {
    let Some(mut world) = World::start(&[("/", SHOP)]).await else { return };
    let page = world.open("/").await;
    for line in [
        "link \"About us\"",
        "# Our shop",
        "\nOpen daily from 9 to 17.\n",
        "- Apples",
        "Monday | 9-17",
        "textbox \"Name:\" = \"Ada\"",
        "textbox \"Password\" (secret, filled)",
        "checkbox \"News\" checked",
        "combobox \"Country\" = \"Germany\" of Austria, Germany",
        "button \"Send\" disabled",
        "clickable \"Fancy part\"",
    ] {
        assert!(page.contains(line), "{line} isn't in:\n{page}");
    }
    for never in ["hunter22", "never shown"] {
        assert!(!page.contains(never), "{never} is in:\n{page}");
    }
    let again = world.done(r#"{"verb": "look"}"#).await;
    assert!(again.ends_with("Nothing has changed since the last look."), "{again}");
    let part = world.reference("Fancy part").await;
    let clicked = world.done(&format!(r#"{{"verb": "click", "ref": "{part}"}}"#)).await;
    assert!(clicked.contains("- # Our shop\n+ # Clicked shop"), "{clicked}");
    assert!(!clicked.contains("Apples"), "{clicked}");
}

const FRAMES: &str = r#"<!doctype html><title>Frames</title><h1>Outside</h1>
<div style="height:300px"></div>
<iframe src=/inner title=same style="border:7px solid;padding:5px;width:300px;height:120px"></iframe>
<iframe src=http://localhost:PORT/inner?other title=other style="border:3px solid;width:300px;height:120px"></iframe>
<div id=host></div>
<script>
  const root = document.getElementById('host').attachShadow({mode: 'closed'});
  root.innerHTML = '<button>In the shadow</button>';
  root.querySelector('button').onclick = e => { e.target.textContent = 'Shadow clicked'; };
</script>"#;
const INNER: &str =
    r#"<!doctype html><button onclick="this.textContent = 'Pressed ' + location.host">Inside a frame</button>"#;

#[tokio::test]
async fn frames_of_any_process_and_shadow_parts_are_seen_and_clicked() {
    let Some(mut world) = World::start(&[("/", FRAMES), ("/inner", INNER)]).await else { return };
    let page = world.open("/").await;
    assert!(page.contains("frame \"same\"\n ") && page.contains("frame \"other\"\n "), "{page}");
    let buttons: Vec<String> = page
        .lines()
        .filter(|line| line.contains("Inside a frame"))
        .map(|line| line.trim().trim_start_matches('[').split_once(']').unwrap().0.to_owned())
        .collect();
    assert_eq!(buttons.len(), 2, "{page}");
    for (button, host) in buttons.iter().zip(["127.0.0.1", "localhost"]) {
        let clicked = world.browser.run(&crate::Verb::Click(World::place(button))).await.unwrap().text;
        assert!(clicked.contains(&format!("Pressed {}", world.site.place(host))), "{clicked}");
    }
    let clicked = world.click("In the shadow").await.unwrap().text;
    assert!(clicked.contains("Shadow clicked"), "{clicked}");
}

#[tokio::test]
async fn a_reference_of_another_document_or_of_a_removed_element_is_refused_with_a_fresh_look() {
    let pages = [("/", "<button id=b>First</button><a href=/2>Second page</a>"), ("/2", "<button>Second</button>")];
    let Some(mut world) = World::start(&pages).await else { return };
    world.open("/").await;
    let old = world.reference("First").await;
    world.click("Second page").await.unwrap();
    let click = format!(r#"{{"verb": "click", "ref": "{old}"}}"#);
    let error = world.run(&click).await.unwrap_err().to_string();
    assert!(error.contains("no longer shown") && error.contains("button \"Second\""), "{error}");
    assert!(!error.contains(&format!("[{old}]")), "{error}");
    // The same page again is another document.
    world.open("/").await;
    assert!(world.run(&click).await.is_err());

    let pages = [(
        "/",
        "<button id=gone>Gone</button><button onclick=\"document.getElementById('gone').replaceWith(Object.assign(document.createElement('button'), {textContent: 'New'}))\">Replace</button>",
    )];
    let Some(mut world) = World::start(&pages).await else { return };
    world.open("/").await;
    let gone = world.reference("Gone").await;
    world.click("Replace").await.unwrap();
    let error = world.run(&format!(r#"{{"verb": "click", "ref": "{gone}"}}"#)).await.unwrap_err().to_string();
    assert!(error.contains("no longer on the page") && error.contains("button \"New\""), "{error}");
    let error = world.run(r#"{"verb": "click", "ref": "r9999"}"#).await.unwrap_err().to_string();
    assert!(error.contains("isn't a reference"), "{error}");
}

#[tokio::test]
async fn a_page_of_5000_nodes_is_bounded_and_searched() {
    let page = "<!doctype html><h1>Many</h1><script>for (let i = 0; i < 5000; i++) document.body.append(Object.assign(document.createElement('button'), {textContent: 'Button number ' + i}));</script>";
    let Some(mut world) = World::start(&[("/", page)]).await else { return };
    let look = world.open("/").await;
    assert!(look.len() < 13_000 && look.contains("more lines: `find`"), "{} {look}", look.len());
    let found = world.done(r#"{"verb": "find", "text": "number 4999"}"#).await;
    assert!(found.starts_with("1 line:") && found.contains("button \"Button number 4999\""), "{found}");
    let later = world.done(r#"{"verb": "look", "from": 4000}"#).await;
    assert!(later.contains("Button number 4000") && !later.contains("Button number 3\""), "{later}");
    // An element far below is scrolled to.
    assert!(world.click("Button number 300\"").await.is_ok());
}

#[tokio::test]
async fn a_drawn_page_says_so_and_its_picture_can_be_clicked_until_the_page_moves() {
    let page = "<!doctype html><title>Drawn</title><body style='margin:0'><canvas width=400 height=200></canvas><p style='height:3000px'></p>
        <script>document.querySelector('canvas').onclick = e => { document.title = 'At ' + e.offsetX + ',' + e.offsetY; };</script>";
    let Some(mut world) = World::start(&[("/", page)]).await else { return };
    let look = world.open("/").await;
    assert!(look.contains("] canvas") && look.contains("`screenshot` shows them"), "{look}");
    let taken = world.run(r#"{"verb": "screenshot"}"#).await.unwrap();
    let picture = taken.picture.unwrap();
    assert!(picture.png.starts_with(b"\x89PNG") && picture.width > 800, "{}", taken.text);
    let clicked = world.done(r#"{"verb": "click", "picture": "p1", "x": 120, "y": 50}"#).await;
    assert!(clicked.contains("Title: At 120,50"), "{clicked}");
    let part = world.on("canvas", r#"{"verb": "screenshot", "ref": "REF"}"#).await.unwrap().picture.unwrap();
    assert_eq!((part.width, part.height), (400, 200));
    world.done(r#"{"verb": "scroll", "direction": "down"}"#).await;
    let error = world.run(r#"{"verb": "click", "picture": "p1", "x": 120, "y": 50}"#).await.unwrap_err().to_string();
    assert!(error.contains("take another picture"), "{error}");
    let error = world.run(r#"{"verb": "click", "picture": "p1", "x": 5000, "y": 50}"#).await.unwrap_err().to_string();
    assert!(error.contains("outside the picture"), "{error}");
}

#[tokio::test]
async fn a_password_is_in_no_look_and_no_report_whatever_the_page_does_with_it() {
    let page = "<!doctype html><form action=/in><label>Password <input id=p name=p type=password></label></form>
        <button onclick=\"p.type='text'; document.querySelector('h1').textContent = 'You typed ' + p.value; document.title = p.value\">Show it</button><h1>Hello</h1>";
    let Some(mut world) = World::start(&[("/", page), ("/in", "<h1>In</h1>")]).await else { return };
    world.open("/").await;
    let typed = world.on("Password", r#"{"verb": "type", "ref": "REF", "text": "correct horse"}"#).await.unwrap().text;
    assert!(typed.contains("isn't read back"), "{typed}");
    let mut said = vec![typed];
    said.push(world.click("Show it").await.unwrap().text);
    for verb in [
        r#"{"verb": "look", "whole": true}"#,
        r#"{"verb": "read"}"#,
        r#"{"verb": "find", "text": "typed"}"#,
        r#"{"verb": "screenshot"}"#,
        r#"{"verb": "url"}"#,
        r#"{"verb": "tabs", "act": "list"}"#,
        r#"{"verb": "press", "key": "Enter"}"#,
    ] {
        said.push(world.done(verb).await);
    }
    let submitted = world.on("Password", r#"{"verb": "press", "key": "Enter", "ref": "REF"}"#).await.unwrap().text;
    assert!(submitted.contains("Address: ") && submitted.contains("p=•••"), "{submitted}");
    said.push(submitted);
    for text in &said {
        assert!(!text.contains("correct horse") && !text.contains("correct+horse"), "{text}");
    }
    assert!(said.iter().any(|text| text.contains("You typed •••")), "{said:#?}");
}

#[tokio::test]
async fn a_page_is_read_as_text() {
    let Some(mut world) = World::start(&[("/", SHOP)]).await else { return };
    world.open("/").await;
    let text = world.done(r#"{"verb": "read"}"#).await;
    assert!(text.contains("# Our shop\nOpen daily from 9 to 17.\n- Apples\n- Pears\n"), "{text}");
    assert!(!text.contains("[r") && !text.contains("hunter22"), "{text}");
}
