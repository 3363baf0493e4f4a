//! PostgreSQL behind the same calls: for a store that several machines share.
//!
//! The store's verbs wait for their database, as they do with SQLite. `tokio-postgres` is asynchronous, so each connection lives in a
//! thread of its own with a small runtime; a call hands a statement over and waits for its answer. The blocking `postgres` crate is the
//! same library with a runtime inside, which must not be entered from another one: the bot's verbs run within one. `sqlx` brings
//! three times the crates, a pool that we don't need and macros that want a database at build time.
//!
//! **Who writes when.** SQLite lets one write at a time, and all reasoning of the verbs rests on that: what a transaction has read is
//! still so when it writes. Here each writing transaction first takes one lock for the whole store (`pg_advisory_xact_lock`), which ends
//! with it. So writes of all machines follow each other, in the order in which they commit; numbers of rows grow in that order,
//! too. With claims by rows (`FOR UPDATE SKIP LOCKED`) two senders could take parts at the same time: they aren't needed while the lock
//! stands, since a claim is one short transaction. Of a fleet's list nothing rests on that order: its workers claim by rows, without
//! the lock; they hear of what comes by `NOTIFY`, as a hint. Readers take no lock, and see what was committed before their statement.
//!
//! **What fails how.** A connection that was lost is made anew by the next call outside a transaction; a turn of a model under way
//! has it wait for a server that is away for a moment ([`Postgres::wait_for_server`]). Within one, all that follows
//! fails, and the transaction never was, but for one case: whether a commit that got no answer has happened nobody knows; it is an
//! error like a disk's, and the journal and the keys of the verbs tell the next wake. A statement waits ten seconds for a lock.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    error::Error as _,
    fmt,
    future::poll_fn,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use bytes::BytesMut;
use rusqlite::types::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Socket,
    tls::TlsStream,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::{Begin, dialect, tls::Tls};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a statement is waited for: far above what any of ours takes. A network that is away answers nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The pause between two tries to reach a server that is away.
const RECONNECT_EVERY: Duration = Duration::from_millis(250);
/// Statements that the server keeps ready for one connection. There are fewer than that.
const MAX_KEPT: usize = 1_000;
/// The lock that each writing transaction takes, one for each schema: any number that nobody else takes in the database.
const WRITERS_LOCK: i32 = 0x7265_7665;
/// Said once to each connection. A machine that falls asleep within a transaction must not keep the others from writing.
const SETTINGS: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; SET jit = off;
    SET TIME ZONE 'UTC'; SET client_min_messages = warning";

/// Why PostgreSQL didn't do what it was asked.
#[derive(Debug, Clone)]
pub(crate) struct PostgresError {
    /// The server's code for it; none: it didn't come from the server.
    code: Option<String>,
    text: String,
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PostgresError {}

impl PostgresError {
    fn lost(text: &str) -> Self {
        Self { code: None, text: text.to_owned() }
    }

    /// Whether others were in the way: it may be tried again.
    pub(crate) fn is_busy(&self) -> bool {
        // lock_not_available, serialization_failure, deadlock_detected
        self.has_code(&["55P03", "40001", "40P01"])
    }

    /// Whether the server has no room left.
    pub(crate) fn is_full(&self) -> bool {
        self.has_code(&["53100"])
    }

    /// Whether the server found its own files damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.has_code(&["XX001", "XX002"])
    }

    /// Whether the connection is gone: the server has said no word, or its last one.
    fn is_lost(&self) -> bool {
        self.code.as_ref().is_none_or(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03")
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let said = error.as_db_error().map(|said| (said.code().code().to_owned(), said.message().to_owned()));
        match said {
            Some((code, message)) => Self { text: format!("PostgreSQL says: {message} ({code})"), code: Some(code) },
            None => {
                let why = error.source().map_or_else(String::new, |why| format!(": {why}"));
                // Values that don't fit their column are found on this side.
                let code = error.to_string().contains("serializ").then(|| "22000".to_owned());
                Self { code, text: format!("PostgreSQL: {error}{why}") }
            }
        }
    }
}

/// What a statement came to.
pub(super) struct StatementAnswer {
    pub(super) rows: Vec<Vec<Value>>,
    pub(super) changed: u64,
}

enum Work {
    Run { sql: Arc<str>, values: Vec<Value> },
    Batch(String),
}

struct Request {
    work: Work,
    reply: SyncSender<Result<StatementAnswer, PostgresError>>,
}

/// What is heard of others' writes (`NOTIFY`): a hint to look, which may be missing. One that waits stands for all.
struct Hearing {
    channel: &'static str,
    tell: SyncSender<()>,
    news: Receiver<()>,
}

/// One connection, made when it is first needed.
pub(crate) struct Postgres {
    config: Config,
    tls: Tls,
    is_read_only: bool,
    hearing: Option<Hearing>,
    link: RefCell<Option<UnboundedSender<Request>>>,
    /// Whether a transaction is under way, and whether a statement of it failed.
    under_way: Cell<Option<bool>>,
    /// How long a server that is away is waited for.
    patience: Cell<Duration>,
    texts: RefCell<HashMap<String, Arc<str>>>,
}

impl Postgres {
    /// For this database; nothing is asked of it yet.
    pub(crate) fn new(mut config: Config, tls: Tls, is_read_only: bool) -> Self {
        config.application_name("reveille").connect_timeout(CONNECT_TIMEOUT);
        let (link, under_way, texts) = (RefCell::default(), Cell::default(), RefCell::default());
        let patience = Cell::default();
        Self { config, tls, is_read_only, hearing: None, link, under_way, patience, texts }
    }

