//! Processes as `/proc` has them.
#![allow(unreachable_pub)]

use std::collections::HashSet;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than anything here takes; only a fault gets this far.
pub const PATIENCE: Duration = Duration::from_secs(20);

struct Stat {
    pid: u32,
    parent: u32,
    state: char,
}

/// `None` where there is no such process.
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything.
    let rest = &text[text.rfind(')')? + 2..];
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Stat { pid, state, parent: fields.next()?.parse().ok()? })
}

fn all() -> Vec<Stat> {
    let entries = std::fs::read_dir("/proc").unwrap().map_while(Result::ok);
    entries.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Every process below this one; those that have ended and were not reaped among them.
pub fn below(pid: u32) -> Vec<u32> {
    let (all, mut found) = (all(), HashSet::from([pid]));
    loop {
        let more: Vec<_> =
            all.iter().filter(|one| found.contains(&one.parent) && !found.contains(&one.pid)).collect();
        if more.is_empty() {
            found.remove(&pid);
            return found.into_iter().collect();
        }
        found.extend(more.into_iter().map(|one| one.pid));
    }
}

/// Those below this one that nobody has reaped.
pub fn zombies(pid: u32) -> Vec<u32> {
    below(pid).into_iter().filter(|pid| stat(*pid).is_some_and(|one| one.state == 'Z')).collect()
}

/// It runs, or could run again.
pub fn lives(pid: u32) -> bool {
    stat(pid).is_some_and(|one| !['Z', 'X'].contains(&one.state))
}

pub fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill {name} {pid}");
}

/// Waits for something that is no event of this process's own.
pub fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

/// Waits until none of these runs any more.
pub fn gone(pids: &[u32]) -> Duration {
    until(&format!("the end of {pids:?}"), || pids.iter().all(|pid| !lives(*pid)))
}
