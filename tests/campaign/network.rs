//! Layer 4: the network between the programs and Telegram, Claude and the git remote fails at one request, once or from then on. The
//! result must be the same as without a fault, except for notices and for messages that may or may not have arrived.

mod bots;
mod fault;
mod proxy;
mod scene;
mod told;
mod wire;

use std::thread;

use self::{
    bots::{live_with_bot, show_what_became},
    fault::{Fault, Target},
    proxy::{Exchange, Order, START},
    scene::{Scene, brief, survivor},
    wire::{DOWNLOAD, LINE},
};
use super::{
    layer::{Layer, Recovery, Share, is_examined},
    world::{Allowed, Story},
};

/// The number of trials run in parallel. There are many, since trials mostly wait.
const WORKERS: usize = 8;
/// The longest back-off that one run can leave behind, in minutes.
const BACK_OFF_MIN: u32 = 10;
/// The id of the bot's first update.
const FIRST_UPDATE: i64 = 2_000;
/// The Telegram methods that show “typing”, and that change the progress line.
const TYPING: &str = "sendChatAction";
const EDIT: &str = "editMessageText";
/// The Telegram methods that send a long question, acknowledge a pressed button, and show the result under the question.
const QUESTION: &str = "sendDocument";
const PRESSED: &str = "answerCallbackQuery";
const CLOSED: &str = "editMessageCaption";
/// The minimum number of texts that the wakes of the bot's story send.
const BOT_SENDS: usize = 3;

/// The programs of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Play {
    /// One `wake --once` with Claude as the model.
    Wake,
    /// A `bot` with two polls and its wakes.
    Bot,
    /// Like `Bot`, but the messages went to a webhook before.
    Webhook,
    /// A `bot` that fetches a voice note and a photo, with Claude as its wakes' model.
    Files,
    /// A `bot` with a wake that takes so long that the bot shows its progress.
    Long,
    /// A `bot` with a wake that has to ask: a button is pressed, and another wake continues.
    Question,
}

impl Play {
    const ALL: [Self; 6] = [Self::Wake, Self::Bot, Self::Webhook, Self::Files, Self::Long, Self::Question];

    /// The requests to Telegram that this play tests, by name and number; each is made in every run. Empty if the play tests all requests.
    /// `true` marks essential requests, which get every fault; the others get one fault of each kind.
    fn calls(self) -> &'static [(&'static str, usize, bool)] {
        match self {
            Self::Wake | Self::Bot => &[],
            // The bot asks first, then the program that removes the webhook.
            Self::Webhook => &[("getWebhookInfo", 0, false), ("getWebhookInfo", 1, false), ("deleteWebhook", 0, false)],
            Self::Files => &[
                ("getFile", 0, true),
                (DOWNLOAD, 0, true),
                ("getFile", 1, false),
                (DOWNLOAD, 1, false),
                ("setMessageReaction", 0, false),
                (TYPING, 0, false),
                ("deleteMessage", 0, false),
            ],
            Self::Long => &[(LINE, 0, false), (EDIT, 0, false)],
            Self::Question => &[(QUESTION, 0, true), (PRESSED, 0, true), (CLOSED, 0, true)],
        }
    }
}

/// One trial.
#[derive(Debug, Clone)]
struct Trial {
    play: Play,
    target: Target,
    order: Order,
}

/// The stories of this layer, and all their trials.
pub(crate) struct Network {
    wake: Story,
    /// The same story answered by the fallback grammar, which replaces an unreachable Claude.
    grammar: Story,
    bot: Story,
    files: Story,
    long: Story,
    question: Story,
    trials: Vec<Trial>,
}

impl Network {
    pub(crate) fn open() -> Self {
        let wake = Story::talk();
        let bot = Story::day(|world| {
            live_with_bot(world, None).unwrap();
        });
        let (files, long, question) = (Story::files(), Story::plan(), Story::asks_at_length());
        let mut network = Self { wake, grammar: Story::wake(), bot, files, long, question, trials: Vec::new() };
        // In parallel, since they mostly wait.
        network.trials = thread::scope(|scope| {
            let network = &network;
            let plays = Play::ALL.map(|play| scope.spawn(move || network.trials_of(play)));
            plays.into_iter().flat_map(|trials| trials.join().expect("an undisturbed play")).collect()
        });
        network
    }

    /// Combines each request of an undisturbed run with each fault, once and lasting.
    fn trials_of(&self, play: Play) -> Vec<Trial> {
        let mut scene = Scene::open(self.story(play), play, None);
        scene.play(None).unwrap();
        if !play.calls().is_empty() {
            return trials_of_calls(play, &scene.telegram.exchanges());
        }
        let mut trials = Vec::new();
        for (target, proxy) in scene.proxies() {
            let exchanges = proxy.exchanges();
            if exchanges.is_empty() {
                assert!(play == Play::Bot && target == Target::Claude, "{play:?} never asked {target:?}");
                continue;
            }
            let mut points: Vec<(String, usize, usize)> = exchanges
                .into_iter()
                .filter(|exchange| play == Play::Wake || is_sure_of_bot(target, exchange))
                .map(|exchange| (exchange.label, exchange.nth, exchange.events))
                .collect();
            points.sort();
            let at_points = points.into_iter().flat_map(|(label, nth, events)| {
                let faults = Fault::all(target, &label, events).into_iter();
                faults.map(move |fault| (fault, label.clone(), nth)).collect::<Vec<_>>()
            });
            for (fault, label, nth) in [(Fault::Closed, START.to_owned(), 0)].into_iter().chain(at_points) {
                let order = |lasts| Order { fault, label: label.clone(), nth, lasts };
                trials.extend([false, true].map(|lasts| Trial { play, target, order: order(lasts) }));
            }
        }
        trials
    }

