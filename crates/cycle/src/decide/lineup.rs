//! The choice of a model: the chain of `MODEL` in its order, without the models that can't be asked now. Pure.
//!
//! A failing model is skipped until its back-off ends; a paid model is skipped if a budget is spent. For new work, a model that its server
//! doesn't have stops the chain, because falling back would hide a wrong setting. Started work falls back anyway, with a notice. If no
//! model can be asked, the fallback grammar answers the messages it surely understands.
//!
//! A local chat (`/local`) uses only the chain's models on this machine, or the offline model if there are none. Background jobs are the
//! owner's: they are as local as the owner's chat.

use std::collections::{BTreeMap, BTreeSet};

use reveille_base::types::ChatRef;
use reveille_config::OFFLINE_MODEL;
use reveille_model::offline::Offline;
use reveille_store::{Cap, Incoming};

/// The reason why a model isn't asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// The model fails: fall back to the next model.
    FallBack,
    /// The model fails in a way that falling back must not hide.
    StopChain,
}

/// A model of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedModel {
    /// The name.
    pub name: String,
    /// True if the model can do background jobs. The offline model only answers.
    pub is_thinking: bool,
    /// True if the model costs nothing, so that budgets don't apply.
    pub is_free: bool,
    /// True if the model runs on this machine and sends nothing elsewhere.
    pub is_here: bool,
    /// The reason why the model isn't asked now. `None` if it may be asked.
    pub out: Option<SkipReason>,
}

/// The state of the configured models, as the gate needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelState {
    /// The chain, with the preferred model first. Never empty.
    pub lineup: Vec<RankedModel>,
    /// The model that begins requests and completes the quick ones (`MODEL_SIMPLE`).
    pub simple: Option<RankedModel>,
    /// The model for reflection (`MODEL_REFLECT`).
    pub reflect: Option<RankedModel>,
    /// The spent budget, if any.
    pub over_budget: Option<Cap>,
    /// The chats whose last request had no room in a budget (`None`: background jobs).
    pub no_room: BTreeMap<Option<ChatRef>, Cap>,
    /// The fallback grammar for times without a model. `None` if the chain names the offline model.
    pub grammar: Option<Offline>,
    /// The local chats (`None`: background jobs).
    pub local: BTreeSet<Option<ChatRef>>,
    /// The offline model for local chats, if no model of the chain is on this machine.
    pub last_here: Option<RankedModel>,
}

impl ModelState {
    /// A chain of one available model.
    pub fn for_model(name: &str) -> Self {
        let is_thinking = name != OFFLINE_MODEL;
        let is_here = !is_thinking;
        let only = RankedModel { name: name.to_owned(), is_thinking, is_free: is_here, is_here, out: None };
        Self {
            lineup: vec![only],
            simple: None,
            reflect: None,
            over_budget: None,
            no_room: BTreeMap::new(),
            grammar: None,
            local: BTreeSet::new(),
            last_here: None,
        }
    }

    /// Marks these chats as local.
    #[must_use]
    pub fn with_local_chats(mut self, chats: BTreeSet<ChatRef>, owner: ChatRef) -> Self {
        let own_work = chats.contains(&owner).then_some(None);
        self.local = chats.into_iter().map(Some).chain(own_work).collect();
        let has_one = self.lineup.iter().any(|model| model.is_here);
        self.last_here = Self::for_model(OFFLINE_MODEL).lineup.pop().filter(|_| !has_one);
        self.reflect = self.reflect.take().filter(|model| self.may_serve(model, None));
        self
    }

    /// Marks all models of the chain as unavailable.
    #[must_use]
    pub fn out_of_reach(mut self) -> Self {
        self.lineup.iter_mut().for_each(|model| model.out = Some(SkipReason::FallBack));
        self
    }

    /// The preferred model's name.
    pub fn name(&self) -> &str {
        self.lineup.first().map_or(OFFLINE_MODEL, |first| &first.name)
    }

    /// Returns `true` if a model can do background jobs. Otherwise rules do them.
    pub fn is_thinking(&self) -> bool {
        self.lineup.iter().any(|model| model.is_thinking && self.may_serve(model, None))
    }

    /// Returns `true` if a chat's text must not go to a model elsewhere (`None`: background jobs).
    pub fn is_local(&self, chat: Option<ChatRef>) -> bool {
        self.local.contains(&chat)
    }

    /// Returns `true` if this model may see a chat's text.
    fn may_serve(&self, model: &RankedModel, chat: Option<ChatRef>) -> bool {
        model.is_here || !self.is_local(chat)
    }

