//! The tools and servers that there are, read once a session: a wake that looks again for new work begins another.

use std::rc::Rc;

use crate::{
    config::{CLAUDE_CODE, OFFLINE_MODEL, Provider},
    cycle::context::Context,
    mcp::client::{self, settings::Settings},
    tool::{Catalogue, Registry},
};

/// What a session reads once of `mcp.toml`, and of what a person has accepted of its servers.
pub(in crate::cycle) struct Tooling {
    /// The tools of the model: one that thinks has those of the servers, too.
    pub(in crate::cycle) registry: Registry,
    /// The servers.
    pub(in crate::cycle) servers: Settings,
}

impl Tooling {
    /// What a cycle finds tools in, made when it looks for one.
    pub(in crate::cycle) fn catalogue(self: &Rc<Self>, sees_all: bool) -> Rc<Catalogue> {
        let tooling = Rc::clone(self);
        Rc::new(Catalogue::new(move || tooling.registry.seen_by(sees_all).catalogue()))
    }

    pub(in crate::cycle) fn read(context: Context<'_>) -> Self {
        let servers = Settings::of(context.config);
        let of_servers = || client::tools(context.config, &servers);
        let registry = match context.model.name() {
            OFFLINE_MODEL => Registry::offline(),
            CLAUDE_CODE => Registry::thinking().written_out().with(of_servers()),
            _ if context.model.is_small() => Registry::small(),
            name if Provider::of(name) == Provider::OpenAi => Registry::thinking().written_out().with(of_servers()),
            _ => Registry::thinking().with(of_servers()),
        };
        let registry = match context.stand_in {
            Some(stand_in) => registry.acted_by(stand_in),
            None => registry,
        };
        Self { registry, servers }
    }
}
