//! Lines for what can be acted on: controls, and parts without a role that can be touched.

use reveille_base::words;

use super::{
    clean::clean_line,
    lines::{LineBuffer, LookLine, LookLineKind},
    render::{Inside, LookPurpose, MAX_NAME_CHARS, Renderer, Spot, with_name},
    roles::{find_control_word, list_states},
    tree::{AxNode, DomFacts},
};

/// Maximum length of a value when a page is read, in characters.
const MAX_VALUE_CHARS: usize = 4_000;
/// Maximum number of a list's options that are shown.
const MAX_OPTIONS: usize = 12;
/// Maximum length of a word of attributes, in characters.
const MAX_HINT_CHARS: usize = 40;
/// Maximum length of the text of a clickable part without a role, in characters.
const MAX_PART_CHARS: usize = 120;

impl Renderer<'_> {
    /// Renders an element without a role that can be clicked or focused.
    pub(super) fn render_part(&mut self, node: &AxNode, facts: &DomFacts, spot: Spot, lines: &mut LineBuffer) {
        let mut inner = LineBuffer::default();
        self.render_children(node, Spot { inside: Inside::Page, ..spot.indented() }, &mut inner);
        inner.flush(spot.depth + 1);
        let has_controls = inner.lines.iter().any(|line| line.kind == LookLineKind::Control);
        let text: Vec<&str> = inner.lines.iter().map(|line| line.text.trim_start_matches("- ")).collect();
        let text = text.join(" ");
        let is_short = text.chars().count() <= MAX_PART_CHARS;
        let has_text = inner.lines.iter().any(|line| matches!(line.kind, LookLineKind::Text | LookLineKind::Heading));
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
        lines.push(spot.depth, LookLineKind::Control, format!("{reference}{shown}{states}"));
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
                lines.push(spot.depth, LookLineKind::Control, format!("[r{number}] clickable \"{text}\""));
            }
        }
    }

    pub(super) fn render_control(
        &mut self,
        word: &str,
        node: &AxNode,
        facts: &DomFacts,
        spot: Spot,
        lines: &mut LineBuffer,
    ) {
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
            states = states.replace(" collapsed", "").replace(" has-menu", "");
        }
        let options = if word == "combobox" { self.list_options(node, spot) } else { String::new() };
        let reference = self.reference(node, spot);
        lines.push(
            spot.depth,
            LookLineKind::Control,
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

/// Describes an element without text: a word of its attributes, and its colour.
fn describe_nameless(facts: &DomFacts) -> String {
    let parts = [words::truncate_text(&facts.hint, MAX_HINT_CHARS), facts.colour.clone().unwrap_or_default()];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}
