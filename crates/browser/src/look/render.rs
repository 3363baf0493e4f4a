//! The page as indented lines, pruned to what can be read or acted on.

use std::collections::HashMap;

use super::{
    clean::clean_line,
    lines::{LineBuffer, LookLine, LookLineKind},
    roles::{find_control_word, find_part_word, is_inline_tag},
    tree::{AxNode, AxTree, DomFacts},
};
use crate::references::{NodeAddress, References};

/// Maximum depth of a tree that is followed.
const MAX_DEPTH: usize = 250;
/// Maximum length of a name or a value, in characters.
pub(super) const MAX_NAME_CHARS: usize = 120;

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
pub(super) enum Inside {
    Page,
    /// Inside something whose name is its text.
    Named,
}

/// The place of a node while rendering.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub(super) document: usize,
    /// Depth of printed lines.
    pub(super) depth: usize,
    /// Depth in the tree.
    pub(super) level: usize,
    pub(super) inside: Inside,
}

impl Spot {
    fn down(self) -> Self {
        Self { level: self.level + 1, ..self }
    }

    pub(super) fn indented(self) -> Self {
        Self { depth: self.depth + 1, ..self.down() }
    }

    pub(super) fn named(self) -> Self {
        Self { inside: Inside::Named, ..self.indented() }
    }
}

/// Whether a node was rendered by its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rendered {
    Yes,
    No,
}

/// Renders one page.
pub(super) struct Renderer<'a> {
    pub(super) content: &'a PageContent,
    pub(super) references: &'a mut References,
    pub(super) is_known_secret: &'a dyn Fn(&NodeAddress) -> bool,
    pub(super) purpose: LookPurpose,
    pub(super) page: RenderedPage,
}

impl Renderer<'_> {
    fn render_document(&mut self, document: usize, spot: Spot, lines: &mut LineBuffer) {
        let content = self.content;
        let root = content.documents.get(document).and_then(|document| document.tree.root.as_ref());
        if let Some(root) = root {
            self.render_node(root, Spot { document, ..spot }, lines);
        }
    }

    pub(super) fn render_children(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        if spot.level > MAX_DEPTH {
            lines.push(spot.depth, LookLineKind::Text, "(nested too deeply: left out)".to_owned());
            return;
        }
        for child in &node.child_ids {
            self.render_node(child, spot, lines);
        }
    }

    pub(super) fn address(&self, node: &AxNode, spot: Spot) -> Option<NodeAddress> {
        let document = self.content.documents.get(spot.document)?;
        Some(NodeAddress {
            session: document.session.clone(),
            frame: document.frame.clone(),
            loader: document.loader.clone(),
            node: node.node?,
        })
    }

    pub(super) fn reference(&mut self, node: &AxNode, spot: Spot) -> String {
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
        if node.ignored || self.render_shown(node, facts, spot, lines) == Rendered::No {
            self.render_generic(node, facts, spot, lines);
        }
    }

    /// Renders a node by its role; `No` if the role alone says nothing.
    fn render_shown(&mut self, node: &AxNode, facts: &DomFacts, spot: Spot, lines: &mut LineBuffer) -> Rendered {
        let is_acting = self.purpose == LookPurpose::Act;
        let is_touched = is_acting && (facts.is_clickable || facts.is_draggable);
        match node.role() {
            "StaticText" | "text" if spot.inside == Inside::Named => {}
            "StaticText" | "text" => lines.add_text(&node.name(), self.address(node, spot)),
            "InlineTextBox" | "LineBreak" | "ListMarker" => {}
            "heading" => self.render_heading(node, spot, lines),
            "Iframe" | "IframePresentational" => self.render_frame(node, spot, lines),
            "image" | "img" | "graphics-symbol" | "row" | "listitem" if is_touched => {
                self.render_part(node, facts, spot, lines);
            }
            "image" | "img" | "graphics-symbol" => self.render_image(node, spot, lines),
            "Canvas" | "canvas" | "SvgRoot" | "graphics-document" | "EmbeddedObject" | "PluginObject" => {
                self.render_drawing(node, facts, spot, lines);
            }
            "row" | "LayoutTableRow" => self.render_row(node, spot, lines),
            "listitem" => self.render_item(node, spot, lines),
            _ => return self.render_control_or_container(node, facts, spot, lines),
        }
        Rendered::Yes
    }

    fn render_control_or_container(
        &mut self,
        node: &AxNode,
        facts: &DomFacts,
        spot: Spot,
        lines: &mut LineBuffer,
    ) -> Rendered {
        let is_editor = !node.property("editable").is_empty() && node.is("focusable");
        let word = match find_control_word(node.role()) {
            _ if facts.is_file_field => Some("file field"),
            None if is_editor => Some("textbox"),
            word => word,
        };
        if let Some(word) = word {
            self.render_control(word, node, facts, spot, lines);
            return Rendered::Yes;
        }
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        let part = find_part_word(node.role()).filter(|part| part.without_name || !name.is_empty());
        let Some(part) = part else { return Rendered::No };
        let is_touched = facts.is_clickable || facts.is_draggable || node.is("focusable");
        let reference = if is_touched { self.reference(node, spot) } else { String::new() };
        self.render_container(&format!("{reference}{}", part.word), &name, node, spot, lines);
        Rendered::Yes
    }

    fn render_image(&mut self, node: &AxNode, spot: Spot, lines: &mut LineBuffer) {
        let name = clean_line(&node.name(), MAX_NAME_CHARS);
        if !name.is_empty() && spot.inside == Inside::Page {
            lines.push(spot.depth, LookLineKind::Text, format!("image \"{name}\""));
        }
        self.render_children(node, spot.down(), lines);
    }

    /// Renders what has no role of its own: a part that can be touched, or its children alone.
    fn render_generic(&mut self, node: &AxNode, facts: &DomFacts, spot: Spot, lines: &mut LineBuffer) {
        let role = node.role();
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
            lines.push(spot.depth, LookLineKind::Heading, format!("{} {name}", "#".repeat(level)));
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
        let is_plain = cells.iter().all(|cell| cell.iter().all(|line| line.kind == LookLineKind::Text));
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
            item.lines.first_mut().filter(|line| line.kind == LookLineKind::Text && !line.text.starts_with("- "))
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
            lines.push(spot.depth, LookLineKind::Control, format!("{reference}{}", with_name(word, &name)));
            lines.lines.extend(inner.lines);
        } else if !name.is_empty() || !inner.lines.is_empty() {
            self.page.is_drawn |= is_large;
            lines.push_part(spot.depth, with_name("drawing", &name), inner.lines);
        }
    }
}

pub(super) fn with_name(word: &str, name: &str) -> String {
    if name.is_empty() { word.to_owned() } else { format!("{word} \"{name}\"") }
}
