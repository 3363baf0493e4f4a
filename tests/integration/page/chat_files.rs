//! Files in the page's chat: on the disk before their message, described for the model, shown in their place, and refused with a reason.

use std::{fs, io::Write as _};

use super::{BOUNDARY, Part, ServedPage, TestEnv};
use crate::support::{
    claude::{FakeClaude, Reply},
    env::eventually,
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0and so on";
const LIMIT: usize = 20 * 1024 * 1024;

fn text<'a>(field: &'a str, text: &'a str) -> Part<'a> {
    Part { field, file: None, bytes: text.as_bytes() }
}

fn file<'a>(name: &'a str, bytes: &'a [u8]) -> Part<'a> {
    Part { field: "files", file: Some(name), bytes }
}

/// The names of all files that are kept.
fn kept(env: &TestEnv) -> Vec<String> {
    let folders = ["files", "voice"].map(|name| env.workspace().join(name));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn files_reach_the_model_and_stand_in_the_chat_once() {
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude);
    claude.expect(Reply::text("A cat, and milk."));
    let page = ServedPage::open(&env);
    let parts = [
        text("text", "what\r\nis this?"),
        text("key", "k1"),
        file("C:\\home\\a %22cat%22.png", PNG),
        file("list.txt", b"milk"),
        // A browser sends an unused field as well.
        Part { field: "voice", file: Some(""), bytes: b"" },
    ];
    for _ in 0..2 {
        assert_eq!(page.upload("/chat", &parts).see_other(), "/chat");
    }
    eventually("it is answered", || page.get("/chat").ok().contains("A cat, and milk."));
    env.wait_for_end_of_wake();
    assert_eq!(env.count_received(), 1);
    let attachments = env.attachments();
    assert_eq!(attachments.len(), 2);
    assert_eq!(kept(&env).len(), 2, "{:?}", kept(&env));
    let cat = attachments[0].path.clone().unwrap();
    assert!(cat.starts_with("files/page-") && cat.ends_with(".png"), "{cat}");
    assert_eq!(fs::read(env.workspace().join(&cat)).unwrap(), PNG);
    let said = claude.requests()[0].last_text();
    for part in [
        "[file &quot;a 'cat'.png&quot;, image/png, 38 B]",
        "[file &quot;list.txt&quot;, text/plain, 4 B]\nwhat\nis this?",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let html = page.get("/chat").ok();
    assert!(html.contains("<p class=\"words\">what\nis this?</p>"), "{html}");
    // A picture is shown, and anything else is saved; each by its number.
    let address = |name: &str| {
        let (before, _) = html.split_once(name).unwrap_or_else(|| panic!("{name}: {html}"));
        let (_, rest) = before.rsplit_once("\"/chat/file/").unwrap();
        format!("/chat/file/{}", rest.split('"').next().unwrap())
    };
    let picture = page.get(&address("alt=\"a 'cat'.png\""));
    assert_eq!(
        (picture.header("content-type"), picture.header("content-disposition")),
        (Some("image/png"), Some("inline"))
    );
    let saved = page.get(&address("list.txt"));
    assert_eq!(saved.header("content-type"), Some("application/octet-stream"));
    assert!(saved.header("content-disposition").unwrap().starts_with("attachment; filename=\"file-"), "{saved:#?}");
    assert_eq!(saved.ok(), "4\r\nmilk\r\n0\r\n\r\n", "in pieces");
    for missing in ["/chat/file/1/999", "/chat/file/999/1"] {
        assert_eq!(page.get(missing).status, 404, "{missing}");
    }
    fs::remove_file(env.workspace().join(&cat)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", env.workspace().join(&cat)).unwrap();
    assert_eq!(page.get(&address("alt=\"a 'cat'.png\"")).status, 404, "a link is no file");
    page.end();
}

#[test]
fn a_message_of_files_alone_is_one_and_nothing_at_all_is_none() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let unused = Part { field: "files", file: Some(""), bytes: b"" };
    let refused = page.upload("/chat", &[text("text", " "), text("key", "k1"), unused]);
    assert!(refused.status == 422 && refused.body.contains("There is nothing to send"), "{refused:#?}");
    page.upload("/chat", &[text("text", ""), text("key", "k2"), file("a.txt", b"milk")]).see_other();
    assert_eq!(env.count_received(), 1);
    env.wait_for_end_of_wake();
}

#[test]
fn what_is_too_large_is_refused_in_full_and_the_text_stays() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let large = vec![b'x'; LIMIT + 1];
    let parts =
        [text("text", "see <this>"), file("small.txt", b"milk"), file("large.mov", &large), file("more.txt", b"tea")];
    let refused = page.upload("/chat", &parts);
    assert_eq!(refused.status, 422, "{}", refused.head);
    for part in
        ["large.mov is larger than 20", "so nothing was sent", "add your files again", "see &lt;this&gt;</textarea>"]
    {
        assert!(refused.body.contains(part), "{part}: {}", refused.body);
    }
    let many: Vec<Part<'_>> = (0..11).map(|_| file("a.txt", b"milk")).chain([text("text", "many")]).collect();
    let refused = page.upload("/chat", &many);
    assert!(refused.status == 422 && refused.body.contains("at most 10 files"), "{refused:#?}");
    let refused = page.upload("/chat", &[text("text", "none"), file("empty.txt", b"")]);
    assert!(refused.status == 422 && refused.body.contains("empty.txt is empty"), "{refused:#?}");
    assert_eq!((env.has_store(), kept(&env)), (false, Vec::new()), "nothing is left of them");
    // The limit itself is within it.
    page.upload("/chat", &[text("text", "just right"), file("a.bin", &large[..LIMIT])]).see_other();
    assert_eq!((env.count_received(), kept(&env).len()), (1, 1));
    env.wait_for_end_of_wake();
}

#[test]
fn what_is_cut_off_or_killed_leaves_no_half_of_a_message() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let begun = format!(
        "{}--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhello\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\r\nhalf of it",
        page.upload_head("/chat", 100_000)
    );
    let mut stream = page.connect();
    stream.write_all(begun.as_bytes()).unwrap();
    eventually("it is being written", || kept(&env).iter().any(|name| name.ends_with(".upload")));
    drop(stream);
    eventually("it is removed", || kept(&env).is_empty());
    assert!(!env.has_store());
    // What a killed server left long ago is removed by the next one.
    let left = fs::File::create(env.workspace().join("files/0123.upload")).unwrap();
    left.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    page.end();
    let page = ServedPage::open(&env);
    eventually("it is swept", || kept(&env).is_empty());
    // A form that breaks off after its text gives the text back.
    let broken = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhello <you>\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\r\nhalf of it"
    );
    let broken = page.raw(&format!("{}{broken}", page.upload_head("/chat", broken.len())));
    assert_eq!(broken.status, 422, "{broken:#?}");
    for part in ["arrive in full", "add your files again", "hello &lt;you&gt;</textarea>"] {
        assert!(broken.body.contains(part), "{part}: {broken:#?}");
    }
    assert!(kept(&env).is_empty() && !env.has_store());
    let bare = page.raw(&page.upload_head("/chat", 0));
    assert!(bare.status == 422 && bare.body.contains("Nothing was sent"), "{bare:#?}");
}

