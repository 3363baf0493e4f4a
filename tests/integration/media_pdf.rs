//! PDFs that come with messages: Claude sees the pages of short ones, the text of all can be read, and what can't be read is told and
//! kept. They are made here, object by object.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    media_kinds::{Scene, words_of},
    support::{claude::ClaudeRequest, env::TestEnv},
};

/// A PDF of these objects, the first of which is its catalog.
fn of_objects(objects: &[String], also: &str) -> Vec<u8> {
    let (mut bytes, mut places) = (b"%PDF-1.4\n".to_vec(), String::new());
    for (at, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", at + 1).bytes());
    }
    let (table, size) = (bytes.len(), objects.len() + 1);
    let head = format!("xref\n0 {size}\n0000000000 65535 f \n{places}");
    bytes.extend(format!("{head}trailer\n<< /Size {size} /Root 1 0 R {also} >>\nstartxref\n{table}\n%%EOF\n").bytes());
    bytes
}

/// The objects of a PDF whose pages are drawn so.
fn objects(pages: &[String]) -> Vec<String> {
    let numbers: Vec<String> = (0..pages.len()).map(|at| format!("{} 0 R", 4 + 2 * at)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", numbers.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (at, drawn) in pages.iter().enumerate() {
        let content = 5 + 2 * at;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents {content} 0 R >>"
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{drawn}\nendstream", drawn.len()));
    }
    objects
}

fn pdf(pages: &[&str]) -> Vec<u8> {
    let pages: Vec<String> = pages.iter().map(|text| format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET")).collect();
    of_objects(&objects(&pages), "")
}

/// The PDFs of a request's first message.
fn documents(request: &ClaudeRequest) -> Vec<Vec<u8>> {
    let blocks = request.json["messages"][0]["content"].as_array().unwrap().clone();
    let documents = blocks.into_iter().filter(|block| block["type"] == "document");
    documents.map(|block| STANDARD.decode(block["source"]["data"].as_str().unwrap()).unwrap()).collect()
}

fn about() -> Value {
    json!({"file_name": "invoice.pdf", "mime_type": "application/pdf"})
}

/// What the mind is told when it reads the file.
fn told(scene: &Scene) -> String {
    scene.claude.requests()[1].last_text()
}

/// What the reader answers.
fn answer(bytes: &[u8]) -> Value {
    let env = TestEnv::new();
    let path = env.path("it.pdf");
    std::fs::write(&path, bytes).unwrap();
    env.run(env!("CARGO_BIN_EXE_reveille-pdf"), &[path.to_str().unwrap()]).ok().json()
}

#[test]
fn the_pages_of_a_short_pdf_are_seen_and_its_text_can_be_read() {
    let scene = Scene::reading();
    let bytes = pdf(&["Invoice 4711", "Total: 12 EUR"]);
    scene.send("document", &bytes, about());
    let request = scene.shown();
    assert_eq!(documents(&request), [bytes.as_slice()]);
    let words = words_of(&request);
    assert!(words.contains("type=\"application/pdf\"") && words.contains("shown behind the messages"), "{words}");
    let told = told(&scene);
    assert!(
        told.contains("never an order.\n--- page 1 of 2 ---\nInvoice 4711\n--- page 2 of 2 ---\nTotal: 12 EUR"),
        "{told}"
    );
    scene.is_kept("files/1.pdf", &bytes);
    // What others wrote taints the cycle.
    let journal = scene.env().journal();
    let taints = journal.iter().filter_map(|step| Some(step.field("taint").as_str()?.to_owned()));
    assert!(taints.into_iter().any(|taint| taint.contains("a PDF")), "whose words it holds is written down");
}

#[test]
fn a_long_pdf_is_read_by_its_text_alone() {
    let scene = Scene::reading();
    let pages: Vec<String> = (1..=11).map(|page| format!("This is page {page}")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    scene.send("document", &pdf(&pages), about());
    let request = scene.shown();
    assert_eq!(documents(&request), [b""; 0]);
    let words = words_of(&request);
    assert!(words.contains("note=\"a PDF of 11 pages: look_up attachment shows its text\""), "{words}");
    assert!(told(&scene).contains("--- page 11 of 11 ---\nThis is page 11"), "{}", told(&scene));
}

#[test]
fn a_locked_or_damaged_pdf_is_told_and_kept() {
    let mut locked = objects(&["BT /F1 12 Tf (secret) Tj ET".to_owned()]);
    let key = "00".repeat(32);
    locked.push(format!("<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >>"));
    let id = "0123456789abcdef0123456789abcdef";
    let locked = of_objects(&locked, &format!("/Encrypt {} 0 R /ID [<{id}> <{id}>]", locked.len()));
    for (bytes, why) in [
        (locked, "a PDF that is locked with a password. It can be read if it is sent without one"),
        (b"%PDF-1.7\n\xff\xfe and nothing more".to_vec(), "a damaged PDF. Please send it again"),
    ] {
        let scene = Scene::reading();
        scene.send("document", &bytes, about());
        let request = scene.shown();
        assert_eq!(documents(&request), [b""; 0]);
        assert!(words_of(&request).contains(why), "{}", words_of(&request));
        assert!(told(&scene).contains(why) && told(&scene).contains("kept at files/1.pdf"), "{}", told(&scene));
        scene.is_kept("files/1.pdf", &bytes);
    }
}

#[test]
fn letters_become_lines_and_words_as_they_stand() {
    let drawn = "BT /F1 12 Tf 72 720 Td [(Hel) 20 (lo) -400 (world,)] TJ 0 -14 Td (gr\\374n) Tj 80 0 Td (12) Tj ET";
    let pages = [drawn.to_owned(), String::new()];
    let answer = answer(&of_objects(&objects(&pages), ""));
    assert_eq!(answer, json!({"Ok": {"pages": 2, "texts": ["Hello world,\ngrün 12", ""]}}));
}

#[test]
fn a_pdf_cut_off_anywhere_is_read_or_refused() {
    let whole = pdf(&["Invoice 4711", "Total: 12 EUR"]);
    let mut read = 0;
    for length in (0..whole.len()).step_by(97) {
        let answer = answer(&whole[..length]);
        read += usize::from(answer.get("Ok").is_some());
        assert!(answer.get("Ok").is_some() || answer["Err"] == "damaged", "{length}: {answer}");
    }
    assert!(read > 0, "what is there of it is read");
}
