//! The Lua shim under a Lua of its own (Debian's `luajit`), in a strict stand-in of its host.

use std::path::Path;
use std::process::Command;

use unicode_width::UnicodeWidthChar;

use crate::support::home::Home;
use crate::support::skip;

/// Runs test files of `tests/lua`, with these variables besides.
#[track_caller]
fn run(names: &[&str], variables: &[(&str, &Path)]) {
    let Some(luajit) = skip::find("luajit") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(luajit);
    command.arg("tests/lua/main.lua").args(names).current_dir(root);
    command.env_remove("LUA_PATH").env_remove("LUA_CPATH");
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[track_caller]
fn run_over(names: &[&str], carrier: &str) {
    let home = Home::new();
    let library = skip::core_library();
    run(
        names,
        &[
            ("HOME", home.path()),
            ("AGENT_SMITH_CORE", &library),
            ("AGENT_SMITH_BIN", Path::new(env!("CARGO_BIN_EXE_agent-smith"))),
            ("TEST_CARRIER", Path::new(carrier)),
        ],
    );
}

#[test]
fn lines_output_cancelling_steering_and_questions() {
    run(&["shim_run"], &[]);
}

#[test]
fn keys_views_and_completion() {
    run(&["shim_keys"], &[]);
}

#[test]
fn nothing_that_goes_wrong_inside_reaches_the_host() {
    run(&["shim_faults"], &[]);
}

#[test]
fn the_package_is_whole() {
    run(&["shim_package"], &[]);
}

#[test]
fn over_the_core_in_the_process_nothing_that_goes_wrong_reaches_the_host() {
    run_over(&["shim_carriers"], "native");
}

#[test]
fn over_the_sidecar_nothing_that_goes_wrong_reaches_the_host() {
    run_over(&["shim_carriers"], "sidecar");
}

#[test]
fn what_a_real_core_offers_completes_the_line_over_both_ways() {
    run_over(&["shim_complete"], "native");
    run_over(&["shim_complete"], "sidecar");
}

/// The ranges of characters that take `cells` cells.
fn ranges(cells: usize) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    let chars = ('\u{300}'..=char::MAX).filter(|char| char.width() == Some(cells));
    for code in chars.map(u32::from) {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == code => *last = code,
            _ => found.push((code, code)),
        }
    }
    found
}

#[test]
fn the_shim_measures_characters_as_the_core_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/agent_smith/cells.lua");
    let text = std::fs::read_to_string(&path).unwrap();
    let table = |name: &str| {
        let begin = text.find(&format!("local {name} = [[\n")).unwrap();
        let begin = begin + text[begin..].find('\n').unwrap() + 1;
        (begin, begin + text[begin..].find("]]").unwrap())
    };
    let (begin, end) = table("WIDE");
    let mut wide = String::new();
    let mut line = 0;
    for (first, last) in ranges(2) {
        let range = format!("{first:04X}-{last:04X}");
        let apart = if line == 0 {
            ""
        } else if line + range.len() >= 118 {
            line = 0;
            "\n"
        } else {
            " "
        };
        line += range.len() + 1;
        wide = wide + apart + &range;
    }
    wide.push('\n');
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{wide}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert_eq!(&text[begin..end], wide, "UPDATE_DOCS=1 writes the table anew");

    let (begin, end) = table("ZERO");
    let none = ranges(0);
    for range in text[begin..end].split_whitespace() {
        let (first, last) = range.split_once('-').unwrap();
        let [first, last] = [first, last].map(|code| u32::from_str_radix(code, 16).unwrap());
        let is_in = none.iter().any(|(from, to)| *from <= first && last <= *to);
        assert!(is_in, "not every character of {range} goes onto the one before");
    }
}
