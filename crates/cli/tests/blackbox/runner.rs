//! Runs the black-box table against any two commands. Knows nothing of what is under test.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

const CASES: &str = include_str!("cases.json");
const PREFIX: &str = "claude-ctx-";

/// The programs under test, each with its arguments.
pub(crate) struct Commands {
    pub(crate) monitor: Vec<String>,
    pub(crate) statusline: Vec<String>,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// As the table says.
    Pass,
    /// As the table's better alternative says.
    Alt,
    Fail,
}

/// A case and how it ended.
#[derive(Debug)]
#[expect(dead_code, reason = "the fields are for the message of a failed test")]
pub(crate) struct Outcome {
    pub(crate) id: String,
    pub(crate) status: Status,
    pub(crate) detail: String,
}

/// Runs all cases of a profile that have none of the tags.
pub(crate) fn run(commands: &Commands, profile: &str, without: &[&str]) -> Vec<Outcome> {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let has = |case: &Value, key: &str, word: &str| {
        case[key].as_array().unwrap().iter().any(|w| w == word)
    };
    let queue: Vec<Value> = cases
        .into_iter()
        .filter(|c| has(c, "profiles", profile) && !without.iter().any(|t| has(c, "tags", t)))
        .collect();
    let next = Mutex::new(queue.into_iter());
    let outcomes = Mutex::new(Vec::new());
    let workers = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(case) = next.lock().unwrap().next() else {
                        break;
                    };
                    let outcome = run_case(commands, &case);
                    outcomes.lock().unwrap().push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap()
}

/// Runs a case; one that counts seconds again, if a second ended in between.
fn run_case(commands: &Commands, case: &Value) -> Outcome {
    let id = case["id"].as_str().unwrap().to_owned();
    let counts = case["steps"]
        .as_array()
        .unwrap()
        .iter()
        .any(|s| s["align"] == json!(true));
    for _ in 0..20 {
        let started = seconds();
        let (status, detail) = attempt(commands, case, &id);
        if status != Status::Fail || !counts || seconds() == started {
            return Outcome { id, status, detail };
        }
    }
    Outcome {
        id,
        status: Status::Fail,
        detail: "no attempt fitted into one second".into(),
    }
}

fn attempt(commands: &Commands, case: &Value, id: &str) -> (Status, String) {
    let place = Place::new(id);
    for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        for op in step["put"].as_array().unwrap() {
            place.put(op);
        }
        let target = step
            .get("target")
            .unwrap_or(&case["target"])
            .as_str()
            .unwrap();
        let command = if target == "monitor" {
            &commands.monitor
        } else {
            &commands.statusline
        };
        let before = place.stable(step);
        let call = place.call(command, step);
        let mut errors = place.check(&step["expect"], &call, target);
        if place.stable(step) != before {
            errors.push("a file changed that must not".into());
        }
        if errors.is_empty() {
            continue;
        }
        let detail = format!("step {}: {}", index + 1, errors.join("; "));
        let Some(alternative) = step.get("alt") else {
            return (Status::Fail, detail);
        };
        let expect = match alternative {
            Value::Object(alt) if alt.contains_key("files") => alternative.clone(),
            out => json!({ "out": out, "files": {} }),
        };
        let errors = place.check(&expect, &call, target);
        return if errors.is_empty() {
            (Status::Alt, detail)
        } else {
            (
                Status::Fail,
                format!("{detail}; nor the alternative: {}", errors.join("; ")),
            )
        };
    }
    (Status::Pass, String::new())
}

fn seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// What a program did.
struct Call {
    code: Option<i32>,
    out: String,
    err: String,
    took: Duration,
    /// The event of the input, when it has one.
    event: Option<String>,
}

/// A case's own folders, and what stands for them in the table.
struct Place {
    _root: tempfile::TempDir,
    names: BTreeMap<&'static str, String>,
}