    fn story(&self, play: Play) -> &Story {
        match play {
            Play::Wake => &self.wake,
            Play::Bot | Play::Webhook => &self.bot,
            Play::Files => &self.files,
            Play::Long => &self.long,
            Play::Question => &self.question,
        }
    }
}

/// Combines the requests that a play tests with their faults: once, and for essential requests also lasting.
fn trials_of_calls(play: Play, exchanges: &[Exchange]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(label, nth, is_essential) in play.calls() {
        let came = exchanges.iter().filter(|exchange| exchange.label == label).count();
        assert!(came > nth, "{play:?}: {label} came {came} times");
        for fault in if is_essential { Fault::many(label) } else { Fault::few(label) } {
            let order = |lasts| Order { fault, label: label.to_owned(), nth, lasts };
            let lengths = if is_essential { &[false, true][..] } else { &[false] };
            let trial = |lasts: &bool| Trial { play, target: Target::Telegram, order: order(*lasts) };
            trials.extend(lengths.iter().map(trial));
        }
    }
    trials
}

/// Returns whether every run of the bot's story makes this request, however its wakes share the work. Requests to the git remote are
/// covered by the other story.
fn is_sure_of_bot(target: Target, exchange: &Exchange) -> bool {
    target == Target::Telegram
        && match exchange.label.as_str() {
            "getMe" | "setMyCommands" => true,
            "getUpdates" => exchange.nth < 2,
            "sendMessage" => exchange.nth < BOT_SENDS,
            _ => false,
        }
}

impl Network {
    /// Plays a trial and checks its result.
    fn play(&self, scene: &mut Scene, story: &Story, trial: &Trial, is_examined: bool) -> Result<Recovery, String> {
        let ran = scene.play(Some(trial))?;
        let is_met = scene.proxies().map(|(_, proxy)| proxy.mend()).iter().all(|met| *met);
        if !is_met {
            return Err("its request never came".to_owned());
        }
        if let Some(pid) = survivor(&scene.world.env) {
            return Err(format!("process {pid} has outlived the run"));
        }
        if trial.play == Play::Wake {
            told::check_first_run(&ran, scene, trial)?;
        }
        scene.check_waits(trial)?;
        if is_examined {
            scene.world.examine()?;
        }
        scene.world.pass(BACK_OFF_MIN);
        let took = scene.world.recover().map_err(|why| format!("{why}\nafter {}", brief(&ran)))?;
        // When the network closes a connection after an answer, the program may already have used it for the next request. That request
        // is then in doubt, although the proxy never saw it.
        let unseen = scene.telegram.turned_away() + usize::from(trial.order.fault == Fault::Closed);
        let sends = told::sends(&scene.telegram.exchanges(), unseen)?;
        told::check_turns(&scene.claude.exchanges(), &scene.world.env)?;
        let problems = scene.telegram.problems();
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        let exchanges = scene.telegram.exchanges();
        let unfetched = told::unfetched(&exchanges);
        let notice = |text: &str| told::is_notice(trial.target, text) || unfetched > 0 && told::is_of_file(text);
        let allowed = Allowed {
            notice: &notice,
            refused: sends.lost,
            unfetched,
            line: told::may_line_stand(&exchanges)?,
            regrouped: matches!(trial.play, Play::Bot | Play::Webhook),
            parked: trial.target == Target::Claude && trial.order.nth > 0,
            grammar: (trial.target == Target::Claude).then_some(&self.grammar),
        };
        story.check_but(&scene.world, allowed).map_err(|why| format!("{why}\nafter {}", brief(&ran)))?;
        if trial.play == Play::Question {
            show_what_became(&scene.world);
            told::check_question(&scene.telegram.exchanges(), &scene.world.telegram.standing())?;
        }
        scene.check_secrets(&ran)?;
        if let Some(pid) = survivor(&scene.world.env) {
            return Err(format!("process {pid} is left"));
        }
        Ok(Recovery(Some(took)))
    }
}

impl Layer for Network {
    fn space(&self) -> Option<u64> {
        Some(self.trials.len() as u64)
    }

    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 40,
            Share::Nightly => self.trials.len() as u64,
        }
    }

    fn first(&self) -> Vec<u64> {
        let is_first = |trial: &Trial| {
            let order = &trial.order;
            let named = Fault::FIRST.iter().any(|(label, fault)| *label == order.label && *fault == order.fault);
            // The bot's sends are also covered by the first story.
            named && !order.lasts && order.nth == 0 && !matches!(trial.play, Play::Bot | Play::Webhook)
        };
        (0..).zip(&self.trials).filter(|(_, trial)| is_first(trial)).map(|(id, _)| id).collect()
    }

    fn workers(&self) -> usize {
        WORKERS
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let trial = usize::try_from(id).ok().and_then(|id| self.trials.get(id)).ok_or("there is no such trial")?;
        let story = self.story(trial.play);
        let mut scene = Scene::open(story, trial.play, Some(&trial.order.label));
        self.play(&mut scene, story, trial, is_examined(id)).map_err(|why| format!("{trial:?}: {why}"))
    }
}
