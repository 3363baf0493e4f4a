//! What the page's chat does in a real browser beyond its HTML: files by paste and drop, the microphone, copying, and what was said before.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{
    ServedPage, TestEnv,
    browser::{at, enter, pictures},
};
use crate::support::{
    chromium::Chromium,
    claude::{FakeClaude, Reply},
    env::eventually,
    http::Gate,
    speech,
};

/// Makes a file named `name` in a transfer named `moved`.
fn moved(name: &str) -> String {
    format!(
        "const moved = new DataTransfer(); moved.items.add(new File(['milk'], '{name}', {{ type: 'text/plain' }}));"
    )
}

/// Chooses a file as its button does.
fn choose_file(browser: &mut Chromium, file: &Path) {
    let root = browser.call("DOM.getDocument", &json!({}))["root"]["nodeId"].clone();
    let field = browser.call("DOM.querySelector", &json!({"nodeId": root, "selector": "#files"}))["nodeId"].clone();
    browser.call("DOM.setFileInputFiles", &json!({"nodeId": field, "files": [file.display().to_string()]}));
}

#[test]
fn files_come_by_button_paste_and_drop_and_go_with_the_words() {
    let Some(mut browser) = Chromium::start() else { return };
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude);
    claude.expect(Reply::text("Three lists."));
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    let chosen = env.path("by-button.txt");
    fs::write(&chosen, "bread").unwrap();
    choose_file(&mut browser, &chosen);
    browser.until("document.querySelector('#chosen').innerText.includes('by-button.txt')");
    browser.eval(&format!(
        "{} document.querySelector('#text').dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: moved, bubbles: true, cancelable: true }}))",
        moved("by-paste.txt")
    ));
    for name in ["by-drop.txt", "left-out.txt"] {
        browser.eval(&format!(
            "(() => {{ {} for (const what of ['dragenter', 'dragover', 'drop']) \
             document.body.dispatchEvent(new DragEvent(what, {{ dataTransfer: moved, bubbles: true, cancelable: true }})); }})()",
            moved(name)
        ));
    }
    browser.eval("document.querySelector('[aria-label=\"Remove left-out.txt\"]').click()");
    assert_eq!(browser.eval("document.querySelectorAll('#chosen li').length"), 3);
    // What is too large is told before anything is sent, and the rest stays.
    browser.eval(
        "(() => { const big = new DataTransfer(); big.items.add(new File([new Uint8Array(20 * 1024 * 1024 + 1)], 'big.mov')); \
         document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: big, bubbles: true, cancelable: true })); })()",
    );
    browser.until("document.querySelector('#say-note').innerText.includes('big.mov is larger than 20.0 MB')");
    browser.view(&pictures().join("chat-files.png"));
    browser.eval("document.querySelector('#text').focus()");
    browser.types("what are these?");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('#live-chat').innerText.includes('Three lists.')");
    assert_eq!(env.count_received(), 1);
    let files = browser.eval("[...document.querySelectorAll('.you .files a')].map((file) => file.innerText)");
    assert_eq!(files, json!(["by-button.txt", "by-paste.txt", "by-drop.txt"]));
    env.wait_for_end_of_wake();
    // The button needs no script.
    claude.expect(Reply::text("One list."));
    browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    browser.go(&at(&page, "/chat"));
    choose_file(&mut browser, &chosen);
    browser.eval("document.querySelector('#text').focus()");
    browser.press("Tab", 9, 0);
    browser.press("Enter", 13, 0);
    browser.until("document.querySelectorAll('.you .files a').length === 4");
    eventually("it is answered", || page.get("/chat").ok().contains("One list."));
    assert_eq!(env.count_received(), 2);
    assert_eq!(browser.problems(), [""; 0]);
    env.wait_for_end_of_wake();
    env.check_sound();
}

