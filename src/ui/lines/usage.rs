//! Counts, times and money, short enough for a line.

use crate::message::Usage;
use crate::ui::element::Element;
use crate::ui::line::Line;

use super::Page;

/// A count in at most five characters: `987`, `1.2k`, `34k`, `1.2M`.
#[must_use]
pub fn count(n: u64) -> String {
    let scaled = |unit: u64, suffix: &str| {
        let tenths = n / (unit / 10);
        if tenths < 100 {
            format!("{}.{}{suffix}", tenths / 10, tenths % 10)
        } else {
            format!("{}{suffix}", tenths / 10)
        }
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

/// A time span: `340 ms`, `2.3 s`, `2 min 05 s`, `1 h 02 min`.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A price in US dollars, with as many digits as say something.
#[must_use]
pub fn money(dollars: f64) -> String {
    match dollars {
        small if small < 0.1 => format!("${small:.4}"),
        middle if middle < 10.0 => format!("${middle:.3}"),
        large => format!("${large:.2}"),
    }
}

/// What a turn took.
#[must_use]
pub fn usage(page: &Page, usage: &Usage, duration_ms: u64) -> Line {
    let about = if usage.estimated { "~" } else { "" };
    let cached = usage.cached_tokens.filter(|cached| *cached > 0);
    let cached = cached.map(|cached| format!(" ({} cached)", count(cached)));
    let mut parts = vec![
        match usage.requests {
            1 => "1 request".to_owned(),
            requests => format!("{} requests", count(requests)),
        },
        format!("{about}{} in{}", count(usage.prompt_tokens), cached.unwrap_or_default()),
        format!("{about}{} out", count(usage.completion_tokens)),
    ];
    parts.extend(usage.cost.map(money));
    parts.push(duration(duration_ms));
    let mut line = Line::of(&parts.join(page.separator()), Element::Usage);
    line.truncate(page.width, page.ellipsis());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_short() {
        let counts = [0, 999, 1_000, 1_249, 9_999, 10_000, 999_999, 1_000_000, 2_500_000_000];
        assert_eq!(
            counts.map(count),
            ["0", "999", "1.0k", "1.2k", "9.9k", "10k", "999k", "1.0M", "2.5G"]
        );
        assert_eq!(count(u64::MAX), "18446744073G");
        let times = [0, 999, 1_000, 59_999, 60_000, 125_000, 3_720_000];
        assert_eq!(
            times.map(duration),
            [
                "0 ms",
                "999 ms",
                "1.0 s",
                "59.9 s",
                "1 min 00 s",
                "2 min 05 s",
                "1 h 02 min"
            ]
        );
        assert_eq!([0.00042, 0.5, 12.0].map(money), ["$0.0004", "$0.500", "$12.00"]);
    }
}
