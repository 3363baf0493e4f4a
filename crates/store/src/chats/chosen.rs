//! Settings the owner has chosen in a chat. A choice holds until the configured value changes: a later change of the settings wins.

use chrono::{DateTime, Utc};

use reveille_base::clock::format_rfc3339;

use crate::{
    Result,
    areas::{Chats, ReadStore},
    sql::{OptionalExtension as _, Transaction},
};

/// A setting chosen in a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenSetting {
    /// The setting's name.
    pub name: &'static str,
    /// The chosen value.
    pub value: String,
    /// The configured value at that time.
    pub instead_of: String,
}

impl<S: ReadStore> Chats<S> {
    /// The choice in force for a setting whose configured value is now `configured`.
    pub fn find_chosen_value(&self, name: &str, configured: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM chosen_settings WHERE name = ?1 AND instead_of = ?2";
        Ok(self.0.conn().prepare(sql)?.query_row((name, configured), |row| row.get(0)).optional()?)
    }
}

/// Stores a choice; deletes the row if the choice equals the configured value.
pub(crate) fn save_choice(tx: &Transaction<'_>, setting: &ChosenSetting, now: DateTime<Utc>) -> Result<()> {
    let ChosenSetting { name, value, instead_of } = setting;
    let chosen = (value.clone(), instead_of.clone());
    restore_choice(tx, name, Some(&chosen).filter(|_| value != instead_of), now)
}

/// Restores an earlier choice, as (value, configured value at that time); `None` deletes the row.
pub(crate) fn restore_choice(
    tx: &Transaction<'_>,
    name: &str,
    was: Option<&(String, String)>,
    now: DateTime<Utc>,
) -> Result<()> {
    tx.execute("DELETE FROM chosen_settings WHERE name = ?1", [name])?;
    if let Some((value, instead_of)) = was {
        tx.execute(
            "INSERT INTO chosen_settings (name, value, instead_of, chosen_at) VALUES (?1, ?2, ?3, ?4)",
            (name, value, instead_of, format_rfc3339(now)),
        )?;
    }
    Ok(())
}
