//! The methods of both eras and what the envelope rules say of each (translation A1, A4.11, A13.2).
//!
//! Owns the names and their standing per era. What is done with a method is written in `translate` and the edges.

/// A request method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Discover,
    ToolsList,
    ToolsCall,
    PromptsList,
    PromptsGet,
    ResourcesList,
    ResourcesTemplatesList,
    ResourcesRead,
    Complete,
    Listen,
    /// A method of the legacy era alone: a modern peer does not implement it (A1.1, A1.2, A1.8, A1.11, A1.15).
    LegacyOnly(LegacyOnly),
    /// `tasks/get`, `tasks/update`, `tasks/cancel`: the modern tasks extension (A10), which is not bridged across eras.
    Task,
    /// A request that servers send to clients; from a client it is an unknown method.
    ServerToClient,
    /// In neither era's registry: passed on under its own name (A1.16).
    Custom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LegacyOnly {
    Initialize,
    Ping,
    SetLevel,
    Subscribe,
    Unsubscribe,
    /// `tasks/result` and `tasks/list` of 2025-11-25.
    Task,
}

/// The member of `params` that `Mcp-Name` repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMember {
    Name,
    Uri,
    TaskId,
}

impl NameMember {
    pub fn as_str(self) -> &'static str {
        match self {
            NameMember::Name => "name",
            NameMember::Uri => "uri",
            NameMember::TaskId => "taskId",
        }
    }
}

impl Method {
    pub fn of(name: &str) -> Self {
        match name {
            "server/discover" => Method::Discover,
            "tools/list" => Method::ToolsList,
            "tools/call" => Method::ToolsCall,
            "prompts/list" => Method::PromptsList,
            "prompts/get" => Method::PromptsGet,
            "resources/list" => Method::ResourcesList,
            "resources/templates/list" => Method::ResourcesTemplatesList,
            "resources/read" => Method::ResourcesRead,
            "completion/complete" => Method::Complete,
            "subscriptions/listen" => Method::Listen,
            "initialize" => Method::LegacyOnly(LegacyOnly::Initialize),
            "ping" => Method::LegacyOnly(LegacyOnly::Ping),
            "logging/setLevel" => Method::LegacyOnly(LegacyOnly::SetLevel),
            "resources/subscribe" => Method::LegacyOnly(LegacyOnly::Subscribe),
            "resources/unsubscribe" => Method::LegacyOnly(LegacyOnly::Unsubscribe),
            "tasks/result" | "tasks/list" => Method::LegacyOnly(LegacyOnly::Task),
            "tasks/get" | "tasks/update" | "tasks/cancel" => Method::Task,
            "sampling/createMessage" | "elicitation/create" | "roots/list" => Method::ServerToClient,
            _ => Method::Custom,
        }
    }

    /// For logs and metrics: a bounded set of labels, since a custom name is the client's to choose.
    pub fn label(self) -> &'static str {
        match self {
            Method::Discover => "server/discover",
            Method::ToolsList => "tools/list",
            Method::ToolsCall => "tools/call",
            Method::PromptsList => "prompts/list",
            Method::PromptsGet => "prompts/get",
            Method::ResourcesList => "resources/list",
            Method::ResourcesTemplatesList => "resources/templates/list",
            Method::ResourcesRead => "resources/read",
            Method::Complete => "completion/complete",
            Method::Listen => "subscriptions/listen",
            Method::LegacyOnly(LegacyOnly::Initialize) => "initialize",
            Method::LegacyOnly(LegacyOnly::Ping) => "ping",
            Method::LegacyOnly(LegacyOnly::SetLevel) => "logging/setLevel",
            Method::LegacyOnly(LegacyOnly::Subscribe) => "resources/subscribe",
            Method::LegacyOnly(LegacyOnly::Unsubscribe) => "resources/unsubscribe",
            Method::LegacyOnly(LegacyOnly::Task) | Method::Task => "tasks",
            Method::ServerToClient => "server-to-client",
            Method::Custom => "custom",
        }
    }

    /// Whether `Mcp-Name` is required, and what it repeats (A13.2).
    pub fn name_member(self) -> Option<NameMember> {
        match self {
            Method::ToolsCall | Method::PromptsGet => Some(NameMember::Name),
            Method::ResourcesRead => Some(NameMember::Uri),
            Method::Task => Some(NameMember::TaskId),
            Method::Discover
            | Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::Complete
            | Method::Listen
            | Method::LegacyOnly(_)
            | Method::ServerToClient
            | Method::Custom => None,
        }
    }

    /// Whether a modern result carries `ttlMs` and `cacheScope` (A4.11).
    pub fn cacheable(self) -> bool {
        matches!(
            self,
            Method::Discover
                | Method::ToolsList
                | Method::PromptsList
                | Method::ResourcesList
                | Method::ResourcesTemplatesList
                | Method::ResourcesRead
        )
    }

    /// Whether a modern server may answer with `input_required` (spec basic/patterns/mrtr, Supported Requests).
    pub fn can_ask(self) -> bool {
        matches!(self, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
    }

    /// The capability under which a server that has the method declares it; empty where there is none.
    pub fn capability(self) -> &'static str {
        match self {
            Method::ToolsList | Method::ToolsCall => "tools",
            Method::PromptsList | Method::PromptsGet => "prompts",
            Method::ResourcesList | Method::ResourcesTemplatesList | Method::ResourcesRead => "resources",
            Method::Complete => "completions",
            Method::Discover
            | Method::Listen
            | Method::LegacyOnly(_)
            | Method::Task
            | Method::ServerToClient
            | Method::Custom => "",
        }
    }
}
