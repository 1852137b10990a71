//! How a turn starts: the prompt it continues, what goes to the model with the line, and the model that answers.

use std::sync::Arc;

use crate::completion::mention_text;
use crate::error::AgentError;
use crate::message::{Message, Speaker};
use crate::persistence::Batch;
use crate::prompt::{Attached, MemoryEntry, PromptState, attach, with_note};
use crate::protocol::NoticeLevel;
use crate::role::Role;
use crate::runtime::actor::Actor;
use crate::runtime::context::ExecutionContext;
use crate::runtime::conversations::LastTurn;
use crate::runtime::held::Conversation;
use crate::runtime::scope::{TurnScope, project};
use crate::runtime::turns::TurnJob;

/// A turn that somebody asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnRequest {
    /// What the user typed.
    pub line: String,
    /// What the model gets instead of it: the prompt of a command of the user's own.
    pub text: Option<String>,
    /// The role of this turn alone.
    pub role: Option<Role>,
    /// The model of this turn alone.
    pub model: Option<String>,
    /// Files to put before the model with the line.
    pub attachments: Vec<String>,
    /// The turn whose place it takes.
    pub replaces: Option<LastTurn>,
}

impl TurnRequest {
    /// A turn for a line as it was typed.
    pub(super) fn line(line: String) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }
}

impl Actor {
    /// What a turn needs, and whether the user has to hear first that the embedded model answers. Nothing has changed
    /// where this fails.
    pub(super) fn turn_job(
        &mut self,
        conversation: &mut Conversation,
        request: TurnRequest,
    ) -> Result<(TurnJob, bool), AgentError> {
        let scope = TurnScope {
            project: project(&self.cwd),
            env: self.env.clone(),
        };
        let role = request.role.unwrap_or(self.role);
        let model_override = request.model.clone().or_else(|| self.model_override.clone());
        let (selection, provider, tell_of_demo) = self.model_of_turn(role, model_override.as_deref())?;
        let fallbacks = self.services.model.fallbacks(role, model_override.as_deref());
        let turn = self.lifecycle.begin_turn(conversation.record.turns + 1)?;

        let mut replaced = Batch::default();
        let repeated = request.replaces.as_ref().and_then(|last| {
            let said = conversation.transcript.messages().get(last.start).cloned()?;
            let acted = conversation.transcript.messages()[last.start..]
                .iter()
                .any(|message| message.role == Speaker::Tool);
            if acted {
                self.notes.push(
                    "The user asks this again. An earlier attempt was taken out of the conversation; what its tools \
                     did (to files, for instance) is still done: look before you repeat it."
                        .to_owned(),
                );
            }
            for id in &last.message_ids {
                replaced.delete_message(&conversation.record.id, id);
            }
            conversation.cut(last.start);
            Some(said.content)
        });
        let note = self.prepare_prompt(conversation, role, &scope);
        let text = repeated.unwrap_or_else(|| {
            let text = request.text.as_deref().unwrap_or(&request.line);
            self.with_surroundings(text, &request.attachments)
        });
        let record = &mut conversation.record;
        record.role = self.role.name().to_owned();
        record.cwd = scope.project.cwd.display().to_string();
        record.model_override.clone_from(&self.model_override);
        if record.title.is_empty() {
            record.title = title(&request.line);
        }
        self.shared.change_status(|status| {
            status.model.clone_from(&selection.model);
            status.role = role.name().to_owned();
            status.label = role.spec().label.to_owned();
        });
        let job = TurnJob {
            context: ExecutionContext {
                session_id: Arc::clone(&self.session_id),
                active_role: role,
                conversation_id: conversation.record.id.as_str().into(),
                services: Arc::clone(&self.services),
                scope,
                model_override,
            },
            turn,
            provider,
            model: selection,
            fallbacks,
            input: Message::user(with_note(note.as_deref(), &text)),
            line: request.line,
            replaced,
            read_only: self.read_only,
            bus: self.bus.clone(),
            steering: self.steering.clone(),
            tool_state: Arc::clone(&self.tool_state),
            remember: self.remember,
        };
        Ok((job, tell_of_demo))
    }

    /// Freezes the system prompt where there is none yet, and gives the note on what changed since.
    fn prepare_prompt(&mut self, conversation: &mut Conversation, role: Role, scope: &TurnScope) -> Option<String> {
        let memories = self.memory_entries();
        let build = |role: Role| self.services.prompt.system_prompt(role, &scope.project, &memories);
        let built = build(self.role);
        if conversation.transcript.system.is_none() {
            for text in built.notices {
                self.tell(NoticeLevel::Warn, text, None);
            }
            conversation.record.system_prompt = Some(built.text.clone());
            conversation.transcript.system = Some(built.text);
            conversation.told = Some(built.state.clone());
        }
        let state: PromptState = if role == self.role {
            built.state
        } else {
            build(role).state
        };
        let changed = conversation
            .told
            .as_ref()
            .and_then(|told| state.note_since(told, Some(&scope.project)));
        conversation.tell(state);
        let notes = std::mem::take(&mut self.notes);
        let own = (!notes.is_empty()).then(|| format!("<context_note>\n{}\n</context_note>", notes.join("\n")));
        match (changed, own) {
            (Some(changed), Some(own)) => Some(format!("{changed}\n\n{own}")),
            (changed, own) => changed.or(own),
        }
    }

    pub(super) fn memory_entries(&self) -> Vec<MemoryEntry> {
        let entry = |memory: &crate::persistence::ProjectMemory| MemoryEntry::new(&memory.id, &memory.content);
        self.memories.iter().map(entry).collect()
    }

    /// A user's text with what the shell printed before it, and the files it mentions after it.
    fn with_surroundings(&mut self, text: &str, attachments: &[String]) -> String {
        let mut whole = self.shell_output.take_text();
        whole.push_str(&self.with_files(text, attachments));
        whole
    }

    /// A user's text with the files it mentions after it.
    pub(super) fn with_files(&self, text: &str, attachments: &[String]) -> String {
        let project = project(&self.cwd);
        let root = project.git_root.as_deref().unwrap_or(&self.cwd);
        let max_chars = usize::try_from(self.services.config.u64("prompt.attachment_chars")).unwrap_or(usize::MAX);
        let mut mentions = text.to_owned();
        for path in attachments {
            mentions.push(' ');
            mentions.push_str(&mention_text(path));
        }
        let Attached {
            text: files, notices, ..
        } = attach(&mentions, &self.cwd, root, max_chars);
        for notice in notices {
            self.tell(NoticeLevel::Warn, notice, None);
        }
        if files.is_empty() {
            text.to_owned()
        } else {
            format!("{text}\n\n{files}")
        }
    }
}

/// The first line of what the user said first, as the conversation's name in lists.
fn title(line: &str) -> String {
    const MAX_CHARS: usize = 80;
    line.trim()
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_CHARS)
        .collect()
}
