//! The names of files and folders that hold keys or our own state. The sandbox keeps them out of reach. Still, a command that names one
//! needs approval, so that a person sees the attempt.

use reveille_base::disk;

/// Parts of paths to keys or private state. They are in lower case, since some file systems ignore case.
const PARTS: [&str; 45] = [
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
    "mcp.toml",
    "mcp-pins",
    "mcp-token",
    ".wake-lock",
    ".vault-token",
    "_history",
    "authorized_keys",
];

/// Names of sensitive files that count even without their folder, since an earlier `cd` may have entered it.
const NAMES: [&str; 5] = ["shadow", "gshadow", "sudoers", "environ", "credentials"];

/// Returns the reason to ask for approval, if the word names such a place.
pub(crate) fn find_sensitive_place(word: &str) -> Option<String> {
    let lower = word.to_lowercase().replace("//", "/").replace("/./", "/");
    // An option's value may follow its letter directly.
    let value = lower.strip_prefix('-').map_or(lower.as_str(), |rest| rest.get(1..).unwrap_or_default());
    let last = |text: &str| text.rsplit(['/', '=', ':']).next().unwrap_or_default().to_owned();
    let is_named = [last(&lower), last(value)].iter().any(|name| is_env_file(name) || is_sensitive_name(&lower, name));
    if is_named || PARTS.iter().any(|part| lower.contains(part)) {
        return Some(format!("`{word}` names a place where keys or private state are kept."));
    }
    let device = lower.find("/dev/").and_then(|at| lower.split_at_checked(at));
    device
        .filter(|(before, name)| is_root(before, &lower) && !NULL.contains(name))
        .map(|_| format!("`{word}` is a device."))
}

/// Devices that hold no data.
const NULL: [&str; 4] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Returns `true` if the text before a part of a path may stand for the root directory: it is empty or an option, or the path goes up.
fn is_root(before: &str, word: &str) -> bool {
    let before = before.rsplit(['=', ':']).next().unwrap_or_default();
    word.contains("..") || before.trim_matches(['.', '/']).is_empty() || before.len() == 2 && before.starts_with('-')
}

fn is_env_file(name: &str) -> bool {
    name.strip_prefix(".env").is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') && !matches!(rest, ".example" | ".sample" | ".template")
    })
}

/// Recognises sensitive names; `dev` and `proc` count only at the root.
fn is_sensitive_name(word: &str, name: &str) -> bool {
    match (name, word.strip_suffix(name).and_then(|word| word.strip_suffix('/'))) {
        ("dev" | "proc", before) => before.is_some_and(|before| is_root(before, word)),
        _ => NAMES.contains(&name),
    }
}

/// Parts of paths that no tool may reach, whatever folders are granted.
const PRIVATE: [&str; 24] = [
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
    "mcp.toml",
    "mcp-pins",
    "mcp-token",
    ".live",
    "messages.db",
    "messages.db-wal",
    "messages.db-shm",
    ".wake-lock",
];

/// Returns `true` if a path leads to keys or to our own state, in any spelling that a file system may accept ([`disk::fold_name`]). No tool
/// reads or writes those, whatever is granted.
pub fn is_private(path: &str) -> bool {
    disk::fold_name(path).split('/').any(|part| PRIVATE.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_private_name_is_private() {
        for path in [
            ".ssh/config",
            "a/.SSH",
            "/home/me/.ſsh/id",
            ".SſH/x",
            "brain/.Git/hooks",
            "mesſages.db",
            "x/POLICY.toml",
            "x/.g\u{fe0f}it/hooks",
        ] {
            assert!(is_private(path), "{path}");
        }
        for path in ["ssh", ".sshd/x", "notes/messages.db.md", "straße/.gitignore"] {
            assert!(!is_private(path), "{path}");
        }
    }
}
