//! Settings that the owner has chosen in a chat. One holds for as long as the settings say what they said then: whoever changes them
//! afterwards has the last word.

use chrono::{DateTime, Utc};

use reveille_base::clock::rfc3339;

use crate::{
    Result, Store,
    sql::{OptionalExtension as _, Transaction},
};

/// A setting as it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenSetting {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What the settings said then.
    pub instead_of: String,
}

impl Store {
    /// What was chosen for a setting that says this now.
    pub fn chosen(&self, name: &str, said: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM chosen_settings WHERE name = ?1 AND instead_of = ?2";
        Ok(self.conn.prepare(sql)?.query_row((name, said), |row| row.get(0)).optional()?)
    }
}

/// Keeps what was chosen. What the settings say anyway is no choice.
pub(crate) fn choose(tx: &Transaction<'_>, setting: &ChosenSetting, now: DateTime<Utc>) -> Result<()> {
    let ChosenSetting { name, value, instead_of } = setting;
    let chosen = (value.clone(), instead_of.clone());
    put_back(tx, name, Some(&chosen).filter(|_| value != instead_of), now)
}

/// Puts back what was chosen before, with what the settings said then; none: nothing was.
pub(crate) fn put_back(
    tx: &Transaction<'_>,
    name: &str,
    was: Option<&(String, String)>,
    now: DateTime<Utc>,
) -> Result<()> {
    tx.execute("DELETE FROM chosen_settings WHERE name = ?1", [name])?;
    if let Some((value, instead_of)) = was {
        tx.execute(
            "INSERT INTO chosen_settings (name, value, instead_of, chosen_at) VALUES (?1, ?2, ?3, ?4)",
            (name, value, instead_of, rfc3339(now)),
        )?;
    }
    Ok(())
}
