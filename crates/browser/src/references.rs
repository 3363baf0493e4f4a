//! References to elements: `r12` is one node of one document in one frame of one session. None is ever used again.

use std::collections::HashMap;

/// Maximum number of references that are kept; the oldest are forgotten and count as out of date.
const MAX_KEPT: usize = 50_000;

/// The node that a reference stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NodeAddress {
    pub(crate) session: String,
    pub(crate) frame: String,
    /// The document.
    pub(crate) loader: String,
    /// The browser's number of the node.
    pub(crate) node: i64,
}

/// All references given so far.
#[derive(Debug, Default)]
pub(crate) struct References {
    last: u32,
    nodes: HashMap<u32, NodeAddress>,
    numbers: HashMap<NodeAddress, u32>,
}

impl References {
    /// The reference of a node: the one that it has, or a new one.
    pub(crate) fn number_of(&mut self, address: &NodeAddress) -> u32 {
        if let Some(number) = self.numbers.get(address) {
            return *number;
        }
        self.last += 1;
        self.nodes.insert(self.last, address.clone());
        self.numbers.insert(address.clone(), self.last);
        if let Some(old) = usize::try_from(self.last).ok().and_then(|last| last.checked_sub(MAX_KEPT))
            && let Some(address) = u32::try_from(old).ok().and_then(|old| self.nodes.remove(&old))
        {
            self.numbers.remove(&address);
        }
        self.last
    }

    /// The node of a reference such as `r12` or `[r12]`; `None` if it was never given or is forgotten.
    pub(crate) fn find(&self, text: &str) -> Option<&NodeAddress> {
        let digits = text.trim().trim_start_matches('[').trim_end_matches(']').strip_prefix('r')?;
        self.nodes.get(&digits.parse().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(loader: &str, node: i64) -> NodeAddress {
        NodeAddress { session: "s".to_owned(), frame: "f".to_owned(), loader: loader.to_owned(), node }
    }

    #[test]
    fn a_node_keeps_its_reference_and_another_document_has_others() {
        let mut references = References::default();
        let first = references.number_of(&address("a", 1));
        assert_eq!(references.number_of(&address("a", 1)), first);
        let second = references.number_of(&address("b", 1));
        assert_ne!(first, second);
        assert_eq!(references.find("r1"), Some(&address("a", 1)));
        assert_eq!(references.find(" [r2] "), Some(&address("b", 1)));
        for unknown in ["r3", "2", "", "r", "r-1", "e2"] {
            assert_eq!(references.find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn old_references_are_forgotten_and_not_given_again() {
        let mut references = References::default();
        for node in 0..i64::try_from(MAX_KEPT).unwrap() + 10 {
            references.number_of(&address("a", node));
        }
        assert_eq!(references.find("r1"), None);
        assert!(references.find("r11").is_some());
        assert_eq!(references.number_of(&address("a", 0)), u32::try_from(MAX_KEPT).unwrap() + 11);
    }
}
