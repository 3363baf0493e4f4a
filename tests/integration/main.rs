//! The integration tests: stories told through real sockets, real files and the fake servers of `support`.

// `cfg(test)` tells clippy that all of this is test code.
#[cfg(test)]
mod model_anthropic;
#[cfg(test)]
mod support;
