//! Merging two versions of a document.

use reveille_memory::{
    DocKind,
    merge::{self, ByHand},
};

/// Merges a person's text and ours, by the kind of document. The person wins and our side stays visible. A person's text on both sides
/// appears twice.
pub fn merge_texts(path: &str, base: &str, persons: &str, ours: &str, by_hand: &ByHand) -> String {
    merge::merge_by_hand(DocKind::from_path(path), base, persons, ours, by_hand).text
}