    /// From now on a server that goes away is waited for so long, such as one that is restarted. What is under way would be lost with it.
    pub(super) fn wait_for_server(&self, patience: Duration) {
        self.patience.set(patience);
    }

    /// The same, which hears what is notified by this name.
    pub(crate) fn hearing(self, channel: &'static str) -> Self {
        let (tell, news) = sync_channel(1);
        Self { hearing: Some(Hearing { channel, tell, news }), ..self }
    }

    /// Waits until something was notified, at most for so long. Says whether it was. A connection that is gone says nothing.
    pub(super) fn hears(&self, at_most: Duration) -> bool {
        match &self.hearing {
            Some(hearing) => hearing.news.recv_timeout(at_most).is_ok(),
            None => {
                std::thread::sleep(at_most);
                false
            }
        }
    }

    /// Tells whoever hears it, once the transaction under way is committed.
    pub(super) fn notify(&self) -> Result<(), PostgresError> {
        match &self.hearing {
            Some(hearing) => self.batch(&format!("NOTIFY {}", hearing.channel)),
            None => Ok(()),
        }
    }

    /// A statement as PostgreSQL reads it.
    pub(super) fn text(&self, sql: &str) -> Arc<str> {
        if let Some(text) = self.texts.borrow().get(sql) {
            return Arc::clone(text);
        }
        let text: Arc<str> = dialect::statement(sql).into();
        self.texts.borrow_mut().insert(sql.to_owned(), Arc::clone(&text));
        text
    }

    pub(super) fn run(&self, sql: &Arc<str>, values: &[Value]) -> Result<StatementAnswer, PostgresError> {
        self.call(|| Work::Run { sql: Arc::clone(sql), values: values.to_vec() })
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), PostgresError> {
        self.call(|| Work::Batch(sql.to_owned())).map(drop)
    }

    /// Begins a transaction; a writing one waits for its turn, but for one that locks its rows alone.
    pub(super) fn begin(&self, begin: Begin) -> Result<(), PostgresError> {
        if self.under_way.get().is_some() {
            return Err(PostgresError {
                code: Some("25001".to_owned()),
                text: "a transaction is under way already".to_owned(),
            });
        }
        let begin = match begin {
            Begin::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned(),
            Begin::Write => format!("BEGIN; SELECT pg_advisory_xact_lock({WRITERS_LOCK}, hashtext(current_schema()))"),
            Begin::Rows => "BEGIN".to_owned(),
        };
        self.batch(&begin).inspect_err(|_| {
            // It may have begun, and failed to get its turn.
            self.batch("ROLLBACK").ok();
        })?;
        self.under_way.set(Some(false));
        Ok(())
    }

    pub(super) fn commit(&self) -> Result<(), PostgresError> {
        if self.under_way.get() != Some(false) {
            // The server would answer such a commit with a rollback, and call that well.
            self.roll_back();
            return Err(PostgresError {
                code: Some("25P02".to_owned()),
                text: "a statement of the transaction failed".to_owned(),
            });
        }
        let done = self.batch("COMMIT");
        self.under_way.set(None);
        done
    }

    pub(super) fn roll_back(&self) {
        if self.under_way.take().is_some() && self.link.borrow().is_some() {
            self.batch("ROLLBACK").ok();
        }
    }

    /// Has it done by the connection, which is made anew where it is gone and nothing is lost with it.
    fn call(&self, work: impl Fn() -> Work) -> Result<StatementAnswer, PostgresError> {
        // A connection that an earlier call has lost is waited for like one that is lost now.
        let is_waited_for = self.link.borrow().is_some() || !self.patience.get().is_zero();
        let may_repeat = self.under_way.get().is_none() && is_waited_for;
        let mut done = self.call_once(work());
        let begun = Instant::now();
        // Outside a transaction there are only looks and beginnings.
        // fault: lost-connection-shared-database
        while may_repeat && done.as_ref().is_err_and(PostgresError::is_lost) {
            done = self.call_once(work());
            if done.is_ok() || begun.elapsed() >= self.patience.get() {
                break;
            }
            std::thread::sleep(RECONNECT_EVERY);
        }
        if done.is_err() && self.under_way.get().is_some() {
            self.under_way.set(Some(true));
        }
        done
    }

