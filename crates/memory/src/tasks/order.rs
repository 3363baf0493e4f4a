//! Changes the order of a list's tasks.

use std::ops::Range;

use super::{
    super::text::{slice, splice},
    Task, TaskError, TaskList,
};

impl TaskList {
    /// Exchanges the places of two tasks, with all that stands in them. Blank lines between tasks stay where they are.
    ///
    /// # Errors
    /// As [`TaskList::find`], and [`TaskError::Unmovable`] if the exchange would change how another part is read.
    pub fn swap(&self, one: &str, other: &str) -> Result<String, TaskError> {
        let (one, other) = (self.find(one)?, self.find(other)?);
        let (first, second) = if one.range.start <= other.range.start { (one, other) } else { (other, one) };
        let content = |task: &Task| -> Range<usize> {
            let text = slice(&self.text, task.range.clone());
            task.range.start..task.range.start + text.trim_end().len()
        };
        let (first_range, second_range) = (content(first), content(second));
        let later = splice(&self.text, second_range.clone(), slice(&self.text, first_range.clone()));
        let text = splice(&later, first_range, slice(&self.text, second_range));
        // An open code fence or comment in one of them would swallow its new neighbour.
        let mut wanted: Vec<&str> = self.tasks.iter().map(|task| task.title.as_str()).collect();
        let place = |task: &Task| self.tasks.iter().position(|known| known.line == task.line).unwrap_or_default();
        wanted.swap(place(first), place(second));
        let read = Self::parse(&text).0;
        if read.tasks.iter().map(|task| task.title.as_str()).eq(wanted) {
            return Ok(text);
        }
        Err(TaskError::Unmovable { title: one.title.clone() })
    }
}
