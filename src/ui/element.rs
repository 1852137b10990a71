//! The elements that are shown, and how they stand inside each other.

macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident = $path:literal,)*) => {
        /// An element that has a style of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        #[repr(u8)]
        pub enum Element {
            #[default]
            $($(#[$doc])* $name,)*
        }

        impl Element {
            /// Every element, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its path in a theme.
            #[must_use]
            pub fn path(self) -> &'static str {
                match self { $(Self::$name => $path,)* }
            }
        }
    };
}

elements! {
    /// Plain text.
    Text = "text",
    /// Space that lays things out.
    Pad = "pad",
    /// The label of the direct role.
    RoleSmith = "role.smith",
    /// The label of the orchestrator.
    RoleTank = "role.tank",
    /// The label of a worker.
    RoleNiobe = "role.niobe",
    /// The label of an explorer.
    RoleLink = "role.link",
    /// The bracket around a tool's name.
    ToolBracket = "tool.bracket",
    /// A tool's name.
    ToolName = "tool.name",
    /// A call's arguments.
    ToolArgs = "tool.args",
    /// What a tool printed.
    ToolOutput = "tool.output",
    /// The remark after a tool's result.
    ToolResult = "tool.result",
    /// A tool did what was asked.
    ToolOk = "tool.ok",
    /// A tool failed.
    ToolFailed = "tool.failed",
    /// A tool was cancelled.
    ToolCancelled = "tool.cancelled",
    /// The mode's name on the prompt line.
    PromptMode = "prompt.mode",
    /// What stands between the parts of the prompt line.
    PromptSeparator = "prompt.separator",
    /// The model on the prompt line.
    PromptModel = "prompt.model",
    /// How full the window is.
    PromptContext = "prompt.context",
    /// The same when it is nearly full.
    PromptContextHigh = "prompt.context_high",
    /// What the conversation cost.
    PromptCost = "prompt.cost",
    /// How many lines wait.
    PromptQueued = "prompt.queued",
    /// The sign the input stands after.
    PromptSign = "prompt.sign",
    /// The state: thinking.
    PromptThinking = "prompt.thinking",
    /// The state: the answer arrives.
    PromptStreaming = "prompt.streaming",
    /// The state: a tool runs.
    PromptTool = "prompt.tool",
    /// The state: nothing runs.
    PromptIdle = "prompt.idle",
    /// The state: the last turn failed.
    PromptError = "prompt.error",
    /// The state: the last turn was cancelled.
    PromptCancelled = "prompt.cancelled",
    /// A heading of the first rank.
    Heading1 = "md.heading1",
    /// A heading of the second rank.
    Heading2 = "md.heading2",
    /// A heading of lower rank.
    Heading3 = "md.heading3",
    /// The mark before a heading where it cannot be told by its looks.
    HeadingMark = "md.heading_mark",
    /// Strong text.
    Strong = "md.strong",
    /// Emphasised text.
    Emphasis = "md.emphasis",
    /// Text struck out.
    Strike = "md.strike",
    /// Code within text.
    Code = "md.code",
    /// The mark around code where it cannot be told by its looks.
    CodeMark = "md.code_mark",
    /// A block of code.
    CodeBlock = "md.code_block",
    /// The language of a block of code.
    CodeLang = "md.code_lang",
    /// A link's text.
    Link = "md.link",
    /// A link's address beside its text.
    Url = "md.url",
    /// Quoted text.
    Quote = "md.quote",
    /// The bar beside quoted text.
    QuoteBar = "md.quote_bar",
    /// The mark of a list's item.
    ListMarker = "md.list_marker",
    /// The label of an alert.
    Alert = "md.alert",
    /// The lines of a table.
    TableBorder = "md.table_border",
    /// The head of a table.
    TableHeader = "md.table_header",
    /// A rule between parts.
    Rule = "md.rule",
    /// HTML, which is shown as it came.
    Html = "md.html",
    /// The file of a difference.
    DiffFile = "diff.file",
    /// The place of a difference.
    DiffHunk = "diff.hunk",
    /// An unchanged line.
    DiffContext = "diff.context",
    /// An added line.
    DiffAdded = "diff.added",
    /// A removed line.
    DiffRemoved = "diff.removed",
    /// What was added within a line.
    DiffAddedWord = "diff.added_word",
    /// What was removed within a line.
    DiffRemovedWord = "diff.removed_word",
    /// The mark of something good to know.
    NoticeInfo = "notice.info",
    /// The mark of something that needs a look.
    NoticeWarn = "notice.warn",
    /// The mark of an error.
    NoticeError = "notice.error",
    /// A notice's text.
    NoticeText = "notice.text",
    /// What to do next.
    NoticeHint = "notice.hint",
    /// Counts of tokens and times.
    Usage = "usage",
    /// Says that something was left out.
    Marker = "marker",
    /// The sign of work going on.
    Spinner = "spinner",
    /// The model's thoughts.
    Thinking = "thinking",
    /// A question to the user.
    Question = "question",
    /// A possible answer.
    Choice = "choice",
    /// A view's title.
    ViewTitle = "view.title",
    /// A view's bar.
    ViewBar = "view.bar",
    /// A found text.
    ViewMatch = "view.match",
    /// The found text the view stands at.
    ViewMatchCurrent = "view.match_current",
    /// A chosen row.
    ViewSelected = "view.selected",
}

