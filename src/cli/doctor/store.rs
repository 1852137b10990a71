//! Whether what is kept can be read; and, asked to, bringing it back from a damaged file.

use super::{Check, Verdict};
use crate::error::AgentError;
use crate::persistence::{self, RepairReport, StoreOptions, repair};

pub(super) fn look(options: &StoreOptions) -> Check {
    match persistence::stats(options) {
        Ok(stats) if !stats.damaged.is_empty() => {
            let text = format!("works; {} damaged files were moved aside", stats.damaged.len());
            Check::new("store", Verdict::Warn, text).next("agent-smith doctor --repair brings back what is readable")
        }
        Ok(stats) if stats.spooled > 0 => {
            let text = format!(
                "works; {} batches wait beside it and are merged by the next turn",
                stats.spooled
            );
            Check::new("store", Verdict::Warn, text)
        }
        Ok(stats) if stats.file_bytes == 0 => Check::new("store", Verdict::Ok, "nothing is kept yet"),
        Ok(stats) => {
            let records: u64 = stats.keyspaces.iter().map(|space| space.records).sum();
            let size = crate::cli::db::bytes(stats.file_bytes);
            Check::new(
                "store",
                Verdict::Ok,
                format!("{}: {records} records in {size}", stats.path.display()),
            )
        }
        Err(error) => Check::failed("store", &AgentError::from(error)).next("agent-smith doctor --repair"),
    }
}

pub(super) fn mend(options: &StoreOptions) -> Check {
    let report = match repair(options) {
        Ok(report) => report,
        Err(error) => return Check::failed("store", &AgentError::from(error)),
    };
    let RepairReport {
        path,
        sound,
        damage,
        moved_to,
        salvaged,
    } = report;
    let mut text = if sound {
        format!("{} is sound", path.display())
    } else {
        let damage = damage.unwrap_or_else(|| "it cannot be read".to_owned());
        let to = moved_to
            .map(|to| format!("; moved to {}", to.display()))
            .unwrap_or_default();
        format!("{} was damaged ({damage}){to}", path.display())
    };
    let mut lost = false;
    for part in salvaged {
        let count = |map: &std::collections::BTreeMap<&'static str, u64>| map.values().sum::<u64>();
        text.push_str(&format!(
            "\n     {}: {} records reached, {} found loose, {} new in the database",
            part.source.display(),
            count(&part.reached),
            count(&part.loose),
            count(&part.added)
        ));
        for (keyspace, added) in &part.added {
            text.push_str(&format!("\n       {keyspace}: {added}"));
        }
        for what in &part.unreadable {
            lost = true;
            text.push_str(&format!("\n       not readable: {what}"));
        }
    }
    Check::new("store", if lost { Verdict::Warn } else { Verdict::Ok }, text)
}
