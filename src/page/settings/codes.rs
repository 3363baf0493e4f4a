//! Changes that wait: for a code from the terminal, or for another try after a failed check. Everything is kept in memory only, a code as
//! a digest over its change, its session and itself.
//!
//! Times come from [`reveille_base::clock::read_awake_time`], a clock that nobody can set.

use std::time::Duration;

use reveille_base::{
    random::{self, NoRandomness},
    redact::Secret,
};

use super::change::{ChangeApproval, CodeNeed, ProposedChange};
use crate::page::entrance::{Digest, SessionMark, hash_token, is_same};

/// Lifetime of a code and of its change.
pub const CODE_LASTS: Duration = Duration::from_secs(600);
/// Wrong codes that a change survives.
pub(super) const MAX_WRONG: u32 = 5;
/// Maximum waiting changes. Those with a void code count until they expire, so that nobody can guess without end.
const MAX_PENDING: usize = 8;
/// Digits of a code.
const CODE_DIGITS: usize = 8;
/// Random bytes in a change's number.
const NUMBER_BYTES: usize = 16;

/// The waiting changes.
#[derive(Default)]
pub(super) struct PendingChanges {
    waiting: Vec<PendingChange>,
}

struct PendingChange {
    number: String,
    session: SessionMark,
    made: Duration,
    state: PendingState,
    /// The outcome of a failed check.
    failure: Option<String>,
    proposal: ProposedChange,
}

enum PendingState {
    /// It needs a code.
    Asking {
        code: Option<Digest>,
        wrong: u32,
    },
    Approved(ChangeApproval),
    /// There were too many wrong codes.
    Void,
}

/// The reason why a change can't wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotKept {
    Full,
    NoRandomness,
}

/// What became of a typed code.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedCode {
    Right,
    Wrong {
        left: u32,
    },
    /// No such change waits for a code of this session.
    Unknown,
}

/// Which changes get a new code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeScope {
    /// All that wait for one. Codes from before are void.
    Every,
    /// Those without one.
    Unissued,
}

/// A waiting change for display.
pub(super) struct ShownPending {
    pub(super) proposal: ProposedChange,
    pub(super) needs_code: bool,
    pub(super) failure: Option<String>,
}

impl PendingChanges {
    /// Keeps a change, and returns its number.
    pub(super) fn add(
        &mut self,
        session: SessionMark,
        proposal: ProposedChange,
        need: CodeNeed,
        now: Duration,
    ) -> Result<String, NotKept> {
        self.drop_expired(now);
        // A change whose check failed makes room, since nobody has to guess anything for it.
        let approved = |pending: &PendingChange| matches!(pending.state, PendingState::Approved(_));
        if self.waiting.len() >= MAX_PENDING {
            let oldest = self.waiting.iter().position(approved).ok_or(NotKept::Full)?;
            self.waiting.remove(oldest);
        }
        let bytes = random::generate_bytes::<NUMBER_BYTES>().map_err(|NoRandomness| NotKept::NoRandomness)?;
        let number = random::format_hex(&bytes);
        let state = match need {
            CodeNeed::Required => PendingState::Asking { code: None, wrong: 0 },
            CodeNeed::Unneeded => PendingState::Approved(ChangeApproval::NoneNeeded),
        };
        self.waiting.push(PendingChange { number: number.clone(), session, made: now, state, failure: None, proposal });
        Ok(number)
    }

    /// Returns a change of this session for display.
    pub(super) fn show(&mut self, number: &str, session: SessionMark, now: Duration) -> Option<ShownPending> {
        let pending = self.find(number, session, now)?;
        let needs_code = match pending.state {
            PendingState::Asking { .. } => true,
            PendingState::Approved(_) => false,
            PendingState::Void => return None,
        };
        Some(ShownPending { proposal: pending.proposal.clone(), needs_code, failure: pending.failure.clone() })
    }

    /// Returns a change that needs no code any more. It stays, in case that its check fails.
    pub(super) fn approved(
        &mut self,
        number: &str,
        session: SessionMark,
        now: Duration,
    ) -> Option<(ProposedChange, ChangeApproval)> {
        let pending = self.find(number, session, now)?;
        let PendingState::Approved(approval) = pending.state else { return None };
        Some((pending.proposal.clone(), approval))
    }

