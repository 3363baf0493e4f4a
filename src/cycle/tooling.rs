//! The tools and servers that there are, read once a wake.

use crate::{
    config::{CLAUDE_CODE, OFFLINE_MODEL},
    cycle::context::Context,
    mcp::client::{self, settings::Settings},
    tool::Registry,
};

/// What a wake reads once of `mcp.toml`, and of what a person has accepted of its servers.
pub(in crate::cycle) struct Tooling {
    /// The tools of the model: one that thinks has those of the servers, too.
    pub(in crate::cycle) registry: Registry,
    /// The servers.
    pub(in crate::cycle) servers: Settings,
}

impl Tooling {
    pub(in crate::cycle) fn read(context: Context<'_>) -> Self {
        let servers = Settings::of(context.config);
        let of_servers = || client::tools(context.config, &servers);
        let registry = match context.model.name() {
            OFFLINE_MODEL => Registry::offline(),
            CLAUDE_CODE => Registry::thinking().written_out().with(of_servers()),
            _ => Registry::thinking().with(of_servers()),
        };
        let registry = match context.stand_in {
            Some(stand_in) => registry.acted_by(stand_in),
            None => registry,
        };
        Self { registry, servers }
    }
}
