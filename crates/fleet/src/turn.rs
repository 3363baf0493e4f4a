//! One turn of one assistant: a program of ours in a box, in which the fleet's folder holds nobody else.
//!
//! The box is a second wall: the assistant's own sandbox stands around what its model runs, this one around the assistant. It sees the
//! machine's programs and what `shared` in the fleet's folder holds; no other file of the machine, no process and no
//! socket is there, but the one of the fleet's database.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use reveille_base::{
    approval_text::without_hidden,
    clock::parse_time,
    process::{self, Output, ProcessError, Spec},
    types::AssistantName,
    words::first_bytes,
};
use reveille_channels::telegram::Inbox;
use reveille_sandbox::{BUBBLEWRAP, ENVIRONMENT, places};

use super::{Fleet, FleetError, home_in};

/// How long a turn may take: more than any one cycle does.
const TURN_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long trying the box out may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// What says how names of the network are found. On many systems it leads into `/run`, which is empty in a box.
const RESOLVER: &str = "/etc/resolv.conf";
/// What of the machine is in a box, to read: programs and their settings. All else isn't there.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"];
/// The longest word on a turn that failed, in bytes.
const MAX_TROUBLE_BYTES: usize = 300;

/// How the turns of a fleet are boxed.
#[derive(Debug, Clone)]
pub(super) struct TurnBox {
    bubblewrap: PathBuf,
    /// Where our programs are.
    programs: PathBuf,
}

/// What a turn has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnLeft {
    /// A name for each thing that is due now.
    pub(super) due: Vec<String>,
    /// When the next thing known by time is due.
    pub(super) next_at: Option<DateTime<Utc>>,
}

/// The last line of a turn, as it prints it.
#[derive(Deserialize)]
struct Printed {
    due: Vec<String>,
    next_at: Option<String>,
}

impl TurnBox {
    /// Finds what boxes are made of, and tries one out.
    ///
    /// # Errors
    /// There is nothing to make one of, or it isn't allowed here.
    pub(super) fn find(fleet: &Fleet) -> Result<Self, FleetError> {
        let bubblewrap = BUBBLEWRAP.iter().map(PathBuf::from).find(|path| path.exists());
        let bubblewrap = bubblewrap.ok_or_else(|| FleetError::NoBox("bubblewrap isn't installed".to_owned()))?;
        let exe = std::env::current_exe().map_err(super::at(Path::new("wake")))?;
        let programs = exe.parent().map_or_else(PathBuf::new, Path::to_owned);
        let turns = Self { bubblewrap, programs };
        let tried = turns.spec(fleet, fleet.dir(), Path::new("/bin/true"), &[]).timeout(PROBE_TIMEOUT);
        match process::run(&tried) {
            Ok(output) if output.status.success() => {
                if !output.stderr.is_empty() {
                    tracing::warn!(said = %last_line(&output.stderr), "the boxes of this fleet are less tight than they could be");
                }
                Ok(turns)
            }
            Ok(output) => Err(FleetError::NoBox(format!("No box can be made here: {}", last_line(&output.stderr)))),
            Err(error) => Err(FleetError::NoBox(format!("No box can be made here: {error}"))),
        }
    }

    /// Lets an assistant have a turn: with its inbox, if anything is in it. `started` is told the process that leads it.
    pub(super) fn take(&self, fleet: &Fleet, name: &AssistantName, started: &dyn Fn(u32)) -> Result<TurnLeft, String> {
        let has_updates = !Inbox::at(fleet.workspace(name).join("inbox")).is_empty();
        let (program, arguments): (_, &[&str]) =
            if has_updates { ("bot", &["turn"]) } else { ("wake", &["--once", "--turn", "--reason", "fleet"]) };
        let Output { status, stdout, stderr, .. } =
            process::run_watched(&self.command(fleet, name, program, arguments), started)
                .map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("{} ({})", last_line(&stderr), process::describe(status)));
        }
        let printed = stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
        let Printed { due, next_at } =
            serde_json::from_slice(printed).map_err(|_| "the turn didn't say what is left".to_owned())?;
        Ok(TurnLeft { due, next_at: next_at.as_deref().and_then(parse_time) })
    }

    /// Runs a program of ours in an assistant's box, to its end.
    pub(super) fn run(
        &self,
        fleet: &Fleet,
        name: &AssistantName,
        program: &str,
        arguments: &[&str],
    ) -> Result<Output, ProcessError> {
        process::run(&self.command(fleet, name, program, arguments))
    }

    fn command(&self, fleet: &Fleet, name: &AssistantName, program: &str, arguments: &[&str]) -> Spec {
        let program = self.programs.join(program);
        self.spec(fleet, &fleet.workspace(name), &program, arguments).timeout(TURN_TIMEOUT)
    }

    /// A program in the box of a workspace.
    fn spec(&self, fleet: &Fleet, workspace: &Path, program: &Path, arguments: &[&str]) -> Spec {
        let mut list: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str], paths: &[&Path]| {
            list.extend(words.iter().map(OsString::from));
            list.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
        };
        // The network stays: an assistant speaks to Telegram and its model. No capability is left to undo a mount with.
        add(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"], &[]);
        add(&["--cap-drop", "ALL", "--new-session", "--die-with-parent"], &[]);
        for system in SYSTEM.iter().map(Path::new).filter(|path| path.exists()) {
            // Where one is a link to another, it is one inside.
            match system.read_link() {
                Ok(to) => add(&["--symlink"], &[&to, system]),
                Err(_) => add(&["--ro-bind"], &[system, system]),
            }
        }
        add(&["--dev", "/dev", "--proc", "/proc"], &[]);
        for empty in ["/tmp", "/var/tmp"] {
            add(&["--perms", "1777", "--tmpfs", empty], &[]);
        }
        for secret in places::of_the_system().iter().filter_map(|path| path.canonicalize().ok()) {
            match secret.is_dir() {
                true => add(&["--perms", "0000", "--tmpfs"], &[&secret]),
                false => add(&["--ro-bind", "/dev/null"], &[&secret]),
            }
        }
        let resolver = Path::new(RESOLVER).canonicalize().ok().filter(|path| path.starts_with("/run"));
        let socket = fleet.place.socket_dir();
        let shared = fleet.dir().join("shared");
        for path in [resolver.as_deref(), socket.as_deref(), Some(&*shared), Some(&*self.programs)] {
            if let Some(path) = path.filter(|path| path.exists()) {
                add(&["--ro-bind"], &[path, path]);
            }
        }
        // The trial has no workspace, and sees nothing of the fleet.
        match workspace == fleet.dir() {
            true => add(&["--chdir", "/"], &[]),
            false => {
                add(&["--bind"], &[workspace, workspace]);
                add(&["--chdir"], &[workspace]);
            }
        }
        // The network is the machine's, and with it come sockets that no path leads to.
        add(&["--"], &[&self.programs.join("wake")]);
        add(&["boxed", "--"], &[program]);
        add(arguments, &[]);
        let spec = Spec::new(&self.bubblewrap).args(list).only_inheriting(ENVIRONMENT);
        spec.env("HOME", home_in(workspace)).env("WORKSPACE_DIR", workspace).env("TMPDIR", "/tmp")
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
    // Whoever is in the box may have written it.
    let line = without_hidden(line);
    first_bytes(&line, MAX_TROUBLE_BYTES).to_owned()
}
