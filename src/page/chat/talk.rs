//! Reads the conversation: the shown part of it, what waits, and what is asked.

use std::collections::{BTreeMap, BTreeSet};

use maud::Markup;

use reveille_base::types::ChatRef;
use reveille_store::{
    Approval, Attachment, Entry, Exchange, FreshStart, Incoming, Store, StoreError, TalkMark, TalkPart,
    TerminalSession, wake_lock,
};

use super::super::{error::PageError, site::PageContext, undo::newest_step};

/// Statements of one part of the conversation.
pub(super) const SHOWN: usize = 50;
/// Maximum statements of a page that has been open for long.
const MAX_SHOWN: usize = 500;

/// A part of the conversation.
#[derive(Default)]
pub(super) struct TalkPage {
    pub(super) said: Vec<Exchange>,
    /// The files of each message.
    pub(super) files: BTreeMap<i64, Vec<Attachment>>,
    /// The place where it begins, if something was said before.
    pub(super) earlier: Option<TalkMark>,
    pub(super) fresh: Option<FreshStart>,
}

/// The data of the chat view.
#[derive(Default)]
pub(super) struct NewestTalk {
    pub(super) page: TalkPage,
    pub(super) waiting: Vec<Incoming>,
    pub(super) unshown: BTreeSet<i64>,
    /// Open questions at the terminal.
    pub(super) questions: Vec<Approval>,
    /// Rows of the texts that ask these questions.
    pub(super) asking: Vec<i64>,
    pub(super) is_stopped: bool,
    /// The calls so far of the wake that works for the terminal.
    pub(super) at_work: Option<Vec<Entry>>,
    /// The newest step with an undo button.
    pub(super) newest: Markup,
}

/// A statement in the chat.
pub(super) enum ChatLine<'a> {
    Said(&'a Exchange),
    Waiting(&'a Incoming),
}

impl NewestTalk {
    /// Returns the statements in order of time; the person's words come before the answer.
    pub(super) fn list_lines(&self) -> Vec<ChatLine<'_>> {
        let said = self.page.said.iter().map(|said| ((said.at, said.from.is_none()), ChatLine::Said(said)));
        let waiting = self.waiting.iter().map(|message| ((message.received_at, false), ChatLine::Waiting(message)));
        let mut lines: Vec<_> = said.chain(waiting).collect();
        lines.sort_by_key(|(key, _)| *key);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// Reads a place from an address, as [`format_mark`] writes it.
pub(super) fn parse_mark(text: &str) -> Option<TalkMark> {
    let (incoming, outgoing) = text.strip_prefix('m')?.split_once(".a")?;
    Some(TalkMark { incoming_id: incoming.parse().ok()?, outgoing_id: outgoing.parse().ok()? })
}

/// Writes a place for an address.
pub(super) fn format_mark(mark: TalkMark) -> String {
    format!("m{}.a{}", mark.incoming_id, mark.outgoing_id)
}

/// Reads the newest part of the conversation, from `since` on if that is given.
pub(super) fn read_talk(
    desk: &PageContext<'_>,
    session: &TerminalSession,
    since: Option<TalkMark>,
) -> Result<Option<NewestTalk>, PageError> {
    let Some(store) = desk.open_store()? else { return Ok(None) };
    let holder = wake_lock::read_holder(&desk.config.lock_path())
        .filter(|holder| holder.chat == Some(ChatRef::TERMINAL) && holder.identity().is_alive());
    store.with_snapshot(|| {
        let (pending, open) =
            (store.approvals().pending_approvals(desk.now)?, store.approvals().open_question_messages(desk.now)?);
        let at_work = holder.and_then(|holder| holder.cycle_id);
        let waiting: Vec<Incoming> = store
            .inbox()
            .list_queued_messages()?
            .into_iter()
            .filter(|message| message.chat == ChatRef::TERMINAL)
            .collect();
        let (part, limit) = since.map_or((TalkPart::Whole, SHOWN), |since| (TalkPart::From(since), MAX_SHOWN));
        let mut page = read_page(&store, part, limit, &waiting)?;
        // Open questions are shown below, with buttons.
        page.said.retain(|said| said.from.is_some() || !open.contains(&said.row));
        Ok(Some(NewestTalk {
            page,
            waiting,
            unshown: store.terminals().console_unshown(Some(session))?.into_iter().map(|(id, _)| id).collect(),
            questions: pending.into_iter().filter(|approval| approval.chat == ChatRef::TERMINAL).collect(),
            asking: open,
            is_stopped: store.chats().is_work_stopped(Some(ChatRef::TERMINAL))?,
            at_work: at_work.map(|cycle| store.status_lines().list_cycle_calls(&cycle)).transpose()?,
            newest: newest_step(desk, &store, "chat")?,
        }))
    })
}

/// Reads the part of the conversation before a place.
pub(super) fn read_earlier(desk: &PageContext<'_>, before: TalkMark) -> Result<TalkPage, PageError> {
    let Some(store) = desk.open_store()? else { return Ok(TalkPage::default()) };
    Ok(store.with_snapshot(|| read_page(&store, TalkPart::Before(before), SHOWN, &[]))?)
}

fn read_page(store: &Store, part: TalkPart, limit: usize, waiting: &[Incoming]) -> Result<TalkPage, StoreError> {
    let said = store.terminals().list_terminal_exchanges(part, limit)?;
    let end = match part {
        TalkPart::Before(mark) => mark,
        TalkPart::Whole | TalkPart::From(_) => TalkMark::END,
    };
    let begin = said.iter().fold(end, TalkMark::before);
    let has_earlier = !store.terminals().list_terminal_exchanges(TalkPart::Before(begin), 1)?.is_empty();
    let by_person = said.iter().filter(|said| said.from.is_some()).map(|said| said.row);
    let ids: Vec<i64> = by_person.chain(waiting.iter().map(|message| message.id)).collect();
    let mut files: BTreeMap<i64, Vec<Attachment>> = BTreeMap::new();
    for file in store.attachments().list_message_attachments(&ids)? {
        files.entry(file.message_id).or_default().push(file);
    }
    let fresh = store.inbox().fresh_start(ChatRef::TERMINAL, None)?;
    Ok(TalkPage { earlier: has_earlier.then_some(begin), said, files, fresh })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_an_address_and_nothing_else_is_a_place() {
        let mark = TalkMark { incoming_id: 17, outgoing_id: i64::MAX };
        assert_eq!(parse_mark(&format_mark(mark)), Some(mark));
        for text in ["", "m1", "m1.a", "a1.m1", "m1.a1 OR 1", "m-.a1"] {
            assert_eq!(parse_mark(text), None, "{text}");
        }
    }
}
