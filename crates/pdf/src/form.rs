//! The fields and notes of a PDF: text that people typed, ticked or wrote on it.
//!
//! Many programs fill in a form without drawing the values, and a tick is never drawn as text. Fields are therefore read from the form's
//! own data, and values already in the page's text are left out.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Name, Object},
    page::Page,
};

/// The maximum number of a field's parents that are followed.
const MAX_PARENTS: usize = 16;
/// The maximum number of fields and notes listed from a file.
const MAX_LISTED: usize = 2_000;
/// The longest field name listed, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The longest value listed, in characters.
const MAX_VALUE_CHARS: usize = 10_000;
/// Annotation flags: hidden, or not to be viewed.
const UNSEEN: u32 = 1 << 1 | 1 << 5;
/// Field flags: a password, a radio button, a push button.
const PASSWORD: u32 = 1 << 13;
const RADIO: u32 = 1 << 15;
const PUSH: u32 = 1 << 16;
/// Names of the ticked state that add nothing to the tick itself.
const USUAL_STATES: [&str; 7] = ["yes", "on", "1", "true", "x", "checked", "ja"];
/// The kinds of notes on pages.
const NOTES: [&str; 14] = [
    "FreeText",
    "Text",
    "Highlight",
    "Underline",
    "StrikeOut",
    "Squiggly",
    "Caret",
    "Stamp",
    "Ink",
    "Square",
    "Circle",
    "Line",
    "Polygon",
    "PolyLine",
];

/// Reads the fields and notes of a PDF, page by page.
pub(super) struct FormReader<'a> {
    pdf: &'a Pdf,
    /// The names of the fields found so far.
    found_names: HashSet<String>,
    /// The number of fields and notes listed so far.
    listed: usize,
}

impl<'a> FormReader<'a> {
    pub(super) fn new(pdf: &'a Pdf) -> Self {
        Self { pdf, found_names: HashSet::new(), listed: 0 }
    }

    /// Returns the fields and notes of a page as lines, except those whose words are already in `text`; empty if there are none.
    pub(super) fn read_page(&mut self, page: &Page<'_>, text: &str) -> String {
        let shown = remove_white_space(text);
        let annotations = page.raw().get::<Array<'_>>("Annots");
        let (mut fields, mut notes) = (String::new(), String::new());
        for annotation in annotations.iter().flat_map(|all| all.iter::<Dict<'_>>()) {
            if self.listed >= MAX_LISTED {
                break;
            }
            if annotation.get::<u32>("F").unwrap_or(0) & UNSEEN != 0 {
                continue;
            }
            let kind = annotation.get::<Name<'_>>("Subtype").map(|kind| kind.as_str().to_owned()).unwrap_or_default();
            let (line, section) = if kind == "Widget" {
                (self.read_field(&annotation, &shown), &mut fields)
            } else if NOTES.contains(&kind.as_str()) {
                (read_note(&annotation, &shown), &mut notes)
            } else {
                continue;
            };
            if let Some(line) = line {
                self.listed += 1;
                section.push_str(&format!("- {line}\n"));
            }
        }
        let section = |title, lines: String| if lines.is_empty() { lines } else { format!("\n[{title}]\n{lines}") };
        section("form fields", fields) + &section("notes on the page", notes)
    }

