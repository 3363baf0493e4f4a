//! The page as indented lines, pruned to what can be read or acted on.

use std::collections::HashMap;

use reveille_base::words;

use super::{
    clean::clean_line,
    lines::{LineBuffer, LineKind, LookLine},
    roles::{find_control_word, find_part_word, is_inline_tag, list_states},
    tree::{AxNode, AxTree, DomFacts},
};
use crate::references::{NodeAddress, References};

/// Maximum depth of a tree that is followed.
const MAX_DEPTH: usize = 250;
/// Maximum length of a name or a value, in characters.
const MAX_NAME_CHARS: usize = 120;
/// Maximum length of a value when a page is read, in characters.
const MAX_VALUE_CHARS: usize = 4_000;
/// Maximum number of a list's options that are shown.
const MAX_OPTIONS: usize = 12;
/// Maximum length of a word of attributes, in characters.
const MAX_HINT_CHARS: usize = 40;
/// Maximum length of the text of a clickable part without a role, in characters.
const MAX_PART_CHARS: usize = 120;

/// One document of a page.
#[derive(Debug, Default)]
pub(crate) struct PageDocument {
    pub(crate) session: String,
    pub(crate) frame: String,
    pub(crate) loader: String,
    pub(crate) tree: AxTree,
    /// The frames in this document: their element's node, and their place in the list of documents.
    pub(crate) children: HashMap<i64, usize>,
}

/// All documents of a page with the facts of their nodes.
#[derive(Debug, Default)]
pub(crate) struct PageContent {
    pub(crate) documents: Vec<PageDocument>,
    /// The facts of nodes by session.
    pub(crate) facts: HashMap<String, HashMap<i64, DomFacts>>,
}

/// What a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookPurpose {
    /// For acting: with references.
    Act,
    /// For reading: text alone.
    Read,
}

/// The lines of a page.
#[derive(Debug, Default)]
pub(crate) struct RenderedPage {
    pub(crate) lines: Vec<LookLine>,
    /// True if parts of the page are drawn, so that a picture shows more.
    pub(crate) is_drawn: bool,
    /// Nodes whose values are never shown.
    pub(crate) secrets: Vec<NodeAddress>,
}

/// Renders a page.
pub(crate) fn render_page(
    content: &PageContent,
    references: &mut References,
    is_known_secret: &dyn Fn(&NodeAddress) -> bool,
    purpose: LookPurpose,
) -> RenderedPage {
    let mut renderer = Renderer { content, references, is_known_secret, purpose, page: RenderedPage::default() };
    let mut lines = LineBuffer::default();
    if !content.documents.is_empty() {
        renderer.render_document(0, Spot { document: 0, depth: 0, level: 0, inside: Inside::Page }, &mut lines);
    }
    lines.flush(0);
    RenderedPage { lines: lines.lines, ..renderer.page }
}

/// Whether text around is already said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Page,
    /// Inside something whose name is its text.
    Named,
}

/// The place of a node while rendering.
#[derive(Debug, Clone, Copy)]
struct Spot {
    document: usize,
    /// Depth of printed lines.
    depth: usize,
    /// Depth in the tree.
    level: usize,
    inside: Inside,
}

impl Spot {
    fn down(self) -> Self {
        Self { level: self.level + 1, ..self }
    }

    fn indented(self) -> Self {
        Self { depth: self.depth + 1, ..self.down() }
    }

    fn named(self) -> Self {
        Self { inside: Inside::Named, ..self.indented() }
    }
}

struct Renderer<'a> {
    content: &'a PageContent,
    references: &'a mut References,
    is_known_secret: &'a dyn Fn(&NodeAddress) -> bool,
    purpose: LookPurpose,
    page: RenderedPage,
}

