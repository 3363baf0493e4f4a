//! Many assistants on one machine: their turns, what Telegram brings for them, and that none reaches another.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    sandbox::world::probe,
    support::story::wait_for_request,
    support::{
        claude::{API_KEY, Block, FakeClaude, Reply},
        database::Database,
        env::{CHAT, ProgramOutput, Running, TestEnv, eventually, sandbox_visible_dir},
        http::Gate,
        telegram::{FakeTelegram, TOKEN},
    },
};

/// What only one of them may know: it stands in its settings, its messages and its memory.
const BENS: &str = "bens-own-canary-7431";

/// A fleet's folder, beside nobody's home.
struct World {
    env: TestEnv,
    telegrams: Vec<(String, FakeTelegram)>,
}

impl World {
    fn new() -> Self {
        let mut env = TestEnv::within(&sandbox_visible_dir());
        // Each assistant has settings of its own; whoever runs the fleet has none.
        env.unset("WORKSPACE_DIR").unset("REVEILLE_NOW").unset("DATABASE_URL");
        Self { env, telegrams: Vec::new() }
    }

    fn dir(&self) -> PathBuf {
        self.env.path("fleet")
    }

    fn workspace(&self, name: &str) -> PathBuf {
        self.dir().join("assistants").join(name)
    }

    /// The store of one of them.
    fn database(&self, name: &str) -> Database {
        Database::in_file(self.workspace(name).join("messages.db"))
    }

    /// The turn of one of them has come, whenever it was to come.
    fn make_due(&self, name: &str) {
        self.list().execute(&format!("UPDATE assistants SET due_at = added_at WHERE name = '{name}'"));
    }

    /// Nobody has shown life for so long that others may take the turns of all.
    fn expire_claims(&self) {
        self.list().execute("UPDATE assistants SET claimed_until = added_at");
    }

    fn list(&self) -> Database {
        Database::in_file(self.dir().join("fleet.db"))
    }

    /// The command behind `wake fleet`, about this fleet.
    fn fleet(&self, command: &str, more: &[&str]) -> ProgramOutput {
        let dir = self.dir().display().to_string();
        self.env.wake(&[&["fleet", command, &dir], more].concat())
    }

    fn add(&self, name: &str, settings: &str) {
        let file = self.env.path(&format!("{name}.env"));
        let usual = "TIMEZONE=Europe/Berlin\nQUIET_HOURS=none\nREFLECT_AT=none\n";
        fs::write(&file, format!("{usual}{settings}")).unwrap();
        self.fleet("add", &[name, "--env", &file.display().to_string()]).ok();
    }

    /// Adds an assistant with a Telegram of its own, whose updates come by the webhook.
    fn add_heard(&mut self, name: &str, settings: &str) {
        let telegram = FakeTelegram::start();
        let heard = format!(
            "TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_API_URL={}\nALLOWED_CHAT_IDS={CHAT},{},{}\n",
            telegram.url(),
            CHAT + 1,
            CHAT + 2
        );
        self.add(name, &format!("{heard}{settings}"));
        self.fleet("connect", &[name, "--url", "https://bots.example.org/"]).ok();
        self.telegrams.push((name.to_owned(), telegram));
    }

    fn telegram(&self, name: &str) -> &FakeTelegram {
        &self.telegrams.iter().find(|(of, _)| of == name).unwrap().1
    }

    /// The secret that Telegram was last told.
    fn secret(&self, name: &str) -> String {
        let told = self.telegram(name).calls("setWebhook").pop().unwrap();
        assert_eq!(told["url"], format!("https://bots.example.org/telegram/{name}"));
        assert_eq!(told["max_connections"], 1);
        told["secret_token"].as_str().unwrap().to_owned()
    }

    /// Leaves an update where the receiver would.
    fn leave(&self, name: &str, update: &str) {
        let inbox = self.workspace(name).join("inbox");
        fs::create_dir_all(&inbox).unwrap();
        let waiting = fs::read_dir(&inbox).unwrap().count();
        fs::write(inbox.join(format!("{waiting:04}.json")), update).unwrap();
    }