    /// Lets a change wait for a code that it didn't need at first.
    pub(super) fn ask_for_code(&mut self, number: &str, session: SessionMark, proposal: ProposedChange) {
        let is_it = |pending: &&mut PendingChange| pending.number == number && pending.session.is_same(&session);
        if let Some(pending) = self.waiting.iter_mut().find(is_it)
            && matches!(pending.state, PendingState::Approved(ChangeApproval::NoneNeeded))
        {
            pending.state = PendingState::Asking { code: None, wrong: 0 };
            pending.failure = None;
            pending.proposal = proposal;
        }
    }

    /// Notes why a change couldn't be made.
    pub(super) fn note_failure(&mut self, number: &str, failure: &str) {
        for pending in self.waiting.iter_mut().filter(|pending| pending.number == number) {
            pending.failure = Some(failure.to_owned());
        }
    }

    /// Forgets a change. One with wrong codes stays until it expires.
    pub(super) fn forget(&mut self, number: &str, session: SessionMark) {
        for pending in &mut self.waiting {
            let has_wrong = matches!(pending.state, PendingState::Asking { wrong: 1.., .. });
            if pending.number == number && pending.session.is_same(&session) && has_wrong {
                pending.state = PendingState::Void;
            }
        }
        let is_it = |pending: &PendingChange| pending.number == number && pending.session.is_same(&session);
        self.waiting.retain(|pending| !is_it(pending) || matches!(pending.state, PendingState::Void));
    }

    /// Issues codes, and returns them as a text for a terminal. Empty if no change waits for one.
    ///
    /// # Errors
    /// The system gave no random bytes.
    pub(super) fn issue_codes(&mut self, scope: CodeScope, now: Duration) -> Result<Secret, NoRandomness> {
        self.drop_expired(now);
        let mut text = String::new();
        for pending in &mut self.waiting {
            let PendingState::Asking { code, .. } = &mut pending.state else { continue };
            if code.is_some() && scope == CodeScope::Unissued {
                continue;
            }
            let new = generate_code()?;
            *code = Some(digest_code(&pending.number, pending.session, &pending.proposal, new.expose()));
            text += &render_notice(new.expose(), &pending.proposal, pending.made + CODE_LASTS - now);
        }
        Ok(Secret::new(text))
    }

    /// Tries a code for a change of this session.
    pub(super) fn try_code(&mut self, number: &str, session: SessionMark, typed: &str, now: Duration) -> TypedCode {
        let Some(pending) = self.find(number, session, now) else { return TypedCode::Unknown };
        let typed: String = typed.chars().filter(char::is_ascii_digit).collect();
        let given = digest_code(&pending.number, session, &pending.proposal, &typed);
        let PendingState::Asking { code, wrong } = &mut pending.state else { return TypedCode::Unknown };
        if code.as_ref().is_some_and(|code| is_same(code, &given)) {
            pending.state = PendingState::Approved(ChangeApproval::ByCode);
            return TypedCode::Right;
        }
        *wrong += 1;
        let left = MAX_WRONG.saturating_sub(*wrong);
        if left == 0 {
            pending.state = PendingState::Void;
        }
        TypedCode::Wrong { left }
    }

    fn find(&mut self, number: &str, session: SessionMark, now: Duration) -> Option<&mut PendingChange> {
        self.drop_expired(now);
        self.waiting.iter_mut().find(|pending| pending.number == number && pending.session.is_same(&session))
    }

    fn drop_expired(&mut self, now: Duration) {
        self.waiting.retain(|pending| now.saturating_sub(pending.made) < CODE_LASTS);
    }
}

fn generate_code() -> Result<Secret, NoRandomness> {
    let number = u64::from_le_bytes(random::generate_bytes::<8>()?) % 10_u64.pow(CODE_DIGITS as u32);
    Ok(Secret::new(format!("{number:0CODE_DIGITS$}")))
}

/// The digest binds a code to its change's values and to the session.
fn digest_code(number: &str, session: SessionMark, proposal: &ProposedChange, code: &str) -> Digest {
    let values = random::format_hex(&proposal.change.digest());
    hash_token(&format!("page change {number} {} {values} {code}", random::format_hex(session.as_bytes())))
}

