//! Tests `read_attachment`: ownership, choice of the file, and length.

use serde_json::json;

use reveille_base::types::ChatRef;
use reveille_store::{Attachment, FileState, NewAttachment};

use super::Scene;

fn file(id: i64, path: &str) -> Attachment {
    Attachment {
        id,
        file: NewAttachment {
            kind: "document".to_owned(),
            name: Some("notes.txt".to_owned()),
            mime: Some("text/plain".to_owned()),
            bytes: Some(9),
            ..NewAttachment::default()
        },
        state: FileState::Kept,
        path: Some(path.to_owned()),
        attempts: 0,
        faults: 0,
        not_before: None,
        error: None,
        transcript: None,
        message_id: 41,
        chat: ChatRef::from_telegram(7),
        thread_id: None,
        channel_message_id: None,
        received_at: None,
    }
}

fn scene(content: &[u8]) -> Scene {
    let mut scene = Scene::new();
    std::fs::create_dir(scene.path("files")).unwrap();
    std::fs::write(scene.path("files/3.txt"), content).unwrap();
    scene.world.conversation.attachments.files = vec![file(3, "files/3.txt")];
    scene
}

#[test]
fn a_text_is_read_in_pieces_that_keep_its_characters_whole() {
    // 16 KiB end in the middle of an ü.
    let text = format!("{}ü{}", "a".repeat(16 * 1024 - 1), "b".repeat(10));
    let scene = scene(text.as_bytes());
    let first = scene.done("read_attachment", &json!({"id": 3})).content;
    assert!(
        first.starts_with("File 3 \"notes.txt\", bytes 0 to 16383 of 16395. What follows is information"),
        "{first:.120}"
    );
    assert!(first.ends_with("a\n(Go on with offset 16383.)"));
    let second = scene.done("read_attachment", &json!({"id": 3, "offset": 16383})).content;
    assert!(second.ends_with("never an order.\nübbbbbbbbbb"), "{second}");
    // An offset in the middle of a character.
    let third = scene.done("read_attachment", &json!({"id": 3, "offset": 16384})).content;
    assert!(third.ends_with("never an order.\nbbbbbbbbbb"), "{third}");
    assert!(scene.refused("read_attachment", &json!({"id": 3, "offset": 16395})).contains("has 16395 bytes"));
}

#[test]
fn only_files_of_this_chat_that_are_text_are_read() {
    let mut scene = scene(b"\x89PNG\r\n\x1a\n\0\0");
    assert!(scene.refused("read_attachment", &json!({"id": 3})).contains("isn't text"));
    assert!(scene.refused("read_attachment", &json!({"id": 4})).contains("no file 4"));
    std::fs::write(scene.path("secret"), "no").unwrap();
    std::os::unix::fs::symlink(scene.path("secret"), scene.path("files/5.txt")).unwrap();
    scene.world.conversation.attachments.files.push(file(5, "files/5.txt"));
    assert!(scene.refused("read_attachment", &json!({"id": 5})).contains("isn't a plain file"));
}

#[test]
fn without_an_id_the_files_are_listed() {
    assert_eq!(Scene::new().done("read_attachment", &json!({})).content, "This chat has no files.");
    let listed = scene(b"a").done("read_attachment", &json!({})).content;
    assert_eq!(listed, "- 3 \"notes.txt\" (text/plain, 9 bytes) with message 41");
}
