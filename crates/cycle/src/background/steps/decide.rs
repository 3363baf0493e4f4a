//! The end of a step: whether the model gets another request, and why a step has no report. Pure.

/// The facts about a step in progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepStanding {
    /// True if the model has reported the step's result.
    pub(crate) is_reported: bool,
    /// True if the person hasn't stopped, finished or removed the task.
    pub(crate) is_in_hand: bool,
    /// The spending and the budget of the task, in US dollars, once the budget is spent.
    pub(crate) spent: Option<(f64, f64)>,
}

/// The reason why a step ends without a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unreported {
    /// The person has stopped the task, so the step stays as it was.
    Stopped,
    /// The budget is spent, so the task pauses.
    OutOfMoney {
        /// The spending, in US dollars.
        spent: f64,
        /// The budget, in US dollars.
        budget: f64,
    },
    /// The model ended its turn, so the person is asked how to continue.
    Silent,
}

impl StepStanding {
    /// Returns `true` if the model gets no further request for this step.
    pub(crate) fn is_over(&self) -> bool {
        self.is_reported || !self.is_in_hand || self.spent.is_some()
    }

    /// Returns the reason for a missing report. `None` if the step is reported.
    pub(crate) fn find_unreported(&self) -> Option<Unreported> {
        if self.is_reported {
            return None;
        }
        Some(match self.spent {
            _ if !self.is_in_hand => Unreported::Stopped,
            Some((spent, budget)) => Unreported::OutOfMoney { spent, budget },
            None => Unreported::Silent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNDER_WAY: StepStanding = StepStanding { is_reported: false, is_in_hand: true, spent: None };

    #[test]
    fn a_step_ends_with_its_report_its_task_or_its_budget() {
        assert!(!UNDER_WAY.is_over());
        assert!(StepStanding { is_reported: true, ..UNDER_WAY }.is_over());
        assert!(StepStanding { is_in_hand: false, ..UNDER_WAY }.is_over());
        assert!(StepStanding { spent: Some((1.0, 0.9)), ..UNDER_WAY }.is_over());
    }

    #[test]
    fn a_stopped_task_outweighs_a_spent_budget() {
        let spent = StepStanding { spent: Some((1.0, 0.9)), ..UNDER_WAY };
        assert_eq!(UNDER_WAY.find_unreported(), Some(Unreported::Silent));
        assert_eq!(spent.find_unreported(), Some(Unreported::OutOfMoney { spent: 1.0, budget: 0.9 }));
        let stopped = StepStanding { is_in_hand: false, ..spent };
        assert_eq!(stopped.find_unreported(), Some(Unreported::Stopped));
        assert_eq!(StepStanding { is_reported: true, ..stopped }.find_unreported(), None);
    }
}
