//! The models that a person can choose by name, with price and availability under the present settings.

use reveille_base::{process, words};
use reveille_config::{CLAUDE_CODE, Config, OFFLINE_MODEL, Provider};

use super::anthropic::price;
pub use super::anthropic::price::PRICES_READ_ON;

/// Added to a price for a model of unknown price.
const A_GUESS: &str = "which is a guess: its price isn't known";

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedModel {
    /// The name used in `MODEL`.
    pub name: String,
    /// US dollars for a million input and output tokens. `None` if the model isn't paid by the token.
    pub usd_per_million: Option<(f64, f64)>,
    /// True if the present settings suffice to use the model.
    pub is_usable: bool,
    /// The missing requirement, in words.
    pub needs: &'static str,
    /// A remark on the price.
    note: &'static str,
}

impl OfferedModel {
    /// Describes the price.
    pub fn describe_price(&self) -> String {
        let Some((input, output)) = self.usd_per_million else { return self.note.to_owned() };
        let note = if self.note.is_empty() { String::new() } else { format!(", {}", self.note) };
        format!("{}{note}", per_million((input, output)))
    }
}

/// Describes a price for a million tokens.
pub fn per_million((input, output): (f64, f64)) -> String {
    format!("${input:.2} for a million tokens in, ${output:.2} out")
}

/// Warns about configured models of unknown price. The warning states the price assumed for them, and the tokens that the daily budget
/// buys at this price. `None` if every price is known.
pub fn describe_unpriced_models(config: &Config) -> Option<String> {
    let is_unknown = |name: &&str| match Provider::from_model(name) {
        Provider::OpenAi => !config.is_local(name) && config.openai_price.is_none(),
        Provider::Anthropic | Provider::Bedrock | Provider::Vertex => price::listed_price(name).is_none(),
        Provider::ClaudeCode | Provider::Offline => false,
    };
    let of_tasks =
        [&config.model_simple, &config.model_reflect, &config.chosen_model].into_iter().flatten().map(String::as_str);
    let mut names: Vec<&str> = config.requested_models().chain(of_tasks).filter(is_unknown).collect();
    names.sort_unstable();
    names.dedup();
    let tokens = |usd: f64| words::format_large_number((config.daily_budget_usd / usd * 1e6) as u64);
    let (input, output) = price::DEAREST_USD;
    (!names.is_empty()).then(|| {
        format!(
            "I don't know what {} costs, so I count it like the most expensive model, {}: today's budget of ${:.2} ends after {} tokens \
             in, or {} out.{}",
            names.join(", "),
            per_million(price::DEAREST_USD),
            config.daily_budget_usd,
            tokens(input),
            tokens(output),
            if names.iter().any(|name| Provider::from_model(name) == Provider::OpenAi) { " OPENAI_PRICE sets the real price." } else { "" }
        )
    })
}

/// Lists every model: configured ones that aren't listed otherwise, then Claude's from the dearest down, then the free ones.
pub fn list_models(config: &Config) -> Vec<OfferedModel> {
    let of_claude = |name: &str, usd: (f64, f64), note| OfferedModel {
        name: name.to_owned(),
        usd_per_million: Some(usd),
        is_usable: config.can_use(name),
        needs: match Provider::from_model(name) {
            Provider::Bedrock | Provider::Vertex => config.describe_missing(name).unwrap_or_default(),
            _ => "it needs an API key, which `wake init` sets",
        },
        note,
    };
    let mut offered: Vec<OfferedModel> = price::list_prices().map(|(name, usd)| of_claude(name, usd, "")).collect();
    let command = process::find_program(&config.claude_code).is_some();
    offered.push(OfferedModel {
        name: CLAUDE_CODE.to_owned(),
        usd_per_million: None,
        is_usable: command,
        needs: "the Claude Code command isn't installed",
        note: "by your Claude Code login or key",
    });
    offered.push(OfferedModel {
        name: OFFLINE_MODEL.to_owned(),
        usd_per_million: None,
        is_usable: true,
        needs: "",
        note: "free: no AI model, it understands plain sentences",
    });
    for name in config.requested_models().collect::<Vec<_>>().into_iter().rev() {
        if offered.iter().any(|model| model.name == name) {
            continue;
        }
        if Provider::from_model(name) == Provider::OpenAi {
            offered.insert(0, describe_openai_model(name, config));
        } else {
            let known = price::listed_price(name);
            let note = if known.is_none() { A_GUESS } else { "" };
            offered.insert(0, of_claude(name, known.unwrap_or(price::DEAREST_USD), note));
        }
    }
    offered
}