#[test]
fn an_upload_needs_the_cookie_and_an_origin_as_any_form_does() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let head = page.upload_head("/chat", 0);
    for (from, to) in [
        ("Cookie: ", "X-Cookie: "),
        ("Origin: http://", "Origin: http://evil."),
        ("Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"),
    ] {
        let refused = page.raw(&head.replace(from, to));
        assert!([401, 403].contains(&refused.status), "{refused:#?}");
    }
    assert!(kept(&env).is_empty());
    page.end();
}

#[test]
fn without_a_speech_model_a_recording_is_kept_and_its_message_answered() {
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude);
    claude.expect(Reply::text("I couldn't hear it."));
    let page = ServedPage::open(&env);
    assert!(!page.get("/chat").ok().contains("id=\"record\""), "there is nothing to listen with");
    let voice = Part { field: "voice", file: Some("voice"), bytes: b"OggS no sound" };
    page.upload("/chat", &[text("text", "remember that tea is at five"), text("seconds", "3"), voice]).see_other();
    eventually("it says why", || page.get("/chat").ok().contains("Your voice notes are saved"));
    eventually("it is read without its words", || {
        page.get("/chat").ok().contains("I couldn&#39;t hear it.")
            || page.get("/chat").ok().contains("I couldn't hear it.")
    });
    assert!(page.get("/chat").ok().contains("voice note, 3 s: not transcribed"), "{}", page.get("/chat").ok());
    assert!(env.attachments()[0].path.clone().unwrap().starts_with("voice/page-"));
    env.wait_for_end_of_wake();
}
