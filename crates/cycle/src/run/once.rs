//! One wake from outside: look, lock, work, unlock, look again.

use reveille_base::disk;
use reveille_config::Config;
use reveille_sandbox::exec::room::CommandRoom;
use reveille_store::{
    Store, StoreError, UpkeepKind,
    wake_lock::{LockError, takeover},
};

use crate::{
    context::{Context, Report, WakeError, WakeOutcome},
    look::observe,
    maintain::trouble,
    run::wake,
    session::Session,
    sharing, stop,
    tooling::Means,
};

/// The maximum number of looks at the queue in one `wake --once`. After freeing the lock the wake looks once more, so that no late message
/// is left.
const MAX_LOOKS: u32 = 5;

/// Runs one wake: does the due work, or finds none.
///
/// # Errors
/// If the workspace, the database or the repository can't be used. An unavailable model or remote is no error.
pub async fn run_wake(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    let ended = run_cycles(context, store, trigger).await;
    let now = context.clock.now();
    let noted = match &ended {
        // These errors don't affect the next attempt.
        Err(WakeError::Store(StoreError::Busy | StoreError::LeaseLost { .. })) => Ok(()),
        Err(error) => {
            store.maintenance_mut().record_trouble(UpkeepKind::Wake, &context.redactor.redact(&error.to_string()), now)
        }
        Ok(report) if report.outcome == WakeOutcome::Locked => Ok(()),
        Ok(_) => store.maintenance_mut().trouble_over(UpkeepKind::Wake, now),
    };
    if let Err(error) = noted {
        tracing::debug!(%error, "the wake's outcome could not be recorded");
    }
    if let Ok(report) = &ended
        && !matches!(report.outcome, WakeOutcome::Idle | WakeOutcome::Locked)
    {
        let Report { outcome, answered, cost_usd, .. } = report;
        tracing::info!(trigger, ?outcome, answered, cost_usd, "the wake is over");
    }
    ended
}

/// Makes room for this wake's writes by emptying the scratch folder if necessary. With plenty of room, some is reserved for a last message.
fn make_room(context: Context<'_>) {
    let Config { workspace_dir, disk_reserve, .. } = context.config;
    let cleared = CommandRoom::measure(&context.config.scratch_dir(), *disk_reserve).empty_if_short();
    if cleared.files > 0 {
        tracing::warn!(
            files = cleared.files,
            bytes = cleared.bytes,
            "the disk is short of room: the scratch folder was emptied"
        );
    }
    // In a fleet each of many assistants has a workspace: there a message waits until there is room again.
    if !context.is_turn {
        disk::keep_ballast(workspace_dir, *disk_reserve);
    }
}

async fn run_cycles(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    store.terminals_mut().forget_dead_sessions()?;
    let means = Means::from_config(context.config);
    let mut report = Report::default();
    for look in 0..if context.is_turn { 1 } else { MAX_LOOKS } {
        if *context.stop.borrow() {
            break;
        }
        let (settles_doubts, is_due) = store.with_snapshot(|| {
            // Deliveries that became doubtful in this wake are repeated by the next one.
            let settles_doubts = look == 0
                && context.channel.is_some()
                && store.chats().find_stop_order()?.is_none()
                && store.outbox().has_doubtful(context.clock.now())?;
            let is_due = match observe::is_anything_due(store, context) {
                // The lock's holder finds the same error and reports it.
                Err(WakeError::Repo(_)) => true,
                is_due => is_due?,
            };
            Ok::<_, WakeError>((settles_doubts, is_due || settles_doubts))
        })?;
        if !is_due {
            break;
        }
        (context.at_work)();
        let lock = match takeover::acquire(&context.config.lock_path(), context.config.stale_lock) {
            Ok(taken) => {
                report.notes.extend(taken.note);
                taken.lock
            }
            Err(held @ (LockError::Held(_) | LockError::Stuck { .. })) => {
                report.note_lock_holder(held.describe(context.config.timezone));
                break;
            }
            Err(error) => return Err(WakeError::Lock(error)),
        };
        make_room(context);
        // After this machine's own lock, so that only one of its processes asks for the lease.
        let sharing = match sharing::take(context, store)? {
            Ok(sharing) => sharing,
            Err(others) => {
                report.note_lock_holder(others);
                break;
            }
        };
        let is_shared = store.is_shared();
        let mut session = match Session::begin(context, &means, store, (lock, sharing), trigger, &mut report) {
            Ok(session) => session,
            // Another machine's wake works on the shared database; its lock file isn't here.
            Err(WakeError::Store(StoreError::Busy)) if is_shared => {
                report.note_lock_holder("A wake of another machine is at work.".to_owned());
                break;
            }
            Err(error) => return Err(error),
        };
        let ran = match wake::register_holder(&mut session) {
            Ok(()) => Box::pin(wake::run(&mut session, settles_doubts)).await,
            Err(error) => Err(error),
        };
        trouble::note_trouble(&mut session, ran.as_ref().err()).await;
        let ended = session.end();
        let did_something = ran?;
        ended?;
        if !did_something || report.outcome == WakeOutcome::Failed {
            break;
        }
    }
    if let Some(stopped) = store.chats().find_stop_order()? {
        report.notes.push(stop::render_notice(stopped, context.config.timezone));
    }
    Ok(report)
}
