//! What is particular to a modern server's result on its way to a legacy client (`translate::legacy_client::result`).
//!
//! One thing that is done to a result which is held cannot be done here: a value that is no object gets no text block of
//! its own, since the list of blocks may have passed before it (B6.4). A result without any block is therefore held. Rules:
//! A4.10, A4.11, A4.13, B6.1-B6.5, B12.

use super::{Fate, Held, Structured};
use crate::translate::legacy_client::output::Output;
use crate::translate::legacy_client::result::{VOCABULARY, is_reserved};
use crate::wire::json::{Cursor, Limits, ScanFault, Splice};
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// What decides the form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub revision: LegacyRevision,
    /// What the called tool says of its results.
    pub output: Output,
    /// Content that the revision does not know is put into what it knows (A6).
    pub convert: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Down {
    /// Of a tool's result; `None` for the results of other methods.
    output: Option<Output>,
}

impl Down {
    /// `None` where the blocks of the content are looked at.
    pub(super) fn new(method: Method, form: Form) -> Option<Self> {
        let older = form.revision < LegacyRevision::V2025_06_18;
        match method {
            // Without structured results their text must be there, and whether it is, is known only at the end.
            Method::ToolsCall => (!older).then_some(Self { output: Some(form.output) }),
            Method::PromptsGet => (!older || !form.convert).then_some(Self { output: None }),
            _ => Some(Self { output: None }),
        }
    }

    pub(super) fn fate(&self, name: Option<&str>) -> Fate {
        match name {
            Some("_meta") => Fate::Hold(Held::Meta),
            Some("resultType") => Fate::Hold(Held::ResultType),
            Some("structuredContent") if self.output.is_some() => Fate::Structured,
            Some(name) if VOCABULARY.contains(&name) => Fate::Drop,
            Some(_) | None => Fate::Keep,
        }
    }

    pub(super) fn structured(&self, first: Option<u8>) -> Structured {
        match (self.output, first) {
            (Some(Output::Wrapped), _) => Structured::Wrap,
            (Some(Output::Unstated | Output::Object) | None, Some(b'{')) | (None, _) => Structured::Keep,
            (Some(Output::Unstated), _) => Structured::Wrap,
            (Some(Output::Object), _) => Structured::Drop,
        }
    }

    /// The server's own `_meta` without reserved keys; `None` if there were no others.
    pub(super) fn meta(value: &Bytes, limits: Limits) -> Result<Option<Payload>, ScanFault> {
        let mut cursor = Cursor::new(value, limits).map_err(|error| error.fault)?;
        let object = cursor.object(|cursor, _| cursor.skip()).map_err(|error| error.fault)?;
        let mut splice = Splice::new(value);
        let left = splice.rewrite(&object, |member| !is_reserved(value, member), "");
        Ok((left > 0 || object.is_empty()).then(|| splice.finish()))
    }
}