impl Place {
    fn new(id: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let under = |path: &str| root.path().join(path).to_str().unwrap().to_owned();
        let plain: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(40)
            .collect();
        let (sid, tmp) = (format!("bb-{plain}"), under("t/tmp"));
        let file = |suffix: &str| format!("{tmp}/{PREFIX}{sid}{suffix}");
        let names = BTreeMap::from([
            ("BR", file(".json")),
            ("WN", file("-warned.json")),
            ("WM", file("-compacted.json")),
            ("P", PREFIX.to_owned()),
            ("PROJ", under("proj")),
            ("HOME", under("home")),
            ("SID", sid.clone()),
            ("TMP", tmp.clone()),
        ]);
        for folder in ["TMP", "PROJ", "HOME"] {
            std::fs::create_dir_all(&names[folder]).unwrap();
        }
        Self { _root: root, names }
    }

    fn fill_text(&self, text: &str) -> String {
        let replace = |text: String, (name, value): (&&str, &String)| {
            text.replace(&format!("{{{name}}}"), value)
        };
        self.names.iter().fold(text.to_owned(), replace)
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill_text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(map) => {
                let offset = |key: &str| (map.len() == 1).then(|| map.get(key)?.as_i64()).flatten();
                let now = seconds().cast_signed();
                if let Some(offset) = offset("$now") {
                    (now + offset).into()
                } else if let Some(offset) = offset("$now_str") {
                    (now + offset).to_string().into()
                } else if let Some(offset) = offset("$now_ms") {
                    (now * 1000 + offset).into()
                } else {
                    let filled = map.iter().map(|(k, v)| (self.fill_text(k), self.fill(v)));
                    Value::Object(filled.collect::<Map<_, _>>())
                }
            }
            other => other.clone(),
        }
    }

    fn put(&self, op: &Value) {
        if let Some(folder) = op.get("git_init") {
            let folder = self.fill_text(folder.as_str().unwrap());
            let mut git = Command::new("git");
            git.args(["init", "-q", "-b", "main", &folder])
                .env("HOME", &self.names["HOME"]);
            assert!(git.status().unwrap().success());
            return;
        }
        let path = self.fill_text(op["path"].as_str().unwrap());
        let path = Path::new(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if op.get("dir").is_some() {
            return std::fs::create_dir_all(path).unwrap();
        }
        if path.symlink_metadata().is_ok_and(|m| !m.is_dir()) {
            std::fs::remove_file(path).unwrap();
        }
        if let Some(to) = op.get("symlink") {
            symlink(self.fill_text(to.as_str().unwrap()), path).unwrap();
        } else if op.get("fifo").is_some() {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        } else if let Some(value) = op.get("json") {
            let mut value = self.fill(value);
            let text = if op.get("indent").is_some() {
                serde_json::to_string_pretty(&value).unwrap()
            } else if let Some(size) = op.get("pad_to").and_then(Value::as_u64) {
                value["pad"] = json!("");
                let pad = usize::try_from(size).unwrap() - value.to_string().len();
                value["pad"] = json!("x".repeat(pad));
                value.to_string()
            } else {
                value.to_string()
            };
            std::fs::write(path, text).unwrap();
        } else {
            std::fs::write(path, self.fill_text(op["text"].as_str().unwrap())).unwrap();
        }
    }

    fn call(&self, command: &[String], step: &Value) -> Call {
        let input: Vec<u8> = if let Some(text) = step.get("b64_of") {
            let text = self.fill_text(text.as_str().unwrap());
            text.chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap())
                .collect()
        } else if let Some(text) = step.get("stdin_raw") {
            self.fill_text(text.as_str().unwrap()).into_bytes()
        } else {
            self.fill(&step["stdin"]).to_string().into_bytes()
        };
        let event = serde_json::from_slice::<Value>(&input).ok();
        let event = event.and_then(|e| Some(e["hook_event_name"].as_str()?.trim().to_owned()));
        let cwd = step
            .get("run_cwd")
            .and_then(Value::as_str)
            .unwrap_or("{HOME}");
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]);
        let more = step.get("argv_extra").and_then(Value::as_array);
        program.args(more.into_iter().flatten().filter_map(Value::as_str));
        program.env_clear().current_dir(self.fill_text(cwd));
        program.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        program
            .env("HOME", &self.names["HOME"])
            .env("TMPDIR", &self.names["TMP"]);
        for (name, value) in step
            .get("env")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            match value.as_str() {
                Some(text) => program.env(name, self.fill_text(text)),
                None => program.env_remove(name),
            };
        }
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = program.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A program that does not read its input is no error here.
        let _ = pipe.write_all(&input);
        let held = step.get("hold_open").is_some().then_some(pipe);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        child.stderr.take().unwrap().read_to_end(&mut err).unwrap();
        let code = child.wait().unwrap().code();
        drop(held);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Call {
            code,
            out: text(out),
            err: text(err),
            took: started.elapsed(),
            event: event.filter(|e| !e.is_empty()),
        }
    }

    /// The texts of the files that a step must leave alone.
    fn stable(&self, step: &Value) -> Vec<Option<Vec<u8>>> {
        let files = step["expect"].get("stable").and_then(Value::as_object);
        let paths = files
            .into_iter()
            .flatten()
            .map(|(path, _)| self.fill_text(path));
        paths.map(|path| std::fs::read(path).ok()).collect()
    }

    fn check(&self, expect: &Value, call: &Call, target: &str) -> Vec<String> {
        const KNOWN: [&str; 9] = [
            "exit",
            "out",
            "files",
            "max_ms",
            "stable",
            "plain_eq",
            "plain_has",
            "plain_hasnt",
            "raw_has",
        ];
        let unknown = expect
            .as_object()
            .unwrap()
            .keys()
            .find(|k| !KNOWN.contains(&k.as_str()));
        assert_eq!(unknown, None, "the runner does not know this expectation");
        let mut errors = Vec::new();
        let mut claim = |holds: bool, text: String| {
            if !holds {
                errors.push(text);
            }
        };
        let code = expect.get("exit").and_then(Value::as_i64).unwrap_or(0);
        claim(
            call.code.map(i64::from) == Some(code),
            format!("exit {:?}", call.code),
        );
        claim(call.err.trim().is_empty(), format!("stderr {:?}", call.err));
        if let Some(limit) = expect.get("max_ms").and_then(Value::as_u64) {
            claim(
                call.took <= Duration::from_millis(limit),
                format!("took {:?}", call.took),
            );
        }
        if target == "monitor" {
            let error = check_envelope(expect.get("out").unwrap_or(&json!("any")), call);
            claim(error.is_none(), error.unwrap_or_default());
        } else {
            let plain = without_colours(&call.out);
            let words = |key: &str| {
                let list = expect
                    .get(key)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                list.map(|w| self.fill_text(w.as_str().unwrap()))
                    .collect::<Vec<_>>()
            };
            if let Some(whole) = expect.get("plain_eq") {
                let whole = self.fill_text(whole.as_str().unwrap());
                claim(plain == whole, format!("text {plain:?} is not {whole:?}"));
            }
            for word in words("plain_has") {
                claim(
                    plain.contains(&word),
                    format!("text {plain:?} lacks {word:?}"),
                );
            }
            for word in words("plain_hasnt") {
                claim(
                    !plain.contains(&word),
                    format!("text {plain:?} has {word:?}"),
                );
            }
            for word in words("raw_has") {
                claim(
                    call.out.contains(&word),
                    format!("{:?} lacks {word:?}", call.out),
                );
            }
        }
        let files = expect.get("files").and_then(Value::as_object);
        for (path, wanted) in files.into_iter().flatten() {
            let error = self.check_file(&self.fill_text(path), wanted);
            claim(error.is_none(), error.unwrap_or_default());
        }
        errors
    }

    fn check_file(&self, path: &str, wanted: &Value) -> Option<String> {
        let found = Path::new(path).symlink_metadata();
        if wanted == "absent" {
            return found.is_ok().then(|| format!("{path} exists"));
        }
        let Ok(found) = found else {
            return Some(format!("{path} is absent"));
        };
        if let Some(kind) = wanted.get("type") {
            let is = match found.file_type() {
                t if t.is_symlink() => "symlink",
                t if t.is_dir() => "dir",
                t if t.is_fifo() => "fifo",
                _ => "file",
            };
            return (kind != is).then(|| format!("{path} is a {is}"));
        }
        let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
        if let Some(whole) = wanted.get("text") {
            let whole = self.fill_text(whole.as_str().unwrap());
            return (text != whole).then(|| format!("{path} holds {text:?}"));
        }
        let Ok(json) = serde_json::from_str::<Value>(&text) else {
            return Some(format!("{path} is no JSON: {text:?}"));
        };
        let (exact, shape) = match wanted.get("json") {
            Some(shape) => (true, shape),
            None => (false, &wanted["subset"]),
        };
        matches(&self.fill(shape), &json, exact)
            .err()
            .map(|e| format!("{path}: {e}"))
    }
}

