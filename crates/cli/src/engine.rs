//! From a conversation to a plan: the compactor asks, the Gemini client answers, and where the
//! model fails the conversation is masked instead.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ctxfold_compactor as compactor;
use ctxfold_compactor::{
    Answer, Goal, MaskOptions, ModelRequest, PruneJob, PruneOptions, Step, SummaryJob,
    SummaryOptions, Usage,
};
use ctxfold_gemini_client as gemini;
use ctxfold_transcript::{Mode, Plan, Transcript};

use crate::agent::Written;
use crate::config::Config;
use crate::env::{self, Env};
use crate::error::{CommandError, CommandResult};
use crate::journal::Done;
use crate::{config, files, interrupt, output};

/// How a conversation is to be compacted.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) mode: Mode,
    pub(crate) mask: MaskOptions,
    pub(crate) instructions: Option<String>,
    pub(crate) fallback: bool,
    pub(crate) redact: bool,
    pub(crate) model: String,
    pub(crate) thinking: gemini::Thinking,
    pub(crate) tier: String,
    pub(crate) deadline: Duration,
    /// Most characters of a summary with its ledger.
    pub(crate) max_chars: Option<usize>,
    /// Whether progress may be shown.
    pub(crate) progress: bool,
}

impl Wish {
    /// What the configuration says.
    pub(crate) fn of(config: &Config) -> Wish {
        let mask = MaskOptions {
            keep_recent: usize::try_from(config.number("keep")).unwrap_or(usize::MAX),
            max_output: config.size("max-output").map_or(8000, config::Size::number),
            ..MaskOptions::default()
        };
        Wish {
            mode: mode_named(config.text("mode")),
            mask,
            instructions: None,
            fallback: config.text("fallback") == "mask",
            redact: config.switch("redact"),
            model: config.text("gemini.model").to_owned(),
            thinking: thinking_named(config.text("gemini.thinking")),
            tier: config.text("gemini.tier").to_owned(),
            deadline: Duration::from_secs(config.number("gemini.deadline")),
            max_chars: None,
            progress: true,
        }
    }
}

/// The mode of a name.
pub(crate) fn mode_named(name: &str) -> Mode {
    match name {
        "summary" => Mode::Summary,
        "prune" => Mode::Prune,
        _ => Mode::Mask,
    }
}

/// The thinking of a level's name.
pub(crate) fn thinking_named(name: &str) -> gemini::Thinking {
    use gemini::{Level, Thinking};
    match name {
        "minimal" => Thinking::Level(Level::Minimal),
        "low" => Thinking::Level(Level::Low),
        "medium" => Thinking::Level(Level::Medium),
        "high" => Thinking::Level(Level::High),
        _ => Thinking::ModelDefault,
    }
}

/// A plan and how it came about.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) plan: Plan,
    /// What the model calls used; `None` when none was made.
    pub(crate) usage: Option<Usage>,
    /// Why the model's way was not taken.
    pub(crate) fallback: Option<String>,
    /// Secrets that were replaced in what was sent.
    pub(crate) secrets: usize,
    /// Whether any text went to the model, answered or not.
    pub(crate) sent: bool,
}

/// What every outcome says of a free key that was used.
const FREE: &str = "free tier: the provider may read and train on what was sent";

impl Made {
    /// The journal's line on a write that carried the plan out.
    pub(crate) fn done(&self, wish: &Wish, id: &str, written: &Written) -> Done {
        let mut done = Done::of(id, written.len_after, &written.sha256, &self.plan);
        if let Some(usage) = self.usage {
            done.model = Some(wish.model.clone());
            done.model_in = usage.input_tokens;
            done.model_out = usage.output_tokens;
        }
        done
    }

    /// The line that says what was done, without the program's name.
    pub(crate) fn line(&self, wish: &Wish) -> String {
        let mut line = match &self.fallback {
            Some(reason) => format!(
                "{} · {}",
                compactor::masked_instead(reason),
                compactor::outcome(&self.plan, self.usage)
            ),
            None => compactor::outcome(&self.plan, self.usage),
        };
        if self.sent && wish.tier == "free" {
            line.push_str(" · ");
            line.push_str(FREE);
        }
        line
    }
}