    /// Returns the fields outside all pages, and a note if fields can't be read; empty if there are neither.
    pub(super) fn read_rest(&mut self) -> String {
        let root = self.pdf.xref().get::<Dict<'_>>(self.pdf.xref().root_id());
        let Some(form) = root.and_then(|root| root.get::<Dict<'_>>("AcroForm")) else { return String::new() };
        let mut lines = String::new();
        let (mut waiting, mut seen) = (self.read_children(&form, "Fields"), HashSet::new());
        while let Some(field) = waiting.pop() {
            // A form may have any number of fields without a value, so the search has a limit too.
            if self.listed >= MAX_LISTED
                || seen.len() >= 10 * MAX_LISTED
                || !field.obj_id().is_none_or(|id| seen.insert(id))
            {
                continue;
            }
            let kids = self.read_children(&field, "Kids");
            // Children with a name are fields. Others are only the places where this field is drawn.
            let is_met = self.found_names.contains(&full_name(&field));
            if !is_met && kids.iter().all(|kid| !kid.contains_key("T")) {
                if let Some(line) = self.read_field(&field, "") {
                    self.listed += 1;
                    lines.push_str(&format!("- {line}\n"));
                }
            } else {
                waiting.extend(kids);
            }
        }
        if !lines.is_empty() {
            lines.insert_str(0, "[form fields outside all pages]\n");
        }
        if self.found_names.is_empty() && form.contains_key("XFA") {
            lines.push_str(
                "[This is a form of a kind (XFA) whose values can't be read here. Once printed to a PDF, it can be read.]\n",
            );
        }
        lines
    }

    /// Reads a list of fields, the last field first. Each is looked up in the file itself, since a field reached through its parent can't
    /// look up that parent.
    fn read_children(&self, dict: &Dict<'a>, key: &str) -> Vec<Dict<'a>> {
        let list = dict.get::<Array<'a>>(key);
        let children = list.iter().flat_map(|list| list.raw_iter()).take(10 * MAX_LISTED);
        let mut children: Vec<Dict<'a>> = children
            .filter_map(|child| match child {
                MaybeRef::Ref(reference) => self.pdf.xref().get::<Dict<'a>>(reference.into()),
                MaybeRef::NotRef(child) => child.into_dict(),
            })
            .collect();
        children.reverse();
        children
    }

    fn read_field(&mut self, widget: &Dict<'_>, shown: &str) -> Option<String> {
        let kind = find_inherited::<Name<'_>>(widget, "FT")?;
        let flags = find_inherited::<u32>(widget, "Ff").unwrap_or(0);
        let name = full_name(widget);
        self.found_names.insert(name.clone());
        let label = find_inherited::<Object<'_>>(widget, "TU").and_then(|label| text_of_object(&label));
        let label =
            label.map(|label| one_line(&label, MAX_NAME_CHARS)).filter(|label| !label.is_empty()).unwrap_or(name);
        let value = find_inherited::<Object<'_>>(widget, "V");
        match kind.as_str() {
            "Btn" if flags & PUSH == 0 => Some(render_checkbox(widget, &label, value.as_ref(), flags & RADIO != 0)),
            "Tx" | "Ch" => {
                let values = match value? {
                    Object::Array(values) => {
                        values.iter::<Object<'_>>().filter_map(|value| text_of_object(&value)).collect()
                    }
                    value => vec![text_of_object(&value)?],
                };
                let values: Vec<String> = values
                    .iter()
                    .map(|value| one_line(&find_choice_label(widget, value), MAX_VALUE_CHARS))
                    .filter(|value| !value.is_empty())
                    .collect();
                let is_shown =
                    is_drawn(widget) && values.iter().all(|value| shown.contains(&remove_white_space(value)));
                let value = if flags & PASSWORD == 0 { values.join("; ") } else { "(a password)".to_owned() };
                (!values.is_empty() && !is_shown).then(|| format!("{label}: {value}"))
            }
            "Sig" => {
                let state = if matches!(value, Some(Object::Dict(_))) { "signed" } else { "not signed" };
                Some(format!("{label}: ({state})"))
            }
            _ => None,
        }
    }
}

/// Renders a checkbox or a radio button like a task in Markdown: `[x] label`.
fn render_checkbox(widget: &Dict<'_>, label: &str, value: Option<&Object<'_>>, is_radio: bool) -> String {
    let state = widget.get::<Name<'_>>("AS").map(|state| state.as_str().to_owned());
    let ticked_state = find_ticked_state(widget).or_else(|| state.clone().filter(|state| state != "Off"));
    let value = value.and_then(text_of_object);
    let is_ticked = match (&value, &ticked_state) {
        // The field's value takes precedence: some programs forget to draw it.
        (Some(value), Some(ticked_state)) => value == ticked_state,
        (Some(value), None) => value != "Off" && !value.is_empty(),
        (None, _) => state.is_some_and(|state| state != "Off"),
    };
    let choice = ticked_state.or(value.filter(|_| is_ticked)).map(|state| {
        let number = state.parse::<usize>().ok();
        let names = find_inherited::<Array<'_>>(widget, "Opt");
        let name =
            number.and_then(|at| names.as_ref()?.iter::<Object<'_>>().nth(at)).and_then(|name| text_of_object(&name));
        one_line(&name.unwrap_or(state), MAX_NAME_CHARS)
    });
    let choice = choice.filter(|choice| is_radio || !USUAL_STATES.contains(&choice.to_lowercase().as_str()));
    let mark = if is_ticked { 'x' } else { ' ' };
    choice.map_or_else(|| format!("[{mark}] {label}"), |choice| format!("[{mark}] {label}: {choice}"))
}

/// Returns the state in which a widget's box is ticked.
fn find_ticked_state(widget: &Dict<'_>) -> Option<String> {
    let states = widget.get::<Dict<'_>>("AP")?.get::<Dict<'_>>("N")?;
    let mut states: Vec<String> = states.keys().map(|state| state.as_str().to_owned()).collect();
    states.sort();
    states.into_iter().find(|state| state != "Off")
}

/// Returns `true` if an annotation's own drawing has letters: many annotations have an empty drawing for the viewer to fill.
fn is_drawn(annotation: &Dict<'_>) -> bool {
    let drawing = annotation.get::<Dict<'_>>("AP").and_then(|drawings| drawings.get::<Object<'_>>("N"));
    let drawing = drawing
        .and_then(Object::into_stream)
        .and_then(|drawing| drawing.decoded().ok().map(|drawn| drawn.into_owned()));
    drawing.is_some_and(|drawn| drawn.windows(2).any(|pair| pair.eq_ignore_ascii_case(b"Tj")))
}

/// Returns a note's author and text; `None` if the text is empty or already drawn on the page.
fn read_note(annotation: &Dict<'_>, shown: &str) -> Option<String> {
    let said = annotation.get::<Object<'_>>("Contents").and_then(|said| text_of_object(&said))?;
    let said = one_line(&said, MAX_VALUE_CHARS);
    let author = annotation.get::<Object<'_>>("T").and_then(|author| text_of_object(&author));
    let author = author.map(|author| one_line(&author, MAX_NAME_CHARS)).filter(|author| !author.is_empty());
    let line = author.map_or_else(|| said.clone(), |author| format!("{author}: {said}"));
    let is_shown = is_drawn(annotation) && shown.contains(&remove_white_space(&said));
    (!said.is_empty() && !is_shown).then_some(line)
}

/// Returns the label of a choice's value.
fn find_choice_label(widget: &Dict<'_>, value: &str) -> String {
    let options = find_inherited::<Array<'_>>(widget, "Opt");
    let pairs = options.iter().flat_map(|options| options.iter::<Object<'_>>()).filter_map(Object::into_array);
    let shown = pairs.filter_map(|pair| {
        let mut pair = pair.iter::<Object<'_>>().filter_map(|part| text_of_object(&part));
        Some((pair.next()?, pair.next()?))
    });
    let mut shown = shown.filter(|(kept, _)| kept == value);
    shown.next().map_or_else(|| value.to_owned(), |(_, shown)| shown)
}

/// Iterates over a field and its parents, the field first.
fn iter_lineage<'a>(field: &Dict<'a>) -> impl Iterator<Item = Dict<'a>> {
    std::iter::successors(Some(field.clone()), |field| field.get::<Dict<'_>>("Parent")).take(MAX_PARENTS)
}

/// Returns an entry of a field, or the one inherited from a parent.
fn find_inherited<'a, T: TryFrom<Object<'a>>>(field: &Dict<'a>, key: &str) -> Option<T> {
    iter_lineage(field).find_map(|field| field.get::<Object<'a>>(key)).and_then(|object| T::try_from(object).ok())
}

/// Returns a field's name, prefixed by its parents' names.
fn full_name(field: &Dict<'_>) -> String {
    let mut names: Vec<String> = iter_lineage(field)
        .filter_map(|field| field.get::<Object<'_>>("T").and_then(|name| text_of_object(&name)))
        .map(|name| one_line(&name, MAX_NAME_CHARS))
        .collect();
    names.reverse();
    one_line(&names.join("."), MAX_NAME_CHARS)
}

/// Returns the text of a string, a stream or a name.
fn text_of_object(object: &Object<'_>) -> Option<String> {
    match object {
        Object::String(text) => Some(decode_text(text.as_bytes())),
        Object::Name(name) => Some(name.as_str().to_owned()),
        Object::Stream(stream) => stream.decoded().ok().map(|text| decode_text(&text)),
        _ => None,
    }
}

/// Decodes a text string in any of the PDF encodings.
fn decode_text(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.as_chunks().0.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| decode_byte(*byte)).collect(),
    }
}

/// Decodes a byte of PDFDocEncoding, which is Latin-1 except for the letters below.
fn decode_byte(byte: u8) -> char {
    const LOW: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const HIGH: [char; 33] = [
        '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ', 'ﬂ', 'Ł',
        'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{fffd}', '€',
    ];
    let special = match byte {
        0x18..=0x1f => LOW.get(usize::from(byte - 0x18)),
        0x80..=0xa0 => HIGH.get(usize::from(byte - 0x80)),
        _ => None,
    };
    special.copied().unwrap_or_else(|| char::from(byte))
}

fn remove_white_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Puts text on one line, without control characters.
fn one_line(text: &str, max_chars: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    reveille_base::words::truncate_text(&reveille_base::words::one_line(&text), max_chars)
}
