//! What the proxy costs: `cargo bench --bench relay`, or `-- memory`, `-- large`, `-- start`, `-- guard`, `-- all`.
//!
//! Owns the command line. Everything runs on loopback, bounded in time and count: load comes from this process, the
//! server and the bare relay are this program again in processes of their own, so that each one's CPU is its own.
//! `-- speed small progress` runs some works only; `--rounds N` and `--span MS` make a run longer or shorter, `--other PATH`
//! has another build of the proxy take part.
#![allow(unreachable_pub)]

mod bare;
mod child;
mod guard;
mod http1;
mod load;
mod memory;
mod process;
mod report;
mod speed;
mod start;
mod upstream;
mod work;

use std::io;
use std::time::Duration;

fn main() -> io::Result<()> {
    let mut parts = Vec::new();
    let mut plan = speed::Plan { rounds: 5, span: Duration::from_millis(700), only: Vec::new(), other: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|value| value.parse::<u32>().ok());
        match argument.as_str() {
            // The roles of this program that others start.
            "role-upstream" => return one_thread()?.block_on(upstream::run()),
            "role-child" => return child::run(&arguments.next().unwrap_or_default()),
            "role-bare" => {
                let upstream = arguments.next().unwrap_or_default();
                return many_threads()?.block_on(bare::run(upstream));
            }
            "--bench" => {}
            "--other" => plan.other = arguments.next().map(Into::into),
            "--rounds" => plan.rounds = number().map_or(plan.rounds, |rounds| rounds.clamp(1, 100) as usize),
            "--span" => {
                plan.span =
                    number().map_or(plan.span, |span| Duration::from_millis(span.clamp(50, 10_000).into()));
            }
            "speed" | "memory" | "large" | "start" | "guard" | "all" => parts.push(argument),
            _ => plan.only.push(argument),
        }
    }
    let wants = |part: &str| {
        parts.iter().any(|wanted| wanted == part || wanted == "all") || part == "speed" && parts.is_empty()
    };
    if wants("guard") {
        guard::run()?;
    }
    let folder = tempfile::tempdir()?;
    open_to_all(folder.path())?;
    one_thread()?.block_on(async {
        if wants("speed") {
            speed::run(&plan, folder.path()).await?;
        }
        if wants("start") {
            start::run().await?;
        }
        if wants("large") {
            memory::large().await?;
        }
        if wants("memory") {
            memory::run(folder.path()).await?;
        }
        Ok(())
    })
}

fn one_thread() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn many_threads() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// nginx gives up its rights where it has any, and must still reach its files.
fn open_to_all(folder: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}
