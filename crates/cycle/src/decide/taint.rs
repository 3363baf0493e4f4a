//! The untrusted text that a message brings into a conversation besides its sender's own words. It taints the cycle: from then on, effects
//! that leave the machine or outlive the cycle ask first.

use reveille_store::Incoming;

use crate::decide::brief::{File, FileView};

/// The origin for scratch files left by a tainted cycle.
pub(crate) const LEFT: &str = "files made after untrusted text was read";

/// Lists the origins of untrusted text among these messages, for people. `None` if all text is the senders' own.
///
/// A voice message is the sender's own words. A quotation of the asking person's own words, or of our untainted words, is trusted too.
pub(crate) fn find_origins(messages: &[&Incoming], files: &[File]) -> Option<String> {
    // fault: quotation-taken-senders-words
    let quotes = messages.iter().any(|message| message.quoted.is_some() && !message.quotes_own);
    let shows = files.iter().any(|file| matches!(file.view, FileView::Image { .. }));
    let reads = files.iter().any(|file| matches!(file.view, FileView::Document { .. }));
    let names = files.iter().any(|file| file.name.is_some());
    let others = [(quotes, "a quotation"), (shows, "a picture"), (reads, "a PDF"), (names, "a file's name")];
    let others = others.into_iter().filter(|(is_there, _)| *is_there).map(|(_, what)| what.to_owned());
    // fault: forwarded-message-taken-senders
    join_origins(messages.iter().filter_map(|message| message.words_of_others()).chain(others))
}

/// Joins a cycle's taints in one line.
pub(crate) fn join_taints(taints: &[String]) -> Option<String> {
    join_origins(taints.iter().cloned())
}

/// Joins origins in one line, each once. `None` if there are none.
pub(crate) fn join_origins(origins: impl Iterator<Item = String>) -> Option<String> {
    let mut each: Vec<String> = Vec::new();
    for origin in origins {
        if !each.contains(&origin) {
            each.push(origin);
        }
    }
    (!each.is_empty()).then(|| each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_distinguished_from_a_persons_own_words() {
        let own = Incoming { text: "hello".to_owned(), kind: "text".to_owned(), ..Incoming::default() };
        let voice = Incoming { kind: "voice".to_owned(), ..own.clone() };
        let quoting = Incoming { quoted: Some("see this".to_owned()), ..own.clone() };
        let quoting_own = Incoming { quotes_own: true, ..quoting.clone() };
        let forward = Incoming { forwarded_from: Some("Eve".to_owned()), ..own.clone() };
        assert_eq!(find_origins(&[&own, &voice, &quoting_own], &[]), None);
        assert_eq!(find_origins(&[&own, &forward], &[]).as_deref(), Some("a forwarded message"));
        assert_eq!(find_origins(&[&quoting, &forward], &[]).as_deref(), Some("a forwarded message, a quotation"));
        let picture = File {
            id: 1,
            message_id: 1,
            kind: "photo".to_owned(),
            name: None,
            mime: None,
            bytes: None,
            view: FileView::Image { mime: "image/png", data: Vec::new() },
        };
        let document =
            File { name: Some("obey.pdf".to_owned()), view: FileView::Described(String::new()), ..picture.clone() };
        let pdf = File { view: FileView::Document { data: Vec::new() }, ..picture.clone() };
        assert_eq!(find_origins(&[&own], &[pdf]).as_deref(), Some("a PDF"));
        assert_eq!(find_origins(&[&own], &[picture]).as_deref(), Some("a picture"));
        assert_eq!(find_origins(&[&own], &[document]).as_deref(), Some("a file's name"));
        let contact = Incoming { kind: "contact".to_owned(), text: "[contact obey, 1]".to_owned(), ..own.clone() };
        let album = |text: &str| Incoming { kind: "album".to_owned(), text: text.to_owned(), ..own.clone() };
        assert_eq!(find_origins(&[&contact], &[]).as_deref(), Some("what others named (contact)"));
        assert_eq!(find_origins(&[&album("[photo]\nthe roof")], &[]), None);
        assert_eq!(find_origins(&[&album("[file \"obey\"]")], &[]).as_deref(), Some("what others named (album)"));
    }
}
