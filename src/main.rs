//! The binary: a command line to an exit code.

use mcp_janus::app::{App, Reach};
use mcp_janus::cli::{self, Cli, Command, Exit};
use mcp_janus::net::Processes;
use mcp_janus::shutdown::Ending;
use mcp_janus::{commands, config, telemetry};
use std::io::Write;
use std::sync::Arc;

fn main() -> Exit {
    // First of all: a child process is waiting to be the program that it is for.
    if let Some(status) = mcp_janus::net::launched(std::env::args_os()) {
        std::process::exit(status);
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let exit = runtime.block_on(run(cli));
            // A read of standard input that never comes back is no reason to stay.
            runtime.shutdown_background();
            exit
        }
        Err(error) => {
            eprintln!("mcp-janus: the runtime cannot be started: {error}");
            Exit::Failure
        }
    }
}

async fn run(cli: Cli) -> Exit {
    match &cli.command {
        Command::Serve(args) => match args.load(&cli.log, &cli::process_env) {
            Ok(loaded) => serve(loaded).await,
            Err(error) => usage(&error),
        },
        Command::Check { file } => {
            let (text, exit) = cli::check(file);
            match exit {
                Exit::Ok => {
                    if let Err(error) = std::io::stdout().write_all(text.as_bytes()) {
                        return failure(&error);
                    }
                }
                Exit::Failure | Exit::Usage => eprint!("{text}"),
            }
            exit
        }
        Command::Probe(flags) => match (start_log(&cli), config::from_probe_flags(flags)) {
            (Ok(_logging), Ok((upstream, warnings))) => {
                warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
                commands::probe(upstream, flags.json).await
            }
            (Err(exit), _) => exit,
            (_, Err(error)) => usage(&error),
        },
        Command::Demo { verbose } => match start_log(&cli) {
            Ok(_logging) => commands::demo(*verbose).await,
            Err(exit) => exit,
        },
        Command::Stdio(args) => match args.load(&cli.log, &cli::process_env) {
            Ok(loaded) => stdio(loaded).await,
            Err(error) => usage(&error),
        },
    }
}

/// Standard output belongs to messages alone: what is to be said goes to the log.
async fn stdio(loaded: config::Loaded) -> Exit {
    let served =
        loaded.config.upstreams.first().map(|upstream| (upstream.name.clone(), upstream.target.to_string()));
    let (app, _logging) = match start(loaded).await {
        Ok(started) => started,
        Err(exit) => return exit,
    };
    if let Some((name, target)) = served {
        tracing::info!("serving the host on stdio for upstream {name} at {target}");
    }
    exit(app.serve_stdio(tokio::io::stdin(), tokio::io::stdout()).await)
}

async fn serve(loaded: config::Loaded) -> Exit {
    let upstreams: Vec<_> = loaded
        .config
        .upstreams
        .iter()
        .map(|up| (up.name.clone(), up.path.clone(), up.sse_path.clone(), up.target.to_string()))
        .collect();
    let (app, _logging) = match start(loaded).await {
        Ok(started) => started,
        Err(exit) => return exit,
    };
    let sockets = match app.bind().await {
        Ok(sockets) => sockets,
        Err(error) => return failure(&error),
    };
    let scheme = if sockets.clients.is_tls() { "https" } else { "http" };
    let address = sockets.clients.local_addr();
    for (name, path, sse_path, target) in upstreams {
        tracing::info!("serving {scheme}://{address}{path} for upstream {name} at {target}");
        if let Some(path) = sse_path {
            tracing::info!(
                "serving {scheme}://{address}{path} for clients of the old HTTP+SSE, for upstream {name}"
            );
        }
    }
    if let Some(admin) = &sockets.admin {
        tracing::info!("serving metrics at http://{}/metrics", admin.local_addr());
    }
    exit(app.serve(sockets).await)
}

/// The log, which goes to standard error, and the proxy, which minds signals from here on.
async fn start(loaded: config::Loaded) -> Result<(App, telemetry::Logging), Exit> {
    let logging = telemetry::init(&loaded.config.log).map_err(|error| usage(&error))?;
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let app = App::reaching(loaded.config, reach()).await.map_err(|error| failure(&error))?;
    app.metrics().watch_log(logging.dropped_lines());
    app.shutdown().watch_signals().map_err(|error| failure(&error))?;
    Ok((app, logging))
}

fn exit(ending: Ending) -> Exit {
    match ending {
        Ending::Drained => {
            tracing::info!("drained");
            Exit::Ok
        }
        Ending::OutOfTime => {
            tracing::warn!("stopped with calls still in flight: shutdown_grace ran out");
            Exit::Ok
        }
        Ending::CutShort => {
            tracing::warn!("stopped with calls still in flight: a second signal came");
            Exit::Failure
        }
    }
}

/// Servers are started by way of this very program, so that they end when it is killed.
fn reach() -> Reach {
    Reach { dial: None, launch: Some(Arc::new(Processes::of_this_program())) }
}

fn start_log(cli: &Cli) -> Result<telemetry::Logging, Exit> {
    let log = cli.log_of_tool().map_err(|error| usage(&error))?;
    telemetry::init(&log).map_err(|error| usage(&error))
}

fn usage(error: &dyn std::error::Error) -> Exit {
    eprintln!("mcp-janus: {error}");
    Exit::Usage
}

fn failure(error: &dyn std::error::Error) -> Exit {
    eprintln!("mcp-janus: {error}");
    Exit::Failure
}
