//! The lists of models that servers gave, kept between sessions, a file a server.
//!
//! They are asked for by `/models` alone; what a request's preparation finds here costs it a look at one small file.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::llm::Catalogue;
use crate::persistence::sha256_hex;

/// The most of a kept list that is read; the largest public one takes about 100 KB here.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The lists.
#[derive(Debug, Default)]
pub(super) struct ModelLists {
    dir: Option<PathBuf>,
    read: Mutex<HashMap<String, Option<Arc<Catalogue>>>>,
}

impl ModelLists {
    /// Lists kept as files in `dir`.
    pub(super) fn in_dir(dir: PathBuf) -> Self {
        Self {
            dir: Some(dir),
            read: Mutex::default(),
        }
    }

    /// The list of the server at this address, however old.
    pub(super) fn get(&self, api_url: &str) -> Option<Arc<Catalogue>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(api_url.to_owned())
            .or_insert_with(|| self.file(api_url).and_then(|file| load(&file)).map(Arc::new))
            .clone()
    }

    /// Keeps a new list. Where it cannot be written, it holds for this session.
    pub(super) fn put(&self, api_url: &str, list: Arc<Catalogue>) {
        if let Some(file) = self.file(api_url)
            && let Err(error) = save(&file, &list)
        {
            tracing::warn!(%error, file = %file.display(), "the list of models cannot be kept");
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(api_url.to_owned(), Some(list));
    }

    /// The address may hold a password: its hash names the file.
    fn file(&self, api_url: &str) -> Option<PathBuf> {
        let dir = self.dir.as_ref()?;
        let hash = sha256_hex(api_url.as_bytes());
        Some(dir.join(format!("{}.json", hash.get(..16)?)))
    }
}

fn load(file: &Path) -> Option<Catalogue> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .ok()?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Writes beside the file and renames, so that whoever reads it meanwhile sees the old one or the new one.
fn save(file: &Path, list: &Catalogue) -> std::io::Result<()> {
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::File::create(&beside).and_then(|mut new| {
        new.write_all(&serde_json::to_vec(list)?)?;
        std::fs::rename(&beside, file)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ModelInfo;

    #[test]
    fn a_list_is_found_by_another_session_and_a_broken_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let here = || ModelLists::in_dir(dir.path().join("models"));
        assert_eq!(here().get("http://a/v1"), None);
        let model = ModelInfo {
            id: "m".into(),
            context_length: Some(4096),
            ..ModelInfo::default()
        };
        let list = Catalogue {
            fetched_ms: 5,
            models: vec![model],
        };
        here().put("http://a/v1", Arc::new(list.clone()));
        assert_eq!(here().get("http://a/v1").as_deref(), Some(&list));
        assert_eq!(here().get("http://b/v1"), None);
        let file = here().file("http://a/v1").unwrap();
        std::fs::write(file, "{").unwrap();
        assert_eq!(here().get("http://a/v1"), None);
    }
}
