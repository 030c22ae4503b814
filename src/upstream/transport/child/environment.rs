//! The environment of a child process: a short list of what every program needs, and what is configured.
//!
//! Owns the list. It is the one of the official SDKs, so that a server which runs under other hosts runs here, and with it
//! where temporary files go and the locale, of which programs learn that their streams are UTF-8. None of them holds a
//! secret; all else that this process knows stays here. Case C57.

use crate::config::Command;
use std::ffi::{OsStr, OsString};

#[cfg(not(windows))]
const INHERITED: &[&str] =
    &["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

#[cfg(windows)]
const INHERITED: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

/// The environment for `command` where this process has `own`. Values pass as they are, UTF-8 or not.
pub(super) fn of(
    command: &Command,
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_set = |name: &OsStr| command.env.iter().any(|(set, _)| is(name, set));
    let inherits = |(name, value): &(OsString, OsString)| {
        if is_set(name) {
            return false;
        }
        let chosen = command.inherit_env.iter().any(|chosen| is(name, chosen));
        // Old shells take a value of this kind for a function and run what follows it.
        let function = value.as_encoded_bytes().starts_with(b"()");
        chosen || !function && INHERITED.iter().any(|listed| is(name, listed))
    };
    let mut env: Vec<_> = own.filter(inherits).collect();
    env.extend(command.env.iter().map(|(name, value)| (name.into(), value.expose().into())));
    env
}

fn is(name: &OsStr, listed: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(listed) } else { name == listed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn env(set: &[(&str, &str)], inherit: &[&str], own: &[(&str, &str)]) -> Vec<(String, String)> {
        let command = Command {
            program: "x".into(),
            args: Vec::new(),
            env: set.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect(),
            inherit_env: inherit.iter().map(|name| (*name).to_owned()).collect(),
            cwd: None,
        };
        let own = own.iter().map(|(name, value)| (name.into(), value.into()));
        let mut env: Vec<_> = of(&command, own)
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect();
        env.sort();
        env
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn secrets_of_this_process_stay_here() {
        let own = [("PATH", "/bin"), ("API_KEY", "s3cret"), ("LD_PRELOAD", "x.so"), ("CHOSEN", "")];
        assert_eq!(env(&[], &["CHOSEN", "ABSENT"], &own), pairs(&[("CHOSEN", ""), ("PATH", "/bin")]));
    }

    #[test]
    fn what_is_configured_comes_first() {
        let own = [("PATH", "/bin"), ("TOKEN", "old")];
        let set = [("PATH", "/opt"), ("EMPTY", ""), ("TOKEN", "a=b=")];
        let all = [("EMPTY", ""), ("PATH", "/opt"), ("TOKEN", "a=b=")];
        assert_eq!(env(&set, &["TOKEN"], &own), pairs(&all));
    }

    #[test]
    fn functions_of_a_shell_are_left_out() {
        let own = [("TERM", "() { :; }; echo"), ("USER", "u"), ("CHOSEN", "() { :; }")];
        let all = [("CHOSEN", "() { :; }"), ("USER", "u")];
        assert_eq!(env(&[], &["CHOSEN"], &own), pairs(&all));
    }

    #[cfg(unix)]
    #[test]
    fn values_need_not_be_utf8() {
        use std::os::unix::ffi::OsStringExt;
        let command = Command {
            program: "x".into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit_env: Vec::new(),
            cwd: None,
        };
        let odd = (OsString::from("HOME"), OsString::from_vec(vec![b'/', 0xff]));
        assert_eq!(of(&command, [odd.clone()].into_iter()), [odd]);
    }
}
