//! The user's line: model, folder, branch, a bar of the context's fill, and the prompt cache.
//!
//! [`Input::parse`] reads what the client sends, [`Input::fill`] measures it, [`render`] draws it.
//! Nothing here touches the system.

use crate::config::Show;
use crate::json::Object;
use crate::meter::{Fill, raw_fill};
use crate::scale::{Limit, Overrides, Scale};
use crate::settings::Settings;

/// What the client sends to a statusline, as far as it is used here.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Input {
    /// The conversation's id.
    pub session_id: Option<String>,
    /// The model's name for people.
    pub model: Option<String>,
    /// The model's id.
    pub model_id: Option<String>,
    /// The folder in which the agent works now.
    pub current_dir: Option<String>,
    /// The folder in which the client was started.
    pub project_dir: Option<String>,
    /// The conversation's file.
    pub transcript_path: Option<String>,
    /// The prompt cache, when the client says.
    pub cache: Option<Cache>,
    context: Context,
}

/// The prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Whether the next request would find it.
    pub warm: bool,
    /// When it goes cold, in seconds since 1970.
    pub expires_at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Context {
    remaining: Option<f64>,
    /// Tokens of the last request, the answer left out.
    sent: Option<u64>,
    /// The same, the answer included.
    all: Option<u64>,
    window: Option<u64>,
    /// The window under the name that early clients gave it.
    total: Option<f64>,
}

/// How the line looks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Look {
    /// Whether to use colours. They are for a person: `NO_COLOR` switches them off.
    pub colour: bool,
    /// What a million tokens cost that are sent anew, where the user gave it: a cold conversation
    /// then says what its next request costs.
    pub price: Option<f64>,
    /// The most columns, when there is a limit.
    pub width: Option<usize>,
    /// Whether tokens stand behind the percentage: when the limit is known, always, or never.
    pub tokens: Show,
    /// Whether the bar comes right behind the model.
    pub meter_first: bool,
    /// The branch, with marks where there are some.
    pub branch: Option<String>,
}

impl Input {
    /// Reads the client's JSON. `None` when it is no object.
    pub fn parse(text: &str) -> Option<Self> {
        let root = Object::parse(text)?;
        let model = root.object("model").unwrap_or_default();
        let workspace = root.object("workspace").unwrap_or_default();
        let full = |text: Option<String>| text.filter(|t| !t.is_empty());
        Some(Self {
            session_id: full(root.string("session_id")),
            model: full(model.string("display_name")),
            model_id: full(model.string("id")),
            current_dir: full(workspace.string("current_dir")),
            project_dir: full(workspace.string("project_dir")),
            transcript_path: full(root.string("transcript_path")),
            cache: root.object("prompt_cache").and_then(|cache| {
                Some(Cache {
                    warm: cache.bool("warm")?,
                    expires_at: count(cache.number("expires_at")),
                })
            }),
            context: root
                .object("context_window")
                .map(|c| context(&c))
                .unwrap_or_default(),
        })
    }

    /// How full the context is at a time in seconds since 1970. `None` before the first answer.
    pub fn fill(
        &self,
        scale: Scale,
        overrides: &Overrides,
        settings: &Settings,
        now: u64,
    ) -> Option<Fill> {
        let context = &self.context;
        if scale == Scale::Window {
            return Some(raw_fill(context.remaining?, context.total, overrides, now));
        }
        let Some(window) = self.window() else {
            return Some(Fill::of_percent(context.remaining?, now));
        };
        let used = match (context.sent, context.remaining) {
            (Some(sent), _) => sent,
            (None, remaining) => {
                count(Some((100.0 - remaining?) * window as f64 / 100.0)).unwrap_or_default()
            }
        };
        let model = self.model_id.as_deref().unwrap_or_default();
        Some(Fill::of_tokens(
            used,
            Limit::of(window, model, overrides, settings).tokens,
            now,
        ))
    }

    /// The model's window in tokens. A payload that says less than the conversation holds, or
    /// than the model's name, is wrong.
    pub fn window(&self) -> Option<u64> {
        const LARGE: u64 = 1_000_000;
        let said = self.context.window.filter(|w| *w > 0)?;
        let is_large = self
            .model_id
            .as_deref()
            .is_some_and(|id| id.ends_with("[1m]"))
            || self.context.sent.is_some_and(|sent| sent > said);
        Some(if is_large { said.max(LARGE) } else { said })
    }
}

