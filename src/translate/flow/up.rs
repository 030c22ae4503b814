//! What is particular to a legacy server's result on its way to a modern client (`translate::result`).
//! Rules: A4.10, A4.11, A4.13, B12.

use super::{Fate, Held};
use crate::translate::result::{self, OVERWRITTEN};
use crate::wire::json::{Cursor, Limits, ScanFault, Splice};
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use bytes::Bytes;

#[derive(Debug, Clone)]
pub(super) struct Up {
    pub(super) server_info: Bytes,
}

impl Up {
    pub(super) fn stamp(method: Method) -> &'static str {
        result::stamp(method)
    }

    pub(super) fn fate(name: Option<&str>) -> Fate {
        match name {
            Some("_meta") => Fate::Hold(Held::Meta),
            Some(name) if OVERWRITTEN.contains(&name) => Fate::Drop,
            Some(_) | None => Fate::Keep,
        }
    }

    /// The server's own `_meta`, with its name in it.
    pub(super) fn meta(&self, value: &Bytes, limits: Limits) -> Result<Payload, ScanFault> {
        let mut cursor = Cursor::new(value, limits).map_err(|error| error.fault)?;
        let object = cursor.object(|cursor, _| cursor.skip()).map_err(|error| error.fault)?;
        let mut splice = Splice::new(value);
        result::meta_of(&mut splice, value, &object, &self.server_info);
        Ok(splice.finish())
    }

    /// The one of a result that had none.
    pub(super) fn meta_member(&self) -> String {
        let mut out = String::from("\"_meta\":{");
        result::push_server_info(&mut out, &self.server_info);
        out.push('}');
        out
    }
}