fn render_notice(code: &str, proposal: &ProposedChange, left: Duration) -> String {
    let (first, second) = code.split_at_checked(CODE_DIGITS / 2).unwrap_or((code, ""));
    let words: String = proposal.words.iter().map(|line| format!("    {line}\n")).collect();
    let minutes = left.as_secs().div_ceil(60);
    format!(
        "The page asks for a code to make this change:\n{words}The code: {first} {second}\nType it on the page within {minutes} minutes. \
         If you didn't ask for this, do nothing: without the code nothing changes.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::settings::{SettingsPlace, change::PageChange};
    use reveille_config::SettingChanges;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn proposal(autonomy: &str) -> ProposedChange {
        let changes = SettingChanges::from([("AUTONOMY", Some(autonomy.to_owned()))]);
        ProposedChange {
            words: vec![format!("AUTONOMY: {autonomy}")],
            change: PageChange::Settings(changes),
            back: SettingsPlace::Permissions,
        }
    }

    fn find_code(notice: &Secret) -> String {
        let (_, rest) = notice.expose().split_once("The code: ").unwrap();
        rest.lines().next().unwrap().to_owned()
    }

    #[test]
    fn a_code_works_once_for_its_change_and_session_and_not_for_long() {
        let (me, other) = (SessionMark::from_cookie("me"), SessionMark::from_cookie("other"));
        let mut changes = PendingChanges::default();
        let first = changes.add(me, proposal("2"), CodeNeed::Required, s(0)).unwrap();
        let code = find_code(&changes.issue_codes(CodeScope::Unissued, s(1)).unwrap());
        assert!(changes.issue_codes(CodeScope::Unissued, s(1)).unwrap().expose().is_empty());
        let second = changes.add(me, proposal("2"), CodeNeed::Required, s(1)).unwrap();
        changes.issue_codes(CodeScope::Unissued, s(1)).unwrap();
        assert_eq!(changes.try_code(&first, other, &code, s(2)), TypedCode::Unknown, "another session's");
        assert_eq!(changes.try_code(&second, me, &code, s(2)), TypedCode::Wrong { left: 4 }, "another change's");
        assert!(changes.approved(&first, me, s(2)).is_none());
        assert_eq!(changes.try_code(&first, me, &code.replace(' ', "-"), s(2)), TypedCode::Right);
        assert_eq!(changes.try_code(&first, me, &code, s(2)), TypedCode::Unknown, "used twice");
        assert!(changes.approved(&first, other, s(2)).is_none() && changes.approved(&first, me, s(2)).is_some());
        // A new code voids the one before.
        let old = find_code(&changes.issue_codes(CodeScope::Every, s(3)).unwrap());
        let new = find_code(&changes.issue_codes(CodeScope::Every, s(3)).unwrap());
        assert!(old != new && matches!(changes.try_code(&second, me, &old, s(3)), TypedCode::Wrong { .. }));
        assert_eq!(changes.try_code(&second, me, &new, s(601)), TypedCode::Unknown, "expired");
        assert!(changes.approved(&first, me, s(600)).is_none(), "expired");
    }

    #[test]
    fn guessing_ends_after_a_few_wrong_codes_and_cant_be_begun_anew_without_end() {
        let me = SessionMark::from_cookie("me");
        let mut changes = PendingChanges::default();
        for _ in 0..MAX_PENDING {
            let number = changes.add(me, proposal("2"), CodeNeed::Required, s(0)).unwrap();
            changes.issue_codes(CodeScope::Every, s(0)).unwrap();
            for left in (0..MAX_WRONG).rev() {
                assert_eq!(changes.try_code(&number, me, "", s(0)), TypedCode::Wrong { left });
            }
            assert_eq!(changes.try_code(&number, me, "", s(0)), TypedCode::Unknown);
            changes.forget(&number, me);
        }
        assert_eq!(changes.add(me, proposal("2"), CodeNeed::Required, s(599)), Err(NotKept::Full));
        assert!(changes.add(me, proposal("2"), CodeNeed::Required, s(600)).is_ok());
    }

    #[test]
    fn changes_whose_check_failed_leave_room_for_others() {
        let me = SessionMark::from_cookie("me");
        let mut changes = PendingChanges::default();
        let mut add = || changes.add(me, proposal("0"), CodeNeed::Unneeded, s(0)).unwrap();
        let numbers: Vec<String> = (0..=MAX_PENDING).map(|_| add()).collect();
        assert!(changes.approved(&numbers[0], me, s(0)).is_none());
        assert!(changes.approved(&numbers[1], me, s(0)).is_some());
    }

    #[test]
    fn the_terminal_shows_what_the_code_is_for() {
        let mut changes = PendingChanges::default();
        changes.add(SessionMark::from_cookie("me"), proposal("2"), CodeNeed::Required, s(0)).unwrap();
        let notice = changes.issue_codes(CodeScope::Every, s(61)).unwrap();
        assert!(notice.expose().contains("    AUTONOMY: 2\n") && notice.expose().contains("within 9 minutes"));
    }
}
