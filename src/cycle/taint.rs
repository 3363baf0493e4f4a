//! Whose bytes a message brings into a conversation, besides its sender's own: they are data with an origin, and from then on what
//! leaves the machine or outlives the cycle asks first.

use super::brief::{File, View};
use crate::queue::Incoming;

/// The origins of what others wrote among these messages, for people; none if all of it is their senders' own.
///
/// What somebody said by voice is their own word. A quotation of the asking person's own words, or of ours, is none of others'.
pub(super) fn of(messages: &[&Incoming], files: &[File]) -> Option<String> {
    let origins = [
        (messages.iter().any(|message| message.forwarded_from.is_some()), "a forwarded message"),
        (messages.iter().any(|message| message.quoted.is_some() && !message.quotes_own), "a quotation"),
        (files.iter().any(|file| matches!(file.view, View::Image { .. })), "a picture"),
    ];
    let origins: Vec<&str> = origins.into_iter().filter_map(|(is_there, what)| is_there.then_some(what)).collect();
    (!origins.is_empty()).then(|| origins.join(", "))
}

/// All of a cycle's, in one line.
pub(super) fn origin(taints: &[String]) -> Option<String> {
    (!taints.is_empty()).then(|| taints.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_told_from_what_people_say_themselves() {
        let own = Incoming { text: "hello".to_owned(), ..Incoming::default() };
        let voice = Incoming { kind: "voice".to_owned(), ..own.clone() };
        let quoting = Incoming { quoted: Some("see this".to_owned()), ..own.clone() };
        let quoting_own = Incoming { quotes_own: true, ..quoting.clone() };
        let forward = Incoming { forwarded_from: Some("Eve".to_owned()), ..own.clone() };
        assert_eq!(of(&[&own, &voice, &quoting_own], &[]), None);
        assert_eq!(of(&[&own, &forward], &[]).as_deref(), Some("a forwarded message"));
        assert_eq!(of(&[&quoting, &forward], &[]).as_deref(), Some("a forwarded message, a quotation"));
        let picture = File {
            id: 1,
            message_id: 1,
            kind: "photo".to_owned(),
            name: None,
            mime: None,
            bytes: None,
            view: View::Image { mime: "image/png", data: Vec::new() },
        };
        assert_eq!(of(&[&own], &[picture]).as_deref(), Some("a picture"));
    }
}
