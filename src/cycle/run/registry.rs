//! The tools that a cycle has.

use crate::{
    config::{CLAUDE_CODE, OFFLINE_MODEL},
    cycle::context::Context,
    mcp,
    tool::Registry,
};

/// The tools of a model: one that thinks has those of the servers that its person has accepted, too.
pub(in crate::cycle) fn registry(context: Context<'_>) -> Registry {
    match context.model.name() {
        OFFLINE_MODEL => Registry::offline(),
        CLAUDE_CODE => Registry::thinking().written_out().with(mcp::client::tools(context.config)),
        _ => Registry::thinking().with(mcp::client::tools(context.config)),
    }
}
