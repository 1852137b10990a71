//! The core linked into a host that can load nothing: a small C program, LuaJIT and the archive, built here by the
//! recipe of docs/EMBEDDING.md, and then made to do what every host does.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::lua::{Carrier, Script};
use crate::support::mock_server::MockServer;
use crate::support::skip;

/// How the host is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Linked {
    /// The core from its archive, everything else as usual.
    Usual,
    /// No dynamic linking at all.
    Statically,
}

/// What the core needs of the system, by `rustc --print native-static-libs`.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// Builds the host; `None` where the machine has no compiler or no LuaJIT to build with (then it was said).
#[track_caller]
fn build(directory: &Path, linked: Linked) -> Option<PathBuf> {
    let compiler = skip::find("cc")?;
    let headers = skip::luajit_headers()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/embedding/static_host.c");
    let host = directory.join("static_host");
    let mut command = Command::new(compiler);
    command.arg("-I").arg(headers).arg(source).arg(skip::core_archive());
    command.arg("-lluajit-5.1");
    match linked {
        Linked::Usual => command.args(SYSTEM_LIBRARIES),
        // The unwinder is in libgcc_eh then, which the compiler adds by itself.
        Linked::Statically => command.args(&SYSTEM_LIBRARIES[..3]).arg("-static"),
    };
    let output = command.args(["-Wl,--gc-sections", "-o"]).arg(&host).output().unwrap();
    assert!(
        output.status.success(),
        "{linked:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(host)
}

fn played<'a>(host: &Path, home: &'a Home, name: &'static str, more: &Value) -> Option<Script<'a>> {
    Some(Script::new(home, Carrier::Native, name, more)?.hosted_by(host))
}

#[test]
fn a_host_with_the_core_linked_in_needs_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    for linked in [Linked::Usual, Linked::Statically] {
        if linked == Linked::Statically && !cfg!(target_os = "linux") {
            continue;
        }
        let Some(host) = build(directory.path(), linked) else {
            return;
        };
        let script = |home, name, more: Value| played(&host, home, name, &more);

        // A turn with a tool.
        let server = MockServer::start();
        server
            .answer(Answer::calls(&[(
                "c1",
                "bash",
                json!({"command": "echo from the tool"}),
            )]))
            .answer(Answer::says("Done."));
        let home = Home::with_server(&server.url());
        let steps = json!([{"do": "submit", "args": {"line": "Go."}}, {"wait": "input_settled"}]);
        let Some(turn) = script(&home, "scenario", json!({ "steps": steps })) else {
            return;
        };
        let said = turn.run();
        let event = |kind: &str| {
            let found = said.iter().find(|line| line["event"]["type"] == kind);
            found.unwrap_or_else(|| panic!("{linked:?}: no {kind}: {said:#?}"))["event"]["data"].clone()
        };
        assert_eq!(
            event("tool_execution_finished")["content"],
            "from the tool\n",
            "{linked:?}"
        );
        assert_eq!(event("turn_completed")["text"], "Done.", "{linked:?}");
        assert_eq!(event("turn_persisted")["durability"], "durable", "{linked:?}");

        // Panics unwind through what was linked in, …
        let server = MockServer::start();
        server.answer_with(|_| Answer::says("Fine."));
        let home = Home::with_server(&server.url());
        let Some(panic) = script(&home, "hazards", json!({"hazard": "panic"})) else {
            return;
        };
        let said = panic.env("AGENT_SMITH_FAILPOINT", "bridge.call=panic").run().remove(0);
        assert_eq!(
            (&said["first"]["kind"], &said["second"]["ok"]),
            (&json!("internal"), &json!(true)),
            "{said}"
        );
        // … and forks are noticed. (The script itself forks through LuaJIT's ffi, which finds nothing in a static program.)
        if linked == Linked::Statically {
            continue;
        }
        let Some(fork) = script(&home, "hazards", json!({"hazard": "fork"})) else {
            return;
        };
        let said = fork.run().remove(0);
        assert_eq!(
            (&said["child"]["submit"]["code"], &said["parent"]),
            (&json!("forked"), &json!("turn_persisted")),
            "{said}"
        );
    }
}
