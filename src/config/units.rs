//! Durations and sizes as text: `30s`, `500ms`, `4MiB`, to and fro.
//!
//! Owns the two small grammars (one whole number, one unit). Does not own which values a setting may have.

use std::time::Duration;

const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// `30s`, `500ms`, `2m`, `1h`, `1d`; `None` for all else, also for a number without a unit.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    parse(text, DURATION_UNITS).map(Duration::from_millis)
}

/// `4MiB`, `32KiB`, `512B` or a plain number of bytes.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { parse(text, SIZE_UNITS) }
}

pub(super) fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 { "0s".to_owned() } else { show(millis, DURATION_UNITS) }
}

pub(super) fn show_size(bytes: u64) -> String {
    if bytes == 0 { "0B".to_owned() } else { show(bytes, SIZE_UNITS) }
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// In the largest unit that needs no fraction.
fn show(amount: u64, units: &[(&str, u64)]) -> String {
    let fitting = units.iter().rev().find(|(_, factor)| amount.is_multiple_of(*factor));
    match fitting {
        Some((name, factor)) => format!("{}{name}", amount / factor),
        None => amount.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_whole_number_and_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "1S",
            "1m30s",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_a_binary_unit() {
        for (text, bytes) in
            [("4MiB", 4 << 20), ("32KiB", 32 << 10), ("1GiB", 1 << 30), ("7B", 7), ("1024", 1024)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "4MB", "4 MiB", "MiB", "-1", "1.5KiB", "4mib", "99999999999999999999"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millis in [0, 1, 500, 1_500, 60_000, 90_000, 86_400_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&show_duration(duration)), Some(duration));
        }
        for bytes in [0, 1, 1_000, 1_024, 4 << 20, (4 << 20) + 1] {
            assert_eq!(parse_size(&show_size(bytes)), Some(bytes));
        }
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
        assert_eq!(show_size(64 << 20), "64MiB");
    }
}
