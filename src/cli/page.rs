//! `wake page`: serves the local page, one server per workspace.
//!
//! The process that holds the lock serves the page. Others ask it for a link over its socket.
//!
//! A server prints a link only on a terminal, because the output of a service ends up in a log.

use std::{
    convert::Infallible,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;

use reveille_base::file::open_private;
use reveille_config::Config;
use reveille_tools::loopback;

use super::{EXIT_FAILED, complain, out, print, report_failure};
use crate::page::{self, PageSite, TICKET_LASTS, socket};

pub(super) const HELP: &str = "\
A link works once, within ten minutes; the browser that opened it then stays signed in until the server ends.
The page is served to this machine only.
As a service, or with its output in a file, the server prints no link and no code; --address and --code do. See docs/PAGE.md.

Examples:
  wake page                          serve, and print a link
  wake page --address                print a link to the page that is being served
  wake page --code                   print the code that a change of settings on the page asks for
  wake page --port 8930              always on the same port";

/// How long to wait for a server that is starting or ending.
const OTHER_SERVER: Duration = Duration::from_secs(5);
/// How often to ask that server again meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How often a waiting service checks for the end of the current server.
const IN_LINE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(super) struct PageArguments {
    /// Only print a link to the page that is served already.
    #[arg(long)]
    address: bool,
    /// Only print the codes that changes of settings wait for on the page that is served already.
    #[arg(long, conflicts_with = "address")]
    code: bool,
    /// Serve on this port of the loopback; default: a free one.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Hand out further links over this socket; default: page/socket in the workspace.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Serves the page, or asks the current server for a link.
pub(super) fn run(config: &Config, arguments: &PageArguments) -> ExitCode {
    let socket = arguments.socket.clone().unwrap_or_else(|| config.page_dir().join("socket"));
    let runtime = match super::build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&error),
    };
    runtime.block_on(async {
        if arguments.code {
            return show_codes(&socket).await;
        }
        match serve_or_ask(config, arguments, &socket).await {
            Ok(code) => code,
            Err(error) => report_failure(&error),
        }
    })
}

/// Becomes the server, or asks the current one.
async fn serve_or_ask(config: &Config, arguments: &PageArguments, socket: &Path) -> io::Result<ExitCode> {
    socket::make_folder(&config.page_dir())?;
    let started = tokio::time::Instant::now();
    let mut is_in_line = false;
    loop {
        let lock = take_lock(&config.page_lock_path())?;
        if let (Some(_lock), false) = (&lock, arguments.address) {
            return serve_page(config, arguments.port, socket).await;
        }
        if lock.is_some() {
            complain("The page isn't running. `wake page` starts it and prints a link.");
            return Ok(ExitCode::from(EXIT_FAILED));
        }
        if !arguments.address && !out::is_terminal() {
            // A service that ended here would stay down after the server in somebody's terminal has ended.
            if !is_in_line {
                complain(
                    "The page is served by another process; this one takes over when that ends. `wake page --address` prints a link.",
                );
            }
            is_in_line = true;
            tokio::time::sleep(IN_LINE).await;
            continue;
        }
        match socket::request_address(socket).await {
            Ok(address) => {
                show_address(address.expose());
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) if started.elapsed() >= OTHER_SERVER => {
                let why = format!("the page is running, but gives no link at {}: {error}", socket.display());
                return Err(io::Error::other(why));
            }
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// Takes the lock that gives the right to serve. The lock file is never removed, since two processes could then hold
/// different locks. `None` if another process holds it.
fn take_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_private(path)?;
    match fs2::FileExt::try_lock_exclusive(&file) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == fs2::lock_contended_error().kind() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn serve_page(config: &Config, port: u16, socket: &Path) -> io::Result<ExitCode> {
    let add_context = |what: String| move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
    let listeners = loopback::listen(port).await?;
    let port = listeners.first().map_or(Ok(port), |listener| listener.local_addr().map(|address| address.port()))?;
    let requests = socket::listen(socket)
        .map_err(add_context(format!("{} can't be opened (--socket names another place)", socket.display())))?;
    let site = Arc::new(PageSite::new(config.clone(), super::build_joint_redactor, port).map_err(io::Error::other)?);
    let mut stop = super::stop_signal()?;
    if out::is_terminal() {
        show_address(site.create_address().map_err(io::Error::other)?.expose());
        complain("Ctrl-C stops the page.");
    } else {
        complain(&format!("Serving on port {port} of the loopback. `wake page --address` prints a link."));
    }
    tokio::select! {
        never = page::serve(&listeners, &site) => match never {},
        never = socket::hand_out(&requests, &site) => match never {},
        never = print_codes(&site), if out::is_terminal() => match never {},
        _ = stop.wait_for(|stop| *stop) => {}
    }
    page::close_session(&site).await;
    // Without the socket, later clients know that no server runs.
    socket::remove(socket).ok();
    Ok(ExitCode::SUCCESS)
}

/// Prints the code of each change that the page asks one for. Only a terminal gets them, since the output of a service ends up in a log.
async fn print_codes(site: &Arc<PageSite>) -> Infallible {
    loop {
        let notice = page::next_code(site).await;
        complain(&format!("\n{}", notice.expose()));
    }
}

/// Prints the codes that the served page waits for.
async fn show_codes(socket: &Path) -> ExitCode {
    match socket::request_codes(socket).await {
        Ok(codes) if codes.expose().is_empty() => {
            complain(
                "Nothing on the page waits for a code. Make the change there first; the page then asks for its code.",
            );
            ExitCode::from(EXIT_FAILED)
        }
        Ok(codes) => {
            print(codes.expose());
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&format!(
                "No page gives codes at {}: {error}. `wake page` starts one. Nothing was changed.",
                socket.display()
            ));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn show_address(address: &str) {
    print(&format!("{address}\n"));
    let minutes = TICKET_LASTS.as_secs() / 60;
    complain(&format!("Open it in a browser on this machine. It works once, within {minutes} minutes."));
}
