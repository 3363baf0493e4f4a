//! A person's machine in small: a home with keys, a workspace with its brain, a granted directory, and others' files.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use reveille_base::process::{self, Spec};
use reveille_config::Config;
use reveille_sandbox::{Confined, Confinement, Sandbox};

use crate::support::env::{ProgramOutput, sandbox_visible_dir};

/// What every secret file holds.
const SECRET: &str = "SECRET of the person";
/// No attempt takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Secrets below the home directory.
pub(super) const KEYS: [&str; 64] = [
    ".ssh/id_ed25519",
    ".gnupg/private-keys-v1.d/key",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".netrc",
    ".docker/config.json",
    ".kube/config",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".password-store/bank.gpg",
    ".local/share/keyrings/login.keyring",
    ".mozilla/firefox/x/cookies.sqlite",
    ".config/google-chrome/Default/Cookies",
    ".config/chromium/Default/Login Data",
    ".thunderbird/x/key4.db",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".bash_history",
    ".config/gcloud/credentials.db",
    ".config/op/config",
    ".env",
    ".authinfo",
    ".authinfo.gpg",
    ".msmtprc",
    ".mbsyncrc",
    ".config/aerc/accounts.conf",
    ".config/neomutt/neomuttrc",
    ".bunfig.toml",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials/credentials.toml",
    ".hex/hex.config",
    ".config/nix/nix.conf",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".windsurf/argv.json",
    ".local/share/opencode/auth.json",
    ".config/goose/secrets.yaml",
    ".aider/oauth-keys.env",
    ".mcp-auth/tokens.json",
    ".ollama/id_ed25519",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".config/Code/User/globalStorage/state.vscdb",
    ".config/VSCodium/User/globalStorage/state.vscdb",
    ".config/Cursor/User/globalStorage/state.vscdb",
    ".vscode-server/data/User/History/x",
    ".cursor-server/data/token",
    ".vscode/cli/token.json",
    ".config/JetBrains/c.kdbx",
    ".local/share/zed/db/0-stable/db.sqlite",
    ".viminfo",
    ".local/state/nvim/shada/main.shada",
    ".local/share/atuin/history.db",
    ".config/nushell/history.txt",
    ".config/nushell/history.sqlite3",
    ".config/nushell/history.sqlite3-wal",
    ".local/state/zsh/history",
    ".ipython/profile_default/history.sqlite",
    "Library/Application Support/Code/User/globalStorage/state.vscdb",
    "Library/Application Support/Cursor/User/globalStorage/state.vscdb",
    "Library/Application Support/nushell/history.txt",
];
/// Secrets of the workspace.
pub(super) const OURS: [&str; 13] = [
    "policy.toml",
    ".env",
    "messages.db",
    "messages.db-wal",
    "messages.db-shm",
    ".wake-lock",
    ".bot-lock",
    "plan-20261121T140000Z-1.md",
    "logs/wake.log",
    "index.db",
    "brain/.git/config",
    "brain/.git/hooks/pre-commit",
    "brain/.env",
];

pub(super) struct World {
    dir: tempfile::TempDir,
    pub(super) confinement: Confinement,
    pub(super) sandbox: Sandbox,
    pub(super) is_root: bool,
    sleeper: OnceLock<Sleeper>,
    in_tmp: tempfile::NamedTempFile,
}

impl World {
    pub(super) fn new() -> Self {
        // Not below /tmp, which is another one inside anyway.
        let dir = tempfile::tempdir_in(sandbox_visible_dir()).unwrap();
        let base = dir.path();
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for key in KEYS {
            write(base.join("home").join(key), SECRET);
        }
        for ours in OURS {
            write(base.join("workspace").join(ours), SECRET);
        }
        write(base.join("elsewhere/azure/token"), SECRET);
        write(base.join("granted/project/.env"), SECRET);
        write(base.join("granted/named-key"), &SECRET.replace(' ', "-"));
        write(base.join("granted/project/.env.local"), SECRET);
        for open in [
            "granted/project/readme",
            "outside/file",
            "home/.bashrc",
            "workspace/brain/claude.md",
            "workspace/files/note",
        ] {
            write(base.join(open), "open to all");
        }
        std::fs::create_dir_all(base.join("workspace/work")).unwrap();
        symlink("../elsewhere/azure", base.join("home/.azure")).unwrap();
        symlink(base.join("home/.ssh"), base.join("home/keys")).unwrap();
        symlink(base.join("home/.ssh/id_ed25519"), base.join("granted/key")).unwrap();
        symlink(base.join("workspace"), base.join("outside/workspace")).unwrap();
        let sandbox = Sandbox::detect(Path::new(env!("CARGO_BIN_EXE_wake")), &base.join("workspace/work"));
        if let Sandbox::None { why } = &sandbox {
            panic!("these tests are about a sandbox (scripts/test installs bubblewrap), and there is none: {why}");
        }
        let is_root = rustix::process::geteuid().is_root();
        let confinement = Self::confinement(base);
        let in_tmp = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        Self { confinement, sandbox, is_root, sleeper: OnceLock::new(), in_tmp, dir }
    }