#[test]
fn an_answer_is_copied_asked_for_again_and_left_behind() {
    let Some(mut browser) = Chromium::start() else { return };
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude);
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    let allowed = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": at(&page, "")});
    browser.call("Browser.grantPermissions", &allowed);
    browser.go(&at(&page, "/chat"));
    let say = |browser: &mut Chromium, text: &str| {
        browser.eval("document.querySelector('#text').focus()");
        browser.types(text);
        browser.press("Enter", 13, 0);
    };
    claude.expect(Reply::text("It is **blue**:\n\n```rust\nlet sky = \"blue\";\n```"));
    say(&mut browser, "what is the sky?");
    browser.until("document.querySelector('.me .code-k')?.innerText === 'let'");
    browser.eval("document.querySelector('.me .copy').click()");
    browser.until("document.querySelector('.me .copy').innerText === 'Copied'");
    let copied = browser.eval("navigator.clipboard.readText()");
    assert_eq!(copied, "It is **blue**:\n\n```rust\nlet sky = \"blue\";\n```");
    // The same request again is a new message that says so.
    claude.expect(Reply::text("It is grey today."));
    env.wait_for_end_of_wake();
    // A click on what has only just come there is left out.
    browser.until("document.querySelector('.me form button:not([data-moved])')?.innerText === 'Try again'");
    browser.eval("window.isTheSame = true; document.querySelector('.me form button').click()");
    eventually("it is sent again", || env.count_received() == 2);
    browser.until("document.querySelector('#live-chat').innerText.includes('It is grey today.')");
    assert_eq!(browser.eval("[...document.querySelectorAll('.you')].at(-1).innerText.includes('sent again')"), true);
    assert_eq!(browser.eval("[...document.querySelectorAll('.you .words')].at(-1).innerText"), "what is the sky?");
    assert!(claude.requests()[1].last_text().contains("[sent again]\nwhat is the sky?"));
    // A new chat leaves out what was said, and deletes nothing.
    env.wait_for_end_of_wake();
    browser.until(
        "(() => { const button = [...document.querySelectorAll('button')].find((button) => button.innerText === 'New chat'); \
         if (!button || button.dataset.moved) return false; button.click(); return true; })()",
    );
    browser.until("document.querySelector('#live-chat').innerText.includes('Started afresh')");
    browser.until("document.querySelectorAll('.fresh').length === 1");
    claude.expect(Reply::text("Hello!"));
    say(&mut browser, "hello");
    browser.until("document.querySelector('#live-chat').innerText.includes('Hello!')");
    let request = claude.requests().pop().unwrap();
    assert!(!request.messages.concat().contains("grey"), "{:?}", request.messages);
    assert_eq!(browser.eval("window.isTheSame"), true, "it was loaded again");
    assert!(page.get("/chat").ok().contains("It is grey today."));
    assert_eq!(browser.problems(), [""; 0]);
    env.wait_for_end_of_wake();
    env.check_sound();
}

#[test]
fn a_working_wake_is_stopped_by_its_button_and_goes_on_by_another() {
    let Some(mut browser) = Chromium::start() else { return };
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude);
    let gate = Gate::default();
    claude.expect(Reply::text("It never comes.").stalled_after(1, &gate));
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    browser.eval("document.querySelector('#text').focus()");
    browser.types("think for long");
    browser.press("Enter", 13, 0);
    // What is being written stays while the work is stopped and goes on.
    let kept = env.path("kept.txt");
    fs::write(&kept, "bread").unwrap();
    choose_file(&mut browser, &kept);
    browser.until("document.querySelector('#text').value === '' && document.querySelector('#chosen li')");
    browser.types("half a thought");
    let draft = "document.querySelector('#text').value + ' ' + document.querySelectorAll('#chosen li').length";
    let button = |name: &str, which: &str| {
        format!(
            "[...document.querySelectorAll('#live-work button{which}')].find((button) => button.innerText === '{name}')"
        )
    };
    // A stop counts at once, however often the work renews itself.
    browser.until(&format!("Boolean({})", button("Stop", "")));
    browser.eval(&format!("window.isTheSame = true; {}.click()", button("Stop", "")));
    browser.until("document.body.innerText.includes('Stopped. New messages will wait.')");
    assert_eq!(browser.eval(draft), "half a thought 1");
    gate.open();
    env.wait_for_end_of_wake();
    browser.until("document.querySelector('.you .badge')?.innerText === 'waiting'");
    claude.expect(Reply::text("Here it is."));
    // Going on waits until its button is no news, since it comes where the other one was.
    browser.until(&format!("Boolean({})", button("Continue", ":not([data-moved])")));
    browser.eval(&format!("{}.click()", button("Continue", "")));
    browser.until("document.body.innerText.includes('Here it is.')");
    assert_eq!(browser.eval("document.querySelector('.stopped')"), json!(null));
    assert_eq!(browser.eval(draft), "half a thought 1");
    assert_eq!(browser.eval("window.isTheSame"), true, "it was loaded again");
    env.wait_for_end_of_wake();
}