impl Renderer<'_> {
    fn render_document(&mut self, document: usize, spot: Spot, lines: &mut LineBuffer) {
        let content = self.content;
        let root = content.documents.get(document).and_then(|document| document.tree.root.as_ref());
        if let Some(root) = root {
            self.render_node(root, Spot { document, ..spot }, lines);
        }
    }

    fn render_children(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        if spot.level > MAX_DEPTH {
            lines.push(spot.depth, LineKind::Text, "(nested too deeply: left out)".to_owned());
            return;
        }
        for child in &node.child_ids {
            self.render_node(child, spot, lines);
        }
    }

    fn address(&self, node: &AxNode, spot: Spot) -> Option<NodeAddress> {
        let document = self.content.documents.get(spot.document)?;
        Some(NodeAddress {
            session: document.session.clone(),
            frame: document.frame.clone(),
            loader: document.loader.clone(),
            node: node.node?,
        })
    }

    fn reference(&mut self, node: &AxNode, spot: Spot) -> String {
        match self.address(node, spot).filter(|_| self.purpose == LookPurpose::Act) {
            Some(address) => format!("[r{}] ", self.references.number_of(&address)),
            None => String::new(),
        }
    }

    fn render_node(&mut self, id: &str, spot: Spot, lines: &mut LineBuffer) {
        let content = self.content;
        let Some(document) = content.documents.get(spot.document) else { return };
        let Some(node) = document.tree.get(id) else { return };
        let facts = node.node.and_then(|number| content.facts.get(&document.session)?.get(&number));
        let none = DomFacts::default();
        let facts = facts.unwrap_or(&none);
        let role = node.role();
        if !node.ignored {
            match role {
                "StaticText" | "text" => {
                    if spot.inside == Inside::Page {
                        lines.add_text(&node.name(), self.address(node, spot));
                    }
                    return;
                }
                "InlineTextBox" | "LineBreak" | "ListMarker" => return,
                "heading" => return self.render_heading(node, spot, lines),
                "Iframe" | "IframePresentational" => return self.render_frame(node, spot, lines),
                "image" | "img" | "graphics-symbol" => {
                    let name = clean_line(&node.name(), MAX_NAME_CHARS);
                    if facts.is_clickable && self.purpose == LookPurpose::Act {
                        return self.render_part(node, facts, spot, lines);
                    } else if !name.is_empty() && spot.inside == Inside::Page {
                        lines.push(spot.depth, LineKind::Text, format!("image \"{name}\""));
                    }
                    return self.render_children(node, spot.down(), lines);
                }
                "Canvas" | "canvas" | "SvgRoot" | "graphics-document" | "EmbeddedObject" | "PluginObject" => {
                    return self.render_drawing(node, facts, spot, lines);
                }
                "row" | "listitem"
                    if (facts.is_clickable || facts.is_draggable) && self.purpose == LookPurpose::Act =>
                {
                    return self.render_part(node, facts, spot, lines);
                }
                "row" | "LayoutTableRow" => return self.render_row(node, spot, lines),
                "listitem" => return self.render_item(node, spot, lines),
                _ => {}
            }
            let word = if facts.is_file_field { Some("file field") } else { find_control_word(role) };
            if let Some(word) = word {
                return self.render_control(word, node, facts, spot, lines);
            }
            if !node.property("editable").is_empty() && node.is("focusable") {
                return self.render_control("textbox", node, facts, spot, lines);
            }
            if let Some(part) = find_part_word(role) {
                let name = clean_line(&node.name(), MAX_NAME_CHARS);
                if part.without_name || !name.is_empty() {
                    let is_touched = facts.is_clickable || facts.is_draggable || node.is("focusable");
                    let reference = if is_touched { self.reference(node, spot) } else { String::new() };
                    return self.render_container(&format!("{reference}{}", part.word), &name, node, spot, lines);
                }
            }
        }
        let is_root = matches!(role, "RootWebArea" | "WebArea");
        let is_touched =
            facts.is_drawn && (facts.is_clickable || facts.is_draggable || !node.ignored && node.is("focusable"));
        let is_label = role == "LabelText" || facts.tag == "label";
        if is_touched
            && !is_root
            && !is_label
            && self.purpose == LookPurpose::Act
            && !matches!(facts.tag.as_str(), "body" | "html")
        {
            return self.render_part(node, facts, spot, lines);
        }
        let is_inline = is_inline_tag(&facts.tag);
        if !is_inline {
            lines.flush(spot.depth);
        }
        self.render_children(node, spot.down(), lines);
        if !is_inline {
            lines.flush(spot.depth);
        }
    }

    fn render_heading(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        if !name.is_empty() && spot.inside == Inside::Page {
            let level = node.property("level").parse().unwrap_or(2).clamp(1, 6);
            lines.push(spot.depth, LineKind::Heading, format!("{} {name}", "#".repeat(level)));
        }
        self.render_children(node, Spot { inside: Inside::Named, ..spot.down() }, lines);
    }

    fn render_frame(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        let content = self.content;
        let children = content.documents.get(spot.document).map(|document| &document.children);
        let Some(child) = node.node.and_then(|number| children?.get(&number)) else { return };
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        let mut inner = LineBuffer::default();
        self.render_document(*child, Spot { inside: Inside::Page, ..spot.indented() }, &mut inner);
        inner.flush(spot.depth + 1);
        lines.push_part(spot.depth, with_name("frame", &name), inner.lines);
    }

    fn render_container(&mut self, word: &str, name: &str, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        let mut inner = LineBuffer::default();
        self.render_children(node, spot.indented(), &mut inner);
        inner.flush(spot.depth + 1);
        lines.push_part(spot.depth, with_name(word, name), inner.lines);
    }

    fn render_row(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        lines.flush(spot.depth);
        let mut cells = Vec::new();
        for child in &node.child_ids {
            let mut cell = LineBuffer::default();
            self.render_node(child, Spot { depth: spot.depth + 1, ..spot.down() }, &mut cell);
            cell.flush(spot.depth + 1);
            if !cell.lines.is_empty() {
                cells.push(cell.lines);
            }
        }
        let is_plain = cells.iter().all(|cell| cell.iter().all(|line| line.kind == LineKind::Text));
        if is_plain {
            let text = |cell: &Vec<LookLine>| cell.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join(" ");
            let row = cells.iter().map(text).collect::<Vec<_>>().join(" | ");
            lines.add_text(&row, None);
            lines.flush(spot.depth);
        } else {
            let cells = cells.into_iter().flatten().collect();
            lines.push_part(spot.depth, "row".to_owned(), cells);
        }
    }

    fn render_item(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        lines.flush(spot.depth);
        let mut item = LineBuffer::default();
        self.render_children(node, spot.down(), &mut item);
        item.flush(spot.depth);
        if let Some(first) =
            item.lines.first_mut().filter(|line| line.kind == LineKind::Text && !line.text.starts_with("- "))
        {
            first.text.insert_str(0, "- ");
        }
        lines.lines.extend(item.lines);
    }

    fn render_drawing(&mut self, node: &AxNode, facts: &DomFacts, spot: Spot, lines: &mut LineBuffer) {
        let is_large = matches!(facts.tag.as_str(), "canvas" | "embed" | "object" | "svg");
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        if spot.inside == Inside::Named {
            return;
        }
        let mut inner = LineBuffer::default();
        self.render_children(node, spot.indented(), &mut inner);
        inner.flush(spot.depth + 1);
        let is_canvas = facts.tag == "canvas";
        if is_canvas || facts.is_clickable {
            self.page.is_drawn |= is_large;
            let reference = self.reference(node, spot);
            let word = if is_canvas { "canvas" } else { "drawing" };
            lines.push(spot.depth, LineKind::Control, format!("{reference}{}", with_name(word, &name)));
            lines.lines.extend(inner.lines);
        } else if !name.is_empty() || !inner.lines.is_empty() {
            self.page.is_drawn |= is_large;
            lines.push_part(spot.depth, with_name("drawing", &name), inner.lines);
        }
    }

    /// Renders an element without a role that can be clicked or focused.
    fn render_part(&mut self, node: &AxNode, facts: &DomFacts, spot: Spot, lines: &mut LineBuffer) {
        let mut inner = LineBuffer::default();
        self.render_children(node, Spot { inside: Inside::Page, ..spot.indented() }, &mut inner);
        inner.flush(spot.depth + 1);
        let has_controls = inner.lines.iter().any(|line| line.kind == LineKind::Control);
        let text: Vec<&str> = inner.lines.iter().map(|line| line.text.trim_start_matches("- ")).collect();
        let text = text.join(" ");
        let is_short = text.chars().count() <= MAX_PART_CHARS;
        let has_text = inner.lines.iter().any(|line| matches!(line.kind, LineKind::Text | LineKind::Heading));
        // A wrapper around controls is clicked through them.
        let is_wrapper = has_controls && !has_text;
        let is_merely_focusable = !facts.is_clickable && (has_controls || text.is_empty());
        if !facts.is_draggable && (is_wrapper || is_merely_focusable) {
            lines.flush(spot.depth);
            lines.lines.extend(inner.lines.into_iter().map(|line| LookLine { depth: line.depth - 1, ..line }));
            return;
        }
        let is_list =
            inner.lines.len() > 1 && inner.lines.iter().all(|line| line.text.starts_with("- ") && line.node.is_some());
        if is_list {
            return self.render_touched_items(inner.lines, lines, spot);
        }
        let reference = self.reference(node, spot);
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        let own = if !text.is_empty() && is_short && !has_controls { &text } else { &name };
        let word = match facts.tag.as_str() {
            tag @ ("circle" | "rect" | "path" | "polygon" | "ellipse" | "line" | "text" | "g" | "img" | "image") => {
                self.page.is_drawn |= own.is_empty();
                format!("clickable {tag}")
            }
            _ if facts.is_draggable => "draggable".to_owned(),
            _ => "clickable".to_owned(),
        };
        let hint = if own.is_empty() && inner.lines.is_empty() { describe_nameless(facts) } else { String::new() };
        let shown = if hint.is_empty() { with_name(&word, own) } else { format!("{word} ({hint})") };
        let states = list_states(node);
        lines.push(spot.depth, LineKind::Control, format!("{reference}{shown}{states}"));
        if has_controls || !is_short {
            lines.lines.extend(inner.lines);
        }
    }

    /// Renders the items of a list that listens for its items, each with a reference.
    fn render_touched_items(&mut self, items: Vec<LookLine>, lines: &mut LineBuffer, spot: Spot) {
        for item in items {
            if let Some(address) = &item.node {
                let number = self.references.number_of(address);
                let text = item.text.trim_start_matches("- ");
                lines.push(spot.depth, LineKind::Control, format!("[r{number}] clickable \"{text}\""));
            }
        }
    }

    fn render_control(&mut self, word: &str, node: &AxNode, facts: &DomFacts, spot: Spot, lines: &mut LineBuffer) {
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        if self.purpose == LookPurpose::Read && matches!(word, "link" | "option" | "tab" | "menuitem" | "treeitem") {
            if spot.inside == Inside::Page {
                lines.add_text(&name, None);
            }
            return;
        }
        let address = self.address(node, spot);
        let is_secret = facts.is_secret || address.as_ref().is_some_and(|address| (self.is_known_secret)(address));
        if is_secret {
            self.page.secrets.extend(address);
        }
        let holds_text = matches!(
            word,
            "textbox"
                | "searchbox"
                | "combobox"
                | "spinbutton"
                | "slider"
                | "date field"
                | "color field"
                | "file field"
        );
        if holds_text || matches!(word, "checkbox" | "radio" | "switch" | "listbox") {
            lines.drop_label(spot.depth, &name);
        }
        let value = match (is_secret, holds_text) {
            (true, _) if node.value().is_empty() => " (secret, empty)".to_owned(),
            (true, _) => " (secret, filled)".to_owned(),
            (false, true) => {
                let most = if self.purpose == LookPurpose::Read { MAX_VALUE_CHARS } else { MAX_NAME_CHARS };
                let value = clean_line(&node.value(), most);
                if value.is_empty() { String::new() } else { format!(" = \"{value}\"") }
            }
            (false, false) => String::new(),
        };
        let hint = clean_line(&node.description(), MAX_NAME_CHARS);
        let nameless = if name.is_empty() && hint.is_empty() { words::truncate_text(&facts.hint, 40) } else { hint };
        let hint = if name.is_empty() && !nameless.is_empty() { format!(" ({nameless})") } else { String::new() };
        let mut states = list_states(node);
        if word == "combobox" {
            states = states.replace(" collapsed", "");
        }
        let options = if word == "combobox" { self.list_options(node, spot) } else { String::new() };
        let reference = self.reference(node, spot);
        lines.push(
            spot.depth,
            LineKind::Control,
            format!("{reference}{}{hint}{value}{states}{options}", with_name(word, &name)),
        );
        // A field's text is its value. Everything else may hold more controls.
        if !holds_text {
            let inside = if matches!(word, "listbox" | "treeitem") { Inside::Page } else { Inside::Named };
            self.render_children(node, Spot { inside, ..spot.named() }, lines);
            lines.flush(spot.depth + 1);
        }
    }

    /// Lists the options of a closed list, which can't be clicked while it is closed.
    fn list_options(&self, node: &AxNode, spot: Spot) -> String {
        let Some(document) = self.content.documents.get(spot.document) else { return String::new() };
        let (mut labels, mut open) = (Vec::new(), node.child_ids.clone());
        while let Some(child) = open.pop().and_then(|id| document.tree.get(&id)) {
            if find_control_word(child.role()) == Some("option") {
                labels.push(clean_line(&child.name(), 60));
            } else {
                open.extend(child.child_ids.iter().cloned());
            }
        }
        labels.reverse();
        if labels.is_empty() {
            return String::new();
        }
        let more = labels.len().saturating_sub(MAX_OPTIONS);
        labels.truncate(MAX_OPTIONS);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        format!(" of {}{more}", labels.join(", "))
    }
}

fn with_name(word: &str, name: &str) -> String {
    if name.is_empty() { word.to_owned() } else { format!("{word} \"{name}\"") }
}

/// Describes an element without text: a word of its attributes, and its colour.
fn describe_nameless(facts: &DomFacts) -> String {
    let parts = [words::truncate_text(&facts.hint, MAX_HINT_CHARS), facts.colour.clone().unwrap_or_default()];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}
