//! What is left of a proxy when everybody has gone: for soaks.

/// Memory of this process that is resident, in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Gauges that are not zero, but for those that only say what the process is.
pub fn standing(metrics: &str) -> Vec<String> {
    let gauges: Vec<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" gauge"))
        .filter(|name| !name.contains("info") && !name.contains("start_time"))
        // What is known of schemas is kept within its bound, whoever had it.
        .filter(|name| *name != "mcp_janus_schema_cache_bytes")
        .collect();
    assert!(!gauges.is_empty());
    let is_gauge = |line: &&str| gauges.iter().any(|name| line.split(['{', ' ']).next() == Some(*name));
    let stands = |line: &&str| line.rsplit(' ').next() != Some("0");
    metrics.lines().filter(is_gauge).filter(stands).map(str::to_owned).collect()
}
