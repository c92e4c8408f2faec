//! `ctxfold doctor`: what ctxfold sees of this machine.

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;

use super::{Context, monitor};
use crate::config::{self, Config, KeySource};
use crate::env::Env;
use crate::error::CommandResult;
use crate::journal::{Fate, Journal};
use crate::{env, output};

/// Say what ctxfold sees: folders, keys, live sessions, unfinished writes
///
/// Of Claude Code: how many sessions there are and which processes have one open. Of Codex: how
/// many threads there are, which a running client holds, and whether the store's projections are in
/// step with the newest rollouts. `ctxfold check` looks at one session or thread as a whole.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, serde::Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    says: String,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let env = &cx.env;
        let mut checks = Vec::new();
        let mut add = |what, ok, says: String| checks.push(Check { what, ok, says });

        add("version", true, env!("CARGO_PKG_VERSION").to_owned());
        match Config::read(env) {
            Ok(_) if env.config_file.exists() => {
                add("configuration", true, env.show(&env.config_file));
            }
            Ok(_) => add(
                "configuration",
                true,
                format!(
                    "{} (not there; every default holds)",
                    env.show(&env.config_file)
                ),
            ),
            Err(e) => add("configuration", false, e.line()),
        }
        match config::gemini_keys(env) {
            Ok(None) => add(
                "Gemini key",
                true,
                "none: masking works, nothing can be sent".into(),
            ),
            Ok(Some((_, KeySource::Variable(name)))) => {
                add("Gemini key", true, format!("from {name}"));
            }
            Ok(Some((_, KeySource::File))) => add(
                "Gemini key",
                true,
                format!("from {}", env.show(&config::keys_file(env))),
            ),
            Err(e) => add("Gemini key", false, e.to_string()),
        }
        let store = claude::Store::new(&env.claude_root);
        // Where a variable names it, or where there is no agent at all, something is amiss.
        let is_missed = env::var("CLAUDE_CONFIG_DIR").is_some() || !cx.env.codex_home.is_dir();
        match store.entries() {
            _ if !cx.env.claude_root.is_dir() => add(
                "Claude Code",
                !is_missed,
                format!("no folder at {}", cx.env.show(&cx.env.claude_root)),
            ),
            Ok(entries) => add(
                "Claude Code",
                true,
                format!(
                    "{} sessions under {}",
                    entries.len(),
                    env.show(&env.claude_root)
                ),
            ),
            Err(e) => add("Claude Code", false, e.to_string()),
        }
        match store.live(&claude::SystemProcesses) {
            Ok(live) => {
                let ids: Vec<_> = live
                    .iter()
                    .map(|l| format!("{} (process {})", crate::agent::short(&l.session), l.pid))
                    .collect();
                add(
                    "live sessions",
                    true,
                    if ids.is_empty() {
                        "none".into()
                    } else {
                        ids.join(", ")
                    },
                );
            }
            Err(e) => add("live sessions", false, e.to_string()),
        }
        checks.extend(codex_checks(env));
        let mut add = |what, ok, says: String| checks.push(Check { what, ok, says });
        let journal = Journal::new(&env.state_dir);
        let version = journal.check_version();
        match journal.unfinished() {
            Ok(open) if open.is_empty() => add(
                "journal",
                version.is_ok(),
                match version {
                    Ok(()) => env.show(journal.path()),
                    Err(e) => e.to_string(),
                },
            ),
            Ok(open) => {
                for begin in open {
                    let what = format!("a {} of {}", begin.mode, env.show(&begin.path));
                    let says = match begin.fate() {
                        Fate::NotWritten => {
                            format!("{what} was announced and never written; the file is as it was")
                        }
                        Fate::Written => format!(
                            "{what} stands whole in the file, but was not completed in the journal"
                        ),
                        Fate::Other => format!(
                            "{what} was not completed; something else stands in its place: `ctxfold check` tells"
                        ),
                        Fate::Gone => format!(
                            "{what} was not completed, and the file is gone or cannot be read"
                        ),
                    };
                    add("journal", false, says);
                }
            }
            Err(e) => add("journal", false, e.to_string()),
        }
        let calls = crate::watch::callers(env);
        let shown: Vec<_> = calls.iter().map(|path| env.show(path)).collect();
        if calls.is_empty() {
            add(
                "hooks",
                true,
                "no settings of Claude Code name ctxfold: it warns where a plugin or a hook calls it".into(),
            );
        } else {
            add("hooks", true, format!("named in {}", shown.join(", ")));
        }
        let folder = &env.cwd;
        let settings = ctxfold_monitor::Settings::read(Some(&env.claude_root), folder);
        add("auto-compaction", true, auto_compaction(settings.enabled));
        match crate::agent::locate(env, None, None) {
            Ok(place) => match monitor::Report::of(env, &cx.config, &place) {
                Ok(report) => add("monitor", report.is_watching(), report.line()),
                Err(e) => add("monitor", false, e.to_string()),
            },
            Err(_) => add("monitor", true, "no session of this folder yet".into()),
        }
        if self.json {
            return output::json(&serde_json::json!({"v": 1, "checks": checks}));
        }
        let mut text = String::new();
        for check in &checks {
            let mark = if check.ok {
                output::styled(output::GOOD, "ok  ")
            } else {
                output::styled(output::BAD, "look")
            };
            let lead = format!("{mark} {:<15} ", check.what);
            text.push_str(&output::hanging(&lead, 21, &check.says, env::columns()));
        }
        output::data(&text)
    }
}