fn context(object: &Object<'_>) -> Context {
    let usage = object.object("current_usage");
    let sum = |names: &[&str]| {
        let usage = usage.as_ref()?;
        let counts = names.iter().filter_map(|name| count(usage.number(name)));
        Some(counts.fold(0, u64::saturating_add))
    };
    let sent = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    ];
    Context {
        remaining: object.number("remaining_percentage"),
        sent: sum(&sent),
        all: sum(&[&sent[..], &["output_tokens"]].concat()),
        window: count(object.number("context_window_size")),
        total: object.number("total_tokens"),
    }
}

#[expect(clippy::cast_sign_loss, reason = "the number is at least 0")]
fn count(number: Option<f64>) -> Option<u64> {
    number.filter(|n| *n >= 0.0).map(|n| n.round() as u64)
}

const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const ORANGE: &str = "\x1b[38;5;208m";
const ALARM: &str = "\x1b[5;31m";

/// A run of text in one colour.
struct Run {
    colour: &'static str,
    text: String,
}

/// Draws the line, without a line end. When it is wider than allowed, the cache goes first, then
/// the tokens, then the branch; then the folder and the model are shortened.
pub fn render(input: &Input, folder: &str, fill: Option<&Fill>, look: &Look, now: u64) -> String {
    let width = look.width.unwrap_or(usize::MAX);
    // Which optional parts are left out: 0 none, 3 all.
    let mut runs = Vec::new();
    for left_out in 0..=3 {
        runs = layout(input, folder, fill, look, now, left_out, usize::MAX);
        if columns(&runs) <= width {
            return paint(&runs, look.colour);
        }
    }
    for names in (1..=24).rev() {
        runs = layout(input, folder, fill, look, now, 3, names);
        if columns(&runs) <= width {
            break;
        }
    }
    paint(&runs, look.colour)
}

fn layout(
    input: &Input,
    folder: &str,
    fill: Option<&Fill>,
    look: &Look,
    now: u64,
    left_out: u8,
    names: usize,
) -> Vec<Run> {
    let plain = |text: String| Run { colour: "", text };
    let dim = |text: String| Run { colour: DIM, text };
    let model = short_model(input.model.as_deref().unwrap_or("Claude"));
    let name = folder
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let meter = fill.map(|fill| meter(fill, tokens(input, fill, look).filter(|_| left_out < 2)));
    let mut runs = vec![dim(shorten(&clean(&model), names))];
    let (first, last) = if look.meter_first {
        (meter, None)
    } else {
        (None, meter)
    };
    let append = |runs: &mut Vec<Run>, meter: Option<Run>| {
        if let Some(meter) = meter {
            runs.push(plain(" ".into()));
            runs.push(meter);
        }
    };
    append(&mut runs, first);
    runs.push(plain(" │ ".into()));
    runs.push(dim(shorten(&clean(name), names)));
    if let Some(branch) = look.branch.as_deref().filter(|_| left_out < 3) {
        runs.push(plain(" │ ".into()));
        runs.push(dim(clean(branch)));
    }
    append(&mut runs, last);
    if let Some(cache) = input.cache.filter(|_| left_out < 1) {
        runs.push(plain(" │ ".into()));
        let tokens = fill.and_then(|fill| fill.bridge.tokens).map(|t| t.used);
        runs.push(cache_run(cache, tokens, look.price, now));
    }
    runs
}

/// ` ████░░░░░░ 42% (70k/167k)`, red and with a skull where it ends soon.
fn meter(fill: &Fill, tokens: Option<String>) -> Run {
    let used = fill.shown;
    #[expect(clippy::cast_sign_loss, reason = "the percentage is between 0 and 100")]
    let cells = (used / 10.0).floor() as usize;
    let bar = format!("{}{}", "█".repeat(cells), "░".repeat(10 - cells));
    let (colour, skull) = match used {
        u if u < 50.0 => (GREEN, ""),
        u if u < 65.0 => (YELLOW, ""),
        u if u < 80.0 => (ORANGE, ""),
        _ => (ALARM, "💀 "),
    };
    let tokens = tokens.map_or_else(String::new, |text| format!(" ({text})"));
    Run {
        colour,
        text: format!("{skull}{bar} {used}%{tokens}"),
    }
}