impl Element {
    /// Whether its text is ours and no part of what is shown: marks, bars, padding.
    #[must_use]
    pub fn is_decoration(self) -> bool {
        matches!(
            self,
            Self::Pad
                | Self::HeadingMark
                | Self::CodeMark
                | Self::CodeLang
                | Self::Url
                | Self::QuoteBar
                | Self::ListMarker
                | Self::Alert
                | Self::TableBorder
                | Self::Rule
                | Self::Marker
        )
    }

    /// The element of a path.
    #[must_use]
    pub fn named(path: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|element| element.path() == path)
    }
}

/// The label element of the role named `role`; of a role nobody knows that of the direct one.
#[must_use]
pub fn role_element(role: &str) -> Element {
    match role {
        "orchestrator" => Element::RoleTank,
        "worker" => Element::RoleNiobe,
        "explorer" => Element::RoleLink,
        _ => Element::RoleSmith,
    }
}

/// The most elements a style remembers; deeper nesting replaces the innermost.
const NESTING: usize = 5;

/// How a piece of text looks: its element within the elements around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Style {
    path: [Element; NESTING],
    len: u8,
}

impl Style {
    /// The style of `element` on its own.
    #[must_use]
    pub fn of(element: Element) -> Self {
        Self::default().within(element)
    }

    /// The style of `element` inside this one.
    #[must_use]
    pub fn within(mut self, element: Element) -> Self {
        let last = usize::from(self.len).min(NESTING - 1);
        self.path[last] = element;
        self.len = u8::try_from(last + 1).unwrap_or(0);
        self
    }

    /// The elements, outermost first.
    #[must_use]
    pub fn elements(&self) -> &[Element] {
        &self.path[..usize::from(self.len)]
    }

    /// Whether its text is ours and no part of what is shown.
    #[must_use]
    pub fn is_decoration(&self) -> bool {
        self.elements().iter().any(|element| element.is_decoration())
    }
}

impl From<Element> for Style {
    fn from(element: Element) -> Self {
        Self::of(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_keeps_the_outermost_and_the_innermost() {
        let outer = Style::of(Element::Quote);
        let deep = (0..20)
            .fold(outer, |style, _| style.within(Element::Strong))
            .within(Element::Code);
        assert_eq!(deep.elements().first(), Some(&Element::Quote));
        assert_eq!(deep.elements().last(), Some(&Element::Code));
        assert_eq!(deep.elements().len(), NESTING);
    }

    #[test]
    fn every_role_has_its_own_label() {
        let labels = ["direct", "orchestrator", "worker", "explorer"].map(role_element);
        assert_eq!(
            labels.map(Element::path),
            ["role.smith", "role.tank", "role.niobe", "role.link"]
        );
        assert_eq!(role_element("stranger"), Element::RoleSmith);
    }
}
