//! Adds and removes rules as ordered by a button or a command. This follows the transaction that stored the order, and
//! repeats until it succeeds.

use chrono::{DateTime, Utc};

use reveille_base::{redact::Redactor, types::ButtonChoice};
use reveille_config::Config;
use reveille_cycle::standing;
use reveille_policy::amend::TIME;
use reveille_store::{Approval, NewOutgoing, OutgoingKind, Store, StoreError, Tap};

/// Builds the message that shows a rule after a press on "Always allow this", keyed by the question's nonce. `None` for
/// other buttons.
pub(super) fn build_rule_message(
    store: &Store,
    tap: &Tap,
    redactor: &Redactor,
) -> Result<Option<(String, NewOutgoing)>, StoreError> {
    let ButtonChoice::Always { nonce } = &tap.choice else { return Ok(None) };
    let Some(text) = store.approvals().approval_by_nonce(nonce)?.as_ref().and_then(standing::render_rule) else {
        return Ok(None);
    };
    let message = NewOutgoing {
        chat: tap.chat,
        text: redactor.redact(&text),
        kind: OutgoingKind::Command,
        reply_to: Some(tap.message_id),
        links_as_text: true,
        ..NewOutgoing::default()
    };
    Ok(Some((nonce.clone(), message)))
}

/// Carries out the ordered changes. Returns the rows of the resulting messages.
///
/// # Errors
/// If the store fails. The order remains, and the next try copes with a file that was already changed.
pub(super) fn carry_out_rules(
    store: &mut Store,
    config: &Config,
    redactor: &Redactor,
    now: DateTime<Utc>,
) -> Result<Vec<i64>, StoreError> {
    let mut told = Vec::new();
    for approval in store.rules().ordered_rules()? {
        told.extend(add_rule(store, config, redactor, &approval, now)?);
    }
    for removal in store.rules().rule_removals()? {
        let text = match standing::remove(config, &removal.rule) {
            Ok(said) => format!("I've removed this rule, so I'll ask again:\n{said}"),
            Err(error) => format!("I couldn't remove that rule: {error}. Nothing was changed."),
        };
        told.extend(store.rules_mut().finish_rule_removal(
            removal.id,
            &removal.build_answer(redactor.redact(&text)),
            now,
        )?);
    }
    Ok(told)
}

fn add_rule(
    store: &mut Store,
    config: &Config,
    redactor: &Redactor,
    approval: &Approval,
    now: DateTime<Utc>,
) -> Result<Option<i64>, StoreError> {
    let from = format!("from Telegram on {}", now.with_timezone(&config.timezone).format(TIME));
    match standing::add_rule(config, approval, &from) {
        Ok(_) => {
            tracing::info!(question = approval.id, "a rule was added to policy.toml");
            store.rules_mut().record_added_rule(approval.id)?;
            Ok(None)
        }
        Err(error) => {
            tracing::warn!(question = approval.id, %error, "a rule wasn't added to policy.toml");
            let text = format!(
                "I couldn't add the rule: {error}. Nothing was changed, and the question is still open. Once that's fixed, press “Add this rule” again."
            );
            store.rules_mut().refuse_rule(approval.id, redactor.redact(&text), now)
        }
    }
}
