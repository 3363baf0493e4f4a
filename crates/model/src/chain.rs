//! The models that a wake may ask. Each is created at its first request, so an idle wake creates none.

use std::cell::OnceCell;

use reveille_config::{Config, OFFLINE_MODEL};

use super::{Model, create_model};

/// A model, or a message naming the unusable setting.
type MadeModel = Result<Box<dyn Model>, String>;

/// The models of one configuration, created on demand.
pub struct ModelChain<'c> {
    config: &'c Config,
    made: Vec<(String, OnceCell<MadeModel>)>,
}

impl<'c> ModelChain<'c> {
    /// Lists the configured models and the fallback grammar.
    pub fn from_config(config: &'c Config) -> Self {
        let of_tasks = config.model_simple.iter().chain(&config.model_reflect).map(String::as_str);
        let names = config.list_usable_models().into_iter().chain(of_tasks).chain([OFFLINE_MODEL]);
        Self { config, made: names.map(|name| (name.to_owned(), OnceCell::new())).collect() }
    }

    /// Returns the model of this name. There is no fallback to another model.
    ///
    /// # Errors
    /// A message in words if the settings don't name the model, or if a setting makes it unusable.
    pub fn get(&self, name: &str) -> Result<&dyn Model, String> {
        let (_, made) =
            self.made.iter().find(|(known, _)| known == name).ok_or_else(|| format!("MODEL doesn't name {name}"))?;
        match made.get_or_init(|| create_model(name, self.config)) {
            Ok(model) => Ok(model.as_ref()),
            Err(why) => Err(why.clone()),
        }
    }
}
