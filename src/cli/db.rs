//! `agent-smith db`: sizes, giving space back, and everything as text.

use std::io::Write;

use clap::Subcommand;

use crate::cli::{Exit, complain, paths};
use crate::error::{AgentError, ErrorKind};
use crate::persistence::{self, Store, StoreOptions};

/// What to do with the database.
#[derive(Debug, Subcommand)]
pub(super) enum DbCommand {
    /// Show how large each part of the database is
    Stats,
    /// Give free space back to the file system; takes seconds per gigabyte, and other shells wait meanwhile
    Compact,
    /// Print every record as a line of JSON
    Export,
}

/// Runs the subcommand.
pub(super) fn run(command: &DbCommand) -> Exit {
    match work(command) {
        Ok(()) => Exit::Completed,
        Err(error) => {
            complain(&error);
            Exit::Error
        }
    }
}

fn work(command: &DbCommand) -> Result<(), AgentError> {
    let options = StoreOptions::at(paths()?.database());
    let mut out = std::io::stdout().lock();
    let text = match command {
        DbCommand::Stats => stats(&options)?,
        DbCommand::Compact => {
            let report = persistence::compact(&options)?;
            let (before, after) = (bytes(report.before_bytes), bytes(report.after_bytes));
            format!(
                "{before} before, {after} after; {} unused blobs removed\n",
                report.removed_blobs
            )
        }
        DbCommand::Export => {
            let mut out = std::io::BufWriter::new(out);
            persistence::export(&Store::new(options), &mut out)?;
            return out.flush().map_err(|error| write_failed(&error));
        }
    };
    out.write_all(text.as_bytes()).map_err(|error| write_failed(&error))
}

fn write_failed(error: &std::io::Error) -> AgentError {
    AgentError::new(
        ErrorKind::Persistence,
        "output",
        format!("the output cannot be written: {error}"),
    )
    .from_origin("cli")
}

fn stats(options: &StoreOptions) -> Result<String, AgentError> {
    let stats = persistence::stats(options)?;
    let version = stats
        .schema_version
        .map_or_else(|| "none yet".to_owned(), |version| version.to_string());
    let mut text = format!(
        "{}: {}, schema version {version}, {} batches waiting beside it\n\n",
        stats.path.display(),
        bytes(stats.file_bytes),
        stats.spooled
    );
    text.push_str(&format!(
        "{:<24}{:>10}{:>12}{:>12}{:>12}\n",
        "keyspace", "records", "stored", "metadata", "unused"
    ));
    for space in &stats.keyspaces {
        text.push_str(&format!(
            "{:<24}{:>10}{:>12}{:>12}{:>12}\n",
            space.name,
            space.records,
            bytes(space.stored_bytes),
            bytes(space.metadata_bytes),
            bytes(space.fragmented_bytes)
        ));
    }
    for path in &stats.damaged {
        text.push_str(&format!(
            "\ndamaged, moved aside: {} (agent-smith doctor --repair)",
            path.display()
        ));
    }
    if !stats.damaged.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

/// A number of bytes for a person.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KB", "MB", "GB"];
    let (mut whole, mut unit) = (count, 0);
    while whole >= 10_000 && unit + 1 < UNITS.len() {
        whole /= 1024;
        unit += 1;
    }
    format!("{whole} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            (bytes(0), bytes(9_999), bytes(10_000)),
            ("0 B".into(), "9999 B".into(), "9 KB".into())
        );
        assert_eq!(bytes(3 << 30), "3072 MB");
    }
}
