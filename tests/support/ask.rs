//! One HTTP request of a client, modern unless it is told otherwise, built from raw JSON text so that a test says every byte that matters.
//!
//! Owns the well-formed request and the ways to spoil it. Does not own sending (`client`).

use super::http1::Headers;

pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPS: &str = "io.modelcontextprotocol/clientCapabilities";
pub const INFO: &str = "io.modelcontextprotocol/clientInfo";

/// A request; `Ask::new` alone is valid for methods that need no further parameter.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: String,
    pub id: Option<String>,
    pub meta: Vec<(String, String)>,
    pub verb: String,
    pub path: String,
    pub headers: Headers,
    members: String,
    more: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    /// Whose eyes the answer is looked at with: those of a legacy client.
    pub legacy: bool,
}

pub fn call(tool: &str, arguments: &str) -> Ask {
    Ask::new("tools/call")
        .header("Mcp-Name", tool)
        .params(&format!(r#""name":"{tool}","arguments":{arguments}"#))
}

pub fn read(uri: &str) -> Ask {
    Ask::new("resources/read").header("Mcp-Name", uri).params(&format!(r#""uri":"{uri}""#))
}

pub fn get_prompt(name: &str) -> Ask {
    Ask::new("prompts/get").header("Mcp-Name", name).params(&format!(r#""name":"{name}""#))
}

pub fn list(method: &str) -> Ask {
    Ask::new(method)
}

impl Ask {
    pub fn new(method: &str) -> Self {
        let meta = [(VERSION, r#""2026-07-28""#), (INFO, r#"{"name":"c","version":"1"}"#), (CAPS, "{}")];
        let ask = Self {
            method: method.to_owned(),
            id: Some("1".to_owned()),
            meta: meta.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            verb: "POST".to_owned(),
            path: "/mcp".to_owned(),
            headers: Headers::default(),
            members: String::new(),
            more: Vec::new(),
            body: None,
            legacy: false,
        };
        ask.header("Host", "127.0.0.1:8808")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method)
    }

    /// As a client of an older revision sends it: no claim, no mirrored headers, no version header yet.
    pub fn old(method: &str) -> Self {
        let mut ask = Self::new(method);
        ask.legacy = true;
        ask.meta.clear();
        ask.without("Mcp-Method").without("MCP-Protocol-Version")
    }

    /// A bare request of another verb, without a body.
    pub fn verb(verb: &str) -> Self {
        let mut ask = Self::new("");
        verb.clone_into(&mut ask.verb);
        ask.body = Some(Vec::new());
        ask.without("Mcp-Method").without("Content-Type")
    }

    /// The id as raw JSON.
    #[must_use]
    pub fn id(mut self, raw: &str) -> Self {
        self.id = Some(raw.to_owned());
        self
    }

    /// A notification: no id.
    #[must_use]
    pub fn notification(mut self) -> Self {
        self.id = None;
        self
    }

    /// Members of `params` besides `_meta`, as raw JSON without braces.
    #[must_use]
    pub fn params(mut self, members: &str) -> Self {
        members.clone_into(&mut self.members);
        self
    }

    /// One more member of `params` behind all others, as raw JSON.
    #[must_use]
    pub fn member(mut self, name: &str, raw: &str) -> Self {
        self.more.push((name.to_owned(), raw.to_owned()));
        self
    }

    /// Takes back what `member` added under this name.
    #[must_use]
    pub fn without_member(mut self, name: &str) -> Self {
        self.more.retain(|(other, _)| other != name);
        self
    }

    /// Sets or adds a key of `_meta` to raw JSON.
    #[must_use]
    pub fn meta(mut self, key: &str, raw: &str) -> Self {
        match self.meta.iter_mut().find(|(k, _)| k == key) {
            Some((_, value)) => raw.clone_into(value),
            None => self.meta.push((key.to_owned(), raw.to_owned())),
        }
        self
    }

    #[must_use]
    pub fn without_meta(mut self, key: &str) -> Self {
        self.meta.retain(|(k, _)| k != key);
        self
    }

    /// The client's capabilities as raw JSON.
    #[must_use]
    pub fn caps(self, raw: &str) -> Self {
        self.meta(CAPS, raw)
    }

    /// Sets a header, in place of any of that name.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.without(name).add_header(name, value.as_bytes())
    }

    /// Adds a header line beside those of that name.
    #[must_use]
    pub fn add_header(mut self, name: &str, value: &[u8]) -> Self {
        self.headers.0.push((name.to_owned(), value.to_vec()));
        self
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.0.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The body as it is, in place of the one that would be built.
    #[must_use]
    pub fn raw_body(mut self, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        self
    }

    pub fn body(&self) -> Vec<u8> {
        if let Some(body) = &self.body {
            return body.clone();
        }
        let object = |members: &[(String, String)]| {
            members.iter().map(|(k, v)| format!(r#""{k}":{v}"#)).collect::<Vec<_>>().join(",")
        };
        let meta = if self.meta.is_empty() {
            String::new()
        } else {
            format!(r#""_meta":{{{}}}"#, object(&self.meta))
        };
        let params = [meta, self.members.clone(), object(&self.more)];
        let params: Vec<_> = params.into_iter().filter(|part| !part.is_empty()).collect();
        let params = params.join(",");
        let id = self.id.as_ref().map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
        let method = &self.method;
        format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{{params}}}}}"#).into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let body = self.body();
        let mut out = format!("{} {} HTTP/1.1\r\n", self.verb, self.path).into_bytes();
        for (name, value) in &self.headers.0 {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        if self.verb == "POST" {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&body);
        out
    }
}
