//! Tests that build PDFs object by object, and check the text read from them.

use super::*;

#[test]
fn pages_are_numbered_and_missing_text_is_reported() {
    let text = PdfText { pages: 3, texts: vec!["One\n".to_owned(), " ".to_owned()], rest: String::new() };
    assert_eq!(
        text.join_pages(),
        "--- page 1 of 3 ---\nOne\n--- page 2 of 3 ---\n(no text: perhaps a picture of a page)\n\
         --- the pages from 3 on were not read: there are too many ---\n"
    );
}

/// A PDF of one page. `drawn` is the page's content; `page` and `catalog` extend these dictionaries; `objects` are
/// numbered from 6.
fn pdf(drawn: &str, page: &str, catalog: &str, objects: &[&str]) -> Vec<u8> {
    let mut all = vec![
        format!("<< /Type /Catalog /Pages 2 0 R {catalog} >>"),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R {page} >>"
        ),
        format!("<< /Length {} >>\nstream\n{drawn}\nendstream", drawn.len()),
    ];
    all.extend(objects.iter().map(|object| (*object).to_owned()));
    let (mut bytes, mut places) = (b"%PDF-1.7\n".to_vec(), String::new());
    for (at, object) in all.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", at + 1).bytes());
    }
    let (table, size) = (bytes.len(), all.len() + 1);
    let head = format!("xref\n0 {size}\n0000000000 65535 f \n{places}");
    bytes.extend(format!("{head}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n").bytes());
    bytes
}

/// The text of a PDF, without the line that numbers the page.
fn read_text(bytes: Vec<u8>) -> String {
    let text = extract_text(bytes).unwrap().join_pages();
    text.strip_prefix("--- page 1 of 1 ---\n").unwrap().trim_end().to_owned()
}

const HELLO: &str = "BT /F1 12 Tf 72 720 Td (Hello) Tj ET";

#[test]
fn filled_in_fields_and_notes_are_read() {
    let widget = |rest: &str| format!("<< /Type /Annot /Subtype /Widget /Rect [0 0 9 9] {rest} >>");
    let boxes = "/AP << /N << /Ja 5 0 R /Off 5 0 R >> >>";
    // The case's name, the page's annotations, and the text expected below the page's own text.
    let table: &[(&str, Vec<String>, &str)] = &[
        ("a text", vec![widget("/FT /Tx /T (name) /V (Ann Lee)")], "[form fields]\n- name: Ann Lee"),
        ("its label", vec![widget("/FT /Tx /T (f1) /TU (Your name) /V (Ann)")], "[form fields]\n- Your name: Ann"),
        ("of two lines", vec![widget("/FT /Tx /T (a) /V (1 Main St\\rYork)")], "[form fields]\n- a: 1 Main St York"),
        ("UTF-16", vec![widget("/FT /Tx /T (a) /V <FEFF04140430>")], "[form fields]\n- a: Да"),
        ("PDFDocEncoding", vec![widget("/FT /Tx /T (a) /V <8DE9A0>")], "[form fields]\n- a: “é€"),
        ("UTF-8", vec![widget("/FT /Tx /T (a) /V <EFBBBFC3A9>")], "[form fields]\n- a: é"),
        ("letters that happen to be on the page too", vec![widget("/FT /Tx /T (a) /V (H)")], "[form fields]\n- a: H"),
        ("nothing filled in", vec![widget("/FT /Tx /T (a) /V ()"), widget("/FT /Tx /T (b)")], ""),
        ("a password", vec![widget("/FT /Tx /T (a) /Ff 8192 /V (secret)")], "[form fields]\n- a: (a password)"),
        ("hidden", vec![widget("/FT /Tx /T (a) /F 2 /V (x)")], ""),
        ("a tick", vec![widget(&format!("/FT /Btn /T (agree) /V /Ja /AS /Ja {boxes}"))], "[form fields]\n- [x] agree"),
        (
            "no tick",
            vec![widget(&format!("/FT /Btn /T (agree) /V /Off /AS /Off {boxes}"))],
            "[form fields]\n- [ ] agree",
        ),
        (
            "a tick that isn't drawn",
            vec![widget(&format!("/FT /Btn /T (agree) /V /Ja /AS /Off {boxes}"))],
            "[form fields]\n- [x] agree",
        ),
        ("a tick without drawings", vec![widget("/FT /Btn /T (agree) /V /Yes")], "[form fields]\n- [x] agree"),
        ("a tick by its state alone", vec![widget("/FT /Btn /T (agree) /AS /Yes")], "[form fields]\n- [x] agree"),
        ("a tick never touched", vec![widget("/FT /Btn /T (agree)")], "[form fields]\n- [ ] agree"),
        ("a button", vec![widget("/FT /Btn /Ff 65536 /T (send)")], ""),
        (
            "a choice",
            vec![widget("/FT /Ch /T (size) /V (m) /Opt [[(s) (Small)] [(m) (Medium)]]")],
            "[form fields]\n- size: Medium",
        ),
        ("several", vec![widget("/FT /Ch /T (size) /V [(s) (m)]")], "[form fields]\n- size: s; m"),
        ("a signature", vec![widget("/FT /Sig /T (sign)")], "[form fields]\n- sign: (not signed)"),
        (
            "one of a set",
            vec![
                widget(
                    "/Parent << /FT /Btn /Ff 32768 /T (pay) /V /Cash >> /AS /Cash /AP << /N << /Cash 5 0 R /Off 5 0 R >> >>",
                ),
                widget(
                    "/Parent << /FT /Btn /Ff 32768 /T (pay) /V /Cash >> /AS /Off /AP << /N << /Card 5 0 R /Off 5 0 R >> >>",
                ),
            ],
            "[form fields]\n- [x] pay: Cash\n- [ ] pay: Card",
        ),
        (
            "a name in parts",
            vec![widget("/Parent << /T (person) /FT /Tx >> /T (name) /V (Ann)")],
            "[form fields]\n- person.name: Ann",
        ),
        (
            "notes",
            vec![
                "<< /Subtype /FreeText /Rect [0 0 9 9] /Contents (Call me) >>".to_owned(),
                "<< /Subtype /Text /Rect [0 0 9 9] /T (Bob) /Contents (Wrong total) >>".to_owned(),
                "<< /Subtype /Highlight /Rect [0 0 9 9] >>".to_owned(),
                "<< /Subtype /Popup /Rect [0 0 9 9] /Contents (twice) >>".to_owned(),
            ],
            "[notes on the page]\n- Call me\n- Bob: Wrong total",
        ),
    ];
    for (name, annotations, expected) in table {
        let page = format!("/Annots [{}]", annotations.join(" "));
        let read = read_text(pdf(HELLO, &page, "", &[]));
        assert_eq!(read, format!("Hello\n{expected}").trim_end(), "{name}");
    }
}

