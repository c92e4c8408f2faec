//! `ctxfold compact`, and the one way in which anything is written.

use std::path::{Path, PathBuf};

use ctxfold_compactor::{Rule, RuleSet};
use ctxfold_transcript::{Mode, Plan, Target, Transcript};

use super::{Context, Which};
use crate::agent::{self, Agent, Conversation};
use crate::config::Size;
use crate::engine::{self, Made, Wish};
use crate::error::{CommandError, CommandResult};
use crate::journal::{Begin, Done, Entry, Journal, sha256};
use crate::plan_json::PlanJson;
use crate::{env, output};

/// Make the next request of a session shorter
///
/// mask folds older tool outputs by local rules and asks nobody. prune lets Gemini keep, truncate
/// or drop each older tool call. summary replaces everything before the newest messages by a
/// summary of Gemini's with a ledger of facts behind it. Nothing in the file is changed or
/// removed: rows are appended, `ctxfold undo` brings the conversation back, and every folded
/// output can be read with `ctxfold unfold`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// How to compact
    #[arg(long, value_parser = ["mask", "prune", "summary"])]
    mode: Option<String>,

    /// Show what would be done, and what would be sent, and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,

    /// Newest messages kept verbatim
    #[arg(long, value_name = "MESSAGES")]
    keep: Option<usize>,

    /// How small masking should get: 40% of the window, or tokens such as 60k
    #[arg(long, value_name = "SIZE", value_parser = engine::goal)]
    to: Option<ctxfold_compactor::Goal>,

    /// Largest older output that stays whole, in bytes
    #[arg(long, value_name = "BYTES", value_parser = size)]
    max_output: Option<u64>,

    /// Fold every older output, whatever it is
    #[arg(long)]
    aggressive: bool,

    /// Switch a masking rule on or off, for example search=off; --rule help lists them
    #[arg(long, value_name = "NAME=on|off")]
    rule: Vec<String>,

    /// Append although a running client has the session; it takes effect at the next resume
    #[arg(long)]
    live: bool,

    /// Write a compacted copy to this new file and leave the session alone
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Bring Codex's projection forward too, for readers that do not resume the thread
    #[arg(long)]
    project: bool,

    /// What the model should heed, as after /compact
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,

    /// What to do when the model fails
    #[arg(long, value_parser = ["mask", "none"])]
    fallback: Option<String>,

    /// Send texts to the model as they are, secrets included
    #[arg(long)]
    no_redact: bool,

    /// Gemini model
    #[arg(long, value_name = "ID")]
    model: Option<String>,

    /// Thinking level of the model
    #[arg(long, value_parser = ["default", "minimal", "low", "medium", "high"])]
    thinking: Option<String>,

    /// Context window in tokens, where the file does not tell it
    #[arg(long, value_name = "TOKENS", value_parser = window)]
    window: Option<u64>,
}

/// A size with or without a unit.
fn size(text: &str) -> Result<u64, String> {
    Size::parse(text)
        .map(Size::number)
        .ok_or_else(|| format!("{text} is no size such as 8000 or 60k"))
}

