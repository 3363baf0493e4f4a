//! A cycle with the model from its start, or its interruption, to its end.

use std::{cell::RefCell, rc::Rc};

use tracing::Instrument as _;

use reveille_base::types::ChatRef;
use reveille_git::Repo;
use reveille_live::{LiveFeed, WatchedCycle};

use crate::{
    background,
    context::{WakeError, WakeOutcome},
    maintain::sync,
    run::{
        begin::interrupted,
        finish,
        step::{self, Driven, token_rate},
    },
    session::{Ending, Halt, Live, Next, Session},
};

/// Parks a cycle that waits for a person: the question is in the outbox, and the wake after the answer resumes it.
async fn park_cycle(session: &mut Session<'_>, live: &Live) -> Result<(), WakeError> {
    session.report.outcome = WakeOutcome::Parked;
    session.store.approvals_mut().park_cycle(&live.cycle.id)?;
    session.remove_cycle_from_lock();
    sync::deliver(session).await
}

/// Pauses a background job until messages are answered. The job hasn't failed, and resumes in this wake if there is time.
fn pause_for_messages(session: &mut Session<'_>, live: &Live) -> Result<(), WakeError> {
    let now = session.now();
    session.store.cycles_mut().pause_cycle(&live.cycle.id, now, "something else goes first")?;
    session.remove_cycle_from_lock();
    Ok(())
}

/// Drives a cycle to its end, or records the reason for its stop.
pub(crate) async fn drive_cycle(session: &mut Session<'_>, repo: &Repo, mut live: Live) -> Result<Next, WakeError> {
    session.chat = live.cycle.chat;
    live.feed = Rc::new(RefCell::new(begin_preview(session, &live)));
    // The span for logs of this cycle. It names only ids, never a message's or a model's words.
    let span = tracing::info_span!("cycle", id = %live.cycle.id, chat = live.cycle.chat.map(|chat| chat.id));
    let driven = step::drive(session, &mut live).instrument(span).await;
    session.chat = None;
    // The preview ends before the answer is delivered, so nobody sees both.
    live.feed.replace(LiveFeed::unwatched());
    match driven {
        Ok(Driven::Complete) => Box::pin(complete_cycle(session, repo, live)).await.map(|()| Next::Continue),
        Ok(Driven::Parked) => park_cycle(session, &live).await.map(|()| Next::Continue),
        // [`step::drive`] continues after a switch itself.
        Ok(Driven::FellBack) | Ok(Driven::GivesWay) => pause_for_messages(session, &live).map(|()| Next::Continue),
        Err(Halt::Interrupted(interrupt)) => interrupted::record_interrupt(session, repo, &live, interrupt).await,
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// Begins the preview of a cycle. Only the owner watches: at the terminal, on the page, and in a private chat.
fn begin_preview(session: &Session<'_>, live: &Live) -> LiveFeed {
    let config = session.context.config;
    let is_watched =
        |chat: &ChatRef| *chat == ChatRef::TERMINAL || *chat == config.owner_chat && chat.person_id().is_some();
    // fault: guests-see-previews
    let chat = live.cycle.chat.filter(is_watched).filter(|_| session.context.stand_in.is_none());
    let watched =
        chat.map(|chat| WatchedCycle { cycle_id: live.cycle.id.clone(), chat, thread_id: live.cycle.thread_id });
    let mut feed = LiveFeed::begin(&config.live_path(), watched, session.context.redactor);
    if !live.state.taints.is_empty() {
        feed.taint();
    }
    feed
}

/// Ends a cycle that needs nothing more from the model.
pub(crate) async fn complete_cycle(session: &mut Session<'_>, repo: &Repo, mut live: Live) -> Result<(), WakeError> {
    token_rate::save_rate(session, &live)?;
    background::run::conclude(session, &mut live)?;
    let not_done = step::verify(session, &mut live)?;
    let Live { cycle, state, world, plan_file, mut account, .. } = live;
    account.not_done = not_done;
    let is_answered = |id: &&i64| !state.open.contains(id) && !state.kept.contains(id);
    session.report.answered += state.messages.iter().filter(is_answered).count();
    let staged = world.memory.documents.list_staged_files();
    finish::run(session, repo, Ending { staged, ..Ending::new(cycle, state, plan_file, account) }).await
}
