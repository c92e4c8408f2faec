//! `ctxfold hook`: from a host's call to an answer or silence. The readings and rules are `watch`'s,
//! the dialects the hook crate's, the decision the monitor's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ctxfold_hook::{Event as HookEvent, Host, Input, Limits, Name, Part, Reply, Until};
use ctxfold_monitor::{
    Effect, Event, Happening, Reading, SessionId, State, Wording, advise, exists, is_tracked, step,
};

use crate::config::Config;
use crate::env::{self, Env};
use crate::journal::{Critical, Entry, Journal};
use crate::watch::{self, Rules, Subject};

/// Answer an agent's hook: warn it when its context runs low
///
/// Reads the hook's JSON on standard input and writes one JSON object or nothing. It always ends
/// with exit code 0 and never writes to standard error: a hook does not break its host. Arguments
/// that it does not know are passed over.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose hook it is: claude, codex, gemini or antigravity. Codex needs it; the others are told
    /// by their events
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Wait for the end of the input, not only of the JSON document
    #[arg(long)]
    until_eof: bool,

    /// The event, for hosts that do not name it in the input; anything else is passed over
    #[arg(
        value_name = "EVENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    rest: Vec<OsString>,
}

/// How long files of sessions that ended are kept, in seconds.
const WEEK: u64 = 7 * 86_400;

impl Args {
    /// Reads the few flags without a parser that could fail, and that would take its time.
    pub(crate) fn of(words: &[OsString]) -> Args {
        Args {
            host: flag(words, "--host"),
            until_eof: words.iter().any(|word| word == "--until-eof"),
            rest: words.to_vec(),
        }
    }

    /// Answers, whatever happens.
    pub(crate) fn run(self) -> ExitCode {
        watch::never_disturb();
        let limits = Limits {
            until: if self.until_eof {
                Until::EndOfInput
            } else {
                Until::DocumentEnd
            },
            ..Limits::default()
        };
        if let Ok(document) = ctxfold_hook::read_document_blocking(std::io::stdin(), limits) {
            self.answer(&document.text);
        }
        ExitCode::SUCCESS
    }

    /// Says what there is to say, then does what the host need not wait for.
    fn answer(&self, text: &str) -> Option<()> {
        let input = self.dialect(Input::parse(Host::Claude, text).ok()?);
        let id = SessionId::new(input.session_id.as_deref()?).ok()?;
        let env = Env::read();
        let store = watch::store();
        let now = seconds(&env);
        let folder = input
            .cwd
            .as_deref()
            .map_or_else(|| env.cwd.clone(), PathBuf::from);

        let happening = happening(&input);
        let transcript = input.transcript_path.as_deref().map(Path::new);
        // The client's own settings are those of the folder in which it was started.
        let project = env::var("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        let subject = Subject {
            host: input.host,
            id: &id,
            transcript,
            model: input.model.as_deref(),
            folder: project.as_deref().unwrap_or(&folder),
        };
        if let Some(used) = answered(&input) {
            watch::keep_count(&store, &subject, used, now);
        }
        if matches!(input.event, HookEvent::Prompt(_))
            && input.host == Host::Codex
            && let Some(reason) = transcript.and_then(|file| crate::idle::stop(&env, file))
        {
            watch::say(
                &Reply::new()
                    .block(reason)
                    .encode(&input)
                    .unwrap_or_default(),
            );
        }
        let (mut reading, mut config) = (None, ctxfold_monitor::Config::default());
        if matches!(happening, Happening::ToolCall | Happening::Silent) {
            // A broken file is the user's to mend, not the host's to hear of.
            let user = Config::read(&env).unwrap_or_default();
            reading = watch::measure(&env, &user, &store, &subject).reading;
            if reading.is_some() {
                config = Rules::read(&env, &user, &folder).config;
            }
            // Directly after a compaction there is no reading before the first answer is written.
            let matters = |found: &Reading| may_rise(&config, &store.load(&id), found);
            let call = call_of(&input).filter(|_| {
                happening == Happening::ToolCall && reading.as_ref().is_none_or(matters)
            });
            if let (Some(call), Some(path)) = (call, transcript)
                && watch::await_call(path, &call)
            {
                reading = watch::measure(&env, &user, &store, &subject).reading;
                if reading.is_some() {
                    config = Rules::read(&env, &user, &folder).config;
                }
            }
        }
        let event = Event { happening, reading };
        let effects = store
            .transact(&id, |state| step(state, &event, &config, now))
            .unwrap_or_default();
        for effect in &effects {
            if let Effect::Warn(level, reading) = effect {
                let wording = wording(input.host, is_tracked(&folder));
                let text = advise(*level, reading, &wording);
                let reply = Reply::new().context(text).extra("severity", level.name());
                watch::say(&reply.encode(&input).unwrap_or_default());
            }
        }
        for effect in effects {
            if let Effect::Record(crumb) = effect {
                record(&env, &id, &folder, &crumb.reading);
            }
        }
        if matches!(input.event, HookEvent::SessionStart(_)) {
            store.collect(now, WEEK);
        }
        Some(())
    }

    /// The host as told, else as the files and events of the call say.
    fn dialect(&self, input: Input) -> Input {
        let told = self.host.as_deref().and_then(|name| name.parse().ok());
        let input = match self
            .rest
            .iter()
            .find_map(|word| word.to_str().filter(is_event))
        {
            Some(event) => input.with_default_name(event),
            None => input,
        };
        if input.name == Name::Missing && env::var("GEMINI_API_KEY").is_some() {
            // Early versions of Gemini CLI did not name the event.
            return input
                .with_host(told.unwrap_or(Host::Gemini))
                .with_default_name("AfterTool");
        }
        let host = told.unwrap_or_else(|| {
            let file = input.transcript_path.as_deref().map(Path::new);
            file.and_then(watch::host_of)
                .unwrap_or_else(|| Host::guess(input.event_name().unwrap_or_default()))
        });
        input.with_host(host)
    }
}

