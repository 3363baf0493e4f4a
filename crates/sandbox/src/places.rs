//! The paths of keys, sessions and histories on people's machines, hidden from confined programs. Lists, and little else.

use std::path::{Path, PathBuf};

/// Paths below the home directory, grouped by a thief's interest.
const KEYS: &[&str] = &[
    // Keys of this machine's owner.
    // fault: place-keys-isnt-hidden
    ".ssh",
    ".gnupg",
    ".pki",
    // fault end: place-keys-isnt-hidden
    ".age",
    ".config/age",
    ".config/sops",
    ".password-store",
    ".vault-token",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".config/git/credentials",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".env",
    ".envrc",
    // Clouds and hosts.
    ".aws",
    ".azure",
    ".boto",
    ".s3cfg",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/doctl",
    ".config/hcloud",
    ".config/rclone",
    ".config/heroku",
    ".config/configstore",
    ".config/op",
    ".databrickscfg",
    ".docker",
    ".fly",
    ".kube",
    ".netlify",
    ".oci",
    ".terraform.d",
    ".terraformrc",
    ".wrangler",
    ".config/containers",
    // Registries of packages.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".config/pnpm",
    ".vsce",
    ".ovsx",
    ".pypirc",
    ".config/pypoetry",
    ".config/pdm",
    ".config/hatch",
    ".config/uv",
    ".local/share/uv/credentials",
    ".condarc",
    ".config/binstar",
    ".local/share/binstar",
    ".continuum",
    ".rattler",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".bundle/config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".ivy2/.credentials",
    ".sbt/.credentials",
    ".config/coursier",
    ".lein/credentials.clj.gpg",
    ".jfrog",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/pip",
    ".nuget",
    ".config/NuGet",
    ".hex",
    ".config/hex",
    ".cabal/config",
    ".config/cabal",
    ".stack/upload",
    ".pub-cache/credentials.json",
    ".config/dart",
    ".julia/servers",
    ".luarocks",
    ".pause",
    ".Renviron",
    ".config/nix",
    ".config/cachix",
    // Keyrings and password managers.
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".electrum",
    ".bitcoin",
    ".ethereum",
    ".monero",
    // Browsers, mail, chats: the profile or the settings are enough to be logged in.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".local/share/TelegramDesktop",
    ".local/share/evolution",
    ".config/evolution",
    ".config/geary",
    ".local/share/geary",
    ".local/share/akonadi",
    ".config/Mailspring",
    ".claws-mail",
    ".msmtprc",
    ".config/msmtp",
    ".esmtprc",
    ".mailrc",
    ".mbsyncrc",
    ".config/isyncrc",
    ".offlineimaprc",
    ".config/offlineimap",
    ".fetchmailrc",
    ".getmail",
    ".config/getmail",
    ".muttrc",
    ".mutt",
    ".config/mutt",
    ".neomuttrc",
    ".config/neomutt",
    ".config/aerc",
    ".config/himalaya",
    ".pinerc",
    ".alpine.passfile",
    ".config/vdirsyncer",
    ".davmail.properties",
    ".config/protonmail",
    ".local/share/protonmail",
    ".var/app",
    "snap",
    // Other assistants, and their credentials for servers.
    ".claude",
    ".claude.json",
    ".config/claude",
    ".config/Claude",
    ".codex",
    ".gemini",
    ".antigravity",
    ".config/Antigravity",
    ".cursor",
    ".config/cursor",
    ".codeium",
    ".config/codeium",
    ".windsurf",
    ".kiro",
    ".config/Kiro",
    ".local/share/kiro-cli",
    ".local/share/amazon-q",
    ".trae",
    ".config/Trae",
    ".qwen",
    ".kimi",
    ".grok",
    ".cline",
    ".factory",
    ".augment",
    ".openhands",
    ".openclaw",
    ".open-interpreter",
    ".config/open-interpreter",
    ".tabnine",
    ".config/TabNine",
    ".config/sourcegraph",
    ".config/opencode",
    ".local/share/opencode",
    ".local/state/opencode",
    ".config/crush",
    ".local/share/crush",
    ".config/goose",
    ".local/share/goose",
    ".local/state/goose",
    ".config/amp",
    ".local/share/amp",
    ".config/io.datasette.llm",
    ".config/aichat",
    ".config/mods",
    ".local/share/mods",
    ".config/shell_gpt",
    ".config/gptme",
    ".local/share/gptme",
    ".config/fabric",
    ".mcp-auth",
    ".ollama",
    ".lmstudio",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".huggingface",
    ".kaggle",
    ".config/kaggle",
    ".config/anthropic",
    ".config/openai",
    ".copilot",
    ".config/github-copilot",
    ".continue",
    ".aider.conf.yml",
    ".aider",
    ".aider.input.history",
    ".aider.chat.history.md",
    // Editors: their state holds sessions, tokens of extensions, and what was open.
    ".config/Code",
    ".config/Code - Insiders",
    ".config/Code - OSS",
    ".config/VSCodium",
    ".config/Cursor",
    ".config/Windsurf",
    ".vscode/cli",
    ".vscode-cli",
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
    ".config/zed",
    ".local/share/zed",
    ".config/JetBrains",
    ".local/share/JetBrains",
    ".cache/JetBrains",
    ".config/sublime-text",
    ".config/sublime-text-3",
    ".viminfo",
    ".local/share/nvim/shada",
    ".local/state/nvim",
    // The session, and typed input.
    ".Xauthority",
    ".ICEauthority",
    ".bash_history",
    ".zsh_history",
    ".histfile",
    ".zhistory",
    ".history",
    ".sh_history",
    ".ksh_history",
    ".mksh_history",
    ".zsh_sessions",
    ".bash_sessions",
    ".local/state/bash",
    ".local/state/zsh",
    ".local/share/zsh",
    ".config/zsh/.zsh_history",
    ".config/nushell/history.txt",
    ".config/nushell/history.sqlite3",
    ".config/nushell/history.sqlite3-wal",
    ".config/nushell/history.sqlite3-shm",
    ".local/share/atuin",
    ".local/state/elvish",
    ".local/share/xonsh",
    ".local/share/mcfly",
    ".hishtory",
    ".local/share/powershell",
    ".local/share/fish",
    ".python_history",
    ".ipython",
    ".irb_history",
    ".pry_history",
    ".Rhistory",
    ".php_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".duckdb_history",
    ".mongodb",
    ".lesshst",
    // macOS.
    "Library/Keychains",
    "Library/Cookies",
    "Library/Safari",
    "Library/Messages",
    "Library/Mail",
    "Library/Accounts",
    "Library/Application Support/Google",
    "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/Code",
    "Library/Application Support/Code - Insiders",
    "Library/Application Support/VSCodium",
    "Library/Application Support/Cursor",
    "Library/Application Support/Windsurf",
    "Library/Application Support/Antigravity",
    "Library/Application Support/Kiro",
    "Library/Application Support/Trae",
    "Library/Application Support/Zed",
    "Library/Application Support/JetBrains",
    "Library/Application Support/Sublime Text",
    "Library/Application Support/Claude",
    "Library/Application Support/com.openai.chat",
    "Library/Application Support/Mailspring",
    "Library/Application Support/atuin",
    "Library/Application Support/nushell/history.txt",
    "Library/Application Support/nushell/history.sqlite3",
    "Library/Application Support/nushell/history.sqlite3-wal",
    "Library/Application Support/nushell/history.sqlite3-shm",
    "Library/Application Support/io.datasette.llm",
    "Library/Application Support/aichat",
    "Library/Application Support/mods",
    "Library/Application Support/pypoetry",
    "Library/Application Support/pip",
    "Library/Application Support/pdm",
    "Library/Application Support/hatch",
    "Library/Application Support/dart",
    "Library/Application Support/Coursier",
    "Library/Preferences/pypoetry",
    "Library/Preferences/pnpm",
    "Library/Thunderbird",
    "Library/Containers",
    "Library/Application Support/com.apple.TCC",
    "Library/Group Containers",
];

