//! Renders the report for a person.

use reveille_memory::render::Looks;

use super::{CheckReport, HealthReport, Status};

/// Indentation of details: the longest id and a space.
const ID_WIDTH: usize = 11;

/// Renders a line for each check with its advice, and a summary at the end.
pub(super) fn render_report(report: &HealthReport, looks: Looks) -> String {
    let mut text: String = report.checks.iter().map(|check| render_line(check, looks)).collect();
    let count = |status| report.checks.iter().filter(|check| check.status == status).count();
    let (warnings, critical) = (count(Status::Warn), count(Status::Critical));
    if !report.repaired.is_empty() {
        text.push_str(&format!("\nRepaired: {}.", report.repaired.join(", ")));
    }
    text.push_str(&match (warnings, critical) {
        (0, 0) => "\nAll is well.\n".to_owned(),
        (1, 0) => "\n1 warning.\n".to_owned(),
        (n, 0) => format!("\n{n} warnings.\n"),
        (warnings, critical) => format!("\nNot working: {critical}. Warnings: {warnings}.\n"),
    });
    text
}

fn render_line(check: &CheckReport, looks: Looks) -> String {
    let mark = match (check.status, looks) {
        (Status::Ok, Looks::Plain) => "ok      ",
        (Status::Warn, Looks::Plain) => "warn    ",
        (Status::Critical, Looks::Plain) => "critical",
        (Status::Ok, Looks::Ansi) => "\u{1b}[32m✓\u{1b}[0m",
        (Status::Warn, Looks::Ansi) => "\u{1b}[33m!\u{1b}[0m",
        (Status::Critical, Looks::Ansi) => "\u{1b}[31m✗\u{1b}[0m",
    };
    let (mark_width, arrow) = match looks {
        Looks::Plain => (9, "->"),
        Looks::Ansi => (2, "→"),
    };
    let indent = " ".repeat(mark_width + ID_WIDTH);
    let detail = check.detail.lines().collect::<Vec<_>>().join(&format!("\n{indent}"));
    let mut line = format!("{mark} {:ID_WIDTH$}{detail}\n", check.id);
    if let Some(why) = check.why {
        line.push_str(&format!("{indent}{why}\n"));
    }
    if let Some(fix) = &check.fix {
        line.push_str(&format!("{indent}{arrow} {fix}\n"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(checks: &[(&'static str, Status)], repaired: Vec<&'static str>) -> HealthReport {
        let checks = checks.iter().map(|(id, status)| CheckReport {
            id,
            status: *status,
            detail: format!("what {id} is"),
            fix: (*status != Status::Ok).then(|| "do this".to_owned()),
            repair: None,
            why: (*status == Status::Critical).then_some("it matters"),
            remedies: Vec::new(),
        });
        HealthReport::new(checks.collect(), repaired)
    }

    #[test]
    fn the_worst_check_decides_the_status_and_every_check_is_shown() {
        let report =
            report_of(&[("disk", Status::Ok), ("lock", Status::Warn), ("database", Status::Critical)], vec!["lock"]);
        assert_eq!(report.status, Status::Critical);
        insta::assert_snapshot!(report.render(Looks::Plain), @"
        ok       disk       what disk is
        warn     lock       what lock is
                            -> do this
        critical database   what database is
                            it matters
                            -> do this

        Repaired: lock.
        Not working: 1. Warnings: 1.
        ");
        assert!(report.render(Looks::Ansi).contains("\u{1b}[31m✗\u{1b}[0m database"));
        let well = report_of(&[("disk", Status::Ok)], Vec::new());
        assert!(well.status == Status::Ok && well.render(Looks::Plain).ends_with("All is well.\n"));
    }

    #[test]
    fn the_json_for_programs_has_a_fixed_form() {
        let report = report_of(&[("disk", Status::Warn)], vec!["disk"]);
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"status":"warn","checks":[{"id":"disk","status":"warn","detail":"what disk is","fix":"do this"}],"repaired":["disk"]}"#
        );
    }
}
