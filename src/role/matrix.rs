//! What each role may do: the dispatch edges and the tool matrix.

use super::catalog::Role;

/// The answer of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolAccess {
    /// The role may use the tool.
    Allow,
    /// It may not; also the answer for a tool the matrix does not know.
    Deny,
}

/// A tool's row: its name, then whether direct, orchestrator, worker and explorer may use it.
pub type MatrixRow = (&'static str, [bool; 4]);

/// Which role may use which tool. A tool that is not listed is denied to everyone.
pub static TOOL_MATRIX: [MatrixRow; 19] = [
    ("bash", [true, false, true, true]),
    // What belongs to `bash` is allowed where it is.
    ("job_output", [true, false, true, true]),
    ("job_kill", [true, false, true, true]),
    ("read", [true, true, true, true]),
    ("code_map", [true, true, true, true]),
    ("code_grep", [true, true, true, true]),
    ("code_files", [true, true, true, true]),
    ("code_symbols", [true, true, true, true]),
    ("code_outline", [true, true, true, true]),
    ("git", [false, true, false, false]),
    ("edit", [true, false, true, false]),
    ("write", [true, false, true, false]),
    ("web_search", [true, false, true, true]),
    ("web_fetch", [true, false, true, true]),
    ("note", [true, true, false, false]),
    ("dispatch", [true, true, true, false]),
    ("record", [true, true, false, false]),
    ("recall", [true, true, false, false]),
    ("report", [false, false, true, true]),
];

/// Whether `role` may use the tool called `tool`.
#[must_use]
pub fn check_tool(role: Role, tool: &str) -> ToolAccess {
    let column = match role {
        Role::Direct => 0,
        Role::Orchestrator => 1,
        Role::Worker => 2,
        Role::Explorer => 3,
    };
    match TOOL_MATRIX.iter().find(|(name, _)| *name == tool) {
        Some((_, allowed)) if allowed[column] => ToolAccess::Allow,
        _ => ToolAccess::Deny,
    }
}

/// Whether `role` may delegate to `target`.
#[must_use]
pub fn check_dispatch(role: Role, target: Role) -> bool {
    role.spec().dispatch_targets.contains(&target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_says_what_the_table_says() {
        // A mark a role in the order direct, orchestrator, worker, explorer.
        let table = "bash y-yy|job_output y-yy|job_kill y-yy|read yyyy|code_map yyyy|code_grep yyyy|code_files yyyy|code_symbols yyyy|\
                     code_outline yyyy|git -y--|edit y-y-|write y-y-|web_search y-yy|web_fetch y-yy|note yy--|\
                     dispatch yyy-|record yy--|recall yy--|report --yy";
        let roles = [Role::Direct, Role::Orchestrator, Role::Worker, Role::Explorer];
        for row in table.split('|') {
            let (tool, marks) = row.split_once(' ').unwrap();
            for (role, mark) in roles.into_iter().zip(marks.chars()) {
                assert_eq!(
                    check_tool(role, tool) == ToolAccess::Allow,
                    mark == 'y',
                    "{role} {tool}"
                );
            }
        }
        assert_eq!(table.split('|').count(), TOOL_MATRIX.len());
        assert_eq!(check_tool(Role::Direct, "sudo"), ToolAccess::Deny);
    }

    #[test]
    fn the_edges_say_what_the_catalogue_says() {
        let edges = [
            (Role::Direct, "worker explorer"),
            (Role::Orchestrator, "worker explorer"),
            (Role::Worker, "explorer"),
            (Role::Explorer, ""),
        ];
        for (role, targets) in edges {
            for target in [Role::Direct, Role::Orchestrator, Role::Worker, Role::Explorer] {
                let expected = targets.split_whitespace().any(|name| name == target.name());
                assert_eq!(check_dispatch(role, target), expected, "{role} -> {target}");
            }
        }
    }
}
