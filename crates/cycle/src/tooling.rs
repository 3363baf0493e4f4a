//! The shared means of all sessions of a wake: its models, tools and servers, each created on first use. `mcp.toml` is read once per wake,
//! and again after a person's approval. The tools are built for each model in turn.

use std::{cell::RefCell, rc::Rc};

use reveille_config::{CLAUDE_CODE, Config, OFFLINE_MODEL, Provider};
use reveille_model::ModelChain;
use reveille_tools::{
    Catalogue, Registry, ToolView,
    mcp::client::{self, settings::Settings},
};

use crate::context::Context;

/// The means of a wake.
pub(crate) struct Means<'c> {
    /// The models that may be asked.
    pub(crate) models: ModelChain<'c>,
    /// The name of a model, with its tools.
    tooling: RefCell<Option<(String, Rc<Tooling>)>>,
}

impl<'c> Means<'c> {
    /// Returns the means named in the settings. Nothing is read or built yet.
    pub(crate) fn from_config(config: &'c Config) -> Self {
        Self { models: ModelChain::from_config(config), tooling: RefCell::default() }
    }

    /// Returns the tools of the current model. Another model gets other tools of the same servers.
    pub(crate) fn tooling(&self, context: Context<'_>) -> Rc<Tooling> {
        let model = context.model.name();
        let mut held = self.tooling.borrow_mut();
        let servers = match &*held {
            Some((of, tooling)) if of == model => return Rc::clone(tooling),
            Some((_, tooling)) => Rc::clone(&tooling.servers),
            None => Rc::new(Settings::for_workspace(context.config)),
        };
        let tooling = Rc::new(Tooling::from_settings(context, servers));
        *held = Some((model.to_owned(), Rc::clone(&tooling)));
        tooling
    }

    /// Drops the tools, because a person's approval may have changed them. The next cycle reads them again.
    pub(crate) fn forget_tooling(&self) {
        self.tooling.take();
    }
}

/// The content of `mcp.toml`, the servers accepted by a person, and the resulting tools.
pub(crate) struct Tooling {
    /// The tools of the model. A thinking model also has those of the servers.
    pub(crate) registry: Registry,
    /// The servers.
    pub(crate) servers: Rc<Settings>,
}

impl Tooling {
    /// Returns the searchable tools of a cycle, built at the first search.
    pub(crate) fn catalogue(self: &Rc<Self>, view: ToolView) -> Rc<Catalogue> {
        let tooling = Rc::clone(self);
        Rc::new(Catalogue::new(move || tooling.registry.filter_visible(view).catalogue()))
    }

    /// Reads the tools for a caller outside a wake.
    pub(crate) fn read(context: Context<'_>) -> Self {
        Self::from_settings(context, Rc::new(Settings::for_workspace(context.config)))
    }

    fn from_settings(context: Context<'_>, servers: Rc<Settings>) -> Self {
        let of_servers = || client::build_tools(context.config, &servers);
        let registry = match context.model.name() {
            OFFLINE_MODEL => Registry::for_offline_model(),
            CLAUDE_CODE => Registry::for_thinking_model().written_out().with_tools(of_servers()),
            _ if context.model.is_small() => Registry::for_small_model(),
            name if Provider::from_model(name) == Provider::OpenAi => {
                Registry::for_thinking_model().written_out().with_tools(of_servers())
            }
            _ => Registry::for_thinking_model().with_tools(of_servers()),
        };
        let registry = match context.stand_in {
            Some(stand_in) => registry.with_stub(stand_in),
            None => registry,
        };
        Self { registry, servers }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::Path};

    use tokio::sync::watch;

    use super::*;
    use crate::context::Terminal;
    use reveille_base::{clock::SystemClock, redact::Redactor};

    fn name_server(config: &Config, name: &str) {
        let path = config.mcp_path();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("[[server]]\nname = \"{name}\"\ncommand = [\"/nowhere/{name}\"]\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn config(dir: &Path) -> Config {
        let env = [
            ("WORKSPACE_DIR", dir.to_str().unwrap()),
            ("MODEL", "openai:first,openai:second"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
        ];
        let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Config::from_sources(&env, None, Some("UTC")).unwrap()
    }

    #[test]
    fn the_servers_are_read_once_until_a_person_has_agreed_to_something() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        let (redactor, (_stop, stop)) = (Redactor::new([]), watch::channel(false));
        let means = Means::from_config(&config);
        let named = |model: &str| {
            let context = Context {
                config: &config,
                version: "1.0",
                clock: &SystemClock,
                model: means.models.get(model).unwrap(),
                channel: None,
                redactor: &redactor,
                stop: &stop,
                at_work: &|| {},
                terminal: Terminal::Later,
                is_turn: false,
                stand_in: None,
            };
            let tooling = means.tooling(context);
            tooling.servers.servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>()
        };
        name_server(&config, "before");
        assert_eq!(named("openai:first"), ["before"]);
        name_server(&config, "after");
        assert_eq!(named("openai:first"), ["before"]);
        assert_eq!(named("openai:second"), ["before"]);
        means.forget_tooling();
        assert_eq!(named("openai:second"), ["after"]);
    }
}
