//! A request to a provider, with what most tests leave as it is.

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::llm::{
    ChatRequest, ChatResponse, Client, ClientConfig, LlmFailure, Provider, RequestParams, StreamEvent,
};
use agent_smith_core::message::{Message, ToolDefinition};
use serde_json::json;

use super::mock_server::MockServer;

/// What came of a request: its outcome and the events on the way.
pub type Asked = (Result<ChatResponse, LlmFailure>, Vec<StreamEvent>);

/// A request: by default "Go." to the model `m`, streamed, without tools.
#[derive(Clone)]
pub struct Ask {
    pub model: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolDefinition>,
    pub params: RequestParams,
    pub stream: bool,
    pub cancel: CancelToken,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            model: "m".to_owned(),
            messages: vec![Message::user("Go.")],
            tools: Vec::new(),
            params: RequestParams::default(),
            stream: true,
            cancel: CancelToken::new_root(),
        }
    }
}

impl Ask {
    /// The request as a provider takes it.
    pub fn request(&self) -> ChatRequest<'_> {
        ChatRequest {
            model: &self.model,
            messages: &self.messages,
            tools: &self.tools,
            params: &self.params,
            stream: self.stream,
        }
    }

    /// Asks, and tells each event.
    pub async fn telling(
        &self,
        provider: &dyn Provider,
        mut sink: impl FnMut(StreamEvent) + Send,
    ) -> Result<ChatResponse, LlmFailure> {
        provider.chat(self.request(), &mut sink, &self.cancel).await
    }

    /// Asks, and collects the events.
    pub async fn collecting(&self, provider: &dyn Provider) -> Asked {
        let mut events = Vec::new();
        let outcome = self.telling(provider, |event| events.push(event)).await;
        (outcome, events)
    }

    /// Asks.
    pub async fn of(&self, provider: &dyn Provider) -> Result<ChatResponse, LlmFailure> {
        self.telling(provider, |_| {}).await
    }
}

/// A client of this server with nothing special.
pub fn client(server: &MockServer) -> Client {
    Client::new(ClientConfig::new(server.url())).unwrap()
}

/// A tool that takes whatever it gets.
pub fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        parameters: json!({"type": "object", "properties": {}}),
    }
}