/// What a dry run would send.
#[derive(Debug)]
pub(crate) struct Questions {
    pub(crate) requests: Vec<ModelRequest>,
    pub(crate) secrets: usize,
}

/// The first questions of a summary or prune; `None` for masking. Nothing is sent.
pub(crate) fn questions(transcript: &Transcript, wish: &Wish) -> CommandResult<Option<Questions>> {
    let (step, secrets) = match wish.mode {
        Mode::Mask => return Ok(None),
        Mode::Summary => {
            let job = SummaryJob::new(transcript, &summary_options(wish))?;
            (job.next(), job.secrets().values().sum())
        }
        Mode::Prune => {
            let job = PruneJob::new(transcript, &prune_options(wish))?;
            (job.next(), job.secrets().values().sum())
        }
    };
    let requests = match step {
        Step::Ask(requests) => requests,
        Step::Done(_) => Vec::new(),
    };
    Ok(Some(Questions { requests, secrets }))
}

/// Makes a plan.
pub(crate) fn plan(
    env: &Env,
    config: &Config,
    transcript: &Transcript,
    wish: &Wish,
) -> CommandResult<Made> {
    if wish.mode == Mode::Mask {
        let plan = compactor::mask(transcript, &wish.mask)?;
        return Ok(Made {
            plan,
            usage: None,
            fallback: None,
            secrets: 0,
            sent: false,
        });
    }
    let mut model = Model::new(env, config, wish)?;
    if let Some(failed) = model.refusal()? {
        return fall_back(transcript, wish, &model, failed);
    }
    if wish.tier == "free" && wish.progress {
        tell_once(env);
    }
    let failed = match ask(&mut model, transcript, wish)? {
        Ok(made) => return Ok(made),
        Err(failed) => failed,
    };
    fall_back(transcript, wish, &model, failed)
}

/// Masks where the model failed, unless that is not wanted.
fn fall_back(
    transcript: &Transcript,
    wish: &Wish,
    model: &Model,
    failed: String,
) -> CommandResult<Made> {
    let error = |hint: String| {
        let error = CommandError::model(failed.clone()).hint(hint);
        if !model.sent {
            return error;
        }
        let error = error.after_sending();
        match &*wish.tier {
            "free" => error.hint(FREE),
            _ => error,
        }
    };
    if !wish.fallback {
        return Err(error(
            "nothing was written; try again, or --fallback mask".to_owned(),
        ));
    }
    let plan = compactor::mask(transcript, &wish.mask)
        .map_err(|refusal| error(format!("masking instead: {refusal}")))?;
    Ok(Made {
        plan,
        usage: model.usage(),
        fallback: Some(failed),
        secrets: model.secrets,
        sent: model.sent,
    })
}

/// Says what a free key means before it is used for the first time, and remembers that it did.
fn tell_once(env: &Env) {
    let told = env.state_dir.join("free-tier-told");
    if told.exists() {
        return;
    }
    output::say(
        "ctxfold: on Gemini's free tier Google may read and train on what is sent, which is most \
         of the older conversation; if your key is paid: `ctxfold config set gemini.tier paid`",
    );
    // Where it cannot be remembered it is said again.
    let _ = files::private_dir(&env.state_dir);
    let _ = files::options().write(true).create_new(true).open(told);
}

/// Goes through the rounds of a job. The inner error is the model's and may be fallen back from.
fn ask(
    model: &mut Model,
    transcript: &Transcript,
    wish: &Wish,
) -> CommandResult<Result<Made, String>> {
    macro_rules! rounds {
        ($job:ident) => {{
            model.secrets = $job.secrets().values().sum();
            loop {
                match $job.next() {
                    Step::Done(plan) => break plan,
                    Step::Ask(requests) => {
                        let answers = match model.answers(&requests)? {
                            Ok(answers) => answers,
                            Err(failed) => return Ok(Err(failed)),
                        };
                        if let Err(rejected) = $job.reply(&answers) {
                            return Ok(Err(rejected.to_string()));
                        }
                    }
                }
            }
        }};
    }
    let plan = if wish.mode == Mode::Summary {
        let mut job = SummaryJob::new(transcript, &summary_options(wish))?;
        rounds!(job)
    } else {
        let mut job = PruneJob::new(transcript, &prune_options(wish))?;
        rounds!(job)
    };
    Ok(Ok(Made {
        plan,
        usage: model.usage(),
        fallback: None,
        secrets: model.secrets,
        sent: model.sent,
    }))
}