#[test]
fn what_is_refused_stays_with_its_files_until_it_is_taken() {
    let Some(mut browser) = Chromium::start() else { return };
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude);
    claude.expect(Reply::text("A list."));
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    let chosen = env.path("list.txt");
    fs::write(&chosen, "bread").unwrap();
    choose_file(&mut browser, &chosen);
    browser.eval("window.isTheSame = true; document.querySelector('#text').value = 'x'.repeat(100001); document.querySelector('#say').requestSubmit()");
    browser.until("document.querySelector('#say-note').innerText.includes('longer than 100000 bytes')");
    assert_eq!(
        browser.eval("[document.querySelector('#text').value.length, document.querySelectorAll('#chosen li').length]"),
        json!([100_001, 1])
    );
    assert_eq!(browser.eval("document.querySelector('#say-note').innerText.includes('again')"), false);
    browser
        .eval("document.querySelector('#text').value = 'what is it?'; document.querySelector('#say').requestSubmit()");
    browser.until("document.querySelector('#live-chat').innerText.includes('A list.')");
    assert_eq!(browser.eval("document.querySelector('.you .files a').innerText"), "list.txt");
    assert_eq!(
        browser.eval("[document.querySelector('#text').value, document.querySelector('#chosen').hidden, document.querySelector('#say-note').hidden]"),
        json!(["", true, true])
    );
    assert_eq!((browser.eval("window.isTheSame"), env.count_received()), (json!(true), 1));
    env.wait_for_end_of_wake();
}

/// Decodes a recording to a WAV file, which the browser's pretended microphone plays.
const TO_WAV: &str = r#"(async () => {
  const bytes = Uint8Array.from(atob(RECORDING), (c) => c.charCodeAt(0));
  const sound = await new OfflineAudioContext(1, 48000, 48000).decodeAudioData(bytes.buffer);
  const samples = sound.getChannelData(0);
  const view = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const words = (at, text) => [...text].forEach((c, n) => view.setUint8(at + n, c.charCodeAt(0)));
  words(0, "RIFF"); view.setUint32(4, 36 + samples.length * 2, true);
  words(8, "WAVEfmt "); view.setUint32(16, 16, true); view.setUint16(20, 1, true); view.setUint16(22, 1, true);
  view.setUint32(24, 48000, true); view.setUint32(28, 96000, true); view.setUint16(32, 2, true); view.setUint16(34, 16, true);
  words(36, "data"); view.setUint32(40, samples.length * 2, true);
  samples.forEach((value, n) => view.setInt16(44 + 2 * n, Math.max(-1, Math.min(1, value)) * 32767, true));
  let text = "";
  new Uint8Array(view.buffer).forEach((byte) => { text += String.fromCharCode(byte); });
  return [btoa(text), samples.length / 48000];
})()"#;

