//! A PostgreSQL server for one run of the tests, from the system's package: in a temporary directory, without a network. Each test gets its
//! own schema, which the programs see as a database. The server ends with the process that runs the tests.
//!
//! The store's own tests use it too.

#![expect(clippy::disallowed_methods, reason = "what tests start isn't bounded by the programs' rules")]

use std::{
    fs,
    io::Write as _,
    os::unix::process::parent_id,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

use fs2::FileExt as _;

/// The directory with the packages' programs, by version.
const PACKAGES: &str = "/usr/lib/postgresql";
/// The user for the server, which refuses to run as root.
const USER: &str = "postgres";

/// The text that `psql` prints for NULL.
pub(crate) const NULL: &str = "∅";

/// Definitions of the SQLite functions that the tests' queries use and PostgreSQL lacks.
const FUNCTIONS: &str = "
CREATE SCHEMA asked;
CREATE FUNCTION asked.joined(sofar TEXT, value ANYELEMENT, mark TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql AS $$
    SELECT CASE WHEN value IS NULL THEN sofar ELSE coalesce(sofar || mark, '') || value::text END
$$;
CREATE FUNCTION asked.joined(sofar TEXT, value ANYELEMENT) RETURNS TEXT IMMUTABLE LANGUAGE sql AS $$
    SELECT asked.joined(sofar, value, ',')
$$;
CREATE AGGREGATE asked.group_concat(ANYELEMENT) (SFUNC = asked.joined, STYPE = TEXT);
CREATE AGGREGATE asked.group_concat(ANYELEMENT, TEXT) (SFUNC = asked.joined, STYPE = TEXT);
CREATE AGGREGATE asked.json_group_array(ANYELEMENT) (SFUNC = json_agg_transfn, STYPE = INTERNAL, FINALFUNC = json_agg_finalfn);
CREATE FUNCTION asked.added(sofar NUMERIC, value TEXT) RETURNS NUMERIC IMMUTABLE LANGUAGE sql AS $$
    SELECT sofar + coalesce(value, '0')::numeric
$$;
CREATE AGGREGATE asked.sum(TEXT) (SFUNC = asked.added, STYPE = NUMERIC, INITCOND = '0');
CREATE FUNCTION asked.refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as if broken'; END $$;
";

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// Creates a schema and returns its address; `None` without PostgreSQL.
pub(crate) fn new_database() -> Option<String> {
    // The time makes the name unique, since process ids are reused.
    let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("t{}_{}_{moment}", std::process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
    ask(&format!("CREATE SCHEMA {name}"), "public")?;
    let socket = running()?.display().to_string().replace('/', "%2F");
    Some(format!("postgres://{USER}@{socket}/postgres?options=-csearch_path%3D{name}"))
}

/// Creates a real database, for tests that create their own schemas, and returns its address; `None` without PostgreSQL.
pub(crate) fn new_server_database() -> Option<String> {
    let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("d{}_{moment}", std::process::id());
    let (bin, socket) = (programs()?, running()?);
    run(Command::new(bin.join("createdb")).arg("-h").arg(&socket).args(["-U", USER, &name]));
    Some(format!("postgres://{USER}@{}/{name}", socket.display().to_string().replace('/', "%2F")))
}

/// Runs a statement in a database as a role. Returns the server's answer or its error.
pub(crate) fn ask_as(role: &str, url: &str, sql: &str) -> Result<String, String> {
    let database = url.rsplit('/').next().unwrap();
    let mut command = Command::new(programs().unwrap().join("psql"));
    command.arg("-h").arg(running().unwrap()).args(["-U", role, "-d", database, "-qXAt", "-c", sql]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Runs statements and returns the answer as text; `None` without PostgreSQL.
pub(crate) fn ask(sql: &str, schema: &str) -> Option<String> {
    Some(psql(&programs()?, &running()?, &format!("SET search_path = {schema}, asked;\n{sql}")))
}

/// Runs a script in one transaction and returns its answer.
fn psql(bin: &Path, socket: &Path, script: &str) -> String {
    let mut command = Command::new(bin.join("psql"));
    command.arg("-h").arg(socket).args(["-U", USER, "-qXAt", "-v", "ON_ERROR_STOP=1", "-P", &format!("null={NULL}")]);
    let mut asked = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    asked.stdin.take().unwrap().write_all(format!("BEGIN;\n{script}\n;COMMIT").as_bytes()).unwrap();
    let output = asked.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
}

fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> =
        fs::read_dir(PACKAGES).ok()?.flatten().map(|entry| entry.path().join("bin")).collect();
    versions.retain(|bin| bin.join("initdb").exists());
    versions.sort();
    versions.pop()
}

/// The directory of the server's socket. The first test starts the server; the directory is named after the parent process, which all
/// tests of a run share.
fn running() -> Option<PathBuf> {
    let bin = programs()?;
    let dir = std::env::temp_dir().join(format!("reveille-postgres-{}", parent_id()));
    let lock = fs::File::create(dir.with_extension("lock")).unwrap();
    lock.lock_exclusive().unwrap();
    if !dir.join("ready").exists() || !is_up(&dir) {
        fs::remove_dir_all(&dir).ok();
        fs::create_dir(&dir).unwrap();
        if is_root() {
            run(Command::new("chown").arg(USER).arg(&dir));
        }
        let data = dir.join("data");
        initialise(&bin, &data);
        start(&bin, &dir, "-c fsync=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=64MB");
        psql(&bin, &dir, FUNCTIONS);
        stop_when_process_ends(parent_id(), &dir);
        fs::write(dir.join("ready"), "").unwrap();
    }
    Some(dir)
}

/// Returns whether the server's process still runs: everything may have been killed, and the parent's id may have been reused.
fn is_up(dir: &Path) -> bool {
    let known = fs::read_to_string(dir.join("data/postmaster.pid")).unwrap_or_default();
    let pid = known.lines().next().and_then(|line| line.parse().ok()).and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

fn initialise(bin: &Path, data: &Path) {
    // Splits the write-ahead log into segments of a megabyte, since one of the servers has a small disk.
    let args = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--wal-segsize=1", "-U", USER, "-D"];
    run(as_user(&bin.join("initdb")).args(args).arg(data));
}

fn start(bin: &Path, dir: &Path, more: &str) {
    let options = format!("-k {} -c listen_addresses= {more}", dir.display());
    let mut command = as_user(&bin.join("pg_ctl"));
    command.arg("-D").arg(dir.join("data")).arg("-l").arg(dir.join("log"));
    run(command.args(["-w", "-o", &options, "start"]));
}

/// A server for a single test, which may damage it. Unlike the shared server, it syncs its writes to the disk.
pub(crate) struct OwnServer {
    bin: PathBuf,
    dir: PathBuf,
}

impl OwnServer {
    /// Starts a server in this directory, which is created if necessary; `None` without PostgreSQL.
    pub(crate) fn start(dir: PathBuf) -> Option<Self> {
        let bin = programs()?;
        fs::create_dir_all(&dir).unwrap();
        if is_root() {
            run(Command::new("chown").arg(USER).arg(&dir));
        }
        initialise(&bin, &dir.join("data"));
        let server = Self { bin, dir };
        server.start_again();
        Some(server)
    }

    /// A new path that the server's user can reach.
    pub(crate) fn place() -> PathBuf {
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("reveille-postgres-own-{}-{number}", std::process::id()))
    }

    /// The address of the server's only database.
    pub(crate) fn url(&self) -> String {
        format!("postgres://{USER}@{}/postgres", self.dir.display().to_string().replace('/', "%2F"))
    }

    pub(crate) fn start_again(&self) {
        start(&self.bin, &self.dir, "-c shared_buffers=8MB -c max_wal_size=4MB -c min_wal_size=2MB");
    }

    /// Restarts the stopped server so that it also listens on a port of loopback. With a certificate and its key, it requires TLS and a
    /// password. Without, it accepts everybody in plain text.
    pub(crate) fn listen(&self, port: u16, encrypted_by: Option<(&Path, &Path)>) {
        let data = self.dir.join("data");
        let mut more = format!("-c shared_buffers=8MB -c listen_addresses=127.0.0.1 -p {port}");
        if let Some((certificate, key)) = encrypted_by {
            for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
                let to = data.join(name);
                run(Command::new("install").args(["-m", "600", "-o", &owner(&data)]).arg(from).arg(&to));
            }
            more.push_str(" -c ssl=on");
        }
        let how = if encrypted_by.is_some() {
            "hostssl all all 127.0.0.1/32 scram-sha-256"
        } else {
            "host all all 127.0.0.1/32 trust"
        };
        fs::write(data.join("pg_hba.conf"), format!("local all all trust\n{how}\n")).unwrap();
        start(&self.bin, &self.dir, &more);
    }

    /// Stops the server: `immediate` is like killing all its processes, `fast` is an administrator's way. Returns whether it was running.
    pub(crate) fn stop(&self, mode: &str) -> bool {
        let mut command = as_user(&self.bin.join("pg_ctl"));
        command.arg("-D").arg(self.dir.join("data")).args(["-w", "-m", mode, "stop"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Runs statements and returns the answer.
    pub(crate) fn ask(&self, sql: &str) -> String {
        psql(&self.bin, &self.dir, sql)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.stop("immediate");
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// The user id of a file's owner.
fn owner(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).unwrap().uid().to_string()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn as_user(program: &Path) -> Command {
    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
            command
        }
        false => Command::new(program),
    };
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn run(command: &mut Command) {
    // A server keeps inherited files open, so it gets none of the test's.
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(done.success(), "{command:?}");
}

/// Starts a process that ends the server once the parent is gone: no test knows whether it is the last.
fn stop_when_process_ends(parent: u32, dir: &Path) {
    let dir = dir.display();
    let script = format!(
        "while kill -0 {parent}; do sleep 1; done; kill -QUIT $(head -n 1 {dir}/data/postmaster.pid); sleep 1; \
         rm -rf {dir} {dir}.lock"
    );
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(command.spawn().unwrap());
}
