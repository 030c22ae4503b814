//! `mcp-janus demo`.

use crate::cli::Exit;

pub async fn demo(_verbose: bool) -> Exit {
    Exit::Ok
}