/// A context window.
fn window(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("a window of no tokens holds nothing".to_owned()),
        tokens => Ok(tokens),
    }
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        if self.rule.iter().any(|r| r == "help") {
            return rules();
        }
        let wish = self.wish(cx)?;
        let place = agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?;
        if self.project && place.agent != Agent::Codex {
            return Err(CommandError::usage("--project is for threads of Codex")
                .hint("a session of Claude Code has no store beside its file"));
        }
        if let Some(out) = &self.out {
            super::new_file(cx, out)?;
        }
        let window = self
            .window
            .or_else(|| cx.config.size("window").map(Size::number));
        if !self.dry_run {
            agent::refuse_packed(&place)?;
        }
        let conversation = cx.open(&place, window)?;
        let writes = !self.dry_run && self.out.is_none();
        if writes && !self.live {
            conversation.refuse_live(&cx.env)?;
        }
        if self.dry_run && wish.mode != Mode::Mask {
            let refused = super::would_refuse(cx, &conversation, self.ignores_clients());
            return self.show_questions(cx, &conversation, &wish, refused);
        }
        let made = engine::plan(&cx.env, &cx.config, conversation.transcript(), &wish).map_err(
            |error| match conversation.findings().first() {
                Some(finding) => error.hint(format!(
                    "something is wrong with the file ({finding}); `ctxfold check` says more"
                )),
                None => error,
            },
        )?;
        if self.dry_run {
            let refused = super::would_refuse(cx, &conversation, self.ignores_clients());
            let prepared = || conversation.prepare(&cx.env, &made.plan, self.project);
            let refused = refused.or_else(|| prepared().err());
            return self.show(cx, conversation.transcript(), &made, false, refused);
        }
        let shown = cx.reading(&place);
        let ready = conversation.prepare(&cx.env, &made.plan, self.project)?;
        drop(shown);
        if let Some(out) = &self.out {
            let written = ready.write_copy(out)?;
            self.show(cx, conversation.transcript(), &made, true, None)?;
            self.say_outcome(cx, &conversation, &made, &wish);
            cx.say(&format!(
                "  wrote   {} ({})",
                cx.env.show(out),
                output::bytes(written.len_after)
            ));
            if let Some(address) = first_address(conversation.transcript(), &made.plan) {
                let copy = quoted(&cx.env.show(out), out);
                cx.say(&format!(
                    "  read    ctxfold unfold {address} --session {copy}"
                ));
            }
            return Ok(());
        }
        let journal = Journal::new(&cx.env.state_dir);
        let written = write(
            cx,
            &journal,
            &conversation,
            ready,
            made.plan.mode.name(),
            |id, w| made.done(&wish, id, w),
        )?;
        self.show(cx, conversation.transcript(), &made, true, None)?;
        self.report(cx, &conversation, &made, &wish, written.repaired);
        Ok(())
    }

    fn wish(&self, cx: &Context) -> CommandResult<Wish> {
        let mut wish = Wish::of(&cx.config);
        if let Some(mode) = &self.mode {
            wish.mode = engine::mode_named(mode);
        }
        if let Some(keep) = self.keep {
            wish.mask.keep_recent = keep;
        }
        if let Some(bytes) = self.max_output {
            wish.mask.max_output = bytes;
        }
        wish.mask.aggressive = self.aggressive;
        if self.to.is_some() && wish.mode != Mode::Mask {
            return Err(CommandError::usage(format!(
                "--to says how far masking goes; {} has no goal",
                wish.mode.name()
            )));
        }
        wish.mask.goal = self.to;
        wish.mask.rules = rule_set(wish.mask.rules, &self.rule)?;
        wish.instructions.clone_from(&self.instructions);
        if let Some(fallback) = &self.fallback {
            wish.fallback = fallback == "mask";
        }
        wish.redact &= !self.no_redact;
        if let Some(model) = &self.model {
            wish.model.clone_from(model);
        }
        if let Some(level) = &self.thinking {
            wish.thinking = engine::thinking_named(level);
        }
        wish.progress = !cx.quiet;
        Ok(wish)
    }

    /// Whether a running client is no reason to refuse: nothing is appended, or all the same.
    fn ignores_clients(&self) -> bool {
        self.live || self.out.is_some()
    }

    /// What a summary or prune would send.
    fn show_questions(
        &self,
        cx: &Context,
        conversation: &Conversation,
        wish: &Wish,
        refused: Option<CommandError>,
    ) -> CommandResult {
        let Some(asked) = engine::questions(conversation.transcript(), wish)? else {
            return Ok(());
        };
        let chars: usize = asked
            .requests
            .iter()
            .map(|r| r.text.len() + r.system.len())
            .sum();
        if self.json {
            let texts: Vec<_> = asked
                .requests
                .iter()
                .map(|r| serde_json::json!({"system": r.system, "text": r.text, "max_output_tokens": r.max_output_tokens}))
                .collect();
            return output::json(&serde_json::json!({
                "v": 1, "mode": wish.mode.name(), "executed": false, "model": wish.model,
                "tier": wish.tier, "bytes": chars, "secrets_replaced": asked.secrets, "requests": texts,
                "refused": refused.map(|e| e.line()),
            }));
        }
        let mut text = String::new();
        for request in &asked.requests {
            text.push_str(&request.system);
            text.push_str("\n\n");
            text.push_str(&request.text);
            text.push_str("\n\n");
        }
        output::data(&text)?;
        cx.say(&format!(
            "ctxfold: would send {} in {} requests to {} ({} tier); {} secrets replaced; nothing was sent",
            output::bytes(chars as u64),
            asked.requests.len(),
            wish.model,
            wish.tier,
            asked.secrets
        ));
        super::say_refused(cx, refused.as_ref());
        Ok(())
    }

    fn show(
        &self,
        cx: &Context,
        transcript: &Transcript,
        made: &Made,
        executed: bool,
        refused: Option<CommandError>,
    ) -> CommandResult {
        if self.json {
            let mut json = PlanJson::new(&made.plan, transcript);
            json.executed = executed;
            json.out = self.out.as_deref().filter(|_| executed);
            json.refused = refused.map(|e| e.line());
            return output::json(&json);
        }
        if !executed {
            output::data(&made.plan.render(transcript))?;
            cx.say("ctxfold: dry run; nothing was written");
            super::say_refused(cx, refused.as_ref());
        }
        Ok(())
    }

    /// What was done, with the sizes before and after it.
    fn say_outcome(&self, cx: &Context, conversation: &Conversation, made: &Made, wish: &Wish) {
        if self.json {
            return;
        }
        cx.say(&output::styled(
            output::GOOD,
            &format!("ctxfold: {}", made.line(wish)),
        ));
        cx.say(&format!(
            "  before  {}",
            measure_line(conversation.transcript(), &made.plan, true)
        ));
        cx.say(&format!(
            "  after   {}",
            measure_line(conversation.transcript(), &made.plan, false)
        ));
    }

    fn report(
        &self,
        cx: &Context,
        conversation: &Conversation,
        made: &Made,
        wish: &Wish,
        repaired: bool,
    ) {
        if self.json {
            return;
        }
        let id = conversation.short_id();
        self.say_outcome(cx, conversation, made, wish);
        if made.secrets > 0 {
            cx.say(&format!(
                "  secrets {} were replaced in what was sent",
                made.secrets
            ));
        }
        if repaired {
            cx.say("  note    rows arrived while writing; they were kept");
        }
        if let Some(goal) = wish.mask.goal
            && goal.is_reached(&made.plan, conversation.transcript()) == Ok(false)
        {
            cx.say("  note    the rules did not reach the goal; --aggressive or a smaller --keep goes further");
        }
        cx.say(&format!("  undo    ctxfold undo {id}"));
        let address = first_address(conversation.transcript(), &made.plan);
        cx.say(&format!(
            "  read    ctxfold unfold {}",
            address.unwrap_or("--search REGEX")
        ));
    }
}

