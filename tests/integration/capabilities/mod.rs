//! docs/CAPABILITIES.md against the product: what a row says is what the policy, the registry of tools, the programs and the stores do.
//! A tool, a command, a table or a folder without a row fails, and so does a row without one of these.

mod doors;
mod plants;
mod stores;
mod table;
mod tools;
