//! What the handle of a session and its actor both look at.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::protocol::Status;
use crate::runtime::files::Listings;
use crate::runtime::services::Services;
use crate::runtime::user_commands::UserCommands;
use crate::tool::ToolState;

/// The shared part of a session.
pub(super) struct Shared {
    services: RwLock<Arc<Services>>,
    status: Mutex<Status>,
    cwd: Mutex<PathBuf>,
    /// The directory whose files completion offered last.
    pub listings: Listings,
    /// What the session's tools share.
    pub tool_state: Arc<ToolState>,
    /// The commands of the user and of the repository.
    pub user_commands: UserCommands,
}

impl Shared {
    pub(super) fn new(services: Arc<Services>, status: Status, cwd: PathBuf, user_commands: UserCommands) -> Self {
        Self {
            services: RwLock::new(services),
            status: Mutex::new(status),
            cwd: Mutex::new(cwd),
            listings: Listings::default(),
            tool_state: Arc::default(),
            user_commands,
        }
    }

    /// The services as they are now; whoever holds them keeps them as they were.
    pub(super) fn services(&self) -> Arc<Services> {
        Arc::clone(&self.services.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_services(&self, services: Arc<Services>) {
        *self.services.write().unwrap_or_else(PoisonError::into_inner) = services;
    }

    pub(super) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn change_status(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The directory of the last line handed over.
    pub(super) fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
    }
}
