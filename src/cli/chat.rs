//! `wake chat`: a conversation in a terminal. Messages enter the queue like any others. The answering wake runs in this
//! process, or the chat waits for another process's wake.
//!
//! `editor` reads lines, `files` finds paths in them, `steps` shows a cycle's actions, `pause` handles Ctrl-C. From a
//! pipe, each line is a message: no path is opened, nothing is asked, and answers are printed unchanged.

mod editor;
mod files;
mod meanwhile;
mod pause;
mod steps;

use std::{
    collections::BTreeSet,
    io::{BufRead as _, IsTerminal as _, Read as _},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use editor::{DecisionPrompt, MessageEditor, Typed, TypedDecision};
use meanwhile::News;
use pause::Interrupts;
use steps::Steps;

use reveille_base::{
    process::Identity,
    types::{ApprovalAnswer, ChatRef},
    words::format_count,
};
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_cycle as cycle;
use reveille_cycle::{
    context::{Context, Report, Screen, Terminal, WakeError, WakeOutcome},
    stop,
};
use reveille_store::{
    Approval, Awaited, LandedFile, Order, Store, StoreError, TerminalSession, in_force::load_effective_config,
    wake_lock::waker::Starting,
};

use super::{
    EXIT_FAILED, EXIT_OK, approvals, complain,
    out::{self, Working},
    say::{self, AnswerWait},
    show::{KEPT, describe_next_step, exit_code, explain_failure, render_for_terminal},
    wake::{run_wake, why_it_waits, with_signals},
};
use crate::bot::{DueWatch, MAX_SAID_BYTES, StoredStatement, media};

/// The reason passed to the chat's wakes.
const TRIGGER: &str = "chat";
/// The terminal's temporary line while a wake works.
const WORKING: &str = "working…";
/// The temporary line while the finished answer is pushed to the remote.
const SAVING: &str = "saving…";
/// Words that continue paused work, besides /resume.
const GO_ON: [&str; 3] = ["go on", "continue", "resume"];
/// Commands that end the chat, besides Ctrl-D.
const QUIT: [&str; 2] = ["/quit", "/exit"];
/// The command that gives up paused work.
const DROP: &str = "/drop";
/// The command that shows deferred questions again.
const QUESTIONS: &str = "/questions";

pub(super) fn run(config: &Config) -> ExitCode {
    let input = if std::io::stdin().is_terminal() { ChatInput::Terminal } else { ChatInput::Pipe };
    let interrupts = Arc::new(Interrupts::new(config, input));
    let handler = Arc::clone(&interrupts);
    with_signals(
        config,
        move |stop| handler.listen(stop),
        async |context| {
            (context.at_work)();
            let mut chat = match Chat::open(context, &interrupts, input) {
                Ok(chat) => chat,
                Err(error) => {
                    complain(&format!("failed: {error}\n{}", describe_next_step(&error)));
                    return exit_code(&error);
                }
            };
            let ended = match input {
                ChatInput::Terminal => Box::pin(chat.talk()).await,
                ChatInput::Pipe => chat.read_lines().await,
            };
            // If this fails, the session is forgotten with the process.
            chat.store.terminals_mut().close_session(&chat.session).ok();
            match ended {
                Ok(true) => ExitCode::from(EXIT_OK),
                Ok(false) => ExitCode::from(EXIT_FAILED),
                Err(error) => {
                    complain(&format!("failed: {}\n{KEPT}", context.redactor.redact(&error.to_string())));
                    exit_code(&error)
                }
            }
        },
    )
}

/// Where the messages of a chat come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatInput {
    /// A person types them.
    Terminal,
    /// Each line is a message, and nobody answers questions.
    Pipe,
}

