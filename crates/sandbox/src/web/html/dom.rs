//! A page's tree: nodes in one vector, identified by index.
//!
//! The parser is fed in small pieces, and stopped when the tree gets too deep, too large or too slow, because standard
//! HTML parsing takes quadratic time and more on hostile input.

use std::{
    borrow::Cow,
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use html5ever::{
    Attribute, ExpandedName, ParseOpts, QualName,
    interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
    local_name, ns, parse_document,
    tendril::{StrTendril, TendrilSink as _},
    tree_builder::TreeBuilderOpts,
};

/// Bytes fed to the parser between two checks of the tree.
const PIECE_BYTES: usize = 1_024;
/// Maximum nesting of elements; browsers have a similar limit.
const MAX_DEPTH: u32 = 512;
/// Maximum number of nodes.
const MAX_NODES: usize = 200_000;
/// Maximum parse time. A page of 2 MB takes a tenth of a second.
const PARSE_FOR: Duration = Duration::from_secs(5);

/// A node's index in its document.
pub(in crate::web) type Id = usize;

const ROOT: Id = 0;

/// A page as a tree.
#[derive(Debug)]
pub(in crate::web) struct PageTree {
    nodes: Vec<Node>,
    /// False if parsing stopped early.
    pub(in crate::web) is_all: bool,
}

#[derive(Debug)]
struct Node {
    parent: Option<Id>,
    children: Vec<Id>,
    depth: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Element {
        name: Rc<QualName>,
        attributes: Vec<Attribute>,
    },
    Text(StrTendril),
    /// The document itself, a comment, or a processing instruction.
    Other,
}

impl PageTree {
    /// Parses HTML. Every input is valid.
    pub(in crate::web) fn parse(html: &str) -> Self {
        Self::parse_with_limit(PARSE_FOR, html)
    }

    /// Parses HTML with a time limit.
    pub(super) fn parse_with_limit(time: Duration, html: &str) -> Self {
        // Without scripting, `noscript` content is part of the page.
        let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        let mut parser = parse_document(Sink::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
        let began = Instant::now();
        let mut rest = html;
        while !rest.is_empty() {
            let sink = &parser.tokenizer.sink.sink;
            if sink.is_too_much() || began.elapsed() > time {
                break;
            }
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            parser.process(StrTendril::from_slice(piece));
            rest = after;
        }
        let mut document = parser.finish();
        document.is_all = rest.is_empty();
        document
    }

    /// Returns the document's root.
    pub(in crate::web) fn root(&self) -> Id {
        ROOT
    }

    /// Returns the children in order.
    pub(in crate::web) fn children(&self, id: Id) -> &[Id] {
        self.nodes.get(id).map_or(&[], |node| &node.children)
    }

    /// Returns an HTML element's name; `None` for other nodes.
    pub(in crate::web) fn tag(&self, id: Id) -> Option<&str> {
        match &self.nodes.get(id)?.what {
            What::Element { name, .. } if name.ns == ns!(html) => Some(&name.local),
            _ => None,
        }
    }

    /// Returns true for an element of another language, such as SVG or MathML.
    pub(in crate::web) fn is_foreign(&self, id: Id) -> bool {
        let node = self.nodes.get(id);
        node.is_some_and(|node| matches!(&node.what, What::Element { name, .. } if name.ns != ns!(html)))
    }

    /// Returns a text node's text.
    pub(in crate::web) fn text(&self, id: Id) -> Option<&str> {
        match &self.nodes.get(id)?.what {
            What::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an element's attribute.
    pub(in crate::web) fn attribute(&self, id: Id, name: &str) -> Option<&str> {
        match &self.nodes.get(id)?.what {
            What::Element { attributes, .. } => {
                attributes.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
            }
            _ => None,
        }
    }

    /// Returns true if an element has a class.
    pub(in crate::web) fn has_class(&self, id: Id, class: &str) -> bool {
        self.attribute(id, "class").is_some_and(|classes| classes.split_ascii_whitespace().any(|known| known == class))
    }

    /// Iterates over a node and its descendants in document order.
    pub(in crate::web) fn iter_subtree(&self, id: Id) -> impl Iterator<Item = Id> {
        let mut waiting = vec![id];
        std::iter::from_fn(move || {
            let id = waiting.pop()?;
            waiting.extend(self.children(id).iter().rev());
            Some(id)
        })
    }

    /// Returns all text within a node, unchanged.
    pub(in crate::web) fn all_text(&self, id: Id) -> String {
        self.iter_subtree(id).filter_map(|id| self.text(id)).collect()
    }
}

/// The sink in which the parser builds the tree.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    is_deep: RefCell<bool>,
}

impl Default for Sink {
    fn default() -> Self {
        let root = Node { parent: None, children: Vec::new(), depth: 0, what: What::Other };
        Self { nodes: RefCell::new(vec![root]), is_deep: RefCell::new(false) }
    }
}

/// The parser's handle of a node. The name is meaningful only for elements.
#[derive(Clone)]
struct Handle {
    id: Id,
    name: Rc<QualName>,
}

fn empty_name() -> Rc<QualName> {
    Rc::new(QualName::new(None, ns!(), local_name!("")))
}

impl Sink {
    fn is_too_much(&self) -> bool {
        *self.is_deep.borrow() || self.nodes.borrow().len() > MAX_NODES
    }

    fn add_node(&self, what: What) -> Handle {
        let mut nodes = self.nodes.borrow_mut();
        let name = match &what {
            What::Element { name, .. } => Rc::clone(name),
            _ => empty_name(),
        };
        nodes.push(Node { parent: None, children: Vec::new(), depth: 0, what });
        Handle { id: nodes.len() - 1, name }
    }

    /// Removes a node from its parent.
    fn detach(&self, id: Id) {
        let mut nodes = self.nodes.borrow_mut();
        let parent = nodes.get_mut(id).and_then(|node| node.parent.take());
        if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent))
            && let Some(place) = parent.children.iter().rposition(|child| *child == id)
        {
            parent.children.remove(place);
        }
    }

    /// Inserts a node or text into a parent, at an index among the children or at the end.
    fn insert(&self, parent: Id, place: Option<usize>, child: NodeOrText<Handle>) {
        let before = {
            let nodes = self.nodes.borrow();
            let children = nodes.get(parent).map_or(&[][..], |node| &node.children);
            place.unwrap_or(children.len()).checked_sub(1).and_then(|before| children.get(before)).copied()
        };
        let id = match child {
            NodeOrText::AppendNode(handle) => {
                self.detach(handle.id);
                handle.id
            }
            NodeOrText::AppendText(text) => {
                let mut nodes = self.nodes.borrow_mut();
                if let Some(Node { what: What::Text(so_far), .. }) = before.and_then(|before| nodes.get_mut(before)) {
                    so_far.push_tendril(&text);
                    return;
                }
                drop(nodes);
                self.add_node(What::Text(text)).id
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        let Some(node) = nodes.get_mut(parent) else { return };
        let (depth, end) = (node.depth + 1, node.children.len());
        node.children.insert(place.unwrap_or(end).min(end), id);
        if let Some(node) = nodes.get_mut(id) {
            (node.parent, node.depth) = (Some(parent), depth);
        }
        *self.is_deep.borrow_mut() |= depth > MAX_DEPTH;
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = PageTree;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> PageTree {
        PageTree { nodes: self.nodes.into_inner(), is_all: true }
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle { id: ROOT, name: empty_name() }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Handle {
        self.add_node(What::Element { name: Rc::new(name), attributes })
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.add_node(What::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.add_node(What::Other)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.insert(parent.id, None, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        let has_parent = self.nodes.borrow().get(element.id).is_some_and(|node| node.parent.is_some());
        if has_parent { self.append_before_sibling(element, child) } else { self.append(previous, child) }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// Template fragments aren't separated: the whole template is skipped when the page is converted.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.id == other.id
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(child) = &child {
            self.detach(child.id);
        }
        let place = {
            let nodes = self.nodes.borrow();
            let parent = nodes.get(sibling.id).and_then(|node| node.parent);
            parent.and_then(|parent| {
                let place = nodes.get(parent)?.children.iter().rposition(|child| *child == sibling.id)?;
                Some((parent, place))
            })
        };
        if let Some((parent, place)) = place {
            self.insert(parent, Some(place), child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, new: Vec<Attribute>) {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(Node { what: What::Element { attributes, .. }, .. }) = nodes.get_mut(target.id) {
            let missing: Vec<_> =
                new.into_iter().filter(|new| attributes.iter().all(|known| known.name != new.name)).collect();
            attributes.extend(missing);
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        let mut nodes = self.nodes.borrow_mut();
        let children = nodes.get_mut(node.id).map(|node| std::mem::take(&mut node.children)).unwrap_or_default();
        for child in &children {
            if let Some(child) = nodes.get_mut(*child) {
                child.parent = Some(new_parent.id);
            }
        }
        if let Some(parent) = nodes.get_mut(new_parent.id) {
            parent.children.extend(children);
        }
    }

    fn allow_declarative_shadow_roots(&self, _: &Handle) -> bool {
        false
    }
}