/// Describes a model of the OpenAI-compatible server; one on this machine is free.
fn describe_openai_model(name: &str, config: &Config) -> OfferedModel {
    let is_here = config.is_local(name);
    OfferedModel {
        name: name.to_owned(),
        usd_per_million: (!is_here).then_some(config.openai_price.unwrap_or(price::DEAREST_USD)),
        is_usable: config.can_use(name),
        needs: "it needs OPENAI_API_KEY, or the address of a server of your own in OPENAI_BASE_URL",
        note: match config.openai_price {
            _ if is_here => "free: it runs on this machine",
            Some(_) => "as OPENAI_PRICE says",
            None => A_GUESS,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn config(settings: &[(&str, &str)]) -> Config {
        let env: BTreeMap<String, String> =
            [("WORKSPACE_DIR", "/nowhere/reveille"), ("CLAUDE_CODE", "/nowhere/claude")]
                .iter()
                .chain(settings)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
        Config::from_sources(&env, None, Some("UTC")).unwrap()
    }

    #[test]
    fn what_can_be_used_depends_on_what_is_set() {
        let usable = |settings: &[(&str, &str)]| -> Vec<String> {
            list_models(&config(settings)).into_iter().filter(|model| model.is_usable).map(|model| model.name).collect()
        };
        assert_eq!(usable(&[]), [OFFLINE_MODEL]);
        let with_key =
            usable(&[("ANTHROPIC_API_KEY", "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaa"), ("MODEL", "claude-next")]);
        assert_eq!(with_key.first().map(String::as_str), Some("claude-next"));
        assert!(with_key.iter().any(|name| name == "claude-sonnet-5-5") && with_key.len() > 5, "{with_key:?}");
    }

    #[test]
    fn prices_are_said_and_a_guess_is_called_one() {
        let offered = list_models(&config(&[("MODEL", "claude-next")]));
        let costs = |name: &str| offered.iter().find(|model| model.name == name).unwrap().describe_price();
        assert_eq!(costs("claude-sonnet-5-5"), "$2.00 for a million tokens in, $10.00 out");
        assert!(costs("claude-next").ends_with("which is a guess: its price isn't known"));
        assert!(costs(OFFLINE_MODEL).starts_with("free"));
    }

    #[test]
    fn an_unknown_price_is_said_with_the_tokens_that_the_day_is_by_it() {
        let key = ("OPENAI_API_KEY", "sk-0123456789abcdef");
        let said = |settings: &[(&str, &str)]| describe_unpriced_models(&config(settings));
        let text = said(&[("MODEL", "openai:x,claude-sonnet-5-5"), ("MODEL_SIMPLE", "openai:x"), key]).unwrap();
        assert!(text.starts_with("I don't know what openai:x costs, so"), "{text}");
        assert!(text.contains("$5.00 ends after 500 k tokens in, or 100 k out. OPENAI_PRICE sets"), "{text}");
        assert!(said(&[("MODEL", "claude-sonnet-5-5"), ("MODEL_SIMPLE", "openai:x"), key]).is_some());
        assert!(said(&[("MODEL", "claude-next")]).is_some_and(|text| text.ends_with("out.")));
        let price = ("OPENAI_PRICE", "0.28/0.42");
        assert_eq!(said(&[("MODEL", "openai:x,claude-sonnet-5-5"), key, price]), None);
        assert_eq!(said(&[("MODEL", "openai:x,offline"), ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]), None);
        let offered = super::list_models(&config(&[("MODEL", "openai:x"), key, price])).remove(0);
        assert_eq!(offered.describe_price(), "$0.28 for a million tokens in, $0.42 out, as OPENAI_PRICE says");
    }

    #[test]
    fn a_model_on_this_machine_is_free_and_one_elsewhere_needs_its_key() {
        let of = |settings: &[(&str, &str)]| {
            let model = super::list_models(&config(settings)).remove(0);
            (model.name.clone(), model.is_usable, model.describe_price().starts_with("free"))
        };
        let name = ("MODEL", "openai:qwen3:8b");
        let here = ("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1");
        assert_eq!(of(&[name, here]), ("openai:qwen3:8b".to_owned(), true, true));
        let key = ("OPENAI_API_KEY", "sk-0123456789abcdef");
        assert!(!of(&[name, here, key]).2, "what wants a key here may be a proxy to what costs");
        assert!(!of(&[("MODEL", "openai:gpt-oss:120b-cloud"), here]).2, "Ollama passes it on to its cloud");
        assert_eq!(of(&[name]), ("openai:qwen3:8b".to_owned(), false, false));
        assert_eq!(of(&[name, key]), ("openai:qwen3:8b".to_owned(), true, false));
    }
}