/// A conversation in progress.
struct Chat<'a> {
    context: Context<'a>,
    interrupts: &'a Interrupts,
    input: ChatInput,
    store: Store,
    session: TerminalSession,
    steps: Option<Arc<Steps>>,
    /// Deferred questions.
    later: BTreeSet<i64>,
    /// Starts wakes for due work while nobody types.
    watch: Arc<Mutex<DueWatch>>,
}

/// The reason for a wake.
enum Work {
    /// A statement.
    Said(StoredStatement),
    /// Resumed work.
    GoesOn,
}

/// This terminal while a wake works.
struct ChatScreen<'a> {
    context: Context<'a>,
    session: &'a TerminalSession,
    working: &'a Working,
    steps: Option<&'a Steps>,
    input: ChatInput,
}

impl Screen for ChatScreen<'_> {
    fn show(&self, store: &mut Store) -> Result<(), StoreError> {
        if let Some(steps) = self.steps {
            steps.show_new();
        }
        show_new(self.context, store, self.session, self.input)
    }

    fn announce_saving(&self) {
        self.working.say(SAVING);
    }
}

/// Prints texts for the terminal that weren't shown yet. Questions are left out: they are asked at the prompt, or wait.
fn show_new(
    context: Context<'_>,
    store: &mut Store,
    session: &TerminalSession,
    input: ChatInput,
) -> Result<(), StoreError> {
    for (id, text) in store.terminals().console_unshown(Some(session))? {
        if store.terminals().is_question(id)? {
            // In an interactive chat, the question is asked at the next prompt.
            if input == ChatInput::Pipe {
                complain(&render_for_terminal(context.config, text.trim_end()));
            }
        } else {
            let space = if input == ChatInput::Terminal { "\n" } else { "" };
            if !out::print_exactly(&format!("{}\n{space}", render_for_terminal(context.config, text.trim_end()))) {
                break;
            }
        }
        store.terminals_mut().record_shown_text(id, context.clock.now())?;
    }
    Ok(())
}

impl<'a> Chat<'a> {
    fn open(context: Context<'a>, interrupts: &'a Interrupts, input: ChatInput) -> Result<Self, WakeError> {
        let mut store = cycle::open_store(context.config)?;
        let session = TerminalSession::generate()?;
        store.terminals_mut().open_session(&session, &Identity::current(), context.clock.now())?;
        // The fallback grammar's answers already say what it did, so no steps are shown.
        let has_model = load_effective_config(context.config, &store)?.effective_model() != OFFLINE_MODEL;
        let has_steps = input == ChatInput::Terminal && std::io::stderr().is_terminal() && has_model;
        let steps = if has_steps { Some(Arc::new(Steps::open(context)?)) } else { None };
        let watch = Arc::new(Mutex::new(DueWatch::new(TRIGGER, Some(Starting::Chat))));
        Ok(Self { context, interrupts, input, store, session, steps, later: BTreeSet::new(), watch })
    }

    /// Talks with a person. Returns `true` if all went well.
    async fn talk(&mut self) -> Result<bool, WakeError> {
        let mut editor = match MessageEditor::open(self.context.config) {
            Ok(editor) => editor,
            Err(why) => {
                complain(&format!("I can't use this terminal: {why}. `wake say` works without one."));
                return Ok(false);
            }
        };
        complain(&render_greeting(load_effective_config(self.context.config, &self.store)?.effective_model()));
        if self.store.terminals().is_terminal_paused()? {
            complain("Earlier work is paused: `go on` continues it.");
        }
        let mut has_cleared = false;
        loop {
            show_new(self.context, &mut self.store, &self.session, ChatInput::Terminal)?;
            Box::pin(self.ask_questions(&mut editor)).await?;
            if self.interrupts.is_leaving() {
                break;
            }
            let (config, watch) = (self.context.config.clone(), Arc::clone(&self.watch));
            let news = News { config, session: self.session.clone(), watch };
            let text = match editor.read_message(news) {
                Typed::Text(text) => text,
                Typed::Cleared if has_cleared => break,
                Typed::Cleared => {
                    has_cleared = true;
                    complain("To leave, press Ctrl-C again or Ctrl-D.");
                    continue;
                }
                Typed::End => break,
            };
            has_cleared = false;
            let text = text.trim();
            editor.remember(&self.context.redactor.redact(text));
            if QUIT.contains(&text) {
                break;
            }
            if !text.is_empty() {
                // If Ctrl-C has just paused the work, pressing it again leaves the chat.
                has_cleared = self.handle_line(text).await?;
            }
        }
        complain(match self.store.terminals().is_terminal_paused()? {
            true => "Bye. Your request is paused; `wake resume`, or `go on` in `wake chat`, continues it.",
            false => "Bye.",
        });
        Ok(true)
    }