/// The address of an output that a plan folds.
fn first_address<'a>(transcript: &'a Transcript, plan: &Plan) -> Option<&'a str> {
    plan.decisions.iter().find_map(|d| match d.target {
        Target::Call(i) => transcript.calls.get(i).map(|c| c.address.as_str()),
        Target::Attachment(_) => None,
    })
}

/// A path as a shell takes it: as it is shown where nothing in it means something to a shell.
fn quoted(shown: &str, path: &Path) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@~".contains(c);
    if shown.chars().all(is_plain) {
        return shown.to_owned();
    }
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// One side of a plan, with the bar of the window where it is known.
fn measure_line(transcript: &Transcript, plan: &Plan, before: bool) -> String {
    let m = if before { plan.before } else { plan.after };
    let tokens = m.tokens.saturating_add(transcript.scale().outside());
    let text = format!(
        "{} messages · {} · about {} tokens",
        m.messages,
        output::bytes(m.bytes),
        output::tokens(tokens)
    );
    match transcript.fill.and_then(|f| f.window) {
        Some(window) => {
            let share = tokens as f64 / window as f64;
            format!(
                "{} {:>4}  {text}",
                output::bar(share, 20),
                output::percent(share)
            )
        }
        None => text,
    }
}

/// Writes rows with the journal around it, so that a crash between the two can be told.
pub(crate) fn write(
    cx: &Context,
    journal: &Journal,
    conversation: &Conversation,
    ready: agent::Ready,
    mode: &str,
    done: impl FnOnce(&str, &agent::Written) -> Done,
) -> CommandResult<agent::Written> {
    let no_journal = |error: CommandError| {
        error
            .into_refusal()
            .hint("without its journal nothing is written; the session is as it was")
    };
    journal.check_version().map_err(no_journal)?;
    let id = format!("{:032x}", env::random());
    let begin = Begin {
        id: id.clone(),
        agent: conversation.place().agent.name().into(),
        session: conversation.about().id,
        path: std::path::absolute(&conversation.place().path)
            .unwrap_or_else(|_| conversation.place().path.clone()),
        mode: mode.into(),
        len_before: ready.len_before(),
        bytes: ready.bytes().len() as u64,
        sha256: sha256(ready.bytes()),
    };
    journal
        .append(cx.env.now_ms(), Entry::Begin(begin))
        .map_err(no_journal)?;
    let written = match ready.commit() {
        Ok(written) => written,
        Err(error) => {
            let entry = Entry::Failed {
                id,
                error: error.to_string(),
            };
            if let Err(second) = journal.append(cx.env.now_ms(), entry) {
                cx.say(&format!("ctxfold: {second}"));
            }
            return Err(error);
        }
    };
    // The session is compacted: a journal that cannot be completed is said, and is no failure.
    let entry = Entry::Done(done(&id, &written));
    if let Err(error) = journal.append(cx.env.now_ms(), entry) {
        cx.say(&format!("ctxfold: the session was compacted, but: {error}"));
    }
    Ok(written)
}

fn rule_set(mut rules: RuleSet, words: &[String]) -> CommandResult<RuleSet> {
    for word in words {
        let (name, state) = word.split_once('=').unwrap_or((word, "on"));
        let rule = Rule::by_name(name).ok_or_else(|| {
            let names: Vec<_> = Rule::ALL.iter().map(|r| r.name()).collect();
            CommandError::usage(format!("unknown rule {name}"))
                .hint(format!("rules: {}", names.join(", ")))
        })?;
        rules = match state {
            "on" => rules.with(rule),
            "off" => rules.without(rule),
            _ => return Err(CommandError::usage(format!("{word}: a rule is on or off"))),
        };
    }
    Ok(rules)
}

fn rules() -> CommandResult {
    let default = RuleSet::default();
    let mut text = String::new();
    for rule in Rule::ALL {
        let state = if default.has(rule) { "on " } else { "off" };
        let lead = format!("{:<18} {state}  ", rule.name());
        let width = lead.chars().count();
        text.push_str(&output::hanging(
            &lead,
            width,
            rule.describe(),
            env::columns(),
        ));
    }
    output::data(&text)
}