    /// Works until nobody is due.
    fn work(&self, slots: &str) -> ProgramOutput {
        self.env.wake(&["--fleet", &self.dir().display().to_string(), "--once", "--workers", slots])
    }

    /// As the person of one of them, outside its box.
    fn as_one(&self, name: &str, args: &[&str]) -> ProgramOutput {
        let mut command = self.env.command(env!("CARGO_BIN_EXE_wake"), args);
        ProgramOutput::of(&command.env("WORKSPACE_DIR", self.workspace(name)).output().unwrap())
    }

    fn members(&self) -> Vec<Value> {
        let listed = self.fleet("list", &["--json"]).ok().stdout;
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn remembers(&self, name: &str, what: &str) -> bool {
        let facts = self.workspace(name).join("brain/memory/agent-memory/semantic-memory.md");
        fs::read_to_string(facts).is_ok_and(|facts| facts.contains(what))
    }
}

/// The receiver, and where it listens.
struct Receiver {
    running: Running,
    port: u16,
}

impl Receiver {
    fn start(world: &World) -> Self {
        Self::start_with(world, &[])
    }

    fn start_with(world: &World, more: &[&str]) -> Self {
        let log = world.env.path("receiver.log");
        fs::write(world.dir().join(".env"), "REVEILLE_LOG=info\n").unwrap();
        let dir = world.dir().display().to_string();
        let args = [&["--webhook", "0", "--fleet", &*dir], more].concat();
        let running = world.env.start_logged(env!("CARGO_BIN_EXE_bot"), &args, &log);
        let mut port = None;
        eventually("the receiver listens", || {
            port = fs::read_to_string(&log)
                .unwrap()
                .split("port=")
                .nth(1)
                .and_then(|rest| rest.lines().next()?.parse().ok());
            port.is_some()
        });
        Self { running, port: port.unwrap() }
    }

    /// What it answers to an update: a status.
    fn post(&self, name: &str, secret: &str, body: &str) -> u16 {
        let mut stream = self.begin(name, secret, body.len());
        // It may answer, and close, before it has read the whole body.
        stream.write_all(body.as_bytes()).ok();
        status_of(stream)
    }

