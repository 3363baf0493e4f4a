//! Pages that mean harm.

use std::time::Duration;

use super::World;
use crate::{BrowserError, BrowserOptions};

fn hurry(options: &mut BrowserOptions) {
    options.patience.answer = Duration::from_secs(4);
    options.patience.load = Duration::from_secs(6);
}

const TRAPS: &str = r#"<!doctype html><title>Traps</title>
<button onclick="while (true);">Hang</button>
<button onclick="while (true) alert('again');">Nag</button>
<button onclick="for (let i = 0; i < 50; i++) window.open('/next?' + i)">Flood</button>
<button onclick="window.close(); location = 'about:blank'">Leave</button>
<a href=/stream>Huge</a>
<a href=/redirect?http://127.0.0.1:1/>Inside</a>
<iframe src=http://127.0.0.1:9/ title=closed></iframe>
<img src=http://169.254.169.254/latest>
<input aria-label=Draft>
<script>window.onbeforeunload = e => { e.preventDefault(); return 'Stay!'; };</script>"#;

async fn traps() -> Option<World> {
    let mut world = World::start_with(&[("/", TRAPS), ("/next", "<title>Next</title><h1>Next</h1>")], hurry).await?;
    world.open("/").await;
    Some(world)
}

#[tokio::test]
async fn a_page_that_never_yields_is_ended_and_the_browser_goes_on() {
    let Some(mut world) = traps().await else { return };
    let error = world.click("Hang").await.unwrap_err();
    assert!(matches!(&error, BrowserError::OpenAgain(why) if why.contains("did not react")), "{error:?}");
    assert!(world.open("/next").await.contains("# Next"));
    let list = world.done(r#"{"verb": "tabs", "act": "list"}"#).await;
    assert_eq!(list.lines().count(), 1, "{list}");
}

#[tokio::test]
async fn a_page_that_hangs_while_it_loads_is_ended() {
    let page = "<!doctype html><h1>Start</h1><script>while (true);</script>";
    let Some(mut world) = World::start_with(&[("/", page), ("/next", "<h1>Next</h1>")], hurry).await else { return };
    let url = world.site.url("127.0.0.1", "/");
    let error = world.run(&format!(r#"{{"verb": "navigate", "url": "{url}"}}"#)).await.unwrap_err();
    assert!(matches!(error, BrowserError::OpenAgain(_)), "{error:?}");
    assert!(world.open("/next").await.contains("# Next"));
}

#[tokio::test]
async fn dialogs_without_end_end_the_page() {
    let Some(mut world) = traps().await else { return };
    world.click("Nag").await.unwrap();
    let mut answers = 0;
    let error = loop {
        match world.run(r#"{"verb": "dialog", "answer": "accept"}"#).await {
            Ok(_) => answers += 1,
            Err(error) => break error,
        }
        assert!(answers < 20);
    };
    assert!(matches!(&error, BrowserError::OpenAgain(why) if why.contains("more than 8 dialogs")), "{error:?}");
    assert!(world.open("/next").await.contains("# Next"));
}

#[tokio::test]
async fn pop_ups_are_limited_and_leaving_is_never_held_up() {
    let Some(mut world) = traps().await else { return };
    world.click("Flood").await.unwrap();
    let list = world.done(r#"{"verb": "tabs", "act": "list"}"#).await;
    assert!(list.lines().count() <= 12, "{list}");
    world.on("Draft", r#"{"verb": "type", "ref": "REF", "text": "x"}"#).await.unwrap();
    let left = world.open("/next").await;
    assert!(left.contains("# Next") && left.contains("asked whether to leave"), "{left}");
}

#[tokio::test]
async fn a_huge_download_is_cancelled_and_leaves_nothing() {
    let Some(mut world) = traps().await else { return };
    let got = world.on("Huge", r#"{"verb": "download", "ref": "REF"}"#).await.unwrap();
    assert!(got.files.is_empty() && got.text.contains("larger than 10 MiB and was cancelled"), "{}", got.text);
    let left: Vec<_> = std::fs::read_dir(world.folder.path().join("downloads")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn places_inside_stay_closed_to_links_redirects_frames_and_scripts() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let page = format!(
        "<!doctype html><title>Probe</title><iframe src=http://127.0.0.1:{port}/frame></iframe><img src=http://localhost:{port}/img>
         <script>
           const done = []; const note = x => {{ done.push(x); if (done.length === 3) document.title = 'Tried ' + done.join(' '); }};
           fetch('http://127.0.0.1:{port}/fetch', {{mode: 'no-cors'}}).then(r => note('fetch:' + r.type), () => note('fetch:no'));
           const socket = new WebSocket('ws://127.0.0.1:{port}/ws'); socket.onerror = () => note('ws:no'); socket.onopen = () => note('ws:YES');
           navigator.sendBeacon('http://127.0.0.1:{port}/beacon'); note('beacon');
         </script><a href=http://127.0.0.1:{port}/link>Link</a><a href=/redirect?http://127.0.0.1:{port}/redirected>Redirect</a>"
    );
    let Some(mut world) = World::start(&[("/", &page)]).await else { return };
    world.open("/").await;
    world.done(r#"{"verb": "wait", "for": "idle"}"#).await;
    let url = world.done(r#"{"verb": "url"}"#).await;
    assert!(url.contains("ws:no"), "{url}");
    for link in ["\"Redirect\"", "\"Link\""] {
        let clicked = world.click(link).await.unwrap().text;
        assert!(
            clicked.contains("isn't opened by this browser") || clicked.contains("isn't on the public internet"),
            "{clicked}"
        );
        world.open("/").await;
    }
    // Nobody ever connected.
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err());
}
