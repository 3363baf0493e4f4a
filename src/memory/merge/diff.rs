//! Three-way alignment of lists of units (lines or list items), the classic diff3: runs that only one side changed are
//! settled here, runs that both changed are handed to the caller.

/// The largest table, in cells, that the alignment of two changed stretches may take. Past it they are taken as wholly
/// different, which only makes a conflict larger.
const MAX_DIFF_CELLS: usize = 1_000_000;

/// A run of units after alignment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Run<'r, 'a> {
    /// Both sides agree, or only one side changed it: the outcome.
    Settled(&'r [&'a str]),
    /// Both sides changed it, differently.
    Both(Meeting<'r, 'a>),
}

/// What the base and both sides have in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meeting<'r, 'a> {
    pub(super) base: &'r [&'a str],
    pub(super) person: &'r [&'a str],
    pub(super) ours: &'r [&'a str],
}

/// Whether two units are the same but for white space at their ends.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.trim_end() == b.trim_end()
}

/// Whether two lists of units are the same.
pub(super) fn all_same(a: &[&str], b: &[&str]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// Aligns both sides with their base.
pub(super) fn diff3<'r, 'a>(all: Meeting<'r, 'a>) -> Vec<Run<'r, 'a>> {
    let Meeting { base, person, ours } = all;
    let in_person = matches(base, person);
    let in_ours = matches(base, ours);
    let mut runs = Vec::new();
    let (mut b, mut p, mut o) = (0, 0, 0);
    for (at, (to_person, to_ours)) in in_person.iter().zip(&in_ours).enumerate() {
        if let (Some(to_person), Some(to_ours)) = (*to_person, *to_ours) {
            let (base, person, ours) = (part(base, b, at), part(person, p, to_person), part(ours, o, to_ours));
            runs.push(settle(Meeting { base, person, ours }));
            runs.push(Run::Settled(part(all.person, to_person, to_person + 1)));
            (b, p, o) = (at + 1, to_person + 1, to_ours + 1);
        }
    }
    let (base, person, ours) = (part(base, b, base.len()), part(person, p, person.len()), part(ours, o, ours.len()));
    runs.push(settle(Meeting { base, person, ours }));
    runs
}

fn part<'r, 'a>(units: &'r [&'a str], from: usize, to: usize) -> &'r [&'a str] {
    units.get(from..to).unwrap_or_default()
}

fn settle<'r, 'a>(run: Meeting<'r, 'a>) -> Run<'r, 'a> {
    let Meeting { base, person, ours } = run;
    if all_same(base, ours) || all_same(person, ours) {
        Run::Settled(person)
    } else if all_same(base, person) {
        Run::Settled(ours)
    } else {
        Run::Both(run)
    }
}

/// For each unit of `from` its place in `to`, along a longest common subsequence.
fn matches(from: &[&str], to: &[&str]) -> Vec<Option<usize>> {
    let head = from.iter().zip(to).take_while(|(a, b)| same(a, b)).count();
    let (from_rest, to_rest) = (part(from, head, from.len()), part(to, head, to.len()));
    let tail = from_rest.iter().rev().zip(to_rest.iter().rev()).take_while(|(a, b)| same(a, b)).count();
    let middle = longest_common(part(from_rest, 0, from_rest.len() - tail), part(to_rest, 0, to_rest.len() - tail));
    let mut matches: Vec<Option<usize>> = (0..head).map(Some).collect();
    matches.extend(middle.into_iter().map(|to| to.map(|to| head + to)));
    matches.extend((0..tail).map(|at| Some(to.len() - tail + at)));
    matches
}

fn longest_common(from: &[&str], to: &[&str]) -> Vec<Option<usize>> {
    let width = to.len() + 1;
    let mut matches = vec![None; from.len()];
    if (from.len() + 1).saturating_mul(width) > MAX_DIFF_CELLS {
        return matches;
    }
    let mut lengths = vec![0_u32; (from.len() + 1) * width];
    let cell = |lengths: &[u32], f: usize, t: usize| lengths.get(f * width + t).copied().unwrap_or(0);
    for (f, a) in from.iter().enumerate().rev() {
        for (t, b) in to.iter().enumerate().rev() {
            let length = if same(a, b) {
                cell(&lengths, f + 1, t + 1) + 1
            } else {
                cell(&lengths, f + 1, t).max(cell(&lengths, f, t + 1))
            };
            if let Some(slot) = lengths.get_mut(f * width + t) {
                *slot = length;
            }
        }
    }
    let (mut f, mut t) = (0, 0);
    while let (Some(a), Some(b)) = (from.get(f), to.get(t)) {
        if same(a, b) {
            if let Some(slot) = matches.get_mut(f) {
                *slot = Some(t);
            }
            (f, t) = (f + 1, t + 1);
        } else if cell(&lengths, f + 1, t) >= cell(&lengths, f, t + 1) {
            f += 1;
        } else {
            t += 1;
        }
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sided_changes_settle_and_two_sided_ones_meet() {
        let base = ["a", "b", "c", "d"];
        let person = ["a", "B", "c", "d"];
        let ours = ["a", "b", "c", "D", "e"];
        let merged: Vec<&str> = diff3(Meeting { base: &base, person: &person, ours: &ours })
            .into_iter()
            .flat_map(|run| match run {
                Run::Settled(units) => units.to_vec(),
                Run::Both(_) => panic!("{run:?}"),
            })
            .collect();
        assert_eq!(merged, ["a", "B", "c", "D", "e"]);
        let ours = ["a", "x", "c", "d"];
        let runs = diff3(Meeting { base: &base, person: &person, ours: &ours });
        let meeting = Meeting { base: &["b"], person: &["B"], ours: &["x"] };
        assert!(runs.contains(&Run::Both(meeting)), "{runs:?}");
    }

    #[test]
    fn stretches_past_the_bound_are_not_aligned() {
        let many: Vec<String> = (0..1_200).map(|n| n.to_string()).collect();
        let from: Vec<&str> = many.iter().map(String::as_str).collect();
        let to: Vec<&str> = from.iter().rev().copied().collect();
        assert!(matches(&from, &to).iter().all(Option::is_none));
        assert!(matches(&from, &from).iter().all(Option::is_some));
    }
}