    /// Returns the model for a chat. `None` if no model can be asked.
    pub fn find_model(&self, chat: ChatRef) -> Option<&RankedModel> {
        let simple = || {
            self.find_free_simple_model(self.find_blocking_cap(Some(chat)))
                .filter(|simple| self.may_serve(simple, Some(chat)))
        };
        self.list_candidates(Some(chat)).next().or_else(simple)
    }

    /// Returns the model for a chat, ignoring requests without room in a budget.
    pub fn asked_at_all(&self) -> Option<&RankedModel> {
        let first = filter_available(self.lineup.iter(), Affordable::under(self.over_budget)).next();
        first.or_else(|| self.find_free_simple_model(self.over_budget))
    }

    /// Returns the simple model if it is free and only this cap blocks the chain.
    fn find_free_simple_model(&self, cap: Option<Cap>) -> Option<&RankedModel> {
        let is_money_all = cap.is_some() && filter_available(self.lineup.iter(), Affordable::All).next().is_some();
        self.simple.as_ref().filter(|simple| is_money_all && simple.is_free && simple.out.is_none())
    }

    /// Returns the model for background jobs.
    pub fn find_background_model(&self) -> Option<&RankedModel> {
        self.list_candidates(None).find(|model| model.is_thinking)
    }

    /// Returns the model for reflection. `None` if no model can be asked now.
    pub fn for_reflection(&self) -> Option<&RankedModel> {
        self.find_task_model(self.reflect.as_ref(), None).or_else(|| self.find_background_model())
    }

    /// Returns the name of the model that begins a chat's request, or of its fallback.
    pub fn choose_starting_model(&self, chat: ChatRef) -> &str {
        let simple = self.find_task_model(self.simple.as_ref(), Some(chat));
        simple.map_or_else(|| self.who_answers(chat), |model| &model.name)
    }

    /// Returns the model that continues work too large for the simple model. `None` if this model keeps the work.
    pub fn find_larger_model(&self, model: &str, chat: Option<ChatRef>) -> Option<&str> {
        let is_simple = self.simple.as_ref().is_some_and(|simple| simple.name == model);
        let mut others = self.list_candidates(chat).filter(|other| other.is_thinking && other.name != model);
        others.next().filter(|_| is_simple).map(|other| other.name.as_str())
    }

