//! What a modern request declares about its client: capabilities, log level, name.
//!
//! Rules: A3.2-A3.7, A4.2-A4.4, A9.1. Only reads; the checks that refuse a request stand in `downstream::modern`.

use crate::wire::json::{Cursor, Limits, Object, Span};
use crate::wire::jsonrpc::{Request, string};
use crate::wire::meta;

/// What a legacy server may ask of its client in the middle of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Elicitation,
    UrlElicitation,
    Sampling,
    Roots,
}

impl Question {
    /// `None` for a request that is no question, such as `ping`.
    pub fn of(method: &str) -> Option<Self> {
        Some(match method {
            "elicitation/create" => Question::Elicitation,
            "sampling/createMessage" => Question::Sampling,
            "roots/list" => Question::Roots,
            _ => return None,
        })
    }

    /// The object for `requiredCapabilities` (A11.9).
    pub fn required(self) -> &'static str {
        match self {
            Question::Elicitation => r#"{"elicitation":{}}"#,
            Question::UrlElicitation => r#"{"elicitation":{"url":{}}}"#,
            Question::Sampling => r#"{"sampling":{}}"#,
            Question::Roots => r#"{"roots":{}}"#,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Question::Elicitation | Question::UrlElicitation => "elicitation",
            Question::Sampling => "sampling",
            Question::Roots => "roots",
        }
    }
}

/// Whether the request's `clientCapabilities` allow the question. `{}` under `elicitation` means form mode (A3.5).
pub fn allows(request: &Request, question: Question, limits: Limits) -> bool {
    let Some(capabilities) = capabilities(request).and_then(|span| object(&request.text, span, limits))
    else {
        return false;
    };
    let text = &request.text;
    let Some(declared) = capabilities.first(text, question.name()) else { return false };
    match question {
        Question::Sampling | Question::Roots => true,
        Question::Elicitation | Question::UrlElicitation => {
            let Some(modes) = object(text, declared, limits) else { return false };
            let (form, url) = (modes.first(text, "form").is_some(), modes.first(text, "url").is_some());
            if question == Question::UrlElicitation { url } else { form || !url }
        }
    }
}

/// The raw `clientCapabilities` object.
pub fn capabilities(request: &Request) -> Option<Span> {
    request.params.meta()?.first(&request.text, meta::CLIENT_CAPABILITIES)
}

/// The raw `clientInfo` object.
pub fn client_info(request: &Request) -> Option<&[u8]> {
    Some(request.params.meta()?.first(&request.text, meta::CLIENT_INFO)?.of(&request.text))
}

/// How grave a log message is, RFC 5424 order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "debug" => LogLevel::Debug,
            "info" => LogLevel::Info,
            "notice" => LogLevel::Notice,
            "warning" => LogLevel::Warning,
            "error" => LogLevel::Error,
            "critical" => LogLevel::Critical,
            "alert" => LogLevel::Alert,
            "emergency" => LogLevel::Emergency,
            _ => return None,
        })
    }
}

/// The level below which the request wants no log messages; `None`: it wants none at all (A2.4).
pub fn log_level(request: &Request) -> Option<LogLevel> {
    let span = request.params.meta()?.first(&request.text, meta::LOG_LEVEL)?;
    LogLevel::parse(&string(&request.text, span)?)
}

/// The raw progress token of a request.
pub fn progress_token(request: &Request) -> Option<&[u8]> {
    Some(request.params.meta()?.first(&request.text, meta::PROGRESS_TOKEN)?.of(&request.text))
}

/// Takes the object at `span` apart; `None` if it is no object or breaks a bound.
pub fn object(text: &[u8], span: Span, limits: Limits) -> Option<Object> {
    // Spans of a part are turned into spans of the whole, so that callers keep one text.
    let part = span.of(text);
    let mut cursor = Cursor::on_prefix(part, limits);
    let mut object = cursor.object(|cursor, _| cursor.skip()).ok()?;
    object.shift(span.start);
    Some(object)
}
