//! The flags that stand for `schema.policy`, `schema.arguments`, `schema.results` and `schema.documents`.

use super::super::error::ConfigError;
use super::super::flags::{FILES, leaf};
use super::super::raw::{self, Leaf};
use clap::Args;
use toml::Value;

/// The schema guard of one server, without a file.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaFlags {
    /// What becomes of tools with unsound schemas: left out, or passed on and logged [default: drop]
    #[arg(long, value_name = "POLICY", conflicts_with_all = FILES, value_parser = ["drop", "warn"])]
    pub schema_policy: Option<String>,
    /// Check arguments of calls against the tool's inputSchema [default: off]
    #[arg(long, value_name = "WHAT", conflicts_with_all = FILES, value_parser = ["off", "warn", "enforce"])]
    pub validate_arguments: Option<String>,
    /// Check results of calls against the tool's outputSchema [default: off]
    #[arg(long, value_name = "WHAT", conflicts_with_all = FILES, value_parser = ["off", "warn", "enforce"])]
    pub validate_results: Option<String>,
    /// JSON file in the place of the document URI, which schemas refer to; nothing is ever fetched
    #[arg(long, value_name = "URI=FILE", conflicts_with_all = FILES)]
    pub schema_document: Vec<String>,
}

/// The one of them that `probe` has.
#[derive(Debug, Clone, Default, Args)]
pub struct DocumentFlags {
    /// JSON file in the place of the document URI, which schemas refer to; nothing is ever fetched
    #[arg(long, value_name = "URI=FILE")]
    pub schema_document: Vec<String>,
}

impl From<DocumentFlags> for SchemaFlags {
    fn from(flags: DocumentFlags) -> Self {
        Self { schema_document: flags.schema_document, ..Self::default() }
    }
}

impl SchemaFlags {
    pub(in crate::config) fn raw(&self) -> Result<raw::Schema, ConfigError> {
        Ok(raw::Schema {
            policy: leaf(self.schema_policy.as_ref()),
            arguments: leaf(self.validate_arguments.as_ref()),
            results: leaf(self.validate_results.as_ref()),
            documents: documents(&self.schema_document)?,
            ..raw::Schema::default()
        })
    }
}

fn documents(flags: &[String]) -> Result<Leaf, ConfigError> {
    let mut table = toml::Table::new();
    for flag in flags {
        let refuse =
            |accepted: &str| ConfigError::value("--schema-document", &Value::String(flag.clone()), accepted);
        // A URI may have a query, and a file's name seldom has the sign.
        let (uri, file) = flag.rsplit_once('=').ok_or_else(|| refuse("URI=FILE"))?;
        if table.insert(uri.to_owned(), Value::String(file.to_owned())).is_some() {
            return Err(refuse("each URI once"));
        }
    }
    Ok((!table.is_empty()).then_some(Value::Table(table)))
}

/// The flag that stands for a setting below `schema.documents`, with the URI as it is quoted there.
pub(in crate::config) fn document_flag(setting: &str) -> Option<String> {
    let uri = setting.strip_prefix("schema.documents.")?;
    Some(format!("--schema-document {uri}"))
}