fn tokens(input: &Input, fill: &Fill, look: &Look) -> Option<String> {
    match look.tokens {
        Show::Never => None,
        Show::Always => input.context.all.map(short),
        Show::Auto => fill
            .bridge
            .tokens
            .map(|t| format!("{}/{}", short(t.used), short(t.limit))),
    }
}

fn short(tokens: u64) -> String {
    match tokens {
        0..=999 => tokens.to_string(),
        1_000..=999_499 => format!("{}k", (tokens + 500) / 1000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// Whether the next request finds the cache; where it does not, what it sends anew.
fn cache_run(cache: Cache, tokens: Option<u64>, price: Option<f64>, now: u64) -> Run {
    let left = cache.expires_at.map(|at| at.saturating_sub(now));
    match (cache.warm, left) {
        (true, Some(left)) if left >= 60 => Run {
            colour: GREEN,
            text: format!("cache warm {}m", left / 60),
        },
        (true, Some(left)) if left > 0 => Run {
            colour: YELLOW,
            text: format!("cache warm {left}s"),
        },
        (true, None) => Run {
            colour: GREEN,
            text: "cache warm".into(),
        },
        _ => {
            let next = tokens.map_or_else(String::new, |n| format!(", next {}", short(n)));
            let cost = tokens.zip(price).map_or_else(String::new, |(n, price)| {
                format!(" ({:.2})", n as f64 * price / 1e6)
            });
            Run {
                colour: DIM,
                text: format!("cache cold{next}{cost}"),
            }
        }
    }
}

/// `Sonnet (1M context)` is `Sonnet (1M)`.
fn short_model(name: &str) -> String {
    for suffix in [" context)", " ctx)"] {
        if let Some(head) = name.strip_suffix(suffix) {
            return format!("{head})");
        }
    }
    name.to_owned()
}

/// Nothing that would move the cursor or colour what follows.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// At most so many columns, the last one an ellipsis.
fn shorten(text: &str, limit: usize) -> String {
    if text.chars().map(char_columns).sum::<usize>() <= limit {
        return text.to_owned();
    }
    let mut room = limit.saturating_sub(1);
    let fits = |c: &char| {
        let fits = char_columns(*c) <= room;
        room = room.saturating_sub(char_columns(*c));
        fits
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

fn columns(runs: &[Run]) -> usize {
    runs.iter()
        .flat_map(|run| run.text.chars())
        .map(char_columns)
        .sum()
}

/// Columns of a character in a terminal: 2 for East Asian wide ones and emoji.
fn char_columns(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

fn paint(runs: &[Run], colour: bool) -> String {
    let mut line = String::new();
    for run in runs {
        if colour && !run.colour.is_empty() {
            line.push_str(run.colour);
            line.push_str(&run.text);
            line.push_str(RESET);
        } else {
            line.push_str(&run.text);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &str = r#"{"session_id":"s","model":{"id":"claude-opus-5-5","display_name":"Opus 5.5"},
        "workspace":{"current_dir":"/home/dev/a-rather-long-project-name","project_dir":"/home/dev"},
        "context_window":{"context_window_size":200000,"remaining_percentage":31,"current_usage":
        {"input_tokens":8,"cache_creation_input_tokens":1000,"cache_read_input_tokens":137000,"output_tokens":7}},
        "prompt_cache":{"warm":true,"ttl":"5m","expires_at":1270}}"#;

    fn line(look: &Look, now: u64) -> String {
        let input = Input::parse(PAYLOAD).unwrap();
        let (overrides, settings) = (Overrides::default(), Settings::default());
        let fill = input.fill(Scale::Compaction, &overrides, &settings, now);
        render(
            &input,
            input.current_dir.as_deref().unwrap(),
            fill.as_ref(),
            look,
            now,
        )
    }

    #[test]
    fn the_whole_line() {
        let look = Look {
            branch: Some("main".into()),
            ..Look::default()
        };
        assert_eq!(
            line(&look, 1000),
            "Opus 5.5 │ a-rather-long-project-name │ main 💀 ████████░░ 83% (138k/167k) │ cache warm 4m"
        );
        assert!(line(&look, 1230).ends_with("cache warm 40s"));
        // What was cached has to be sent anew; what that costs is the user's to say.
        assert!(line(&look, 1270).ends_with("cache cold, next 138k"));
        let priced = Look {
            price: Some(6.25),
            ..look
        };
        assert!(line(&priced, 1270).ends_with("cache cold, next 138k (0.86)"));
        assert!(line(&priced, 1000).ends_with("cache warm 4m"));
    }

    #[test]
    fn colours_only_when_wanted_and_the_meaning_stays_without() {
        let plain = line(&Look::default(), 1000);
        assert!(!plain.contains('\x1b') && plain.contains("💀 ████████░░ 83%"));
        let coloured = line(
            &Look {
                colour: true,
                ..Look::default()
            },
            1000,
        );
        assert!(
            coloured.contains("\x1b[5;31m💀 ████████░░ 83% (138k/167k)\x1b[0m"),
            "{coloured:?}"
        );
    }

    #[test]
    fn every_width_from_24_columns_on_is_kept_and_the_bar_stays() {
        for width in 24..120 {
            let look = Look {
                width: Some(width),
                branch: Some("feature/with-a-long-name".into()),
                ..Look::default()
            };
            let line = line(&look, 1000);
            let columns: usize = line.chars().map(char_columns).sum();
            assert!(columns <= width, "{width}: {line}");
            assert!(line.contains("████████░░ 83%"), "{width}: {line}");
        }
        let look = Look {
            width: Some(60),
            branch: Some("main".into()),
            ..Look::default()
        };
        assert_eq!(
            line(&look, 1000),
            "Opus 5.5 │ a-rather-long-project-name │ main 💀 ████████░░ 83%".replace(" │ main", "")
        );
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let input = Input::parse(r#"{"model":{"display_name":"a\u001b[31mb\nc"}}"#).unwrap();
        assert_eq!(
            render(&input, "/x\u{7}y", None, &Look::default(), 0),
            "a[31mbc │ xy"
        );
    }

    #[test]
    fn a_window_that_cannot_be_is_corrected() {
        let window = |model: &str, tokens: u64| {
            let text = format!(
                r#"{{"model":{{"id":"{model}"}},"context_window":{{"context_window_size":200000,"current_usage":{{"input_tokens":{tokens}}}}}}}"#
            );
            Input::parse(&text).unwrap().window()
        };
        assert_eq!(window("m", 200_000), Some(200_000));
        assert_eq!(window("m", 200_001), Some(1_000_000));
        assert_eq!(window("m[1m]", 5), Some(1_000_000));
        assert_eq!(Input::parse("{}").unwrap().window(), None);
    }

    proptest::proptest! {
        /// Any numbers give a bar of ten cells between 0 and 100 percent, in the width asked for.
        #[test]
        fn any_payload_gives_a_line(
            remaining in proptest::option::of(-1e9..1e9),
            size in proptest::option::of(proptest::num::f64::ANY),
            input in proptest::option::of(proptest::num::f64::ANY),
            name in "\\PC{0,30}",
            width in 24usize..100,
        ) {
            let shown = |n: Option<f64>| n.map_or("null".into(), |n| format!("{n:e}"));
            let text = format!(
                r#"{{"model":{{"display_name":{}}},"context_window":{{"remaining_percentage":{},"context_window_size":{},"current_usage":{{"input_tokens":{},"output_tokens":1e30}}}}}}"#,
                serde_json::Value::from(name), shown(remaining), shown(size), shown(input),
            );
            // Infinity and NaN are no JSON.
            let Some(input) = Input::parse(&text) else { return Ok(()) };
            for scale in [Scale::Compaction, Scale::Window] {
                let fill = input.fill(scale, &Overrides::default(), &Settings::default(), 7);
                let look = Look { width: Some(width), ..Look::default() };
                let line = render(&input, "/a/b", fill.as_ref(), &look, 7);
                let cells = line.chars().filter(|c| matches!(c, '█' | '░')).count();
                proptest::prop_assert!(fill.is_none() || cells >= 10);
                proptest::prop_assert!(fill.is_none_or(|f| (0.0..=100.0).contains(&f.shown)));
                let columns: usize = line.chars().map(char_columns).sum();
                proptest::prop_assert!(columns <= width, "{} > {}: {}", columns, width, line);
            }
        }
    }
}