/// Files of the system that only root can read; some people run Reveille as root.
const OF_THE_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/wireguard",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/var/lib/systemd/credential.secret",
    "/var/spool/cron",
    "/var/spool/at",
    "/var/mail",
    "/var/spool/mail",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/log/journal",
];

/// System directories that look empty: their content belongs to other programs or leads to them (sockets of daemons).
pub(super) const COVERED: &[&str] = &["/run", "/var/run"];
/// System directories that look empty, with a private writable copy for the program.
pub(super) const PRIVATE: &[&str] = &["/tmp", "/var/tmp"];

/// Returns true for a path below a system directory that looks empty to a confined program.
pub fn looks_empty(path: &Path) -> bool {
    let is_below = |dir: &&str| path.parent().is_some_and(|parent| parent.starts_with(dir));
    COVERED.iter().chain(PRIVATE).any(is_below)
}

/// Maximum depth of the search for settings files below a granted root.
const ENV_DEPTH: usize = 3;
/// Maximum number of entries examined in that search.
const MAX_ENTRIES: usize = 10_000;

/// Returns the places of keys below a home directory, existing or not.
pub fn list_home_keys(home: &Path) -> impl Iterator<Item = PathBuf> {
    let home = home.to_owned();
    KEYS.iter().map(move |key| home.join(key))
}