/// The value of a flag, written with a space or an equals sign.
pub(crate) fn flag(words: &[OsString], name: &str) -> Option<String> {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if word == name {
            return words.next().map(std::borrow::Cow::into_owned);
        }
        if let Some(value) = word.strip_prefix(name).and_then(|w| w.strip_prefix('=')) {
            return Some(value.to_owned());
        }
    }
    None
}

/// Whether a word can only be the name of an event that some host has.
fn is_event(word: &&str) -> bool {
    Host::ALL
        .into_iter()
        .any(|host| ctxfold_hook::events(host).any(|event| event == *word))
}

/// Now, in seconds since 1970.
pub(crate) fn seconds(env: &Env) -> u64 {
    env.now_ms().max(0).cast_unsigned() / 1000
}

/// Tokens in the context after an answer that the host has just told of.
fn answered(input: &Input) -> Option<u64> {
    let HookEvent::AfterModel(call) = &input.event else {
        return None;
    };
    let is_turn = input.host == Host::Codex && call.kind.as_deref() == Some("sampling");
    let usage = call.usage.as_ref().filter(|_| is_turn)?;
    usage.member("total_tokens")?.decode()
}

/// The call whose answer Claude Code may not have written down yet: it writes a moment later than
/// it runs quick tools.
fn call_of(input: &Input) -> Option<String> {
    match &input.event {
        HookEvent::AfterTool(call) if input.host == Host::Claude => call.tool.use_id.clone(),
        _ => None,
    }
}

/// Whether a reading that is one answer old may hide a level that was not announced yet. An answer
/// rarely takes more than this many percent.
fn may_rise(config: &ctxfold_monitor::Config, state: &State, reading: &Reading) -> bool {
    const ANSWER: f64 = 15.0;
    let announced = state.warned.as_ref().and_then(|warned| warned.level);
    config.enabled && config.thresholds.level(reading.remaining - ANSWER) > announced
}

fn happening(input: &Input) -> Happening {
    let told = match &input.event {
        // Gemini CLI's PreCompress comes before every request.
        HookEvent::BeforeCompaction(_) if input.host != Host::Gemini => Happening::Compacting,
        HookEvent::AfterCompaction(done) if done.trigger.is_some() => Happening::Compacted,
        HookEvent::SessionStart(start) if start.source.as_deref() == Some("compact") => {
            Happening::Compacted
        }
        HookEvent::AfterTool(_) => {
            let name = input.event_name().unwrap_or_default();
            if ctxfold_hook::accepts(input.host, name).contains(&Part::Context) {
                Happening::ToolCall
            } else {
                Happening::Silent
            }
        }
        _ => Happening::Silent,
    };
    let transcript = input.transcript_path.as_deref();
    let is_compaction = matches!(told, Happening::Compacting | Happening::Compacted);
    // A sub-agent's compaction shows only by a transcript that never comes to be.
    let is_agents = is_compaction && transcript.is_some_and(|path| !exists(Path::new(path)));
    if input.agent_id.is_some() || is_agents {
        Happening::Subagent
    } else {
        told
    }
}

fn wording(host: Host, tracked: bool) -> Wording {
    let default = Wording {
        tracked,
        ..Wording::default()
    };
    match host {
        Host::Gemini | Host::Antigravity => Wording {
            compact_command: "/compress".into(),
            foldable: false,
            ..default
        },
        _ => default,
    }
}

/// Leaves a note in the journal. Without one the agent was warned all the same.
fn record(env: &Env, id: &SessionId, folder: &Path, reading: &Reading) {
    let entry = Entry::Critical(Critical {
        session: id.to_string(),
        used_percent: reading.used,
        cwd: Some(folder.to_owned()),
    });
    let _ = Journal::new(&env.state_dir).append(env.now_ms(), entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn flags_are_read_in_both_forms_and_others_passed_over() {
        for text in [
            "--host codex",
            "--host=codex",
            "--x y --host codex --host gemini",
        ] {
            assert_eq!(
                Args::of(&words(text)).host.as_deref(),
                Some("codex"),
                "{text}"
            );
        }
        for text in ["--host", "--hosts=codex", ""] {
            assert_eq!(Args::of(&words(text)).host, None, "{text}");
        }
    }

    #[test]
    fn the_host_is_told_by_flag_then_file_then_event() {
        let input = |event: &str, file: &str| {
            let text = format!(r#"{{"hook_event_name":"{event}","transcript_path":"{file}"}}"#);
            Input::parse(Host::Claude, &text).unwrap()
        };
        for (line, event, file, host) in [
            ("--host codex", "PostToolUse", "/a/b.jsonl", Host::Codex),
            ("", "PostToolUse", "/a/rollout-2026-1.jsonl", Host::Codex),
            ("", "PostToolUse", "/a/b.jsonl", Host::Claude),
            ("", "AfterTool", "/a/session-2026.jsonl", Host::Gemini),
            ("", "AfterTool", "", Host::Gemini),
            ("--host nonsense", "Stop", "", Host::Claude),
        ] {
            assert_eq!(
                Args::of(&words(line)).dialect(input(event, file)).host,
                host,
                "{line} {event}"
            );
        }
        let nameless = Input::parse(Host::Claude, "{}").unwrap();
        let named = Args::of(&words("--x PostToolUse")).dialect(nameless);
        assert_eq!(named.event_name(), Some("PostToolUse"));
    }
}
