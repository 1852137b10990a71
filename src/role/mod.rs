//! Roles: who the agent is in a turn, whom it may delegate to and which tools it may use.
//!
//! `catalog` lists the roles, `matrix` says what each may do. Both are tables; everything else asks them. `model` picks
//! the model that answers in a role.

mod catalog;
mod matrix;
mod model;

pub use catalog::{ROLES, Role, RoleSpec};
pub use matrix::{TOOL_MATRIX, ToolAccess, check_dispatch, check_tool};
pub use model::{
    FALLBACK_CONTEXT_WINDOW, ModelLimits, ModelOptions, ModelRequest, ModelSource, SelectedModel, select_model,
};
