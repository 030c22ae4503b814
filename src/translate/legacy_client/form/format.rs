//! The formats that a text field of a form may have.
//!
//! Owns what is cheap to see of each: a value that is refused here is none of the format in any reading; one that passes may
//! still be refused by the server. Rule: B10.4; schema 2025-11-25, StringSchema.

use url::Url;

pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "date" | "date-time" | "email" | "uri")
}

/// Whether `text` is of the format; every text is of one that is not known.
pub(super) fn fits(name: &str, text: &str) -> bool {
    match name {
        "date" => date(text),
        "date-time" => {
            let at = text.find(['T', 't', ' ']);
            at.is_some_and(|at| date(&text[..at]) && time(&text[at + 1..]))
        }
        "email" => text.rsplit_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
        "uri" => Url::parse(text).is_ok(),
        _ => true,
    }
}

/// `2026-07-28`.
fn date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    within(year, 4, 0..=9999) && within(month, 2, 1..=12) && within(day, 2, 1..=31)
}

/// `10:00:00`, with parts of seconds and an offset.
fn time(text: &str) -> bool {
    let end = text.find(['Z', 'z', '+', '-']);
    let (time, offset) = end.map_or((text, None), |end| (&text[..end], Some(&text[end..])));
    let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
    let parts: Vec<&str> = whole.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    let offset = match offset {
        Some("Z" | "z") => true,
        Some(offset) => offset[1..]
            .split_once(':')
            .is_some_and(|(hour, minute)| within(hour, 2, 0..=23) && within(minute, 2, 0..=59)),
        None => false,
    };
    // 60: a leap second.
    offset
        && within(hour, 2, 0..=23)
        && within(minute, 2, 0..=59)
        && within(second, 2, 0..=60)
        && !part.is_empty()
        && part.bytes().all(|byte| byte.is_ascii_digit())
}

fn within(text: &str, digits: usize, range: std::ops::RangeInclusive<u16>) -> bool {
    text.len() == digits
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse().is_ok_and(|value| range.contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b10_4_what_is_of_a_format() {
        for (name, text) in [
            ("date", "2026-07-28"),
            ("date-time", "2026-07-28T10:00:00Z"),
            ("date-time", "2026-07-28t23:59:60.25+05:30"),
            ("date-time", "2026-07-28T10:00:00-08:00"),
            ("email", "a@b"),
            ("email", "\"a@b\"@c.example"),
            ("uri", "https://a.example/b?c#d"),
            ("uri", "urn:x:y"),
            ("ipv4", "no"),
        ] {
            assert!(fits(name, text), "{name} {text}");
        }
    }

    #[test]
    fn b10_4_what_is_not() {
        for (name, text) in [
            ("date", "28.07.2026"),
            ("date", "2026-13-01"),
            ("date", "2026-7-28"),
            ("date", "2026-07-28T10:00:00Z"),
            ("date-time", "2026-07-28"),
            ("date-time", "2026-07-28T10:00:00"),
            ("date-time", "2026-07-28T10:00Z"),
            ("date-time", "2026-07-28T25:00:00Z"),
            ("date-time", "2026-07-28T10:00:00+5"),
            ("date-time", "2026-07-28Té"),
            ("email", "a"),
            ("email", "@b"),
            ("uri", "not a uri"),
            ("uri", "/a/b"),
            ("date", ""),
            ("date-time", ""),
        ] {
            assert!(!fits(name, text), "{name} {text}");
        }
    }
}