#[test]
fn a_drawn_value_is_listed_once_unless_it_is_out_of_date() {
    let drawn = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F1 3 0 R >> >> /Length 29 >>\nstream\n\
                 BT /F1 9 Tf 0 0 Td (M) Tj ET \nendstream";
    let empty = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 11 >>\nstream\n/Tx BMC EMC\nendstream";
    for (drawing, value, expected) in [
        (drawn, "M", "M"),
        (drawn, "L", "M\n[form fields]\n- size: L"),
        (empty, "M", "(no text: perhaps a picture of a page)\n[form fields]\n- size: M"),
    ] {
        let page = format!(
            "/Annots [<< /Subtype /Widget /Rect [0 0 9 9] /FT /Tx /T (size) /V ({value}) /AP << /N 6 0 R >> >>]"
        );
        assert_eq!(read_text(pdf("", &page, "", &[drawing])).trim(), expected, "{value}");
    }
}

#[test]
fn fields_outside_all_pages_are_read_and_unreadable_ones_reported() {
    let form = "/AcroForm << /NeedAppearances true /Fields [6 0 R 8 0 R] >>";
    let objects = [
        "<< /T (person) /Kids [7 0 R] >>",
        "<< /Parent 6 0 R /FT /Tx /T (name) /V (Ann) >>",
        "<< /FT /Btn /T (agree) /V /Yes >>",
    ];
    let read = read_text(pdf(HELLO, "", form, &objects));
    assert_eq!(read, "Hello\n[form fields outside all pages]\n- person.name: Ann\n- [x] agree");
    let on_page = "/Annots [<< /Subtype /Widget /Rect [0 0 9 9] /Parent 7 0 R >>]";
    let read = read_text(pdf(HELLO, on_page, "/AcroForm << /Fields [6 0 R] >>", &objects));
    assert_eq!(read, "Hello\n[form fields]\n- person.name: Ann", "each field is listed once");
    let round = "/AcroForm << /Fields [6 0 R] >>";
    let objects = ["<< /T (a) /Parent 7 0 R /Kids [7 0 R] >>", "<< /T (b) /Parent 6 0 R /Kids [6 0 R] >>"];
    assert_eq!(read_text(pdf(HELLO, "", round, &objects)), "Hello", "fields that are each other's parents");
    let read = read_text(pdf("", "", "/AcroForm << /XFA 5 0 R /Fields [] >>", &[]));
    assert!(read.contains("(XFA) whose values can't be read"), "{read}");
}

#[test]
fn text_drawn_repeatedly_is_read_once() {
    // The case's name, the page's drawing, and the expected text.
    let table: &[(&str, &str, &str)] = &[
        ("outlined", "BT /F1 12 Tf 2 Tr 72 720 Td (Hello) Tj ET", "Hello"),
        (
            "a shadow",
            "BT /F1 12 Tf 72 720 Td (Hello all) Tj ET BT /F1 12 Tf 72.3 720 Td (Hello all) Tj ET",
            "Hello all",
        ),
        ("the same word again", "BT /F1 12 Tf 72 720 Td (no no) Tj 0 -14 Td (no) Tj ET", "no no\nno"),
        ("a layer of words behind a picture", "BT /F1 12 Tf 3 Tr 72 720 Td (Hello) Tj ET", "Hello"),
        ("nothing", "", "(no text: perhaps a picture of a page)"),
    ];
    for (name, drawn, expected) in table {
        assert_eq!(read_text(pdf(drawn, "", "", &[])), *expected, "{name}");
    }
}

#[test]
fn a_page_with_unknown_letters_is_reported() {
    let text = PdfText { pages: 1, texts: vec!["\u{fffd}\u{fffd}\u{e012} of it".to_owned()], rest: String::new() };
    assert!(text.join_pages().contains("fonts don't say which they are"), "{}", text.join_pages());
    let text =
        PdfText { pages: 1, texts: vec!["a plain page with one \u{fffd} in it".to_owned()], rest: String::new() };
    assert!(!text.join_pages().contains("fonts don't say"), "{}", text.join_pages());
}