#[test]
fn what_is_spoken_into_the_microphone_is_read_as_words() {
    let Some(mut decoder) = Chromium::start() else { return };
    let Some(model) = speech::model() else { return };
    let note = STANDARD.encode(fs::read(speech::kept("note.mp4")).unwrap());
    let decoded = decoder.eval(&TO_WAV.replace("RECORDING", &json!(note).to_string()));
    drop(decoder);
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude).set("WHISPER_MODEL", &model.display().to_string());
    let wav = env.path("spoken.wav");
    fs::write(&wav, STANDARD.decode(decoded[0].as_str().unwrap()).unwrap()).unwrap();
    let arguments = [
        "--use-fake-device-for-media-stream".to_owned(),
        "--use-fake-ui-for-media-stream".to_owned(),
        format!("--use-file-for-fake-audio-capture={}%noloop", wav.display()),
    ];
    let mut browser = Chromium::start_with(&arguments).unwrap();
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    // One that is discarded is sent nowhere.
    browser.until("!document.querySelector('#voice').hidden");
    // A second click before the microphone is allowed begins no second recording.
    browser.eval(
        "window.asked = 0; const own = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices); \
         navigator.mediaDevices.getUserMedia = (what) => { asked += 1; return own(what); }; \
         document.querySelector('#record').click(); document.querySelector('#record').click()",
    );
    browser.until("document.querySelector('#record').innerText === 'Stop and send'");
    assert_eq!(browser.eval("asked"), 1);
    browser.eval("document.querySelector('#discard').click()");
    browser.until("document.querySelector('#record').innerText === 'Record'");
    assert!(!env.has_store());
    browser.go(&at(&page, "/chat"));
    claude.expect(Reply::text("I will remind you."));
    browser.eval("document.querySelector('#record').click()");
    let length = decoded[1].as_f64().unwrap();
    let heard = format!(
        "(() => {{ const [m, s] = document.querySelector('#recorded').innerText.split(':'); return m * 60 + Number(s) > {length} + 1; }})()"
    );
    browser.until(&heard);
    browser.view(&pictures().join("chat-recording.png"));
    browser.eval("document.querySelector('#record').click()");
    browser.until("document.querySelector('#live-chat').innerText.includes('I will remind you.')");
    let said = claude.requests()[0].last_text();
    assert!(said.contains("[voice note, ") && said.contains("machine transcript"), "{said}");
    let words = said.split_once("sure").unwrap().1.split_once('\n').unwrap().1.lines().next().unwrap().to_owned();
    let rate = speech::word_error_rate(speech::NOTE, &words);
    assert!(rate < 0.3, "{rate}: {words}");
    assert_eq!(browser.problems(), [""; 0]);
    env.wait_for_end_of_wake();
}

#[test]
fn what_was_said_before_comes_while_scrolling_and_is_found() {
    let Some(mut browser) = Chromium::start() else { return };
    let mut env = TestEnv::new();
    for n in 0..70 {
        env.wake(&["say", &format!("/nothing-{n:03}")]).ok();
    }
    env.at("2026-11-22T09:00:00Z");
    env.wake(&["say", "remember that the GRÜNE tea is at five"]).ok();
    env.at("2026-11-22T10:00:00Z");
    for n in 70..140 {
        env.wake(&["say", &format!("/nothing-{n:03}")]).ok();
    }
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.look(860, "light");
    browser.go(&at(&page, "/chat"));
    let newest = page.get("/chat").ok();
    assert!(newest.contains("nothing-139") && !newest.contains("nothing-089"), "{newest}");
    assert_eq!(browser.eval("scrollY > 0 && document.querySelectorAll('.talk > li').length"), 50);
    // What is read stays where it is while the rest comes in above it.
    let first = "document.querySelector('#live-chat .talk > li')";
    browser.eval(&format!("{first}.scrollIntoView(); window.place = {first}.getBoundingClientRect().top"));
    browser.until("document.querySelectorAll('#older .talk > li').length >= 50");
    assert_eq!(browser.eval(&format!("Math.abs({first}.getBoundingClientRect().top - window.place) < 2")), true);
    browser.until("(scrollTo(0, 0), !document.querySelector('#earlier'))");
    let all = browser.eval("[...document.querySelectorAll('.talk > li')].map((line) => line.innerText).join(' ')");
    let all = all.as_str().unwrap();
    for n in 0..140 {
        assert_eq!(all.matches(&format!("nothing-{n:03}")).count(), 1, "{n}");
    }
    // A new answer keeps all of it.
    env.wake(&["say", "/nothing-140"]).ok();
    browser.until("document.querySelector('#live-chat').innerText.includes('nothing-140')");
    assert_eq!(browser.eval("document.querySelectorAll('.talk > li').length"), 143);
    // A search leads to the place, also without a script.
    browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    browser.go(&at(&page, "/chat"));
    browser.eval("document.querySelector('[name=find]').focus()");
    browser.types("grüne FIVE");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelectorAll('.found li').length === 2");
    browser.view(&pictures().join("chat-found.png"));
    browser.eval("document.querySelector('.found li:last-child a').click()");
    browser.until("document.querySelector(':target .words')?.innerText === 'remember that the GRÜNE tea is at five'");
    browser.view(&pictures().join("chat-place.png"));
    assert_eq!(browser.eval("document.body?.innerText.includes('nothing-070')"), true);
    let none = page.get("/chat?find=coffee").ok();
    assert!(none.contains("Nothing in this chat has this word."), "{none}");
    assert_eq!(browser.problems(), [""; 0]);
}
