//! What the tools changed in a conversation, as `/diff` shows it.

use std::path::PathBuf;

use crate::command::{ChangeView, ChangeViews};
use crate::error::AgentError;
use crate::persistence::Store;
use crate::runtime::ids;
use crate::runtime::preimages::{changes_of, fetch};
use crate::tool::{FileChange, compare, net_changes};

/// The changes of the `turn`th turn of a conversation and of all of it, compared with the files as they are now, which
/// are named relative to `cwd`.
///
/// # Errors
/// `persistence` where the store cannot be read.
pub(super) async fn views(
    store: Store,
    conversation_id: String,
    turn: u64,
    cwd: PathBuf,
) -> Result<ChangeViews, AgentError> {
    let all = changes_of(&store, conversation_id).await.map_err(AgentError::from)?;
    let of_turn: Vec<_> = all
        .iter()
        .filter(|change| ids::turn_number(&change.turn_id) == Some(turn))
        .cloned()
        .collect();
    let compared = tokio::task::spawn_blocking(move || {
        let views = |changes: &[FileChange]| {
            let net = net_changes(changes);
            let compared = net
                .iter()
                .filter_map(|net| compare(net, |key| fetch(&store, key).ok().flatten(), &cwd));
            compared
                .map(|compared| ChangeView {
                    diff: compared.diff(),
                    file: compared.file,
                })
                .collect()
        };
        ChangeViews {
            turn: views(&of_turn),
            conversation: views(&all),
        }
    });
    compared
        .await
        .map_err(|_| AgentError::internal("runtime", "the changed files could not be compared"))
}