/// Whether Claude Code compacts by itself, as settings and environment say. The mod's compaction of
/// idle conversations rides on it.
fn auto_compaction(setting: Option<bool>) -> String {
    let is_off = |value: &Option<String>| {
        let value = value.as_deref().map(str::to_ascii_lowercase);
        value.is_some_and(|v| matches!(v.trim(), "1" | "true" | "yes" | "on"))
    };
    let overrides = crate::watch::overrides();
    let without = "the mod's compaction at the next prompt does nothing; `ctxfold resume` and \
                   `ctxfold idle run` work";
    if is_off(&overrides.disable_auto_compact) || is_off(&overrides.disable_compact) {
        format!("off in the environment: {without}")
    } else if setting == Some(false) {
        format!("off in Claude Code's settings: {without}")
    } else {
        "on in Claude Code".to_owned()
    }
}

/// Threads of Codex that are looked at, the newest ones.
const THREADS: usize = 200;

/// What there is of Codex: its home, what is wrong in its stores, and who holds a thread.
fn codex_checks(env: &Env) -> Vec<Check> {
    let check = |ok, says| Check {
        what: "Codex",
        ok,
        says,
    };
    if !env.codex_home.is_dir() {
        let says = format!("no home at {}", env.show(&env.codex_home));
        return vec![check(env::var("CODEX_HOME").is_none(), says)];
    }
    let store = codex::Store::new(&env.codex_home);
    let (threads, findings) = store.entries();
    let from = store
        .state()
        .map_or("no store; rollouts are gone through".to_owned(), |path| {
            env.show(&path)
        });
    let mut says = format!(
        "{} threads under {} ({from})",
        threads.len(),
        env.show(&env.codex_home)
    );
    if store.logged_bytes() > 0 {
        says.push_str(&format!(
            "; {} of the projections in the write-ahead log alone",
            output::bytes(store.logged_bytes())
        ));
    }
    let mut checks = vec![check(findings.is_empty(), says)];
    let told = |f: &codex::Finding| format!("{}: {}", f.code, f.message);
    checks.extend(findings.iter().map(|f| check(false, told(f))));
    let mut held = Vec::new();
    let newest = threads.iter().filter(|t| !t.missing).take(THREADS);
    for thread in newest {
        let short = crate::agent::codex_short(&thread.id);
        match codex::glance(&store, &thread.path) {
            Ok(findings) => {
                for finding in findings {
                    if finding.code == "lease-held" {
                        held.push(short.to_owned());
                    } else if finding.severity > codex::Severity::Info {
                        checks.push(check(false, format!("{short}: {}", told(&finding))));
                    }
                }
            }
            Err(error) => checks.push(check(false, format!("{short}: {error}"))),
        }
    }
    checks.push(Check {
        what: "live threads",
        ok: true,
        says: if held.is_empty() {
            "none".to_owned()
        } else {
            held.join(", ")
        },
    });
    checks
}
