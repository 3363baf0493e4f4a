//! The machine's system and state, without identifying details: no host name, user, address or running program. Linux
//! provides files, macOS programs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::{
    disk,
    process::{self, Spec},
};

/// Timeout of a queried program.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of a system file, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Describes the machine; unknown details are left out. `root` is the root of the system's files, `/` outside of
/// tests. `work` is a folder on the disk whose free space matters.
pub fn describe_machine(root: &Path, work: &Path) -> String {
    let lines = if cfg!(target_os = "macos") { describe_macos() } else { describe_linux(root) };
    let cpus = std::thread::available_parallelism().map_or_else(|_| String::new(), |n| format!(", {n} processors"));
    let machine = format!("Machine: {}{cpus}", std::env::consts::ARCH);
    let disk = disk::free_bytes(work).ok().map(|free| format!("Disk: {} free where I work", disk::format_size(free)));
    lines.into_iter().flatten().chain([machine]).chain(disk).collect::<Vec<_>>().join("\n")
}

fn describe_linux(root: &Path) -> Vec<Option<String>> {
    let read = |path: &str| read_text(&root.join(path));
    let release = read("etc/os-release").and_then(|text| pretty_name(&text)).unwrap_or_else(|| "Linux".to_owned());
    let kernel =
        read("proc/sys/kernel/osrelease").map(|kernel| format!(", kernel {}", kernel.trim())).unwrap_or_default();
    let uptime = read("proc/uptime").and_then(|text| text.split('.').next()?.parse().ok());
    vec![
        Some(format!("System: {release}{kernel}")),
        uptime.map(|seconds: u64| format!("Up: {}", format_duration(seconds))),
        read("proc/meminfo").and_then(|text| describe_memory(&text)),
        read("proc/loadavg").and_then(|text| describe_load(&text)),
        describe_battery(&root.join("sys/class/power_supply")),
    ]
}

fn describe_macos() -> Vec<Option<String>> {
    let version = run_program("/usr/bin/sw_vers", &["-productVersion"]).unwrap_or_default();
    let kernel = run_program("/usr/bin/uname", &["-r"]).unwrap_or_default();
    let bytes = run_program("/usr/sbin/sysctl", &["-n", "hw.memsize"]).and_then(|bytes| bytes.parse().ok());
    let load = run_program("/usr/sbin/sysctl", &["-n", "vm.loadavg"]);
    let battery = run_program("/usr/bin/pmset", &["-g", "batt"]).and_then(|text| {
        let line = text.lines().find(|line| line.contains('%'))?;
        line.split('\t').next_back().map(|state| format!("Battery: {}", state.trim()))
    });
    vec![
        Some(format!("System: macOS {version}, kernel {kernel}")),
        run_program("/usr/bin/uptime", &[]).and_then(|text| {
            let up = text.split_once(" up ")?.1.split(", ").take(2).collect::<Vec<_>>().join(", ");
            Some(format!("Up: {up}"))
        }),
        bytes.map(|bytes| format!("Memory: {} in all", disk::format_size(bytes))),
        load.map(|load| format!("Load: {}", load.trim_matches(['{', '}', ' ']))),
        battery,
    ]
}

fn run_program(program: &str, args: &[&str]) -> Option<String> {
    let spec = Spec::new(program).args(args.iter().copied()).timeout(TIMEOUT).max_output_bytes(MAX_BYTES);
    let output = process::run(&spec).ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn read_text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().filter(|text| text.len() <= MAX_BYTES)
}

fn pretty_name(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}

fn describe_memory(text: &str) -> Option<String> {
    let of = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let available =
        of("MemAvailable").map(|bytes| format!(", {} available", disk::format_size(bytes))).unwrap_or_default();
    Some(format!("Memory: {} in all{available}", disk::format_size(of("MemTotal")?)))
}

fn describe_load(text: &str) -> Option<String> {
    let numbers: Vec<&str> = text.split_whitespace().take(3).collect();
    (numbers.len() == 3).then(|| format!("Load: {} (1, 5 and 15 minutes)", numbers.join(", ")))
}

fn describe_battery(supplies: &Path) -> Option<String> {
    let mut names: Vec<PathBuf> = fs::read_dir(supplies).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    names.iter().find_map(|supply| {
        let of = |name: &str| read_text(&supply.join(name)).map(|text| text.trim().to_owned());
        let percent = of("capacity").filter(|_| of("type").as_deref() == Some("Battery"))?;
        let state = of("status").map(|state| format!(", {}", state.to_lowercase())).unwrap_or_default();
        Some(format!("Battery: {percent} %{state}"))
    })
}

/// Formats a duration for people.
fn format_duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min"),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn what_the_system_says_is_told_and_what_it_does_not_say_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (path, text) in [
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n"),
            ("proc/sys/kernel/osrelease", "6.12.1\n"),
            ("proc/sys/kernel/hostname", "annas-laptop\n"),
            ("proc/uptime", "93784.17 10.0\n"),
            ("proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB\nMemAvailable:    8192000 kB\n"),
            ("proc/loadavg", "0.50 0.40 0.30 1/234 999\n"),
            ("sys/class/power_supply/AC/type", "Mains\n"),
            ("sys/class/power_supply/BAT0/type", "Battery\n"),
            ("sys/class/power_supply/BAT0/capacity", "81\n"),
            ("sys/class/power_supply/BAT0/status", "Discharging\n"),
        ] {
            let full = root.join(path);
            fs::create_dir_all(full.parent().unwrap()).unwrap();
            fs::write(full, text).unwrap();
        }
        let told = describe_machine(root, root);
        for line in [
            "System: Debian GNU/Linux 13, kernel 6.12.1",
            "Up: 1 d 2 h",
            "Memory: 15.6 GiB in all, 7.8 GiB available",
            "Load: 0.50, 0.40, 0.30 (1, 5 and 15 minutes)",
            "Battery: 81 %, discharging",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}: {told}");
        }
        assert!(!told.contains("annas"), "{told}");
        let bare = describe_machine(&root.join("nothing"), root);
        assert!(bare.starts_with("System: Linux\nMachine: ") && bare.contains("Disk: "), "{bare}");
    }

    #[test]
    fn damaged_numbers_are_left_out() {
        assert_eq!(describe_memory("MemTotal: many kB"), None);
        assert_eq!(describe_memory("MemTotal: 18446744073709551615 kB"), None);
        assert_eq!(describe_load("0.5"), None);
        assert_eq!((format_duration(59), format_duration(3700)), ("0 min".to_owned(), "1 h 1 min".to_owned()));
    }
}
