//! The thread behind a connection: it holds the client and runs one statement at a time.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use rusqlite::types::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket, Statement, tls::TlsStream, types::ToSql};

use super::{
    error::PostgresError,
    tls::Tls,
    values::{ColumnValue, Parameter},
};

/// Time limit for an answer, in case the network is down. It is far above any statement's duration.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of prepared statements per connection, above the number that callers use.
const MAX_PREPARED: usize = 1_000;

/// Answer to a statement.
#[derive(Debug)]
pub struct StatementAnswer {
    /// The rows, each with the values of its columns; empty for a statement that returns none.
    pub rows: Vec<Vec<Value>>,
    /// The number of changed rows; 0 for a statement that returns rows.
    pub changed: u64,
}

/// A request to the thread.
pub(crate) enum ServerCall {
    /// Runs one statement.
    Run { sql: Arc<str>, values: Vec<Value> },
    /// Runs several statements.
    Batch(String),
}

struct Request {
    call: ServerCall,
    reply: SyncSender<Result<StatementAnswer, PostgresError>>,
}

/// An open connection. Its thread ends once the link is dropped.
pub(crate) struct Link {
    requests: UnboundedSender<Request>,
}

impl Link {
    /// Connects, and runs the statements in `settings`. Notifications go to `notices`.
    pub(crate) fn open(
        config: &Config,
        tls: &Tls,
        settings: String,
        notices: Option<SyncSender<()>>,
    ) -> Result<Self, PostgresError> {
        let (requests, queue) = unbounded_channel();
        let (reply, ready) = sync_channel(1);
        let (config, tls) = (config.clone(), tls.clone());
        let thread = thread::Builder::new().name("postgres".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(serve_requests(&config, tls, &settings, notices, queue, reply)),
                Err(error) => drop(reply.send(Err(PostgresError::from_connection(&error.to_string())))),
            }
        });
        thread.map_err(|error| PostgresError::from_connection(&error.to_string()))?;
        ready
            .recv()
            .unwrap_or_else(|_| Err(PostgresError::from_connection("the connection to PostgreSQL couldn't be made")))?;
        Ok(Self { requests })
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn send(&self, call: ServerCall) -> Result<StatementAnswer, PostgresError> {
        let lost = || PostgresError::from_connection("the connection to PostgreSQL was lost");
        let (reply, answer) = sync_channel(1);
        self.requests.send(Request { call, reply }).map_err(|_| lost())?;
        answer.recv_timeout(ANSWER_TIMEOUT).unwrap_or_else(|_| Err(lost()))
    }
}

/// Connects, reports to `ready`, and answers requests until the link is dropped.
async fn serve_requests(
    config: &Config,
    tls: Tls,
    settings: &str,
    notices: Option<SyncSender<()>>,
    mut queue: UnboundedReceiver<Request>,
    ready: SyncSender<Result<(), PostgresError>>,
) {
    let client = match config.connect(tls).await {
        Ok((client, connection)) => {
            drop(tokio::spawn(drive_connection(connection, notices)));
            client
        }
        Err(error) => return drop(ready.send(Err(error.into()))),
    };
    let result = client.batch_execute(settings).await.map_err(PostgresError::from);
    let has_failed = result.is_err();
    drop(ready.send(result));
    if has_failed {
        return;
    }
    let mut prepared = HashMap::new();
    while let Some(Request { call, reply }) = queue.recv().await {
        let answer = match call {
            ServerCall::Batch(sql) => {
                client.batch_execute(&sql).await.map(|()| StatementAnswer { rows: Vec::new(), changed: 0 })
            }
            ServerCall::Run { sql, values } => run_statement(&client, &mut prepared, &sql, &values).await,
        };
        // The caller may have stopped waiting.
        drop(reply.send(answer.map_err(PostgresError::from)));
    }
}

/// Drives a connection until it ends, and passes its notifications on.
async fn drive_connection<T: TlsStream + Unpin>(
    mut connection: Connection<Socket, T>,
    notices: Option<SyncSender<()>>,
) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let (AsyncMessage::Notification(_), Some(notices)) = (message, &notices) {
            // If a notice is already waiting, it stands for this one, too.
            notices.try_send(()).ok();
        }
    }
}

/// Runs a statement, and prepares it first unless that was done before.
async fn run_statement(
    client: &Client,
    prepared: &mut HashMap<Arc<str>, Statement>,
    sql: &Arc<str>,
    values: &[Value],
) -> Result<StatementAnswer, tokio_postgres::Error> {
    let statement = match prepared.get(sql) {
        Some(statement) => statement.clone(),
        None => {
            let statement = client.prepare(sql).await?;
            if prepared.len() >= MAX_PREPARED {
                prepared.clear();
            }
            prepared.insert(Arc::clone(sql), statement.clone());
            statement
        }
    };
    // SQLite ignores values without a place in the statement; PostgreSQL refuses them.
    let parameters: Vec<Parameter<'_>> = values.iter().take(statement.params().len()).map(Parameter).collect();
    let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
    let answer = gather_rows(client, &statement, &parameters).await;
    if answer.is_err() {
        // Its tables may have changed since the preparation.
        prepared.remove(sql);
    }
    answer
}

/// Runs a prepared statement and gathers all of its rows.
async fn gather_rows(
    client: &Client,
    statement: &Statement,
    values: &[&(dyn ToSql + Sync)],
) -> Result<StatementAnswer, tokio_postgres::Error> {
    if statement.columns().is_empty() {
        return Ok(StatementAnswer { rows: Vec::new(), changed: client.execute(statement, values).await? });
    }
    let rows = client.query(statement, values).await?;
    let cells = |row: &tokio_postgres::Row| -> Result<Vec<Value>, tokio_postgres::Error> {
        (0..row.len()).map(|column| row.try_get::<_, ColumnValue>(column).map(|cell| cell.0)).collect()
    };
    Ok(StatementAnswer { rows: rows.iter().map(cells).collect::<Result<_, _>>()?, changed: 0 })
}