    /// Handles a typed line. Returns `true` if Ctrl-C was pressed meanwhile.
    async fn handle_line(&mut self, text: &str) -> Result<bool, WakeError> {
        if text.len() as u64 > MAX_SAID_BYTES {
            complain(&format!(
                "That is longer than {MAX_SAID_BYTES} bytes, so it wasn't sent. To send a file, type its path."
            ));
            return Ok(false);
        }
        if text == QUESTIONS {
            self.later.clear();
            if self.open_questions()?.is_empty() {
                complain("No open questions.");
            }
            return Ok(false);
        }
        if self.store.terminals().is_terminal_paused()? && GO_ON.contains(&text.to_lowercase().as_str()) {
            self.resume()?;
            self.wake_and_show(Work::GoesOn).await?;
            return Ok(self.interrupts.was_pressed());
        }
        if text == DROP {
            self.drop_paused_messages().await?;
            return Ok(false);
        }
        let (text, files) = self.attach_files(text);
        let put = match say::store_statement(self.context, &mut self.store, &self.session, (&text, &files)) {
            Ok(put) => put,
            Err(error) => {
                complain(&format!(
                    "failed: {error}\nYour message was NOT stored. {} Then send it again.",
                    describe_next_step(&error)
                ));
                return Ok(false);
            }
        };
        if matches!(put, StoredStatement::Message(_)) && self.store.chats().is_work_stopped(Some(ChatRef::TERMINAL))? {
            complain(match self.store.chats().find_stop_order()? {
                Some(_) => "Your message is safe. All work is stopped: /resume continues it.",
                None => "Your message is safe. My work is paused: `go on` continues it and answers this message too.",
            });
            return Ok(false);
        }
        let is_help = text == "/help";
        self.wake_and_show(Work::Said(put)).await?;
        if is_help {
            complain(
                "Only in this chat: /questions shows the questions you put off, /drop gives up paused work, /quit leaves. To attach a file, type its path.\n",
            );
        }
        Ok(self.interrupts.was_pressed())
    }

    /// Takes the paused messages out of the queue. The next wake ends their cycle.
    async fn drop_paused_messages(&mut self) -> Result<(), WakeError> {
        if !self.store.terminals().is_terminal_paused()? {
            complain("Nothing is paused. /undo reverts the last thing I did.");
            return Ok(());
        }
        let now = self.context.clock.now();
        let mut n = 0;
        for message in
            self.store.inbox().list_queued_messages()?.into_iter().filter(|message| message.chat == ChatRef::TERMINAL)
        {
            n += usize::from(self.store.inbox_mut().discard_message(message.id, now)?);
        }
        self.resume()?;
        self.wake_and_show(Work::GoesOn).await?;
        complain(&format!("Dropped: {}. I won't do any more of it.", format_count(n, "message")));
        Ok(())
    }

