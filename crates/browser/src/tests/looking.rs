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