/// Returns the places of keys of the system.
pub fn list_system_keys() -> Vec<PathBuf> {
    OF_THE_SYSTEM.iter().map(PathBuf::from).collect()
}

/// Returns a repository's `.git` path, and the directory that a `.git` file points to.
pub fn git_dirs(repo: &Path) -> Vec<PathBuf> {
    let git = repo.join(".git");
    let elsewhere = std::fs::read_to_string(&git).ok();
    let elsewhere = elsewhere.and_then(|text| Some(repo.join(text.strip_prefix("gitdir:")?.trim())));
    std::iter::once(git).chain(elsewhere).collect()
}

/// Finds the settings files (`.env` and its variants, without the examples) near the top of a granted root. Files
/// deeper than three directories aren't found, and files that the program creates later stay open to it.
pub(super) fn env_files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut level = vec![root.to_owned()];
    for _ in 0..=ENV_DEPTH {
        let mut below = Vec::new();
        for entry in level.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return found;
            }
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir {
                below.push(entry.path());
            } else if is_env_file(&entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            }
        }
        level = below;
    }
    found
}

fn is_env_file(name: &str) -> bool {
    const EXAMPLES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];
    match name.strip_prefix(".env") {
        Some("" | "rc") => true,
        Some(rest) => rest.starts_with('.') && !EXAMPLES.iter().any(|example| rest.contains(example)),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_from_their_examples() {
        for name in [".env", ".env.local", ".env.production", ".envrc"] {
            assert!(is_env_file(name), "{name}");
        }
        for name in [".env.example", ".env.sample", ".environment", "env", "x.env.rs", ".env.dist"] {
            assert!(!is_env_file(name), "{name}");
        }
    }

    #[test]
    fn settings_are_found_three_directories_down() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        std::fs::create_dir_all(deep.join("d")).unwrap();
        for file in [root.path().join(".env"), deep.join(".env.local"), deep.join("d/.env"), deep.join("readme")] {
            std::fs::write(file, "A=1").unwrap();
        }
        assert_eq!(env_files(root.path()), [root.path().join(".env"), deep.join(".env.local")]);
    }

    #[test]
    fn a_repository_whose_directory_is_elsewhere_has_two_places() {
        let repo = tempfile::tempdir().unwrap();
        assert_eq!(git_dirs(repo.path()), [repo.path().join(".git")]);
        std::fs::write(repo.path().join(".git"), "gitdir: /elsewhere/brain.git\n").unwrap();
        assert_eq!(git_dirs(repo.path()), [repo.path().join(".git"), PathBuf::from("/elsewhere/brain.git")]);
    }
}
