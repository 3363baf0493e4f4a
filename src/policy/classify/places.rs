//! Places of keys and of our own state, by name. The sandbox keeps them out of reach; a command that names one asks all the
//! same, so that a person sees the attempt.

/// Parts of paths, in lower case: some file systems don't mind the case.
const PARTS: [&str; 42] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".git-credentials",
    ".config/gh",
    ".config/gcloud",
    ".config/op",
    ".claude",
    ".codex",
    ".mozilla",
    ".thunderbird",
    "chrome/default",
    "login data",
    "cookies",
    "keychain",
    "keyring",
    ".local/share/kwalletd",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    ".pem",
    ".p12",
    ".kdbx",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/proc/",
    "messages.db",
    "policy.toml",
    ".wake-lock",
    ".vault-token",
    "_history",
    "authorized_keys",
];

/// Why a word that names such a place isn't harmless.
pub(in crate::policy) fn why(word: &str) -> Option<String> {
    let lower = word.to_lowercase().replace("//", "/").replace("/./", "/");
    let is_env_file = lower.rsplit(['/', '=', ':']).next().is_some_and(|name| {
        name.strip_prefix(".env").is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('.') && !matches!(rest, ".example" | ".sample" | ".template")
        })
    });
    if is_env_file || PARTS.iter().any(|part| lower.contains(part)) {
        return Some(format!("`{word}` names a place where keys or private state are kept."));
    }
    let device = lower.find("/dev/").and_then(|at| lower.get(at + 5..));
    device
        .filter(|name| !matches!(*name, "null" | "stdin" | "stdout" | "stderr"))
        .map(|_| format!("`{word}` is a device."))
}

/// Parts of a path that are never within a tool's reach, whatever is granted.
const PRIVATE: [&str; 20] = [
    ".git",
    ".env",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".password-store",
    ".git-credentials",
    ".claude",
    "policy.toml",
    "messages.db",
    "messages.db-wal",
    "messages.db-shm",
    ".wake-lock",
];

/// Whether a path is one that no tool may read or write. Not minding the case: neither do some file systems.
pub(in crate::policy) fn is_private(path: &str) -> bool {
    path.to_lowercase().split('/').any(|part| PRIVATE.contains(&part))
}
