//! Two versions of a document as one.

use reveille_memory::{
    DocKind,
    merge::{self, ByHand},
};

/// Joins a person's text and ours, by the kind of document. The person wins, the other side stays visible; what a person wrote on both
/// sides stands twice.
pub fn merge_texts(path: &str, base: &str, persons: &str, ours: &str, by_hand: &ByHand) -> String {
    merge::merge_by_hand(DocKind::of(path), base, persons, ours, by_hand).text
}