    /// Returns the model with a task of its own, if it may be asked.
    fn find_task_model<'m>(&self, model: Option<&'m RankedModel>, chat: Option<ChatRef>) -> Option<&'m RankedModel> {
        let may_be_asked =
            |model: &&RankedModel| model.out.is_none() && (model.is_free || self.find_blocking_cap(chat).is_none());
        model.filter(may_be_asked).filter(|model| self.may_serve(model, chat))
    }

    /// Returns the name of the model that answers a chat, or of its fallback.
    pub fn who_answers(&self, chat: ChatRef) -> &str {
        match self.find_model(chat) {
            Some(asked) => &asked.name,
            None if self.grammar.is_some() || self.is_local(Some(chat)) => OFFLINE_MODEL,
            None => self.name(),
        }
    }

    /// Returns the model that resumes a cycle begun by this one. `None` if there is none now. Only a thinking model can take over from
    /// another, because the journal is retold in words.
    pub fn find_resuming_model(&self, begun_by: &str, chat: Option<ChatRef>) -> Option<&str> {
        let stands_in = (begun_by == OFFLINE_MODEL && self.grammar.is_some()).then_some(OFFLINE_MODEL);
        let of_task =
            [&self.simple, &self.reflect].into_iter().filter_map(|model| self.find_task_model(model.as_ref(), chat));
        let own = self.list_resume_candidates(chat).chain(of_task).find(|model| model.name == begun_by);
        let thinks = self.lineup.iter().any(|model| model.is_thinking);
        let other = || self.list_resume_candidates(chat).find(|model| model.is_thinking || !thinks);
        own.or_else(other).map(|model| model.name.as_str()).filter(|_| stands_in.is_none()).or(stands_in)
    }

    /// Returns the state without one model, unless that model stops the chain.
    pub fn without_model(&self, name: &str) -> Self {
        let stays = |model: &&RankedModel| model.name != name || model.out == Some(SkipReason::StopChain);
        Self { lineup: self.lineup.iter().filter(stays).cloned().collect(), ..self.clone() }
    }

    /// Returns `true` if another model can be asked for this chat's work.
    pub fn has_other_model(&self, stage: WorkStage, chat: Option<ChatRef>) -> bool {
        match stage {
            WorkStage::Begun => self.list_resume_candidates(chat).any(|model| model.is_thinking),
            WorkStage::New => self.list_candidates(chat).any(|model| model.is_thinking || chat.is_some()),
        }
    }

    /// Returns `true` if this name stands for the fallback grammar, which the chain doesn't name.
    pub fn is_fallback_grammar(&self, name: &str) -> bool {
        name == OFFLINE_MODEL && self.grammar.is_some()
    }

    /// Returns the budget that a chat waits for (`None`: background jobs).
    pub fn out_of_budget(&self, chat: Option<ChatRef>) -> Option<Cap> {
        self.find_blocking_cap(chat).filter(|_| match chat {
            Some(chat) => self.find_model(chat).is_none(),
            None => self.find_background_model().is_none(),
        })
    }

    /// Returns `true` if the fallback grammar answers this message: no model can be asked, and the grammar surely understands it.
    pub fn grammar_takes(&self, message: &Incoming) -> bool {
        self.find_model(message.chat).is_none() && self.is_understood(message)
    }

    /// Returns `true` if the fallback grammar surely understands this message.
    pub fn is_understood(&self, message: &Incoming) -> bool {
        let is_plain = message.kind == "text" && message.quoted.is_none() && message.forwarded_from.is_none();
        let at = message.received_at.filter(|_| is_plain && message.held_for.is_none());
        self.grammar.zip(at).is_some_and(|(grammar, at)| grammar.surely_understands(&message.text, at))
    }

    /// Returns the cap that blocks paid models.
    fn find_blocking_cap(&self, chat: Option<ChatRef>) -> Option<Cap> {
        self.over_budget.or_else(|| self.no_room.get(&chat).copied())
    }

    /// Lists the models that may be asked for a chat, in their order.
    fn list_candidates(&self, chat: Option<ChatRef>) -> impl Iterator<Item = &RankedModel> {
        filter_available(self.list_serving_models(chat), Affordable::under(self.find_blocking_cap(chat)))
    }

    /// Lists the models for started work. It isn't lost to a wrong setting, so a model that stops the chain is skipped.
    fn list_resume_candidates(&self, chat: Option<ChatRef>) -> impl Iterator<Item = &RankedModel> {
        let affordable = Affordable::under(self.find_blocking_cap(chat));
        self.list_serving_models(chat).filter(move |model| model.out.is_none() && affordable.includes(model))
    }

    /// Lists the models that may see a chat's text, in their order.
    fn list_serving_models(&self, chat: Option<ChatRef>) -> impl Iterator<Item = &RankedModel> {
        let last_here = self.last_here.iter().filter(move |_| self.is_local(chat));
        self.lineup.iter().chain(last_here).filter(move |model| self.may_serve(model, chat))
    }
}

/// The stage of the work that a model is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkStage {
    /// Nothing has been done yet.
    New,
    /// A model has begun it.
    Begun,
}

/// The models that the budget allows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Affordable {
    All,
    /// Those that cost nothing.
    Free,
}

impl Affordable {
    /// The models allowed under a reached cap, if any.
    fn under(cap: Option<Cap>) -> Self {
        if cap.is_none() { Self::All } else { Self::Free }
    }

    fn includes(self, model: &RankedModel) -> bool {
        self == Self::All || model.is_free
    }
}