    fn call_once(&self, work: Work) -> Result<StatementAnswer, PostgresError> {
        if self.link.borrow().is_none() {
            if self.under_way.get().is_some() {
                return Err(PostgresError::lost("the connection to PostgreSQL was lost within a transaction"));
            }
            let mut settings = SETTINGS.to_owned();
            if self.is_read_only {
                settings.push_str("; SET default_transaction_read_only = on");
            }
            let mut tell = None;
            if let Some(hearing) = &self.hearing {
                settings.push_str(&format!("; LISTEN {}", hearing.channel));
                tell = Some(hearing.tell.clone());
            }
            *self.link.borrow_mut() = Some(connect(&self.config, &self.tls, settings, tell)?);
        }
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let lost = || PostgresError::lost("the connection to PostgreSQL was lost");
        let sent = self.link.borrow().as_ref().is_some_and(|link| link.send(Request { work, reply }).is_ok());
        let done = if sent { answer.recv_timeout(ANSWER_TIMEOUT).unwrap_or_else(|_| Err(lost())) } else { Err(lost()) };
        if done.as_ref().is_err_and(PostgresError::is_lost) {
            *self.link.borrow_mut() = None;
        }
        done
    }
}

/// Makes a connection in a thread of its own, which ends once nobody asks it any more.
fn connect(
    config: &Config,
    tls: &Tls,
    settings: String,
    tell: Option<SyncSender<()>>,
) -> Result<UnboundedSender<Request>, PostgresError> {
    let (requests, work) = unbounded_channel();
    let (reply, ready) = std::sync::mpsc::sync_channel(1);
    let (config, tls) = (config.clone(), tls.clone());
    let thread = std::thread::Builder::new().name("postgres".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(serve(&config, tls, &settings, tell, work, reply)),
            Err(error) => drop(reply.send(Err(PostgresError::lost(&error.to_string())))),
        }
    });
    thread.map_err(|error| PostgresError::lost(&error.to_string()))?;
    ready.recv().unwrap_or_else(|_| Err(PostgresError::lost("the connection to PostgreSQL couldn't be made")))?;
    Ok(requests)
}

async fn serve(
    config: &Config,
    tls: Tls,
    settings: &str,
    tell: Option<SyncSender<()>>,
    mut work: UnboundedReceiver<Request>,
    ready: SyncSender<Result<(), PostgresError>>,
) {
    let client = match config.connect(tls).await {
        Ok((client, connection)) => {
            drop(tokio::spawn(carry(connection, tell)));
            client
        }
        Err(error) => return drop(ready.send(Err(error.into()))),
    };
    let is_set = client.batch_execute(settings).await.map_err(PostgresError::from);
    let is_over = is_set.is_err();
    drop(ready.send(is_set));
    if is_over {
        return;
    }
    let mut kept = HashMap::new();
    while let Some(Request { work, reply }) = work.recv().await {
        let done = match work {
            Work::Batch(sql) => {
                client.batch_execute(&sql).await.map(|()| StatementAnswer { rows: Vec::new(), changed: 0 })
            }
            Work::Run { sql, values } => run(&client, &mut kept, &sql, &values).await,
        };
        // Who asked may have stopped waiting.
        drop(reply.send(done.map_err(PostgresError::from)));
    }
}

/// Carries what is said on a connection until it ends, and passes on what was notified.
async fn carry<T: TlsStream + Unpin>(mut connection: Connection<Socket, T>, tell: Option<SyncSender<()>>) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let (AsyncMessage::Notification(_), Some(tell)) = (message, &tell) {
            // Where one waits already, it stands for this one, too.
            tell.try_send(()).ok();
        }
    }
}

async fn run(
    client: &Client,
    kept: &mut HashMap<Arc<str>, tokio_postgres::Statement>,
    sql: &Arc<str>,
    values: &[Value],
) -> Result<StatementAnswer, tokio_postgres::Error> {
    let statement = match kept.get(sql) {
        Some(statement) => statement.clone(),
        None => {
            let statement = client.prepare(sql).await?;
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(Arc::clone(sql), statement.clone());
            statement
        }
    };
    // Parameters that a statement doesn't name are none of its.
    let named: Vec<Parameter<'_>> = values.iter().take(statement.params().len()).map(Parameter).collect();
    let named: Vec<&(dyn ToSql + Sync)> = named.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
    let done = gather(client, &statement, &named).await;
    if done.is_err() {
        // Its tables may be others by now.
        kept.remove(sql);
    }
    done
}

