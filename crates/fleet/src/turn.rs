//! One turn of one assistant: it runs one of our programs in a box, in which the other assistants' folders don't exist.
//!
//! The box is an outer wall: the assistant's own sandbox surrounds the commands of its model, and the box surrounds the assistant. Inside
//! are the machine's programs and the fleet's `shared` folder. Other files, processes and sockets are absent, except the socket of the
//! fleet's database.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use reveille_base::{
    approval_text::remove_hidden,
    clock::parse_time,
    process::{self, Output, ProcessError, Spec},
    types::AssistantName,
    words::first_bytes,
};
use reveille_channels::telegram::Inbox;
use reveille_sandbox::{BUBBLEWRAP, ENVIRONMENT, places};

use super::{Fleet, FleetError, home_path};

/// The time limit of a turn, longer than any single cycle takes.
const TURN_TIMEOUT: Duration = Duration::from_secs(3600);
/// The time limit for the program that tries out a box.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The settings of the DNS resolver. On many systems they are a link into `/run`, which a box leaves out.
const RESOLVER: &str = "/etc/resolv.conf";
/// The machine's folders present in a box, read-only: programs and their settings.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"];
/// The longest message about a failed turn, in bytes.
const MAX_TROUBLE_BYTES: usize = 300;

/// The boxes for a fleet's turns.
#[derive(Debug, Clone)]
pub(super) struct TurnBox {
    bubblewrap: PathBuf,
    /// The folder of our programs.
    programs: PathBuf,
}

/// The work left after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemainingWork {
    /// The names of the things due now.
    pub(super) due: Vec<String>,
    /// The next known due time.
    pub(super) next_at: Option<DateTime<Utc>>,
}

/// The last line printed by a turn.
#[derive(Deserialize)]
struct Printed {
    due: Vec<String>,
    next_at: Option<String>,
}

impl TurnBox {
    /// Finds the parts of a box and tries one out.
    ///
    /// # Errors
    /// The parts are missing, or boxes aren't allowed here.
    pub(super) fn find(fleet: &Fleet) -> Result<Self, FleetError> {
        let bubblewrap = BUBBLEWRAP.iter().map(PathBuf::from).find(|path| path.exists());
        let bubblewrap = bubblewrap.ok_or_else(|| FleetError::NoBox("bubblewrap isn't installed".to_owned()))?;
        let exe = std::env::current_exe().map_err(super::to_disk_error(Path::new("wake")))?;
        let programs = exe.parent().map_or_else(PathBuf::new, Path::to_owned);
        let boxes = Self { bubblewrap, programs };
        let probe = boxes.build_spec(fleet, fleet.dir(), Path::new("/bin/true"), &[]).timeout(PROBE_TIMEOUT);
        match process::run(&probe) {
            Ok(output) if output.status.success() => {
                if !output.stderr.is_empty() {
                    tracing::warn!(said = %find_last_line(&output.stderr), "the boxes of this fleet are less tight than they could be");
                }
                Ok(boxes)
            }
            Ok(output) => {
                Err(FleetError::NoBox(format!("No sandbox can be set up here: {}", find_last_line(&output.stderr))))
            }
            Err(error) => Err(FleetError::NoBox(format!("No sandbox can be set up here: {error}"))),
        }
    }

    /// Runs an assistant's turn: `bot` if its inbox holds updates, else `wake`. `report_start` gets the id of the leading process.
    pub(super) fn run_turn(
        &self,
        fleet: &Fleet,
        name: &AssistantName,
        report_start: &dyn Fn(u32),
    ) -> Result<RemainingWork, String> {
        let has_updates = !Inbox::at_path(fleet.workspace(name).join("inbox")).is_empty();
        let (program, arguments): (_, &[&str]) =
            if has_updates { ("bot", &["turn"]) } else { ("wake", &["--once", "--turn", "--reason", "fleet"]) };
        let Output { status, stdout, stderr, .. } =
            process::run_with_start_hook(&self.build_command(fleet, name, program, arguments), report_start)
                .map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("{} ({})", find_last_line(&stderr), process::describe_exit(status)));
        }
        let printed = stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
        let Printed { due, next_at } =
            serde_json::from_slice(printed).map_err(|_| "the turn didn't say what is left".to_owned())?;
        Ok(RemainingWork { due, next_at: next_at.as_deref().and_then(parse_time) })
    }

    /// Runs one of our programs in an assistant's box and waits for its end.
    pub(super) fn run(
        &self,
        fleet: &Fleet,
        name: &AssistantName,
        program: &str,
        arguments: &[&str],
    ) -> Result<Output, ProcessError> {
        process::run(&self.build_command(fleet, name, program, arguments))
    }

    fn build_command(&self, fleet: &Fleet, name: &AssistantName, program: &str, arguments: &[&str]) -> Spec {
        let program = self.programs.join(program);
        self.build_spec(fleet, &fleet.workspace(name), &program, arguments).timeout(TURN_TIMEOUT)
    }

    /// Builds the command of a program in a workspace's box.
    fn build_spec(&self, fleet: &Fleet, workspace: &Path, program: &Path, arguments: &[&str]) -> Spec {
        let mut list: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str], paths: &[&Path]| {
            list.extend(words.iter().map(OsString::from));
            list.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
        };
        // The network stays, since an assistant talks to Telegram and its model. All capabilities are dropped, so no mount can be undone.
        add(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"], &[]);
        add(&["--cap-drop", "ALL", "--new-session", "--die-with-parent"], &[]);
        for system in SYSTEM.iter().map(Path::new).filter(|path| path.exists()) {
            // A link to another of these folders stays a link inside.
            match system.read_link() {
                Ok(to) => add(&["--symlink"], &[&to, system]),
                Err(_) => add(&["--ro-bind"], &[system, system]),
            }
        }
        add(&["--dev", "/dev", "--proc", "/proc"], &[]);
        for empty in ["/tmp", "/var/tmp"] {
            add(&["--perms", "1777", "--tmpfs", empty], &[]);
        }
        for secret in places::list_system_keys().iter().filter_map(|path| path.canonicalize().ok()) {
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
        // The probe of `TurnBox::find` has no workspace, and sees nothing of the fleet.
        match workspace == fleet.dir() {
            true => add(&["--chdir", "/"], &[]),
            false => {
                add(&["--bind"], &[workspace, workspace]);
                add(&["--chdir"], &[workspace]);
            }
        }
        // The network is the machine's, which includes abstract sockets. `wake boxed` blocks those.
        add(&["--"], &[&self.programs.join("wake")]);
        add(&["boxed", "--"], &[program]);
        add(arguments, &[]);
        let spec = Spec::new(&self.bubblewrap).args(list).only_inheriting(ENVIRONMENT);
        spec.env("HOME", home_path(workspace)).env("WORKSPACE_DIR", workspace).env("TMPDIR", "/tmp")
    }
}

fn find_last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
    // The text may come from inside the box.
    let line = remove_hidden(line);
    first_bytes(&line, MAX_TROUBLE_BYTES).to_owned()
}
