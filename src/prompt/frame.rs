//! The role frames: the product's voice, a file each, compiled in.

/// The frame of a prompt profile of the role catalogue; empty for a profile there is none for.
#[must_use]
pub fn frame(profile: &str) -> &'static str {
    let text = match profile {
        "direct" => include_str!("frames/direct.md"),
        "orchestrator" => include_str!("frames/orchestrator.md"),
        "worker" => include_str!("frames/worker.md"),
        "explorer" => include_str!("frames/explorer.md"),
        _ => "",
    };
    text.trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::{ROLES, TOOL_MATRIX, ToolAccess, check_tool};

    #[test]
    fn every_role_has_a_frame_that_opens_with_its_name() {
        for spec in &ROLES {
            let text = frame(spec.prompt_profile);
            assert!(text.starts_with(&format!("You are {}, ", spec.label)), "{}", spec.name);
            assert!(text.chars().count() < 1500, "{} is too long", spec.name);
        }
        assert!(frame("direct").chars().count() <= 1200);
        assert_eq!(frame("nobody"), "");
    }

    #[test]
    fn a_frame_names_no_tool_that_its_role_may_not_use() {
        for spec in &ROLES {
            for (tool, _) in &TOOL_MATRIX {
                if frame(spec.prompt_profile).contains(&format!("`{tool}`")) {
                    assert_eq!(
                        check_tool(spec.role, tool),
                        ToolAccess::Allow,
                        "{} names {tool}",
                        spec.name
                    );
                }
            }
        }
    }
}