/// Keeps the models that may be asked now, in their order.
fn filter_available<'m>(
    models: impl Iterator<Item = &'m RankedModel>,
    affordable: Affordable,
) -> impl Iterator<Item = &'m RankedModel> {
    let in_line = models.take_while(|model| model.out != Some(SkipReason::StopChain));
    in_line.filter(move |model| model.out.is_none() && affordable.includes(model))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use reveille_base::{clock::parse_time, zone::Tz};

    const CHAT: ChatRef = ChatRef::from_telegram(7);

    /// A chain of these models; `!` marks one that is passed over, `#` one that stops the chain, `0` a free one.
    fn chain(names: &[&str]) -> ModelState {
        let lined_up = |marked: &&str| {
            let name = marked.trim_start_matches(['!', '#', '0']).to_owned();
            let out = match marked.as_bytes().first() {
                Some(b'!') => Some(SkipReason::FallBack),
                Some(b'#') => Some(SkipReason::StopChain),
                _ => None,
            };
            let is_thinking = name != OFFLINE_MODEL;
            let is_here = !is_thinking || marked.trim_start_matches(['!', '#']).starts_with('0');
            RankedModel { name, is_thinking, is_free: is_here, is_here, out }
        };
        ModelState { lineup: names.iter().map(lined_up).collect(), ..ModelState::for_model("") }
    }

    fn asked(state: &ModelState) -> Option<&str> {
        state.find_model(CHAT).map(|model| model.name.as_str())
    }

    #[test]
    fn the_first_that_can_be_asked_is() {
        assert_eq!(asked(&chain(&["a", "b"])), Some("a"));
        assert_eq!(asked(&chain(&["!a", "b"])), Some("b"));
        assert_eq!(asked(&chain(&["!a", "!b", "offline"])), Some("offline"));
        assert_eq!(asked(&chain(&["!a", "!b"])), None);
    }

    #[test]
    fn a_local_chat_uses_only_models_on_this_machine() {
        let local = |names: &[&str]| chain(names).with_local_chats([CHAT].into(), CHAT);
        for (names, who) in [
            (&["a", "0here"][..], "here"),
            (&["#a", "0here"][..], "here"),
            (&["a", "offline"][..], "offline"),
            (&["a"][..], "offline"),
        ] {
            let state = local(names);
            assert_eq!((asked(&state), state.choose_starting_model(CHAT)), (Some(who), who), "{names:?}");
            assert_eq!(
                state.find_model(ChatRef::from_telegram(8)).map(|model| model.name.as_str()),
                asked(&chain(names))
            );
        }
        // A local model in trouble is waited for; no remote model replaces it.
        let state = local(&["a", "!0here"]);
        assert_eq!((asked(&state), state.who_answers(CHAT)), (None, OFFLINE_MODEL));
        // A cycle that a cloud model began continues on a local model or stops.
        assert_eq!(local(&["a", "0here"]).find_resuming_model("a", Some(CHAT)), Some("here"));
        assert_eq!(local(&["a"]).find_resuming_model("a", Some(CHAT)), None);
        assert_eq!(local(&["a", "b"]).find_larger_model("a", Some(CHAT)), None);
    }

    #[test]
    fn background_jobs_are_as_local_as_the_owners_chat() {
        let cloud = chain(&["c"]).lineup.pop();
        let state = ModelState { simple: cloud.clone(), reflect: cloud, ..chain(&["a", "0here"]) };
        let owners = state.clone().with_local_chats([CHAT].into(), CHAT);
        assert_eq!(owners.find_background_model().unwrap().name, "here");
        assert_eq!(
            (owners.for_reflection().unwrap().name.as_str(), owners.choose_starting_model(CHAT)),
            ("here", "here")
        );
        let guests = state.with_local_chats([CHAT].into(), ChatRef::from_telegram(8));
        assert_eq!(
            (guests.find_background_model().unwrap().name.as_str(), guests.for_reflection().unwrap().name.as_str()),
            ("a", "c")
        );
        let none = chain(&["a"]).with_local_chats([CHAT].into(), CHAT);
        assert!(none.find_background_model().is_none() && !none.is_thinking(), "it is done by rule");
    }

    #[test]
    fn a_missing_model_stops_the_chain_for_new_work() {
        assert_eq!(asked(&chain(&["#a", "b"])), None);
        assert_eq!(asked(&chain(&["!a", "#b", "c"])), None);
        assert_eq!(asked(&chain(&["a", "#b"])), Some("a"));
        let goes_on = |names: &[&str]| chain(names).without_model("a").has_other_model(WorkStage::New, Some(CHAT));
        assert!(goes_on(&["!a", "b"]) && goes_on(&["!a", "offline"]) && !goes_on(&["#a", "b"]) && !goes_on(&["!a"]));
    }

    #[test]
    fn a_spent_budget_leaves_the_free_models() {
        let mut state = chain(&["a", "0local", "offline"]);
        state.no_room.insert(Some(CHAT), Cap::Day);
        assert_eq!((asked(&state), state.out_of_budget(Some(CHAT))), (Some("local"), None));
        assert_eq!(state.find_model(ChatRef::from_telegram(8)).unwrap().name, "a", "what others ask may cost less");
        state.over_budget = Some(Cap::Month);
        assert_eq!(state.find_background_model().unwrap().name, "local");
        let mut state = chain(&["a", "b"]);
        state.over_budget = Some(Cap::Month);
        assert_eq!((asked(&state), state.out_of_budget(Some(CHAT))), (None, Some(Cap::Month)));
    }

    #[test]
    fn a_free_simple_model_answers_if_only_money_is_missing() {
        let mut state = chain(&["a"]);
        state.simple = chain(&["0local"]).lineup.pop();
        assert_eq!((asked(&state), state.choose_starting_model(CHAT)), (Some("a"), "local"));
        state.no_room.insert(Some(CHAT), Cap::Day);
        assert_eq!((asked(&state), state.out_of_budget(Some(CHAT))), (Some("local"), None));
        assert_eq!((state.choose_starting_model(CHAT), state.find_larger_model("local", Some(CHAT))), ("local", None));
        state.over_budget = Some(Cap::Day);
        assert_eq!(state.asked_at_all().unwrap().name, "local");
        state.lineup = chain(&["#a"]).lineup;
        assert_eq!(asked(&state), None, "it hides no wrong setting");
        state.lineup = chain(&["a"]).lineup;
        state.simple = chain(&["dear"]).lineup.pop();
        assert_eq!((asked(&state), state.out_of_budget(Some(CHAT))), (None, Some(Cap::Day)));
    }

    #[test]
    fn a_cycle_stays_with_its_model_and_only_one_that_thinks_takes_over() {
        let goes_on =
            |names: &[&str], begun_by| chain(names).find_resuming_model(begun_by, Some(CHAT)).map(str::to_owned);
        assert_eq!(goes_on(&["a", "b"], "b").as_deref(), Some("b"));
        assert_eq!(goes_on(&["!a", "b"], "a").as_deref(), Some("b"));
        assert_eq!(goes_on(&["b", "c"], "gone").as_deref(), Some("b"));
        assert_eq!(goes_on(&["#a", "b"], "a").as_deref(), Some("b"), "what has begun isn't thrown away");
        assert_eq!(goes_on(&["#a", "b"], "b").as_deref(), Some("b"));
        assert_eq!(goes_on(&["#a", "offline"], "a"), None);
        assert!(chain(&["#a", "b"]).without_model("a").has_other_model(WorkStage::Begun, Some(CHAT)));
        assert!(!chain(&["#a", "offline"]).without_model("a").has_other_model(WorkStage::Begun, Some(CHAT)));
        assert_eq!(goes_on(&["!a", "offline"], "a"), None, "the grammar can't read what was done");
        assert_eq!(goes_on(&["!a", "offline"], "offline").as_deref(), Some("offline"));
        assert_eq!(goes_on(&["offline"], "a").as_deref(), Some("offline"), "which gives it up");
        let mut state = chain(&["a"]);
        state.grammar = Some(Offline::new(Tz::UTC));
        assert_eq!(state.find_resuming_model("offline", Some(CHAT)), Some("offline"));
    }

    #[test]
    fn the_grammar_answers_only_what_it_surely_understands() {
        let mut state = chain(&["!a"]);
        state.grammar = Some(Offline::new(Tz::UTC));
        let at: Option<DateTime<Utc>> = Some(parse_time("2026-11-21T14:00:00Z").unwrap());
        let message = |text: &str| Incoming {
            chat: CHAT,
            text: text.to_owned(),
            kind: "text".to_owned(),
            received_at: at,
            ..Incoming::default()
        };
        let is_taken = |state: &ModelState, message: &Incoming| state.grammar_takes(message);
        for sure in ["remind me to stretch in 20 minutes", "remember that Anna likes tea", "add task buy milk"] {
            assert!(is_taken(&state, &message(sure)), "{sure}");
        }
        for unsure in [
            "hello",
            "yes",
            "remind me to stretch",
            "what does Anna like?",
            "move it to Friday",
            "help",
            "undo that",
            "remember that the wifi code is 1234, and tidy up my folder",
            "add task buy milk, and tell Anna",
        ] {
            assert!(!is_taken(&state, &message(unsure)), "{unsure}");
        }
        let sure = message("remind me to stretch in 20 minutes");
        assert!(!is_taken(&state, &Incoming { quoted: Some("x".to_owned()), ..sure.clone() }));
        assert!(!is_taken(&state, &Incoming { forwarded_from: Some("Ben".to_owned()), ..sure.clone() }));
        assert!(!is_taken(&state, &Incoming { kind: "correction".to_owned(), ..sure.clone() }));
        state.lineup = chain(&["a"]).lineup;
        assert!(!is_taken(&state, &sure), "a model can be asked");
    }
}