fn summary_options(wish: &Wish) -> SummaryOptions {
    SummaryOptions {
        keep_recent: wish.mask.keep_recent,
        instructions: wish.instructions.clone(),
        redact: wish.redact,
        max_chars: wish.max_chars,
        ..SummaryOptions::default()
    }
}

fn prune_options(wish: &Wish) -> PruneOptions {
    PruneOptions {
        keep_recent: wish.mask.keep_recent,
        instructions: wish.instructions.clone(),
        redact: wish.redact,
        ..PruneOptions::default()
    }
}

/// A goal as the user writes it: `40%` of the window, or tokens such as `60k`.
pub(crate) fn goal(text: &str) -> Result<Goal, String> {
    let bad = || format!("{text} is neither a share such as 40% nor tokens such as 60k");
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.trim().parse().map_err(|_| bad())?;
        if !(0.0..100.0).contains(&percent) {
            return Err(bad());
        }
        return Ok(Goal::ShareOfWindow(percent / 100.0));
    }
    match config::Size::parse(text) {
        Some(config::Size::Plain(tokens)) => Ok(Goal::Tokens(tokens)),
        _ => Err(bad()),
    }
}

/// The client of a model, with what it used so far.
struct Model {
    client: gemini::Client,
    runtime: tokio::runtime::Runtime,
    wish: Wish,
    used: Usage,
    calls: usize,
    secrets: usize,
    sent: bool,
}

/// Models that were found listed, so that one process asks once for each.
static LISTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// How long the list of models may take: it is a courtesy, and the conversation is what counts.
const LISTING: Duration = Duration::from_secs(15);

/// A Gemini client from the configuration.
pub(crate) fn client(
    env: &Env,
    config: &Config,
    deadline: Duration,
) -> CommandResult<gemini::Client> {
    let Some((keys, _)) = config::gemini_keys(env)? else {
        return Err(CommandError::input("no Gemini API key")
            .hint("set CTXFOLD_GEMINI_API_KEY, or keep one with `ctxfold config keys add`"));
    };
    let mut builder = gemini::Client::builder(gemini::Keys::parse(&keys)?)
        .user_agent(concat!("ctxfold/", env!("CARGO_PKG_VERSION")))
        .deadline(deadline);
    let base = env::var("CTXFOLD_GEMINI_BASE_URL");
    if let Some(url) = base.as_deref().or_else(|| config.maybe("gemini.base-url")) {
        builder = builder.base_url(url);
    }
    let proxy = env::var("HTTPS_PROXY").or_else(|| env::var("https_proxy"));
    if let Some(url) = proxy.as_deref().or_else(|| config.maybe("gemini.proxy")) {
        builder = builder.proxy(url);
    }
    if let Some(hosts) = env::var("NO_PROXY").or_else(|| env::var("no_proxy")) {
        builder = builder.no_proxy(hosts);
    }
    Ok(builder.build()?)
}

/// A runtime for one model call after the other.
pub(crate) fn runtime() -> CommandResult<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| CommandError::input(format!("failed to start the network runtime: {e}")))
}

impl Model {
    fn new(env: &Env, config: &Config, wish: &Wish) -> CommandResult<Model> {
        interrupt::arm(|| {})?;
        Ok(Model {
            client: client(env, config, wish.deadline)?,
            runtime: runtime()?,
            wish: wish.clone(),
            used: Usage::default(),
            calls: 0,
            secrets: 0,
            sent: false,
        })
    }

    /// Why nothing should be sent at all: the model is not listed, the keys are no keys, nobody is
    /// there. A list that fails in another way is no reason.
    fn refusal(&self) -> CommandResult<Option<String>> {
        use gemini::ErrorKind as K;
        let model = &self.wish.model;
        if LISTED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(model)
        {
            return Ok(None);
        }
        let checked = self.runtime.block_on(async {
            tokio::select! {
                checked = self.client.check_model(model) => Some(Some(checked)),
                () = tokio::time::sleep(LISTING) => Some(None),
                () = interrupt::asked() => None,
            }
        });
        match checked {
            None => Err(CommandError::interrupted()),
            Some(Some(Ok(_))) => {
                let mut listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
                listed.insert(model.clone());
                Ok(None)
            }
            Some(Some(Err(e))) if e.kind() == K::NoKey || e.kind() == K::Config => Err(e.into()),
            Some(Some(Err(e))) => {
                let is_unlisted = e.kind() == K::ModelUnknown && !e.suggestions().is_empty();
                let is_hopeless = matches!(e.kind(), K::InvalidKey | K::Network);
                Ok((is_unlisted || is_hopeless).then(|| e.to_string()))
            }
            Some(None) => Ok(None),
        }
    }