    /// Attaches the files that a message names, and copies them into the workspace.
    fn attach_files(&self, text: &str) -> (String, Vec<LandedFile>) {
        let config = self.context.config;
        let found = files::find_files(text, config.home.as_deref());
        for note in &found.notes {
            complain(note);
        }
        match found.copy_to_workspace(&config.workspace_dir) {
            Ok((text, landed)) => {
                for LandedFile { file, .. } in &landed {
                    complain(&format!("  📎 {}", media::describe_landed_file(file)));
                }
                (text, landed)
            }
            Err(why) => {
                complain(&format!("  Nothing was attached: {why}. Your message was sent as it is."));
                (text.to_owned(), Vec::new())
            }
        }
    }

    /// Resumes work for the terminal.
    fn resume(&mut self) -> Result<(), WakeError> {
        Ok(self.store.inbox_mut().carry_out_order(&Order::Resume { is_owners: false }, self.context.clock.now())?)
    }

    /// Reads a pipe's lines as messages. Returns `true` if all were answered.
    async fn read_lines(&mut self) -> Result<bool, WakeError> {
        let mut all_answered = true;
        while !*self.context.stop.borrow() {
            let line = match next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(why) => {
                    complain(&format!("{why} The lines before it were sent."));
                    return Ok(false);
                }
            };
            let text = line.trim();
            if QUIT.contains(&text) {
                break;
            }
            if !text.is_empty() {
                let put = say::store_statement(self.context, &mut self.store, &self.session, (text, &[]))?;
                all_answered &= self.wake_and_show(Work::Said(put)).await?;
            }
        }
        Ok(all_answered && !*self.context.stop.borrow())
    }

    /// Runs a wake and shows its results. Returns `true` if it went well.
    async fn wake_and_show(&mut self, work: Work) -> Result<bool, WakeError> {
        let working = Working::start(WORKING);
        let message = match &work {
            Work::Said(StoredStatement::Message(id)) => Some(*id),
            _ => None,
        };
        let Self { context, interrupts, input, store, session, steps, .. } = self;
        let (context, input) = (*context, *input);
        let screen = ChatScreen { context, session, working: &working, steps: steps.as_deref(), input };
        let at_once = Context { terminal: Terminal::AtOnce(&screen), ..context };
        let began = interrupts.begin();
        let watching = steps.as_ref().map(|steps| Steps::watch(steps, message));
        let report = match work {
            Work::Said(put) => {
                let patience = AnswerWait { trigger: TRIGGER, working: &working, longest: None };
                say::wake_and_wait(at_once, store, put, patience).await
            }
            Work::GoesOn => run_wake(at_once, store, TRIGGER).await,
        };
        drop(watching);
        drop(working);
        let presses = interrupts.end(began);
        match report {
            Ok(report) => self.show_report(&report, message, presses),
            Err(error) => {
                let why = context.redactor.redact(&error.to_string());
                complain(&format!("failed: {why}\nYour message is stored: the next wake continues from here."));
                Ok(false)
            }
        }
    }

    fn show_report(&mut self, report: &Report, message: Option<i64>, presses: usize) -> Result<bool, WakeError> {
        if let Some(steps) = &self.steps {
            steps.show_new();
        }
        show_new(self.context, &mut self.store, &self.session, self.input)?;
        if presses > 0 && self.input == ChatInput::Terminal {
            self.say_what_a_press_did()?;
            return Ok(true);
        }
        if report.outcome == WakeOutcome::Idle && message.is_some() {
            why_it_waits(self.context, &self.store).iter().for_each(|note| complain(note));
        }
        let stopped = self
            .store
            .chats()
            .find_stop_order()?
            .map(|stopped| stop::render_notice(stopped, self.context.config.timezone));
        let is_old_news = |note: &String| stopped.as_ref() == Some(note) && message.is_none();
        report.notes.iter().filter(|note| !is_old_news(note)).for_each(|note| complain(note));
        if let Some(error) = &report.error {
            explain_failure(error);
        }
        let is_open = match message {
            Some(id) => {
                self.store.terminals().read_message_state(id)? == Awaited::Open && report.outcome != WakeOutcome::Parked
            }
            None => false,
        };
        Ok(report.error.is_none() && report.outcome != WakeOutcome::Failed && !is_open)
    }

    /// Explains the effect of Ctrl-C. Paused work waits until the person continues it. If all was done already, nothing is
    /// paused.
    fn say_what_a_press_did(&mut self) -> Result<(), WakeError> {
        if self.store.terminals().is_terminal_paused()? {
            if !self.interrupts.is_leaving() {
                complain("Paused. `go on` continues, /drop gives it up; anything else you write waits.");
            }
        } else if self.store.chats().find_stop_order()?.is_none() {
            self.resume()?;
            complain("That is already done.");
        }
        Ok(())
    }

    /// Returns this terminal's open questions, without the deferred ones.
    fn open_questions(&self) -> Result<Vec<Approval>, WakeError> {
        let pending = self.store.approvals().pending_approvals(self.context.clock.now())?;
        let is_asked = |approval: &Approval| approval.chat == ChatRef::TERMINAL && !self.later.contains(&approval.id);
        Ok(pending.into_iter().filter(is_asked).collect())
    }

    /// Asks the open questions in turn. Each decision resumes the work at once.
    async fn ask_questions(&mut self, editor: &mut MessageEditor) -> Result<(), WakeError> {
        while let Some(approval) = self.open_questions()?.into_iter().next() {
            if self.interrupts.is_leaving() {
                return Ok(());
            }
            out::print(&format!("{}\n", approvals::render_for_prompt(self.context.config, &approval)));
            let id = approval.id;
            let rule = approvals::render_rule(self.context.config, &approval);
            let is_grave = !matches!(approval.risk.as_str(), "safe" | "caution");
            let has_decided =
                match (editor.read_decision(DecisionPrompt { is_grave, offers_rule: rule.is_some() }), rule) {
                    (TypedDecision::Always, Some(rule)) => {
                        complain(&rule);
                        if !editor.confirm(approvals::ADD_RULE_PROMPT) {
                            continue;
                        }
                        match approvals::add_rule(self.context.config, &mut self.store, &approval)? {
                            Ok(has_decided) => has_decided,
                            Err(why) => {
                                complain(&why);
                                continue;
                            }
                        }
                    }
                    (TypedDecision::Later | TypedDecision::Always, _) => {
                        self.later.insert(id);
                        complain(&format!("Question {id} stays open; /questions asks again."));
                        continue;
                    }
                    (TypedDecision::Once, _) => {
                        self.store.approvals_mut().decide_approval(id, ApprovalAnswer::Yes, self.context.clock.now())?
                    }
                    (TypedDecision::No, _) => {
                        self.store.approvals_mut().decide_approval(id, ApprovalAnswer::No, self.context.clock.now())?
                    }
                };
            if has_decided {
                self.wake_and_show(Work::GoesOn).await?;
            } else {
                self.later.insert(id);
                complain(&format!("Question {id} was answered elsewhere or has expired. Nothing was changed here."));
            }
        }
        Ok(())
    }
}

/// Renders two lines: the answering model, and how to leave.
fn render_greeting(model: &str) -> String {
    let who = match model {
        OFFLINE_MODEL => {
            "No AI model is set, so I understand plain requests only, such as `remind me to stretch at 5`.".to_owned()
        }
        name => format!("You're talking to {name}."),
    };
    format!("{who}\n/help lists the commands. Ctrl-C pauses my work; Ctrl-D or /quit leaves.")
}

/// Reads one line of standard input. `None` at its end.
fn next_line() -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock();
    let read = stdin.by_ref().take(MAX_SAID_BYTES + 1).read_until(b'\n', &mut bytes);
    match read {
        Err(error) => Err(format!("Standard input can't be read: {error}.")),
        Ok(0) => Ok(None),
        Ok(n) if n as u64 > MAX_SAID_BYTES => Err(format!("A line is longer than {MAX_SAID_BYTES} bytes.")),
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
    }
}