    fn confinement(base: &Path) -> Confinement {
        let workspace = base.join("workspace");
        // Its .env holds no settings, only a secret: it is hidden as one of the workspace.
        std::fs::rename(workspace.join(".env"), base.join("aside")).unwrap();
        let env = [
            ("WORKSPACE_DIR", workspace.as_path()),
            ("HOME", &base.join("home")),
            ("BRAVE_API_KEY_FILE", &base.join("granted/named-key")),
        ];
        let env: BTreeMap<String, String> =
            env.into_iter().map(|(name, path)| (name.to_owned(), path.display().to_string())).collect();
        let config = Config::from_sources(&env, None, Some("UTC")).unwrap();
        std::fs::rename(base.join("aside"), workspace.join(".env")).unwrap();
        let confinement = Confinement::new(&config, Some(&base.join("home")), workspace.join("work"));
        Confinement { writable: vec![base.join("granted")], ..confinement }
    }

    pub(super) fn base(&self) -> &Path {
        self.dir.path()
    }

    /// A process of somebody else's.
    pub(super) fn sleeper(&self) -> u32 {
        self.sleeper.get_or_init(Sleeper::start).0.id()
    }

    /// Somebody else's file in /tmp.
    pub(super) fn in_tmp(&self) -> &Path {
        self.in_tmp.path()
    }

    /// The script with the names that all scripts know: B the world, H the home, W the workspace, P the probe.
    pub(super) fn full(&self, script: &str) -> String {
        let base = self.base().display();
        format!("B='{base}' H='{base}/home' W='{base}/workspace' P='{}'\n{script}", probe().display())
    }

    /// Runs a script as a person would.
    pub(super) fn outside(&self, script: &str) -> ProgramOutput {
        let spec = Spec::new("/bin/sh").args(["-c", &self.full(script)]).current_dir(&self.confinement.work_dir);
        run(&spec)
    }

    /// Runs it as a tool would.
    pub(super) fn inside(&self, script: &str) -> ProgramOutput {
        run(&self.confined(script).spec)
    }

    pub(super) fn confined(&self, script: &str) -> Confined {
        self.sandbox.confine(&self.confinement, "/bin/sh".as_ref(), ["-c", &self.full(script)]).unwrap()
    }

    /// Runs it in a sandbox that was built otherwise than it should be.
    pub(super) fn inside_a_broken_one(
        &self,
        script: &str,
        breaking: impl Fn(&[String]) -> Vec<String>,
    ) -> ProgramOutput {
        let words = self.confined(script).spec;
        let words: Vec<String> = words.command_line().map(|word| word.to_str().unwrap().to_owned()).collect();
        let words = breaking(&words);
        let spec =
            Spec::new(&words[0]).args(&words[1..]).only_inheriting(&["PATH"]).current_dir(&self.confinement.work_dir);
        run(&spec)
    }

    /// After all attempts every secret is where it was, and holds what it held.
    pub(super) fn is_untouched(&self) {
        let all = KEYS.map(|key| format!("home/{key}")).into_iter().chain(OURS.map(|ours| format!("workspace/{ours}")));
        for path in all {
            let text = std::fs::read_to_string(self.base().join(&path));
            assert_eq!(text.unwrap_or_default(), SECRET, "{path}");
        }
        let project = std::fs::read_to_string(self.base().join("granted/project/.env"));
        assert_eq!(project.unwrap(), SECRET);
        for path in ["outside/file", "home/.bashrc", "workspace/brain/claude.md"] {
            assert_eq!(std::fs::read_to_string(self.base().join(path)).unwrap(), "open to all", "{path}");
        }
    }
}

pub(super) fn run(spec: &Spec) -> ProgramOutput {
    let output = process::run(&spec.clone().timeout(PATIENCE)).unwrap();
    ProgramOutput::of(&std::process::Output { status: output.status, stdout: output.stdout, stderr: output.stderr })
}

/// The probe: acts for which there is no command. The first test that wants it builds it. Nobody replaces it: a sandbox has its file
/// bound, and a bound file that is exchanged can't be run any more.
pub(crate) fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/sandbox/probe.c");
        let mut of_source = DefaultHasher::new();
        of_source.write(&std::fs::read(&source).unwrap());
        let program = sandbox_visible_dir().join(format!("probe-{:x}", of_source.finish()));
        if !program.exists() {
            let made = sandbox_visible_dir().join(format!("making-probe-{}", std::process::id()));
            compile(&source, &made);
            match std::fs::hard_link(&made, &program) {
                // Another test was first.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                linked => linked.unwrap(),
            }
            std::fs::remove_file(&made).unwrap();
        }
        program
    })
}

fn compile(source: &Path, program: &Path) {
    #[expect(clippy::disallowed_methods, reason = "the compiler of a helper of the tests")]
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-o"])
        .args([program, source])
        .stdin(Stdio::null())
        .output()
        .expect("a C compiler (cc)");
    assert!(output.status.success(), "probe.c: {output:?}");
}

/// A process, while it is held.
struct Sleeper(std::process::Child);

impl Sleeper {
    fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a process that isn't ours, to be attacked")]
        let child = Command::new("sleep").arg("1000").env("SLEEPERS_TOKEN", SECRET).spawn().unwrap();
        Self(child)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
