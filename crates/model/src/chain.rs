//! The models that a wake may ask, each made when it is asked first: an idle look makes none of them.

use std::cell::OnceCell;

use reveille_config::{Config, OFFLINE_MODEL};

use super::{Model, configured};

/// A model, or which setting can't work.
type MadeModel = Result<Box<dyn Model>, String>;

/// The models of one configuration.
pub struct ModelChain<'c> {
    config: &'c Config,
    made: Vec<(String, OnceCell<MadeModel>)>,
}

impl<'c> ModelChain<'c> {
    /// Those that the settings name, and the grammar that stands in for them.
    pub fn of(config: &'c Config) -> Self {
        let of_tasks = config.model_simple.iter().chain(&config.model_reflect).map(String::as_str);
        let names = config.chain().into_iter().chain(of_tasks).chain([OFFLINE_MODEL]);
        Self { config, made: names.map(|name| (name.to_owned(), OnceCell::new())).collect() }
    }

    /// The model of this name. One that the settings don't name, or that can't be made, is an error: no other is asked in its place.
    ///
    /// # Errors
    /// Which setting can't work, in words.
    pub fn get(&self, name: &str) -> Result<&dyn Model, String> {
        let (_, made) =
            self.made.iter().find(|(known, _)| known == name).ok_or_else(|| format!("MODEL doesn't name {name}"))?;
        match made.get_or_init(|| configured(name, self.config)) {
            Ok(model) => Ok(model.as_ref()),
            Err(why) => Err(why.clone()),
        }
    }
}
