//! User commands from the disk: both folders, broken files among good ones.

use std::path::Path;

use agent_smith_core::command::{Source, load};
use agent_smith_core::config::Paths;

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn the_repositorys_command_holds_over_the_users_and_broken_files_are_told() {
    let home = tempfile::tempdir().unwrap();
    let user = home.path().join("commands");
    let root = home.path().join("repo");
    let project = Paths::project_commands(&root);
    write(&user.join("review.md"), "User's review of $1.");
    write(
        &user.join("explain.md"),
        "---\ndescription: Explains\n---\nExplain $ARGUMENTS",
    );
    write(&user.join("help.md"), "Mine.");
    write(&user.join("a b.md"), "x");
    write(&user.join("empty.md"), "---\ndescription: x\n---\n \n");
    write(&user.join("latin.md"), b"caf\xe9");
    write(&user.join("open.md"), "---\ndescription: x\n");
    write(&user.join("role.md"), "---\nrole: worker\n---\nx");
    write(&user.join("typo.md"), "---\ndescripton: x\n---\nText");
    write(&user.join("large.md"), vec![b'x'; 256 * 1024 + 1]);
    write(&user.join(".hidden.md"), "x");
    write(&user.join("notes.txt"), "x");
    write(&user.join("sub.md/inner.md"), "x");
    std::os::unix::fs::symlink("gone", user.join("dangling.md")).unwrap();
    write(&project.join("review.md"), "Project's review.");
    write(&home.path().join("secret"), "secret");
    std::os::unix::fs::symlink("../../../secret", project.join("leak.md")).unwrap();
    std::os::unix::fs::symlink("review.md", project.join("alias.md")).unwrap();

    let loaded = load(&user, Some((&root, &project)), &|name| name == "help");
    let commands: Vec<(&str, Source)> = loaded.commands.iter().map(|c| (c.name.as_str(), c.source)).collect();
    assert_eq!(
        commands,
        [
            ("alias", Source::Project),
            ("explain", Source::User),
            ("review", Source::Project),
            ("typo", Source::User),
        ]
    );
    let told: Vec<String> = loaded
        .problems
        .iter()
        .map(|problem| problem.to_string().replace(&format!("{}/", home.path().display()), ""))
        .collect();
    assert_eq!(
        told,
        [
            "commands/a b.md: the name of a command has only letters, digits, `_` and `-`; the command is left out",
            "commands/dangling.md: No such file or directory (os error 2); the command is left out",
            "commands/empty.md: there is no prompt in it; the command is left out",
            "commands/help.md: /help is built in and cannot be replaced; the command is left out",
            "commands/large.md: it is larger than 256 KB; the command is left out",
            "commands/latin.md: it is not UTF-8; the command is left out",
            "commands/open.md: line 3: the head that `---` opens is not closed by a second `---`; the command is left out",
            "commands/role.md: line 2: `role` must be direct or orchestrator, but is `worker`; the command is left out",
            "commands/typo.md: line 2: `descripton` is not known and has no effect; did you mean `description`?",
            "repo/.agent_smith/commands/leak.md: it leads out of the repository; the command is left out",
        ]
    );
}

#[test]
fn absent_folders_hold_no_commands() {
    let home = tempfile::tempdir().unwrap();
    let none = home.path().join("none");
    assert_eq!(
        load(&none, Some((home.path(), &none)), &|_| false),
        agent_smith_core::command::Loaded::default()
    );
}

#[test]
fn the_example_of_the_document_is_a_command() {
    let document = include_str!("../../docs/USER_COMMANDS.md");
    let example = document
        .split("```markdown\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("review.md"), example);
    let loaded = load(home.path(), None, &|_| false);
    assert_eq!(loaded.problems, []);
    let command = &loaded.commands[0];
    assert_eq!(command.argument_hint.as_deref(), Some("[path] [what to look for]"));
    assert!(command.role.is_some() && command.model.is_some());
    assert!(command.expand("a.rs style").contains("Review a.rs against"));
}
