//! The accessibility tree and the facts of the DOM, as the browser sends them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::fields::MessageFields as _;

/// A node of the accessibility tree.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AxNode {
    pub(crate) node_id: String,
    pub(crate) ignored: bool,
    role: AxValue,
    name: AxValue,
    description: AxValue,
    value: AxValue,
    properties: Vec<AxProperty>,
    pub(crate) parent_id: Option<String>,
    pub(crate) child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    pub(crate) node: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AxValue {
    value: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AxProperty {
    name: String,
    value: AxValue,
}

impl AxValue {
    fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

impl AxNode {
    pub(crate) fn role(&self) -> &str {
        self.role.value.as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> String {
        self.name.text()
    }

    pub(crate) fn description(&self) -> String {
        self.description.text()
    }

    pub(crate) fn value(&self) -> String {
        self.value.text()
    }

    /// A property as text; empty if it isn't set.
    pub(crate) fn property(&self, name: &str) -> String {
        self.properties.iter().find(|property| property.name == name).map(|it| it.value.text()).unwrap_or_default()
    }

    pub(crate) fn is(&self, property: &str) -> bool {
        self.property(property) == "true"
    }
}

/// The accessibility tree of one document.
#[derive(Debug, Default)]
pub(crate) struct AxTree {
    pub(crate) root: Option<String>,
    nodes: HashMap<String, AxNode>,
}

impl AxTree {
    /// Reads a tree. Nodes that aren't understood are left out.
    pub(crate) fn parse(answer: &Value) -> Self {
        let nodes = answer.list("nodes").iter();
        let nodes: Vec<AxNode> = nodes.filter_map(|node| AxNode::deserialize(node).ok()).collect();
        let root = nodes.iter().find(|node| node.parent_id.is_none()).map(|node| node.node_id.clone());
        Self { root, nodes: nodes.into_iter().map(|node| (node.node_id.clone(), node)).collect() }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&AxNode> {
        self.nodes.get(id)
    }
}

/// What the DOM tells about a node beyond accessibility.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DomFacts {
    /// The tag in lower case.
    pub(crate) tag: String,
    /// True if it listens for clicks, or shows a hand where its parent doesn't.
    pub(crate) is_clickable: bool,
    /// True if its value is never shown.
    pub(crate) is_secret: bool,
    /// True if it is drawn.
    pub(crate) is_drawn: bool,
    /// True if it can be dragged.
    pub(crate) is_draggable: bool,
    /// True for a choice of files.
    pub(crate) is_file_field: bool,
    /// A word for an element without a name: its `title`, `class` or `id`.
    pub(crate) hint: String,
    /// The colour that it is filled with, such as `#ff0000`.
    pub(crate) colour: Option<String>,
    /// The address of a link.
    pub(crate) link: Option<String>,
}

/// The parallel arrays of a snapshot's nodes, as far as they are needed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SnapshotNodes {
    parent_index: Vec<i64>,
    node_name: Vec<i64>,
    backend_node_id: Vec<i64>,
    attributes: Vec<Vec<i64>>,
    is_clickable: RareIndices,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RareIndices {
    index: Vec<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SnapshotLayout {
    node_index: Vec<usize>,
    styles: Vec<Vec<i64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SnapshotDocument {
    nodes: SnapshotNodes,
    layout: SnapshotLayout,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Snapshot {
    documents: Vec<SnapshotDocument>,
    strings: Vec<String>,
}

/// Reads the facts of all nodes of a session out of a snapshot.
pub(crate) fn parse_snapshot(answer: &Value) -> HashMap<i64, DomFacts> {
    let snapshot = Snapshot::deserialize(answer).unwrap_or_default();
    let string = |at: i64| usize::try_from(at).ok().and_then(|at| snapshot.strings.get(at)).map_or("", String::as_str);
    let mut facts = HashMap::new();
    for document in &snapshot.documents {
        let nodes = &document.nodes;
        let mut cursors: HashMap<usize, &str> = HashMap::new();
        let mut styles_of: HashMap<usize, &[i64]> = HashMap::new();
        for (place, node) in document.layout.node_index.iter().enumerate() {
            let cursor = document.layout.styles.get(place).and_then(|styles| styles.first());
            styles_of.insert(*node, document.layout.styles.get(place).map(Vec::as_slice).unwrap_or_default());
            cursors.insert(*node, cursor.map_or("", |at| string(*at)));
        }
        for (at, node) in nodes.backend_node_id.iter().enumerate() {
            let tag = nodes.node_name.get(at).map_or("", |name| string(*name)).to_ascii_lowercase();
            let attributes = nodes.attributes.get(at).map(Vec::as_slice).unwrap_or_default();
            let attribute = |wanted: &str| {
                attributes.chunks_exact(2).find_map(|pair| match pair {
                    [name, value] if string(*name) == wanted => Some(string(*value)),
                    _ => None,
                })
            };
            let parent = nodes.parent_index.get(at).and_then(|parent| usize::try_from(*parent).ok());
            let has_hand = cursors.get(&at) == Some(&"pointer")
                && parent.and_then(|parent| cursors.get(&parent)).is_none_or(|cursor| *cursor != "pointer");
            let is_page = matches!(tag.as_str(), "html" | "body" | "#document");
            let listens = nodes.is_clickable.index.binary_search(&at).is_ok();
            let input = if tag == "input" { attribute("type").unwrap_or("text") } else { "" };
            let hint = ["title", "aria-label", "alt", "class", "id"].iter().find_map(|name| attribute(name));
            let colours = styles_of.get(&at).and_then(|styles| Some([*styles.get(1)?, *styles.get(2)?]));
            let colour = colours.map(|[background, fill]| if is_shape(&tag) { fill } else { background });
            facts.insert(
                *node,
                DomFacts {
                    is_clickable: !is_page && (listens || has_hand && !tag.starts_with('#')),
                    is_secret: input.eq_ignore_ascii_case("password")
                        || attribute("autocomplete").is_some_and(is_secret_autocomplete),
                    is_drawn: cursors.contains_key(&at),
                    is_draggable: attribute("draggable") == Some("true"),
                    is_file_field: input.eq_ignore_ascii_case("file"),
                    hint: hint.unwrap_or_default().trim().to_owned(),
                    colour: colour.and_then(|colour| format_colour(string(colour))),
                    link: attribute("href").filter(|_| matches!(tag.as_str(), "a" | "area")).map(str::to_owned),
                    tag,
                },
            );
        }
    }
    facts
}

/// Returns true for fields that browsers fill with passwords, codes and card numbers.
fn is_secret_autocomplete(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    ["password", "one-time-code", "cc-"].iter().any(|secret| value.contains(secret))
}

/// Returns true for shapes of drawings, which are filled instead of having a background.
fn is_shape(tag: &str) -> bool {
    matches!(tag, "circle" | "rect" | "path" | "polygon" | "ellipse" | "line" | "text" | "g")
}

/// Formats a computed colour such as `rgb(255, 0, 0)`; `None` for a transparent one.
fn format_colour(computed: &str) -> Option<String> {
    let inner = computed.strip_prefix("rgb(")?.strip_suffix(')')?;
    let parts: Vec<u8> = inner.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    match parts.as_slice() {
        [red, green, blue] => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        _ => None,
    }
}
