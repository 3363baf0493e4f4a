//! Tasks typed as one line, on Saturday 2026-11-21, 14:00.

use super::{super::read_task_line, saturday};

/// A line's reading: title, day, project, and what was noticed.
fn read(line: &str) -> String {
    let task = match read_task_line(line, saturday()) {
        Ok(task) => task,
        Err(error) => return format!("? {error}"),
    };
    let mut said = vec![task.title];
    said.extend(task.due.map(|due| due.format("%a %-d %b").to_string()));
    said.extend(task.project.map(|project| format!("#{project}")));
    said.extend(task.is_for_backlog.then(|| "backlog".to_owned()));
    said.extend(task.clock.map(|clock| format!("clock “{clock}”")));
    said.extend(task.kept_time.map(|kept| format!("kept “{kept}”")));
    said.join(" · ")
}

#[test]
fn a_typed_line_is_a_title_with_a_day_and_a_project() {
    for (line, expected) in [
        ("renew passport friday #home", "Renew passport · Fri 27 Nov · #home"),
        ("#home renew passport", "Renew passport · #home"),
        ("Renew passport by 4 december", "Renew passport · Fri 4 Dec"),
        ("return the books on monday #backlog", "Return the books · Mon 23 Nov · backlog"),
        ("tomorrow: call Anna", "Call Anna · Sun 22 Nov"),
        ("call Anna today", "Call Anna · Sat 21 Nov"),
        ("water the plants in 3 days", "Water the plants · Tue 24 Nov"),
        ("pay rent due next friday", "Pay rent · Fri 27 Nov"),
        ("iPhone repair", "iPhone repair"),
        ("fix issue #47", "Fix issue #47"),
        ("learn the cello", "Learn the cello"),
        ("call the dentist tomorrow 9:00", "Call the dentist · Sun 22 Nov · clock “tomorrow 9:00”"),
        ("call the dentist tomorrow morning", "Call the dentist · Sun 22 Nov · clock “tomorrow morning”"),
        ("water the plants every friday", "Water the plants · clock “every friday”"),
        // A day that belongs to a thing stays there.
        ("buy tickets for friday", "Buy tickets for friday"),
        ("prepare friday meeting", "Prepare friday meeting · kept “friday”"),
        ("pay the ticket by thursday, 35 euros", "Pay the ticket, 35 euros · Thu 26 Nov"),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn a_line_that_could_mean_several_things_is_asked_about() {
    for (line, why) in [
        ("", "? A task needs a title"),
        ("friday #home", "? A task needs a title"),
        ("#home #work paint", "? A task belongs to one project: please write only one of #home and #work"),
    ] {
        assert_eq!(read(line), why, "{line}");
    }
    for (line, part) in [
        ("renew passport 5/12", "please say which"),
        ("renew passport 30 february", "is not a day of the calendar"),
        ("renew passport by yesterday", "already passed"),
    ] {
        let said = read(line);
        assert!(said.starts_with('?') && said.contains(part), "{line}: {said}");
    }
}
