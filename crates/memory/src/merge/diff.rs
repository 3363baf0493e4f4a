//! Three-way alignment of lists of units (lines or list items), the classic diff3. Runs that only one side changed are settled here; the
//! caller handles those that both changed.

use imara_diff::{Algorithm, Diff, InternedInput};

/// A run of units after alignment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnitRun<'r, 'a> {
    /// The result, because the sides agree or only one changed the run.
    Settled(&'r [&'a str]),
    /// Both sides changed the run differently.
    Conflict(ThreeWay<'r, 'a>),
}

/// The units of the base and of both sides, of a whole text or of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreeWay<'r, 'a> {
    pub(super) base: &'r [&'a str],
    pub(super) person: &'r [&'a str],
    pub(super) ours: &'r [&'a str],
}

/// Returns whether two units are equal, ignoring trailing white space.
pub(super) fn is_same_unit(a: &str, b: &str) -> bool {
    a.trim_end() == b.trim_end()
}

/// Returns whether two lists of units are equal.
pub(super) fn are_same(a: &[&str], b: &[&str]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_unit(a, b))
}

/// Aligns both sides with their base.
pub(super) fn diff3<'r, 'a>(all: ThreeWay<'r, 'a>) -> Vec<UnitRun<'r, 'a>> {
    let ThreeWay { base, person, ours } = all;
    let in_person = match_units(base, person);
    let in_ours = match_units(base, ours);
    let mut runs = Vec::new();
    // The end of the aligned part, in the base and in each side.
    let (mut b, mut p, mut o) = (0, 0, 0);
    for (at, (to_person, to_ours)) in in_person.iter().zip(&in_ours).enumerate() {
        if let (Some(to_person), Some(to_ours)) = (*to_person, *to_ours) {
            let (base, person, ours) =
                (slice_units(base, b, at), slice_units(person, p, to_person), slice_units(ours, o, to_ours));
            runs.push(settle_run(ThreeWay { base, person, ours }));
            runs.push(UnitRun::Settled(slice_units(all.person, to_person, to_person + 1)));
            (b, p, o) = (at + 1, to_person + 1, to_ours + 1);
        }
    }
    let (base, person, ours) =
        (slice_units(base, b, base.len()), slice_units(person, p, person.len()), slice_units(ours, o, ours.len()));
    runs.push(settle_run(ThreeWay { base, person, ours }));
    runs
}

fn slice_units<'r, 'a>(units: &'r [&'a str], from: usize, to: usize) -> &'r [&'a str] {
    units.get(from..to).unwrap_or_default()
}

fn settle_run<'r, 'a>(run: ThreeWay<'r, 'a>) -> UnitRun<'r, 'a> {
    let ThreeWay { base, person, ours } = run;
    if are_same(base, ours) || are_same(person, ours) {
        UnitRun::Settled(person)
    } else if are_same(base, person) {
        UnitRun::Settled(ours)
    } else {
        UnitRun::Conflict(run)
    }
}

/// Returns for each unit of `from` its index in `to`, or `None`.
fn match_units(from: &[&str], to: &[&str]) -> Vec<Option<usize>> {
    let mut input = InternedInput::default();
    input.update_before(from.iter().map(|unit| unit.trim_end()));
    input.update_after(to.iter().map(|unit| unit.trim_end()));
    let diff = Diff::compute(Algorithm::Myers, &input);
    let mut kept = (0_u32..).zip(0..to.len()).filter(|(at, _)| !diff.is_added(*at)).map(|(_, place)| place);
    (0_u32..).zip(from).map(|(at, _)| if diff.is_removed(at) { None } else { kept.next() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sided_changes_settle_and_two_sided_ones_meet() {
        let base = ["a", "b", "c", "d"];
        let person = ["a", "B", "c", "d"];
        let ours = ["a", "b", "c", "D", "e"];
        let merged: Vec<&str> = diff3(ThreeWay { base: &base, person: &person, ours: &ours })
            .into_iter()
            .flat_map(|run| match run {
                UnitRun::Settled(units) => units.to_vec(),
                UnitRun::Conflict(_) => panic!("{run:?}"),
            })
            .collect();
        assert_eq!(merged, ["a", "B", "c", "D", "e"]);
        let ours = ["a", "x", "c", "d"];
        let runs = diff3(ThreeWay { base: &base, person: &person, ours: &ours });
        let conflict = ThreeWay { base: &["b"], person: &["B"], ours: &["x"] };
        assert!(runs.contains(&UnitRun::Conflict(conflict)), "{runs:?}");
    }

    #[test]
    fn moved_and_changed_lines_of_a_long_text_are_aligned() {
        let base: Vec<String> = (0..3_000).map(|n| n.to_string()).collect();
        let base: Vec<&str> = base.iter().map(String::as_str).collect();
        let person: Vec<&str> = base.iter().rev().copied().collect();
        let mut ours = base.clone();
        ours[1_500] = "ours";
        for (side, most) in [(&person, 2_999), (&ours, 1)] {
            let matches = match_units(&base, side);
            assert!(matches.iter().filter(|place| place.is_none()).count() <= most);
            for (unit, place) in base.iter().zip(&matches) {
                assert!(place.is_none_or(|place| side[place] == *unit));
            }
            assert!(matches.iter().flatten().is_sorted_by(|a, b| a < b));
        }
    }
}