async fn gather(
    client: &Client,
    statement: &tokio_postgres::Statement,
    values: &[&(dyn ToSql + Sync)],
) -> Result<StatementAnswer, tokio_postgres::Error> {
    if statement.columns().is_empty() {
        return Ok(StatementAnswer { rows: Vec::new(), changed: client.execute(statement, values).await? });
    }
    let rows = client.query(statement, values).await?;
    let cells = |row: &tokio_postgres::Row| -> Result<Vec<Value>, tokio_postgres::Error> {
        (0..row.len()).map(|column| row.try_get::<_, Received>(column).map(|cell| cell.0)).collect()
    };
    Ok(StatementAnswer { rows: rows.iter().map(cells).collect::<Result<_, _>>()?, changed: 0 })
}

type Refusal = Box<dyn std::error::Error + Sync + Send>;

/// A value as its place in the statement wants it: SQLite has no types for that, so the verbs don't name any.
#[derive(Debug)]
struct Parameter<'a>(&'a Value);

impl Parameter<'_> {
    fn integer(&self) -> Result<i64, Refusal> {
        match self.0 {
            Value::Integer(number) => Ok(*number),
            Value::Text(text) => Ok(text.parse()?),
            other => Err(format!("{:?} where a whole number belongs", other.data_type()).into()),
        }
    }

    fn real(&self) -> Result<f64, Refusal> {
        match self.0 {
            Value::Real(number) => Ok(*number),
            _ => Ok(self.integer()? as f64),
        }
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Refusal> {
        if *self.0 == Value::Null {
            return Ok(IsNull::Yes);
        }
        match *kind {
            Type::BOOL => (self.integer()? != 0).to_sql(kind, out),
            Type::INT2 => i16::try_from(self.integer()?)?.to_sql(kind, out),
            Type::INT4 => i32::try_from(self.integer()?)?.to_sql(kind, out),
            Type::INT8 => self.integer()?.to_sql(kind, out),
            Type::FLOAT4 => (self.real()? as f32).to_sql(kind, out),
            Type::FLOAT8 => self.real()?.to_sql(kind, out),
            Type::BYTEA => match self.0 {
                Value::Blob(bytes) => bytes.to_sql(kind, out),
                Value::Text(text) => text.as_bytes().to_sql(kind, out),
                _ => Err("a number where bytes belong".into()),
            },
            // All else is text, or read from it.
            _ => match self.0 {
                // A text there can't hold this character.
                Value::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(&Type::TEXT, out),
                Value::Text(text) => text.to_sql(&Type::TEXT, out),
                Value::Integer(number) => number.to_string().to_sql(&Type::TEXT, out),
                Value::Real(number) => number.to_string().to_sql(&Type::TEXT, out),
                Value::Blob(bytes) => String::from_utf8_lossy(bytes).to_sql(&Type::TEXT, out),
                Value::Null => Ok(IsNull::Yes),
            },
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value of a row.
struct Received(Value);

impl<'a> FromSql<'a> for Received {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Refusal> {
        Ok(Self(match *kind {
            Type::BOOL => Value::Integer(bool::from_sql(kind, raw)?.into()),
            Type::INT2 => Value::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Value::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT4 => Value::Real(f32::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => Value::Real(f64::from_sql(kind, raw)?),
            Type::NUMERIC => numeric(raw).ok_or("a number that can't be read")?,
            Type::BYTEA => Value::Blob(raw.to_owned()),
            _ => Value::Text(std::str::from_utf8(raw)?.to_owned()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Refusal> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A sum of whole numbers, in the server's decimal form: groups of four digits, the first of which counts `10000^weight`.
fn numeric(raw: &[u8]) -> Option<Value> {
    let (fields, _) = raw.as_chunks::<2>();
    let mut fields = fields.iter().map(|field| i16::from_be_bytes(*field));
    let (count, weight, sign, scale) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let groups: Vec<i16> = fields.take(usize::try_from(count).ok()?).collect();
    let is_negative = sign == 0x4000;
    if scale == 0 {
        let mut whole: i128 = 0;
        for place in 0..=weight.max(-1) {
            let group = groups.get(usize::try_from(place).ok()?).copied().unwrap_or(0);
            whole = whole.checked_mul(10_000)?.checked_add(group.into())?;
        }
        let whole = i64::try_from(if is_negative { -whole } else { whole });
        if let Ok(whole) = whole {
            return Some(Value::Integer(whole));
        }
    }
    let powers = (0_i32..).map(|place| f64::powi(10_000.0, i32::from(weight) - place));
    let number: f64 = groups.iter().zip(powers).map(|(group, power)| f64::from(*group) * power).sum();
    Some(Value::Real(if is_negative { -number } else { number }))
}