fn matches(wanted: &Value, got: &Value, exact: bool) -> Result<(), String> {
    let differs = || Err(format!("{got} is not {wanted}"));
    match (wanted, got) {
        (Value::Object(near), _) if near.contains_key("$near_now") => {
            let tolerance = near["$near_now"].as_f64().unwrap() + 1.0;
            #[expect(clippy::cast_precision_loss, reason = "seconds fit")]
            let now = seconds() as f64;
            match got.as_f64() {
                Some(at) if (at - now).abs() <= tolerance => Ok(()),
                _ => Err(format!("{got} is not near {now}")),
            }
        }
        (Value::Object(wanted_map), Value::Object(map)) => {
            if exact && wanted_map.len() != map.len() {
                return differs();
            }
            wanted_map
                .iter()
                .try_for_each(|(key, value)| match map.get(key) {
                    Some(inner) => matches(value, inner, exact),
                    None => Err(format!("{key} is missing in {got}")),
                })
        }
        (Value::Number(_), Value::Number(_)) if wanted.as_f64() == got.as_f64() => Ok(()),
        _ if wanted == got => Ok(()),
        _ => differs(),
    }
}

/// Compares a monitor's output with `any`, `silent`, or a severity and words.
fn check_envelope(wanted: &Value, call: &Call) -> Option<String> {
    let out = &call.out;
    if wanted == "any" {
        return None;
    }
    if wanted == "silent" {
        return (!out.is_empty()).then(|| format!("not silent: {out:?}"));
    }
    let severity = wanted["sev"].as_str().unwrap();
    let Ok(json) = serde_json::from_str::<Value>(out) else {
        return Some(format!("no JSON: {out:?}"));
    };
    let specific = &json["hookSpecificOutput"];
    if json.as_object().map(Map::len) != Some(1) || !specific.is_object() || out.contains('\n') {
        return Some(format!("no lone envelope on one line: {out:?}"));
    }
    let event = wanted
        .get("event")
        .and_then(Value::as_str)
        .or(call.event.as_deref());
    if event.is_some_and(|e| specific["hookEventName"] != e) {
        return Some(format!("another event: {out:?}"));
    }
    let text = specific["additionalContext"].as_str().unwrap_or_default();
    let marks = ("CONTEXT WARNING", "CONTEXT CRITICAL");
    let (mark, other) = if severity == "warning" {
        marks
    } else {
        (marks.1, marks.0)
    };
    if !text.contains(mark) || text.contains(other) || specific["severity"] != severity {
        return Some(format!("another severity: {out:?}"));
    }
    let list = |key: &str| {
        wanted
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    if let Some(word) = list("has").find(|w| !text.contains(w.as_str().unwrap())) {
        return Some(format!("lacks {word}: {text:?}"));
    }
    if let Some(word) = list("hasnt").find(|w| text.contains(w.as_str().unwrap())) {
        return Some(format!("has {word}: {text:?}"));
    }
    let tracked = wanted.get("active").and_then(Value::as_bool);
    let says = text.contains("/gsd:pause-work");
    (severity == "critical" && tracked.is_some_and(|t| t != says))
        .then(|| format!("the project's state is tracked: {tracked:?}, but: {text:?}"))
}

fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest = rest.strip_prefix('m').unwrap_or(rest);
    }
    plain + rest
}