    fn usage(&self) -> Option<Usage> {
        (self.calls > 0).then_some(self.used)
    }

    /// Asks one after the other: the keys are shared, and so are their quotas.
    fn answers(&mut self, requests: &[ModelRequest]) -> CommandResult<Result<Vec<Answer>, String>> {
        let mut answers = Vec::with_capacity(requests.len());
        for (index, request) in requests.iter().enumerate() {
            interrupt::check()?;
            let bar = Bar::new(
                self.wish.progress,
                &self.wish.model,
                index + 1,
                requests.len(),
            );
            let request = self.request(request);
            let client = &self.client;
            self.sent = true;
            let outcome = self.runtime.block_on(async {
                let mut show = |progress: gemini::Progress| bar.update(progress.text_bytes);
                tokio::select! {
                    answer = client.generate_stream(&request, &mut show) => Some(answer),
                    () = interrupt::asked() => None,
                }
            });
            bar.finish();
            match outcome {
                None if self.wish.tier == "free" => {
                    return Err(CommandError::interrupted().hint(FREE));
                }
                None => return Err(CommandError::interrupted()),
                Some(Ok(answer)) => {
                    self.calls += 1;
                    let usage = answer.usage;
                    let out = usage.output.saturating_add(usage.thoughts);
                    let used = &mut self.used;
                    used.input_tokens = used.input_tokens.saturating_add(usage.prompt);
                    used.output_tokens = used.output_tokens.saturating_add(out);
                    answers.push(Ok(answer.text));
                }
                Some(Err(e)) if e.kind() == gemini::ErrorKind::NoKey => return Err(e.into()),
                Some(Err(e)) => return Ok(Err(e.to_string())),
            }
        }
        Ok(Ok(answers))
    }

    fn request(&self, request: &ModelRequest) -> gemini::Request {
        gemini::Request {
            system: Some(request.system.clone()),
            schema: request.schema.as_ref().map(schema),
            thinking: self.wish.thinking,
            max_output_tokens: Some(request.max_output_tokens),
            ..gemini::Request::new(self.wish.model.clone(), request.text.clone())
        }
    }
}

/// The compactor's schema in the client's words.
fn schema(of: &compactor::Schema) -> gemini::Schema {
    use compactor::Schema as S;
    match of {
        S::Choice(words) => gemini::Schema::Enum(words.clone()),
        S::List(items) => gemini::Schema::Array {
            items: Box::new(schema(items)),
            max_items: None,
        },
        S::Object(fields) => {
            let properties = fields.iter().map(|(name, field)| {
                let property = gemini::Property::required(name, schema(field));
                match field {
                    S::Text { description } => property.describe(description),
                    _ => property,
                }
            });
            gemini::Schema::Object(properties.collect())
        }
        // Texts, and whatever a later compactor asks for: a string is checked when it comes back.
        _ => gemini::Schema::String,
    }
}

/// Elapsed time and streamed size, on a terminal only.
struct Bar(Option<indicatif::ProgressBar>);

impl Bar {
    fn new(wanted: bool, model: &str, number: usize, of: usize) -> Bar {
        if !wanted || !env::stderr_is_terminal() {
            return Bar(None);
        }
        let bar = indicatif::ProgressBar::new_spinner();
        let count = if of > 1 {
            format!(" ({number} of {of})")
        } else {
            String::new()
        };
        bar.set_prefix(format!("{model}{count}"));
        if let Ok(style) =
            indicatif::ProgressStyle::with_template("{spinner} {prefix} · {elapsed} {msg}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Bar(Some(bar))
    }

    fn update(&self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("· {} received", output::bytes(bytes)));
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
