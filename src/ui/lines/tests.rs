use super::*;
use crate::protocol::{CallOutcome, ChangedFile, MutationState, ToolFinish};
use crate::ui::line::{described, plain};
use serde_json::json;

const PAGE: Page = Page {
    width: 50,
    unicode: true,
    hyperlinks: false,
    marks: false,
};

fn finish(name: &str, ok: bool, content: &str, metadata: serde_json::Value) -> ToolFinish {
    ToolFinish {
        outcome: CallOutcome {
            call_id: "c1".into(),
            name: name.into(),
            mutation_state: MutationState::None,
        },
        ok,
        content: content.into(),
        content_chars: content.len(),
        error: None,
        duration_ms: 1234,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
    }
}

#[test]
fn a_call_is_one_line_whatever_its_arguments_are() {
    let call = |name, arguments: &str| plain(&[tool_call(&PAGE, Call { name, arguments })]);
    assert_eq!(call("bash", r#"{"command":"cargo test"}"#), "[bash] cargo test");
    assert_eq!(
        call("bash", r#"{"timeout":5,"command":"cd x\nmake\nmake install"}"#),
        "[bash] cd x … (+2 lines) timeout=5"
    );
    assert_eq!(
        call(
            "edit",
            r#"{"path":"src/a.rs","op":"replace_text","old":"x\ny","new":""}"#
        ),
        "[edit] src/a.rs op=replace_text new="
    );
    assert_eq!(call("odd", "{\"broken\": \x1b[2J"), "[odd] {\"broken\": ^[[2J");
    assert_eq!(call("report", "{}"), "[report]");
    assert_eq!(
        call("bash", &json!({"command": "x".repeat(90)}).to_string()),
        format!("[bash] {}…", "x".repeat(42))
    );
}

#[test]
fn results_say_how_it_went_and_show_the_head_of_what_came() {
    let output: String = (1..=12).map(|n| format!("\x1b[32mline {n}\x1b[0m\n")).collect();
    let ok = finish(
        "bash",
        true,
        &output,
        json!({"command": "x", "exit_code": 0, "output_lines": 12}),
    );
    let mut failed = finish(
        "bash",
        false,
        "Exit code 2.\nboom\n",
        json!({"command": "x", "exit_code": 2}),
    );
    failed.outcome.mutation_state = MutationState::Attempted;
    failed.error = Some(AgentError::new(ErrorKind::Tool, "exit_code", "no").with_hint("Read the output."));
    let read = finish(
        "read",
        true,
        "1 a\n2 b",
        json!({"path": "a", "first_line": 1, "last_line": 40, "lines": 300}),
    );
    let edit = finish(
        "edit",
        true,
        "done",
        json!({"path": "a", "line_delta": 1, "diff": "--- a\n+++ a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"}),
    );
    let arguments = r#"{"command":"x"}"#;
    let mut lines = vec![tool_call(
        &PAGE,
        Call {
            name: "bash",
            arguments,
        },
    )];
    lines.extend(tool_finished(&PAGE, &ok, false));
    lines.extend(tool_finished(&PAGE, &failed, true));
    lines.extend(tool_finished(&PAGE, &read, false));
    lines.extend(tool_finished(&PAGE, &edit, false));
    lines.push(tool_cancelled(
        &PAGE,
        &CallOutcome {
            call_id: "c".into(),
            name: "write".into(),
            mutation_state: MutationState::Unknown,
        },
        true,
    ));
    insta::assert_snapshot!(plain(&lines), @"
    [bash] x
      line 1
      line 2
      line 3
      line 4
      line 5
      line 6
      … 6 more lines
      ok · 12 lines · 1.2 s
      Exit code 2.
      boom
      [bash] failed · exit 2 · 1.2 s · may have chang…
      Read the output.
      ok · lines 1–40 of 300 · 1.2 s
      1 - x
      1 + y
      2 + z
      ok · +1 · 1.2 s
      [write] cancelled · nobody can say what it chan…
    ");
    insta::assert_snapshot!(described(&tool_finished(&PAGE, &failed, true)), @"
    <tool.output>Exit code 2.</>
    <tool.output>boom</>
    <tool.bracket>[</><tool.name>bash</><tool.bracket>]</> <tool.failed>failed</><tool.result> · </><tool.result>exit 2</><tool.result> · </><tool.result>1.2 s</><tool.result> · </><tool.result>may have chang</><marker>…</>
    <notice.hint>Read the output.</>
    ");
}

#[test]
fn notices_errors_and_questions() {
    let long = "The configuration has a key that nobody knows, namely colour.";
    let mut lines = notice(&PAGE, NoticeLevel::Warn, long, Some("Did you mean color?"));
    let error_with_hint = AgentError::new(ErrorKind::Transport, "connection", "Nobody answers at 127.0.0.1:1.")
        .with_hint("Start the server.");
    lines.extend(error(&PAGE, &error_with_hint));
    lines.extend(error(&PAGE, &AgentError::cancelled("turn")));
    lines.extend(retry(&PAGE, 1, 3, 2000, &error_with_hint));
    lines.extend(question(
        &PAGE,
        "Which model?",
        &["small".into(), "large".into()],
        Some("large"),
    ));
    lines.extend(question(&PAGE, "Name?", &[], Some("x")));
    lines.push(queued(&PAGE, "and then\nthe rest", 2));
    lines.push(trimmed(&PAGE, "elide", 120_000, 80_000));
    lines.extend(command_result(&PAGE, "models", "- a\n- b", true));
    let reason = "there is no command /model\n(/help lists the commands)";
    lines.extend(command_result(&PAGE, "model", reason, false));
    lines.push(role_label(&PAGE, "direct"));
    insta::assert_snapshot!(described(&lines), @"
    <notice.warn>warning: </><notice.text>The configuration has a key that nobody</>
             <notice.text>knows, namely colour.</>
      <notice.hint>Did you mean color?</>
    <notice.error>error: </><notice.text>Nobody answers at 127.0.0.1:1.</>
      <notice.hint>Start the server.</>
    <tool.cancelled>cancelled</>
    <notice.warn>warning: </><notice.text>Nobody answers at 127.0.0.1:1. Retry 1 of</>
             <notice.text>3 in 2.0 s.</>
    <question>? </><question>Which model?</>
    <choice>  1. </>small
    <choice>  2. </>large<marker> (default)</>
    <question>? </><question>Name?</>
      <marker>default: x</>
    <prompt.queued>queued (2): </><marker>and then</>
    <marker>context elide: 120k → 80k tokens</>
    <md.list_marker>•</> a
    <md.list_marker>•</> b
    <notice.error>/model: </><notice.text>there is no command /model</>
            <notice.text>(/help lists the commands)</>
    <role.smith>Smith</>
    ");
}

#[test]
fn counts_of_a_turn() {
    let usage_of = crate::message::Usage {
        prompt_tokens: 12_345,
        completion_tokens: 678,
        cached_tokens: Some(8_000),
        cost: Some(0.0123),
        requests: 3,
        estimated: true,
        ..Default::default()
    };
    let wide = Page { width: 80, ..PAGE };
    assert_eq!(
        usage(&wide, &usage_of, 14_200).plain(),
        "3 requests · ~12k in (8.0k cached) · ~678 out · $0.0123 · 14.2 s"
    );
    assert_eq!(usage(&Page { width: 20, ..PAGE }, &usage_of, 14_200).width(), 20);
}

#[test]
fn a_narrow_page_is_kept_to() {
    let narrow = Page { width: 12, ..PAGE };
    let mut lines = notice(&narrow, NoticeLevel::Warn, "some words", Some("hint"));
    lines.extend(question(
        &narrow,
        "Which one?",
        &["a".into(), "something".into()],
        Some("something"),
    ));
    lines.extend(command_result(&narrow, "conversation", "text", false));
    insta::assert_snapshot!(plain(&lines), @"
    warning:
    some words
      hint
    ? Which one?
      1. a
      2. somethi
         ng
         (defaul
         t)
    /conversati…
    text
    ");
    assert!(lines.iter().all(|line| line.width() <= 12));
}

#[test]
fn changed_files_are_named_with_what_came_and_went() {
    let file = |path: &str, new, added, removed| ChangedFile {
        path: path.to_owned(),
        new,
        added,
        removed,
    };
    let files = [
        file("src/a.rs", false, Some(3), Some(1)),
        file("b.md", true, Some(10), Some(0)),
        file("picture.png", false, None, None),
    ];
    let lines = changed_files(&PAGE, &files);
    assert_eq!(plain(&lines), "changed: src/a.rs +3 -1, b.md (new) +10,\npicture.png");
    let many: Vec<_> = (0..20).map(|n| file(&format!("f{n}"), false, Some(1), None)).collect();
    let text = plain(&changed_files(&PAGE, &many)).replace('\n', " ");
    assert!(text.ends_with("f11 +1, and 8 more"), "{text}");
}