    /// Begins an update of so many bytes.
    fn begin(&self, name: &str, secret: &str, bytes: usize) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!(
            "POST /telegram/{name} HTTP/1.1\r\nHost: bots.example.org\r\nX-Telegram-Bot-Api-Secret-Token: {secret}\r\n\
             Content-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n",
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn end(self) {
        self.running.signal(Signal::TERM);
        assert_eq!(self.running.end().code, 0);
    }
}

/// What is answered to a request: a status.
fn status_of(mut stream: TcpStream) -> u16 {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok();
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer:?}")).parse().unwrap()
}

/// Settings of one who thinks with this.
fn with_claude(claude: &FakeClaude) -> String {
    format!("MODEL=claude-sonnet-5-5\nANTHROPIC_API_KEY={API_KEY}\nANTHROPIC_BASE_URL={}\n", claude.url())
}

/// Makes the turn of all due, in the fleet's list on a server.
#[cfg(feature = "postgres")]
fn make_due_on(server: &super::support::postgres::OwnServer) {
    server.ask("UPDATE reveille_fleet.assistants SET due_at = added_at");
}

/// The number of assistants that nobody works on, and that never failed, in the fleet's list on a server.
#[cfg(feature = "postgres")]
fn count_well_on(server: &super::support::postgres::OwnServer) -> String {
    server.ask("SELECT count(*) FROM reveille_fleet.assistants WHERE claimed_by IS NULL AND failures = 0")
}

fn said(update_id: i64, text: &str) -> String {
    json!({"update_id": update_id, "message": {"message_id": update_id, "date": 1_795_000_000, "text": text,
        "from": {"id": CHAT, "is_bot": false, "first_name": "Ana"},
        "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}}})
    .to_string()
}

#[test]
fn all_who_are_due_have_their_turn_and_then_rest() {
    let world = World::new();
    for name in ["ana", "ben", "cleo"] {
        world.add(name, "");
    }
    assert_eq!(world.members().len(), 3);
    world.work("2").ok();
    for member in world.members() {
        assert_eq!((member["is_at_work"].clone(), member["failures"].clone()), (json!(false), json!(0)), "{member}");
        assert!(member["due_at"].as_str() > member["taken_at"].as_str(), "{member}");
    }
    // A reminder of one of them is due before its rest is over.
    world.as_one("ben", &["remind", "stretch", "--at", "in 20 minutes"]).ok();
    world.make_due("ben");
    world.work("1").ok();
    let due = |name: &str| world.members().into_iter().find(|member| member["name"] == name).unwrap()["due_at"].clone();
    assert!(due("ben").as_str() < due("ana").as_str());
    let again = world.fleet("add", &["ana"]).ok();
    assert!(again.stdout.contains("existed already"), "{again:#?}");
}

#[test]
fn what_isnt_right_is_said_and_nobody_runs() {
    let world = World::new();
    let none = world.work("1");
    none.assert_fails(2, "isn't a fleet");
    fs::create_dir(world.dir()).unwrap();
    let none = world.work("1");
    none.assert_fails(2, "isn't a fleet");
    assert_eq!(world.fleet("add", &["../ben"]).code, 2);
    world.add("ana", "");
    assert_eq!(world.fleet("remove", &["ben"]).code, 2);
    let unheard = world.fleet("connect", &["ana", "--url", "https://bots.example.org"]);
    unheard.assert_fails(78, "TELEGRAM_BOT_TOKEN");
    let nobody = world.fleet("run", &["ben", "log"]);
    nobody.assert_fails(2, "isn't in this fleet");
    // Settings that are wrong hold up their assistant alone.
    world.add("ben", "DAILY_BUDGET_USD=much\n");
    world.work("2").ok();
    let members = world.members();
    assert_eq!((members[0]["failures"].clone(), members[1]["failures"].clone()), (json!(0), json!(1)));
    assert!(members[1]["trouble"].as_str().unwrap().contains("78"), "{members:?}");
    // Settings that lead elsewhere lead nowhere, also when it is the person who runs the fleet that asks.
    let secret = world.env.path("secret");
    fs::write(&secret, TOKEN).unwrap();
    fs::write(world.workspace("ben").join(".env"), format!("TELEGRAM_BOT_TOKEN_FILE={}\n", secret.display())).unwrap();
    for refused in
        [world.fleet("run", &["ben", "--once"]), world.fleet("connect", &["ben", "--url", "https://b.example.org"])]
    {
        refused.assert_fails(78, "TELEGRAM_BOT_TOKEN_FILE");
    }
    let told = world.fleet("run", &["ana", "say", "remember that box 1 is blue"]).ok();
    assert!(told.stdout.contains("box 1 is blue"), "{told:#?}");
    world.fleet("remove", &["ben"]).ok();
    assert!(world.members().len() == 1 && world.workspace("ben").join(".env").exists());
}

#[test]
fn each_is_answered_by_its_own_assistant_and_nothing_is_said_twice() {
    let mut world = World::new();
    world.add_heard("ana", "");
    world.add_heard("ben", "");
    let receiver = Receiver::start(&world);
    let (ana, ben) = (world.secret("ana"), world.secret("ben"));
    assert_eq!(receiver.post("ana", &ana, &said(10, "remember that the shed is red")), 200);
    assert_eq!(receiver.post("ben", &ben, &said(70, "/status")), 200);
    let answers = world.telegram("ana").wait_for_sent(1, std::time::Duration::from_secs(60));
    assert!(answers[0].visible.contains("the shed is red"), "{answers:#?}");
    let answers = world.telegram("ben").wait_for_sent(1, std::time::Duration::from_secs(60));
    assert!(answers[0].visible.contains("Idle"), "{answers:#?}");
    assert!(world.remembers("ana", "The shed is red") || world.remembers("ana", "the shed is red"));
    // The answer 200 was lost on its way: Telegram brings it again.
    assert_eq!(receiver.post("ana", &ana, &said(10, "remember that the shed is red")), 200);
    assert_eq!(receiver.post("ana", &ana, &said(11, "remember that the door is green")), 200);
    eventually("both are taken in", || {
        world.remembers("ana", "door is green")
            && fs::read_dir(world.workspace("ana").join("inbox")).unwrap().count() == 0
    });
    world.telegram("ana").wait_for_sent(2, std::time::Duration::from_secs(60));
    receiver.end();
    assert_eq!((world.telegram("ana").sent().len(), world.telegram("ben").sent().len()), (2, 1));
    assert!(world.telegram("ana").calls("getUpdates").is_empty());
}

#[test]
fn the_receiver_takes_only_what_telegram_brings_and_keeps_it_before_it_says_so() {
    let mut world = World::new();
    world.add_heard("ana", "");
    world.add_heard("ben", "");
    let receiver = Receiver::start(&world);
    let (ana, ben) = (world.secret("ana"), world.secret("ben"));
    let good = said(10, "remember that box 1 is blue");
    // Without the secret, with another's, for nobody: one answer.
    for (name, secret) in [("ana", ""), ("ana", "guess"), ("ana", &*ben), ("nobody", &*ana), ("..%2Fana", &*ana)] {
        assert_eq!(receiver.post(name, secret, &good), 401, "{name} {secret}");
    }
    for (body, status) in [("", 400), ("{\"update_id\": 1", 400), ("[]", 400), (&*"x".repeat(2 << 20), 413)] {
        assert_eq!(receiver.post("ana", &ana, body), status, "{}", body.get(..20).unwrap_or(body));
    }
    assert!(!world.workspace("ana").join("inbox").exists());
    // A new secret puts the old one out of force.
    world.fleet("connect", &["ben", "--url", "https://bots.example.org"]).ok();
    assert_eq!(receiver.post("ben", &ben, &good), 401);
    assert_eq!(receiver.post("ben", &world.secret("ben"), &said(3, "/status")), 200);
    // Killed right after it said yes: what it took is there, and the next worker finds it.
    assert_eq!(receiver.post("ana", &ana, &good), 200);
    receiver.running.signal(Signal::KILL);
    receiver.running.end();
    eventually("no worker of its runs any more", || world.members().iter().all(|member| member["is_at_work"] == false));
    world.work("2").ok();
    assert!(world.remembers("ana", "ox 1 is blue"));
    assert_eq!(world.telegram("ana").sent().len(), 1);
    // No inbox can be made: Telegram keeps it.
    world.fleet("remove", &["ben"]).ok();
    let receiver = Receiver::start(&world);
    assert_eq!(receiver.post("ben", &world.secret("ben"), &good), 401);
    let inbox = world.workspace("ana").join("inbox");
    fs::remove_dir_all(&inbox).unwrap();
    // Nor is anything written through a link that its assistant has put there.
    fs::create_dir_all(world.workspace("ben").join("inbox")).unwrap();
    std::os::unix::fs::symlink("../ben/inbox", &inbox).unwrap();
    assert_eq!(receiver.post("ana", &ana, &said(20, "hello")), 503);
    assert_eq!(fs::read_dir(world.workspace("ben").join("inbox")).unwrap().count(), 0);
    fs::remove_file(&inbox).unwrap();
    fs::write(&inbox, "in the way").unwrap();
    assert_eq!(receiver.post("ana", &ana, &said(20, "hello")), 503);
    receiver.end();
}

#[test]
fn a_noisy_one_keeps_nobody_waiting() {
    let mut world = World::new();
    let claude = FakeClaude::start();
    claude.answer_with(|_| Reply::text("Well."));
    for name in ["noisy", "quiet"] {
        world.add_heard(name, &with_claude(&claude));
    }
    for (name, count) in [("noisy", 6), ("quiet", 1)] {
        for n in 0..count {
            let text = said(100 + n, &format!("what do you think of {n}?"));
            // Three people speak to it at once, each a cycle.
            world.leave(name, &text.replace(&CHAT.to_string(), &(CHAT + n % 3).to_string()));
        }
    }
    // One slot: a cycle of the noisy one, then the quiet one, then the noisy one's rest.
    world.work("1").ok();
    let began = |name: &str| {
        let mut began: Vec<String> = world.database(name).cycles().into_iter().map(|cycle| cycle.started_at).collect();
        began.sort();
        [began[0].clone(), began.pop().unwrap()]
    };
    let all = ["noisy", "quiet"].map(began);
    assert!(all[0][0] < all[1][0] && all[1][1] < all[0][1], "{all:?}");
}

#[test]
fn assistants_whose_models_never_answer_keep_nobody_waiting() {
    let mut world = World::new();
    let (claude, gate) = (FakeClaude::start(), Gate::default());
    let silent = ["ann", "bob", "cid"];
    for name in silent {
        world.add_heard(name, &with_claude(&claude));
        world.leave(name, &said(10, "what do you think?"));
        claude.expect(Reply::text("At last.").stalled_after(1, &gate));
    }
    // And one whose model is a program that only sleeps.
    let program = world.env.path("sleeper");
    fs::create_dir_all(world.dir().join("shared")).unwrap();
    let sleeper = world.dir().join("shared/sleeper");
    fs::write(&program, "#!/bin/sh\nexec sleep 300\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&program, &sleeper).unwrap();
    let model = format!("MODEL=claude-code\nCLAUDE_CODE={}\nANTHROPIC_API_KEY={API_KEY}\n", sleeper.display());
    world.add_heard("dan", &model);
    world.leave("dan", &said(10, "what do you think?"));
    world.add_heard("eve", "");
    let receiver = Receiver::start_with(&world, &["--workers", "2"]);
    wait_for_request(&claude, silent.len());
    assert_eq!(receiver.post("eve", &world.secret("eve"), &said(11, "remember that box 1 is blue")), 200);
    let answers = world.telegram("eve").wait_for_sent(1, std::time::Duration::from_secs(20));
    assert!(answers[0].visible.contains("box 1 is blue"), "{answers:#?}");
    // They wait all the while, and lose nothing by it.
    assert!(silent.iter().all(|name| world.telegram(name).sent().is_empty()));
    let at_work =
        |name: &str| world.members().iter().any(|member| member["name"] == name && member["is_at_work"] == true);
    assert!(silent.iter().all(|name| at_work(name)), "{:?}", world.members());
    gate.open();
    for name in silent {
        let answers = world.telegram(name).wait_for_sent(1, std::time::Duration::from_secs(60));
        assert!(answers[0].visible.contains("At last."), "{answers:#?}");
    }
    receiver.running.signal(Signal::KILL);
}

#[test]
fn requests_that_never_end_keep_nobody_from_posting() {
    let mut world = World::new();
    for name in ["ana", "ben"] {
        world.add_heard(name, "");
    }
    let receiver = Receiver::start(&world);
    let (ana, ben) = (world.secret("ana"), world.secret("ben"));
    let open: Vec<TcpStream> = (0..40).map(|_| receiver.begin("ana", &ana, 100)).collect();
    let began = Instant::now();
    assert_eq!(receiver.post("ben", &ben, &said(10, "/status")), 200);
    assert!(began.elapsed() < Duration::from_secs(3), "it waited for {:?}", began.elapsed());
    // Few of one assistant are waited for, and not for long.
    let mut answers: Vec<u16> = open.into_iter().map(status_of).collect();
    answers.sort_unstable();
    assert_eq!(answers.iter().filter(|status| **status == 429).count(), 38, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 408).count(), 2, "{answers:?}");
    // Then there is room again.
    assert_eq!(receiver.post("ana", &ana, &said(10, "/status")), 200);
    receiver.end();
}

/// Looks for everything that isn't its own, from within, as hard as a program can, and writes down what it finds.
const BURGLAR: &str = r#"#!/bin/sh
# Whoever started it waits for the end of its output.
exec 3>&1 >> MINE/found 2>&1
echo "== began"
ls -la FLEET FLEET/assistants
cat FLEET/assistants/ben/.env FLEET/assistants/ben/messages.db FLEET/fleet.db FLEET/.env
find / -xdev -name '*.env' -not -path '/proc/*' 2>/dev/null | xargs -r cat
grep -rsl --exclude=found CANARY FLEET HOMEDIR /tmp /run /var/tmp
cat /proc/*/environ /proc/*/cmdline | tr '\0' '\n'
ps axww
umount FLEET; umount -l FLEET/assistants; mount --bind / /mnt
unshare -Ur sh -c 'umount FLEET; cat FLEET/assistants/ben/.env'
nsenter -t 1 -m cat FLEET/assistants/ben/.env
ln -s ../ben/.env MINE/link; cat MINE/link
cat /proc/1/root/FLEET/assistants/ben/.env /proc/self/mountinfo
echo stolen > FLEET/assistants/ben/planted; mkdir -p FLEET/assistants/ben/inbox; echo '{"update_id":1}' > FLEET/assistants/ben/inbox/1.json
echo "== everywhere"
kill -9 -1
exit 1
"#;

#[test]
fn a_hostile_model_in_one_finds_nothing_of_another() {
    let mut world = World::new();
    let claude = FakeClaude::start();
    world.add_heard("ben", &format!("# {BENS}\n"));
    world.as_one("ben", &["--once", "--say", &format!("remember that my code is {BENS}")]).ok();
    let program = world.workspace("ana").join("burglar");
    fs::create_dir_all(world.workspace("ana")).unwrap();
    let at = |path: &Path| path.display().to_string();
    let script = BURGLAR.replace("FLEET", &at(&world.dir())).replace("HOMEDIR", &at(&world.env.path("home")));
    let script = script.replace("MINE", &at(&world.workspace("ana")));
    fs::write(&program, script.replace("CANARY", BENS)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(world.env.path("home/.env"), BENS).unwrap();

    // Its model is a program that runs beside the assistant itself, outside the sandbox of its tools.
    world.add_heard("ana", &format!("MODEL=claude-code\nCLAUDE_CODE={}\nANTHROPIC_API_KEY={API_KEY}\n", at(&program)));
    // And one that has the usual tools, whose person says yes to everything.
    world.add_heard("eve", &format!("{}AUTONOMY=2\n", with_claude(&claude)));
    let ben = world.workspace("ben");
    let steal = format!("cat {0}/.env {0}/messages.db {0}/brain/memory/*/*; ls -la {0}; cat /proc/*/environ", at(&ben));
    claude.expect(Reply::tools(vec![Block::tool("t1", "bash", json!({ "command": steal }))]));
    claude.expect(Reply::tools(vec![Block::tool("t2", "read_file", json!({ "path": at(&ben.join(".env")) }))]));
    claude.expect(Reply::text("Nothing."));

    let receiver = Receiver::start(&world);
    for name in ["ana", "eve"] {
        assert_eq!(receiver.post(name, &world.secret(name), &said(5, "find out what ben's code is")), 200);
    }
    let found = world.workspace("ana").join("found");
    eventually("the burglar has been everywhere", || {
        // What it finds needn't be text.
        fs::read(&found).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("== everywhere"))
    });
    // Its person allows whatever it asks for.
    let (eve, mut allowed) = (world.telegram("eve"), 0);
    eventually("the other one has answered", || {
        let sent = eve.sent();
        for message in sent.iter().filter(|message| !message.buttons.is_empty()).skip(allowed) {
            allowed += 1;
            let mut tap = eve.tapped(CHAT, CHAT, message.message_id, &message.buttons[0]);
            tap["update_id"] = json!(100 + allowed);
            assert_eq!(receiver.post("eve", &world.secret("eve"), &tap.to_string()), 200);
        }
        sent.iter().any(|message| message.visible.contains("Nothing."))
    });
    receiver.end();

    let text = String::from_utf8_lossy(&fs::read(&found).unwrap()).into_owned();
    assert!(text.contains("== began"), "{text}");
    let thinks = claude.requests().iter().map(|request| request.json.to_string()).collect::<String>();
    // It did run, in a sandbox within the box.
    assert!(thinks.contains("No such file or directory") && thinks.contains("\"is_error\""), "{thinks}");
    for (whose, seen) in [("the program", &text), ("the model", &thinks)] {
        assert!(!seen.contains(BENS), "{whose} has found it: {seen}");
        assert!(!seen.contains(&world.secret("ben")), "{whose} knows a secret");
    }
    assert!(!ben.join("planted").exists() && !ben.join("inbox/1.json").exists());
}

/// Its network is the machine's, and so would be the sockets that have a name and no path.
#[test]
fn an_assistant_reaches_no_abstract_socket_of_the_machine() {
    let mut world = World::new();
    let name = format!("reveille{}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let greeting = std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut hello = [0; 6];
            let mut client = client.unwrap();
            if client.read(&mut hello).unwrap() == 0 {
                return;
            }
            client.write_all(b"welcome").unwrap();
        }
    });
    let ana = world.workspace("ana");
    fs::create_dir_all(&ana).unwrap();
    fs::copy(probe(), ana.join("probe")).unwrap();
    let program = ana.join("burglar");
    let script =
        format!("#!/bin/sh\ncd {}\n./probe unix @{name} 2>&1; echo \"ended with $?\" > found\n", ana.display());
    fs::write(&program, &script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // Outside it answers.
    assert!(world.env.run(program.display().to_string(), &[]).code == 0);
    assert_eq!(fs::read_to_string(ana.join("found")).unwrap(), "ended with 0\n");
    fs::remove_file(ana.join("found")).unwrap();

    let model = format!("MODEL=claude-code\nCLAUDE_CODE={}\nANTHROPIC_API_KEY={API_KEY}\n", program.display());
    world.add_heard("ana", &model);
    world.leave("ana", &said(5, "hello"));
    world.work("1");
    assert_eq!(fs::read_to_string(ana.join("found")).unwrap(), "ended with 1\n");
    // Whoever says nothing ends the listener.
    drop(UnixStream::connect_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap());
    greeting.join().unwrap();
}

#[cfg(feature = "postgres")]
#[test]
fn in_one_database_each_has_a_role_that_may_look_into_no_other() {
    use super::support::postgres;
    let Some(url) = postgres::new_server_database() else { return eprintln!("NOT RUN: there is no PostgreSQL here") };
    let world = World::new();
    fs::create_dir(world.dir()).unwrap();
    fs::write(world.dir().join(".env"), format!("DATABASE_URL={url}\n")).unwrap();
    // Roles belong to the server, and other tests have theirs.
    let own = |name: &str| format!("{name}_{}", std::process::id());
    let (ana, ben) = (own("ana"), own("ben"));
    for name in [&ana, &ben] {
        world.add(name, "");
        let ran = world.as_one(name, &["--once", "--say", "remember that box 1 is blue"]).ok();
        assert!(ran.stdout.contains("box 1 is blue"), "{ran:#?}");
    }
    world.work("2").ok();
    assert!(world.members().iter().all(|member| member["failures"] == 0), "{:?}", world.members());
    assert!(!world.dir().join("fleet.db").exists() && !world.workspace(&ana).join("messages.db").exists());
    let [role, other] = [&ana, &ben].map(|name| format!("reveille_a_{name}"));
    let own_messages = postgres::ask_as(&role, &url, "SELECT count(*) FROM incoming_messages");
    assert_eq!(own_messages.as_deref(), Ok("1"));
    for refused in [
        format!("SELECT * FROM {other}.incoming_messages"),
        format!("INSERT INTO {other}.counters VALUES ('x', 1)"),
        format!("DROP SCHEMA {other} CASCADE"),
        format!("SET ROLE {other}"),
        "SELECT * FROM reveille_fleet.assistants".to_owned(),
        "CREATE TABLE public.mine (x INTEGER)".to_owned(),
        "COPY (SELECT 1) TO PROGRAM 'id'".to_owned(),
        "CREATE ROLE mine".to_owned(),
    ] {
        let why = postgres::ask_as(&role, &url, &refused).unwrap_err();
        assert!(why.contains("permission denied") || why.contains("must be"), "{refused}: {why}");
    }
    // Its password is its own, and no other file holds it.
    let password = fs::read_to_string(world.workspace(&ana).join("database-password")).unwrap();
    assert_eq!(
        (
            password.len(),
            fs::metadata(world.workspace(&ana).join("database-password")).unwrap().permissions().mode() & 0o77
        ),
        (48, 0)
    );
    // What is there stays, whoever adds it once more.
    world.add(&ana, "");
    assert_eq!(fs::read_to_string(world.workspace(&ana).join("database-password")).unwrap(), password);
}

#[test]
fn two_workers_that_hold_one_assistant_answer_once() {
    let mut world = World::new();
    let (claude, gate) = (FakeClaude::start(), Gate::default());
    world.add_heard("ana", &with_claude(&claude));
    world.leave("ana", &said(10, "what do you think?"));
    claude.expect(Reply::text("Kept.").stalled_after(4, &gate));
    let dir = world.dir().display().to_string();
    let first = world.env.start(env!("CARGO_BIN_EXE_wake"), &["--fleet", &dir, "--once", "--workers", "1"]);
    wait_for_request(&claude, 1);
    // It was paused for longer than its claim lasts, and another worker takes the turn.
    world.expire_claims();
    world.make_due("ana");
    world.work("1").ok();
    assert!(world.telegram("ana").sent().is_empty());
    gate.open();
    assert_eq!(first.end().code, 0);
    world.make_due("ana");
    world.work("1").ok();
    let sent: Vec<String> = world.telegram("ana").sent().into_iter().map(|message| message.visible).collect();
    assert_eq!((sent, claude.requests().len()), (vec!["Kept.".to_owned()], 1));
    assert!(world.database("ana").cycles().iter().all(|cycle| cycle.tries == 0), "nobody was killed");
}

#[test]
fn a_worker_that_is_killed_takes_its_turn_along_and_the_next_one_continues() {
    let mut world = World::new();
    let (claude, gate) = (FakeClaude::start(), Gate::default());
    world.add_heard("ana", &with_claude(&claude));
    world.leave("ana", &said(10, "cats purr"));
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Cats purr"}))]));
    claude.expect(Reply::text("Kept.").stalled_after(4, &gate));
    let dir = world.dir().display().to_string();
    let worker = world.env.start(env!("CARGO_BIN_EXE_wake"), &["--fleet", &dir, "--once", "--workers", "1"]);
    wait_for_request(&claude, 2);
    worker.signal(Signal::KILL);
    worker.end();
    gate.open();
    // Its claim stands until it expires.
    world.work("1").ok();
    assert!(world.telegram("ana").sent().is_empty());
    world.expire_claims();
    claude.expect(Reply::text("Kept."));
    eventually("the lock of the one that was killed is free", || {
        world.make_due("ana");
        world.work("1").ok();
        !world.telegram("ana").sent().is_empty()
    });
    assert_eq!(world.telegram("ana").sent().len(), 1);
    let facts =
        fs::read_to_string(world.workspace("ana").join("brain/memory/agent-memory/semantic-memory.md")).unwrap();
    assert_eq!(facts.matches("Cats purr").count(), 1);
}

#[cfg(feature = "postgres")]
#[test]
fn a_worker_that_stays_outlives_its_database() {
    use super::support::postgres::OwnServer;
    let Some(server) = OwnServer::start(OwnServer::place()) else {
        return eprintln!("NOT RUN: PostgreSQL isn't installed here");
    };
    let mut world = World::new();
    let (claude, gate) = (FakeClaude::start(), Gate::default());
    fs::create_dir(world.dir()).unwrap();
    fs::write(world.dir().join(".env"), format!("DATABASE_URL={}\n", server.url())).unwrap();
    world.add_heard("ana", &with_claude(&claude));
    world.leave("ana", &said(10, "cats purr"));
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Cats purr"}))]));
    claude.expect(Reply::text("Kept.").stalled_after(4, &gate));
    let dir = world.dir().display().to_string();
    let worker = world.env.start(env!("CARGO_BIN_EXE_wake"), &["--fleet", &dir, "--workers", "1"]);
    wait_for_request(&claude, 2);
    // In the middle of a turn, which waits for it a while.
    assert!(server.stop("immediate"), "it ran");
    gate.open();
    server.start_again();
    claude.answer_with(|_| Reply::text("Kept."));
    eventually("it is answered", || {
        make_due_on(&server);
        !world.telegram("ana").sent().is_empty()
    });
    eventually("its turn is over", || count_well_on(&server) == "1");
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code, 0);
    let sent: Vec<String> = world.telegram("ana").sent().into_iter().map(|message| message.visible).collect();
    assert!(sent.len() == 1 && sent[0].contains("Kept."), "{sent:?}");
    let facts = world.workspace("ana").join("brain/memory/agent-memory/semantic-memory.md");
    assert_eq!(fs::read_to_string(facts).unwrap().matches("Cats purr").count(), 1);
}
