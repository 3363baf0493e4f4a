# What the scripts share; sourced, not run. POSIX sh, so that macOS's old bash and Debian's dash both take it.
# shellcheck shell=sh

# The clone's own directory: every script starts there.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

# For people, on stderr: stdout is data.
say() { printf '%s\n' "$*" >&2; }

# A step's headline.
headline() { printf '\n==> %s\n' "$*" >&2; }

fail() {
    printf '\n%s: %s\n' "$(basename -- "$0")" "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether as_root can work without asking anything that nobody would answer.
can_be_root() {
    [ "$(id -u)" -eq 0 ] || { have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_install WHY PACKAGE...: installs Debian packages, or names the command that would.
apt_install() {
    why=$1
    shift
    if ! have apt-get; then
        fail "missing: $why. Install it with your system's package manager (Debian calls it: $*), then run this again."
    fi
    if ! can_be_root; then
        command="apt-get update && apt-get install -y $*"
        # A bare Debian has no sudo.
        if have sudo; then command="sudo sh -c '$command'"; else command="su -c '$command'"; fi
        fail "missing: $why. Only the administrator can install it. Run
    $command
then run this again."
    fi
    say "Installing $* with apt-get, for: $why."
    log=$(mktemp "${TMPDIR:-/tmp}/reveille-apt.XXXXXX")
    # An outdated list can still be good enough: only the installation decides.
    as_root apt-get update -qq >>"$log" 2>&1 || say "apt-get update failed; trying with the lists at hand."
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        fail "apt-get could not install $*. Its messages are above."
    fi
    rm -f "$log"
}

ensure_compiler() {
    if [ "$(uname -s)" = Darwin ]; then
        # /usr/bin/cc and git exist on every Mac, and only work with the command line tools.
        xcode-select -p >/dev/null 2>&1 || fail "the C compiler is missing. Run
    xcode-select --install
wait until it is done, then run this again."
    elif ! have cc; then
        apt_install "a C compiler (SQLite and libgit2 are built from source)" build-essential
    fi
}

# What whisper.cpp and libopus, the feature `voice`, are built with.
ensure_cmake() {
    if ! have c++ && [ "$(uname -s)" != Darwin ]; then
        apt_install "a C++ compiler (speech recognition is built from source)" build-essential
    fi
    have cmake && return 0
    if [ "$(uname -s)" = Darwin ] && have brew; then
        say "Installing cmake with Homebrew, for: speech recognition is built from source."
        brew install --quiet cmake >&2 || fail "Homebrew could not install cmake; its messages are above."
    else
        apt_install "cmake (speech recognition is built from source)" cmake
    fi
}

# ensure_build_tools [speech]: what the build needs of the system, Debian's all at once: each stop costs a person a round.
ensure_build_tools() {
    speech=${1-}
    find_cargo
    if have apt-get; then
        why=
        set --
        have git || { why="$why, git (it fetches and pushes the memory)" && set -- "$@" git; }
        have cc || { why="$why, a C compiler (SQLite and libgit2 are built from source)" && set -- "$@" build-essential; }
        [ -z "$speech" ] || have cmake || { why="$why, cmake (speech recognition)" && set -- "$@" cmake; }
        rust_is_good || have rustup || have curl || have wget || { why="$why, curl (it fetches Rust)" && set -- "$@" curl; }
        [ $# -eq 0 ] || apt_install "${why#, }" "$@" ca-certificates
    fi
    ensure_git
    ensure_compiler
    [ -z "$speech" ] || ensure_cmake
    ensure_rust
}

ensure_git() {
    have git || apt_install "git (it fetches and pushes the memory)" git ca-certificates
}

# What confines the programs that the assistant runs; macOS has its own.
ensure_bubblewrap() {
    have bwrap || [ "$(uname -s)" != Linux ] ||
        apt_install "bubblewrap (it confines the programs that the assistant runs)" bubblewrap
    [ "$(uname -s)" != Linux ] || bwrap --ro-bind / / --unshare-user --unshare-pid --unshare-net true 2>/dev/null ||
        say "bubblewrap is installed, but this system doesn't let it work (user namespaces are off, or a container forbids them).
Programs can't be confined here, so Reveille asks before it runs one."
}

# fetch URL FILE
fetch() {
    if have curl; then
        curl --proto '=https' --tlsv1.2 -fsSL --retry 3 -o "$2" "$1"
    else
        wget -q -O "$2" "$1"
    fi
}

# The oldest Rust that Cargo.toml allows, such as 1.95.
wanted_rust() { sed -n 's/^rust-version = "\([0-9.]*\)"$/\1/p' "$root/Cargo.toml"; }

# Whether the cargo and rustc at hand are both there and new enough.
rust_is_good() {
    have cargo && have rustc || return 1
    rustc --version 2>/dev/null | awk -v wanted="$(wanted_rust)" '
        { split($2, is, "."); split(wanted, must, ".")
          good = is[1] + 0 > must[1] + 0 || (is[1] + 0 == must[1] + 0 && is[2] + 0 >= must[2] + 0) }
        END { exit good ? 0 : 1 }'
}

install_rustup() {
    installer=$(mktemp "${TMPDIR:-/tmp}/rustup-init.XXXXXX")
    # Fetched whole before any of it runs. The person's shell profile is left as it is.
    if ! fetch https://sh.rustup.rs "$installer"; then
        rm -f "$installer"
        fail "rustup could not be fetched from https://sh.rustup.rs. Is the network up? Nothing was installed."
    fi
    if ! sh "$installer" -y --quiet --profile minimal --default-toolchain stable --no-modify-path >&2; then
        rm -f "$installer"
        fail "rustup could not install Rust; what it said is above."
    fi
    rm -f "$installer"
}

# Where rustup puts its programs, which no shell may know yet.
find_cargo() {
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
    export PATH
}

ensure_rust() {
    find_cargo
    rust_is_good && return 0
    if have rustup; then
        say "Rust is missing or older than $(wanted_rust): getting the current stable one through rustup."
        rustup toolchain install stable --profile minimal >&2 || fail "rustup could not install Rust; what it said is above."
        # A directory or person may have chosen another toolchain as the default: this run uses the new one.
        RUSTUP_TOOLCHAIN=stable
        export RUSTUP_TOOLCHAIN
    else
        say "Rust $(wanted_rust) or newer is missing: getting it through rustup (https://rustup.rs) into ~/.cargo and ~/.rustup."
        have curl || have wget || apt_install "curl (it fetches rustup)" curl ca-certificates
        install_rustup
    fi
    hash -r 2>/dev/null || true
    rust_is_good || fail "Rust $(wanted_rust) or newer is needed; $(rustc --version 2>/dev/null || echo 'no rustc') was found."
}

# ensure_component NAME PROGRAM: a part of the toolchain that a minimal one lacks.
ensure_component() {
    "$2" --version >/dev/null 2>&1 && return 0
    have rustup || fail "$1 is missing, and without rustup this script can't install it. Install your system's package."
    say "Getting $1 through rustup."
    rustup component add "$1" >&2 || fail "rustup could not add $1; what it said is above."
}

# Where cargo puts what it builds.
target_dir() {
    case ${CARGO_TARGET_DIR:-target} in
        /*) printf '%s\n' "$CARGO_TARGET_DIR" ;;
        *) printf '%s\n' "$root/${CARGO_TARGET_DIR:-target}" ;;
    esac
}

# The workspace that the programs find by themselves: the environment's, else the default.
workspace() {
    case ${WORKSPACE_DIR-} in
        '') printf '%s\n' "${XDG_DATA_HOME:-$HOME/.local/share}/reveille" ;;
        \~/*) printf '%s\n' "$HOME/${WORKSPACE_DIR#\~/}" ;;
        *) printf '%s\n' "$WORKSPACE_DIR" ;;
    esac
}

# offer_links BIN: lets the programs in BIN be called by their names. On a terminal it asks; else it names the command. What is
# installed already, or is another program of that name, stays.
offer_links() {
    bin=$1
    dir=$HOME/.local/bin
    set --
    for name in wake bot health reveille-embedder reveille-pdf reveille-transcriber; do
        # As with -nt: every sh that we meet has -ef.
        # shellcheck disable=SC3013
        if [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/$name" ] || [ "$dir/$name" -ef "$bin/$name" ]; then
            continue
        elif [ -e "$dir/$name" ]; then
            say "$dir/$name is another program and stays; this one is $bin/$name"
        else
            set -- "$@" "$bin/$name"
        fi
    done
    [ $# -gt 0 ] || return 0
    answer=no
    if [ -t 0 ] && [ -t 2 ]; then
        printf '\nLink the programs into %s, so that wake, bot and health can be called by name? [Y/n] ' "$dir" >&2
        read -r answer || answer=no
    fi
    case $answer in
        '' | [Yy]*)
            mkdir -p "$dir"
            ln -sf "$@" "$dir/"
            ;;
        *)
            say ""
            say "To call the programs by name:"
            say "  mkdir -p '$dir' && ln -sf$(printf " '%s'" "$@") '$dir/'"
            ;;
    esac
    case :$PATH: in
        *:"$dir":*) ;;
        *) say "$dir isn't on your PATH yet. Add it, and open a new terminal:
  echo 'export PATH=\"\$HOME/.local/bin:\$PATH\"' >> ~/.profile" ;;
    esac
}

# find_program NAME: this clone's build, the newest if there are two, else what `cargo install` or a person put in place.
find_program() {
    built=$(target_dir)
    set -- "$1" "$built/release/$1" "$built/quick/$1"
    # Tests with -nt are in every sh that we meet, if not in the old standard.
    # shellcheck disable=SC3013
    if [ "$3" -nt "$2" ]; then set -- "$1" "$3" "$2"; fi
    for candidate in "$2" "$3" "${CARGO_HOME:-$HOME/.cargo}/bin/$1" "$HOME/.local/bin/$1"; do
        if [ -x "$candidate" ]; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    fail "$1 isn't built yet. Run $root/scripts/run once."
}

# What cron gives programs is little: a path with git in it, whoever starts us.
explicit_path() {
    PATH=/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin
    export PATH
}

# Whether voice notes are to be understood: what is built for it takes as long as all the rest.
wants_voice() {
    [ -n "${WHISPER_MODEL-}" ] || { [ -r "$(workspace)/.env" ] && grep -q '^ *WHISPER_MODEL *=.' "$(workspace)/.env"; }
}

# Tells the build which commit it is, for --version; a tarball has none.
say_commit() {
    REVEILLE_COMMIT=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || true)
    export REVEILLE_COMMIT
}
