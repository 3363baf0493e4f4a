//! `/model [name]`: shows the answering AI model and the choices with their prices, or chooses a model.

use reveille_config::{Config, GivenSettings, OFFLINE_MODEL, Provider};
use reveille_model::offered::{self, OfferedModel, PRICES_READ_ON};
use reveille_store::{ChosenSetting, Order};

use super::{CommandReply, Desk};
use crate::setup::changed_since;

/// The argument that returns to the settings' model.
const DEFAULT: &str = "default";

pub(super) fn answer(desk: &Desk<'_>, args: &str) -> CommandReply {
    let (config, offered) = (desk.config, offered::list_models(desk.config));
    let now = config.effective_model();
    let by_settings = Config { chosen_model: None, ..config.clone() };
    let choose = |name: &str| {
        Order::Choose(ChosenSetting { name: "MODEL", value: name.to_owned(), instead_of: config.model.clone() })
    };
    match args.trim_matches('`') {
        "" => CommandReply::from_text(format!("{}\n\n{}", answers_now(config), render_models(&offered))),
        // A wake reads the settings afresh, and a choice is void there if the setting has changed.
        _ if changed_since(config, &GivenSettings::gather(config.named_env_file.as_deref())).contains(&"MODEL") => {
            CommandReply::from_text(
                "Nothing was chosen: MODEL has changed in the settings since I started. Send /restart first.",
            )
        }
        DEFAULT if config.chosen_model.is_none() => {
            CommandReply::from_text(format!("{} You hadn't chosen another one.", answers_now(config)))
        }
        DEFAULT => {
            let text = match (by_settings.list_usable_models().as_slice(), config.model.as_str()) {
                ([name], said) if *name == said => format!("Back to the settings: `{name}` answers from now on."),
                _ => format!("Back to the settings. {}", answers_now(&by_settings)),
            };
            CommandReply::with_order(text, choose(&config.model))
        }
        name => match offered.iter().find(|model| model.name == name) {
            Some(OfferedModel { is_usable: false, name, needs, .. }) => {
                CommandReply::from_text(format!("`{name}` can't answer: {needs}. Nothing was changed."))
            }
            Some(model) if model.name == now => {
                CommandReply::from_text(format!("`{now}` is already answering. Nothing was changed."))
            }
            Some(model) => CommandReply::with_order(
                describe_choice(model, now, by_settings.effective_model()),
                choose(&model.name),
            ),
            None => {
                let name = super::shorten_to_line(&name.replace('`', ""), 60);
                CommandReply::from_text(format!(
                    "I don't know the model `{name}`. Nothing was changed.\n\n{}",
                    render_models(&offered)
                ))
            }
        },
    }
}

fn answers_now(config: &Config) -> String {
    let chain = config.list_usable_models();
    let others = chain.iter().skip(1).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", then ");
    let others = if others.is_empty() { others } else { format!(" If it's unavailable, {others} answers.") };
    answers_first(config) + &others
}

fn answers_first(config: &Config) -> String {
    match (config.effective_model(), &config.chosen_model) {
        (OFFLINE_MODEL, None) if Provider::from_model(&config.model) == Provider::Anthropic => {
            "No AI model answers: there's no API key, so I only understand plain sentences. `wake init` sets one up."
                .to_owned()
        }
        (OFFLINE_MODEL, None) if config.model != OFFLINE_MODEL => format!(
            "No AI model answers: MODEL is `{}`, but {}. I only understand plain sentences.",
            config.model,
            config.describe_missing(&config.model).unwrap_or_default()
        ),
        (name, Some(_)) => format!(
            "**{name}** answers here and in every chat. You chose it with /model; the settings say `{}`.",
            config.model
        ),
        (name, None) => format!("**{name}** answers here and in every chat, as the settings say (MODEL)."),
    }
}

fn render_models(offered: &[OfferedModel]) -> String {
    let line = |model: &OfferedModel| {
        let needs = if model.is_usable { String::new() } else { format!(" ({})", model.needs) };
        format!("- `{}`: {}{needs}", model.name, model.describe_price())
    };
    let lines: Vec<String> = offered.iter().map(line).collect();
    format!(
        "You can choose:\n{}\n\nTo choose one, send /model with its name. To go back to the settings, send /model \
         {DEFAULT}. Prices as of {PRICES_READ_ON}.",
        lines.join("\n")
    )
}

fn describe_choice(model: &OfferedModel, before: &str, said: &str) -> String {
    let name = &model.name;
    let costs = model.describe_price();
    let back = if name == said { String::new() } else { format!(" /model {DEFAULT} goes back to `{said}`.") };
    format!(
        "`{name}` answers from now on, in every chat ({costs}). Work already under way finishes with `{before}`.{back}"
    )
}
