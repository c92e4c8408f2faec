//! Finding and listing sessions, and the processes that have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ctxfold_session_claude::{
    ErrorKind, Filter, Presence, Processes, Store, SystemProcesses, project_folder,
};

const ONE: &str = "3f2a91c0-0000-4000-8000-000000000001";
const TWO: &str = "3f2a91c0-0000-4000-8000-000000000002";
const OTHER: &str = "77777777-0000-4000-8000-000000000003";

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        Home {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn store(&self) -> Store {
        Store::new(self.dir.path().join("config"))
    }

    fn session(&self, cwd: &str, id: &str, rows: &str) -> PathBuf {
        self.session_in(&project_folder(Path::new(cwd)), id, rows)
    }

    fn session_in(&self, folder: &str, id: &str, rows: &str) -> PathBuf {
        let dir = self.store().projects().join(folder);
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join(format!("{id}.jsonl"));
        fs::write(&path, rows).unwrap();
        path
    }

    fn process(&self, name: &str, text: &str) {
        let dir = self.store().root().join("sessions");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(name), text).unwrap();
    }
}

fn at(path: &Path, seconds: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

fn prompt(uuid: &str, cwd: &str, text: &str) -> String {
    format!(
        "{{\"parentUuid\":null,\"type\":\"user\",\"uuid\":\"{uuid}\",\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"cwd\":\"{cwd}\",\"version\":\"2.1.332\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

fn answer(uuid: &str, cached: u64) -> String {
    format!(
        "{{\"parentUuid\":\"p\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"2026-12-01T00:01:00.000Z\",\"message\":{{\"id\":\"m\",\"model\":\"claude-opus-5-5\",\"content\":[],\"usage\":{{\"input_tokens\":10,\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":{cached},\"output_tokens\":7,\"cache_creation\":{{\"ephemeral_5m_input_tokens\":0,\"ephemeral_1h_input_tokens\":5}}}}}}}}\n"
    )
}

#[test]
fn a_session_is_found_by_path_id_prefix_folder_and_age() {
    let home = Home::new();
    let store = home.store();
    let one = home.session("/home/dev/a", ONE, &prompt("u", "/home/dev/a", "hi"));
    let two = home.session("/home/dev/a", TWO, &prompt("u", "/home/dev/a", "hi"));
    let other = home.session("/home/dev/b", OTHER, &prompt("u", "/home/dev/b", "hi"));
    at(&one, 300);
    at(&two, 200);
    at(&other, 400);

    assert_eq!(store.find(one.to_str().unwrap(), None).unwrap(), one);
    assert_eq!(store.find(ONE, None).unwrap(), one);
    assert_eq!(store.find("7777", None).unwrap(), other);
    assert_eq!(store.newest(None).unwrap(), other);
    let here = Path::new("/home/dev/a");
    assert_eq!(store.newest(Some(here)).unwrap(), one);
    assert_eq!(store.entries_in(here).unwrap().len(), 2);

    let missing = store.find("9999", None).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let none = store.newest(Some(Path::new("/home/dev/none"))).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
}

#[test]
fn an_ambiguous_prefix_names_the_candidates() {
    let home = Home::new();
    home.session("/home/dev/a", ONE, "x");
    home.session("/home/dev/b", TWO, "x");
    let error = home.store().find("3f2a", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    let text = error.to_string();
    assert!(text.contains(ONE) && text.contains(TWO), "{text}");
}

#[test]
fn an_identifier_never_leaves_the_store() {
    let home = Home::new();
    home.session("/home/dev/a", ONE, "x");
    for what in ["", "..", "a b", "*", "3f2a\0"] {
        let error = home.store().find(what, None).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotASession),
            "{what:?}: {error}"
        );
    }
}

#[test]
fn s10_both_spellings_of_a_drive_are_one_project() {
    let home = Home::new();
    home.session_in("c--Users-dev-x", ONE, "x");
    home.session_in("C--Users-dev-x", TWO, "x");
    let store = home.store();
    let here = Path::new(r"C:\Users\dev\x");
    assert_eq!(store.entries_in(here).unwrap().len(), 2);
    assert!(store.find(ONE, Some(here)).is_ok());
    assert!(store.find(TWO, None).is_ok());
}

#[test]
fn s10_the_same_identifier_in_two_projects_is_decided_by_the_folder() {
    let home = Home::new();
    let a = home.session("/home/dev/a", ONE, "x");
    home.session("/home/dev/b", ONE, "x");
    let store = home.store();
    assert_eq!(store.find(ONE, Some(Path::new("/home/dev/a"))).unwrap(), a);
    assert_eq!(
        store.find(ONE, None).unwrap_err().kind(),
        ErrorKind::Ambiguous
    );
}

#[test]
fn s11_a_share_is_found_by_its_folder() {
    let home = Home::new();
    home.session_in("--srv-share-x", ONE, "x");
    let found = home
        .store()
        .entries_in(Path::new(r"\\srv\share\x"))
        .unwrap();
    assert_eq!(found.len(), 1);
}

#[test]
fn a_folder_with_an_unknown_name_is_found_by_what_its_rows_say() {
    let home = Home::new();
    let row = prompt("u", "/home/dev/strange", "hi");
    home.session_in("named-in-another-way", ONE, &row);
    let store = home.store();
    assert_eq!(
        store
            .entries_in(Path::new("/home/dev/strange"))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(store.entries_in(Path::new("/home/dev/x")).unwrap().len(), 0);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_the_store() {
    let home = Home::new();
    let real = home.session("/home/dev/a", ONE, "x");
    let outside = home.dir.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join(format!("{OTHER}.jsonl")), "x").unwrap();
    std::os::unix::fs::symlink(&outside, home.store().projects().join("planted")).unwrap();
    let planted = real.with_file_name(format!("{TWO}.jsonl"));
    std::os::unix::fs::symlink(outside.join(format!("{OTHER}.jsonl")), planted).unwrap();
    let entries = home.store().entries().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].path, real);
}

#[test]
fn a_store_that_is_not_there_is_empty() {
    let store = Store::new("/nonexistent/config");
    assert_eq!(store.entries().unwrap(), []);
    assert_eq!(store.live(&SystemProcesses).unwrap(), []);
}

#[test]
fn sub_agents_are_found_with_what_is_known_of_them() {
    let home = Home::new();
    let session = home.session("/home/dev/a", ONE, "x");
    let dir = session.with_extension("").join("subagents");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("agent-a1e0.jsonl"), "x").unwrap();
    fs::write(
        dir.join("agent-a1e0.meta.json"),
        r#"{"agentType":"general-purpose","description":"look around","toolUseId":"toolu_1"}"#,
    )
    .unwrap();
    let store = home.store();
    let agents = store.agents(&session).unwrap();
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0].kind.as_deref(), Some("general-purpose"));
    assert_eq!(agents[0].description.as_deref(), Some("look around"));
    assert_eq!(agents[0].call.as_deref(), Some("toolu_1"));
    assert_eq!(store.find("agent-a1", None).unwrap(), agents[0].path);
}

#[test]
fn a_listing_tells_titles_prompts_fill_and_times() {
    let home = Home::new();
    let cwd = "/home/dev/a";
    let rows = [
        "{\"type\":\"ai-title\",\"aiTitle\":\"made up\",\"sessionId\":\"s\"}\n".to_owned(),
        "{\"type\":\"user\",\"isMeta\":true,\"uuid\":\"c\",\"message\":{\"content\":\"Caveat: x\"}}\n".to_owned(),
        prompt("p", cwd, "<command-name>/model</command-name>"),
        prompt("p", cwd, "the first prompt"),
        answer("a", 1000),
        prompt("p", cwd, "the second prompt"),
        answer("b", 2000),
    ];
    let path = home.session(cwd, ONE, &rows.concat());
    at(&path, 1000);
    let two = home.session(
        cwd,
        TWO,
        "{\"type\":\"custom-title\",\"customTitle\":\"mine\"}\n",
    );
    at(&two, 5000);
    let store = home.store();
    let list = store.list(&Filter::default(), &SystemProcesses).unwrap();
    assert_eq!(list[0].title.as_deref(), Some("mine"));
    assert_eq!(list[0].fill, None);
    let one = &list[1];
    assert_eq!(one.title.as_deref(), Some("made up"));
    assert_eq!(one.first_prompt.as_deref(), Some("the first prompt"));
    assert_eq!(one.last_prompt.as_deref(), Some("the second prompt"));
    assert_eq!(one.fill.unwrap().tokens, 2015);
    assert_eq!(one.cwd.as_deref(), Some(cwd));
    assert_eq!(one.started_ms, Some(1_796_083_200_000));
    assert_eq!(one.active_ms, Some(1_796_083_260_000));
    assert_eq!(one.live, None);

    let mut filter = Filter::default();
    filter.min_size = 100;
    assert_eq!(store.list(&filter, &SystemProcesses).unwrap().len(), 1);
    let mut filter = Filter::default();
    filter.idle = Some(Duration::from_mins(15));
    filter.now = Some(SystemTime::UNIX_EPOCH + Duration::from_mins(85));
    let idle = store.list(&filter, &SystemProcesses).unwrap();
    assert_eq!(idle.len(), 1);
    assert_eq!(idle[0].id, ONE);
}

/// A machine of our own making.
struct Machine(Vec<(u32, Presence)>);

impl Processes for Machine {
    fn presence(&self, pid: u32) -> Presence {
        let known = self.0.iter().find(|(p, _)| *p == pid);
        known.map_or(Presence::Gone, |(_, presence)| presence.clone())
    }

    fn namespace(&self) -> Option<String> {
        Some("pid:[4026531836]".to_owned())
    }
}

fn running(start: &str) -> Presence {
    Presence::Running {
        start: Some(start.to_owned()),
    }
}

/// As the two versions write it, 2.1.332 first.
const WRITTEN: [&str; 2] = [
    r#"{"pid":30415,"sessionId":"3f2a91c0-0000-4000-8000-000000000001","cwd":"/home/dev/a","startedAt":1796078956804,"procStart":"101237","version":"2.1.332","kind":"interactive","entrypoint":"cli","pidDomain":"linux:3d1219c7c4c5404aaa1f6d2a48adfda4:pid:[4026531836]","status":"idle","updatedAt":1796078956898}"#,
    r#"{"pid":5203,"sessionId":"3f2a91c0-0000-4000-8000-000000000002","cwd":"/home/dev/a","startedAt":1796079504805,"procStart":"155979","version":"2.1.197","kind":"interactive","entrypoint":"sdk-cli"}"#,
];

#[test]
fn a_session_is_live_while_its_process_runs() {
    let home = Home::new();
    home.process("30415.json", WRITTEN[0]);
    home.process("5203.json", WRITTEN[1]);
    let store = home.store();
    let both = Machine(vec![(30415, running("101237")), (5203, running("155979"))]);
    let live = store.live(&both).unwrap();
    assert_eq!(live.len(), 2);
    assert!(live.iter().all(|l| l.verified));
    let one = store.live_session(ONE, &both).unwrap().unwrap();
    assert_eq!(one.pid, 30415);
    assert_eq!(one.status.as_deref(), Some("idle"));
    assert_eq!(one.version.as_deref(), Some("2.1.332"));

    // Killed, and the number taken by another process.
    let reused = Machine(vec![(30415, running("999999"))]);
    assert_eq!(store.live(&reused).unwrap(), []);
}

#[test]
fn a_process_that_cannot_be_checked_may_be_live() {
    let home = Home::new();
    home.process("30415.json", WRITTEN[0]);
    for presence in [Presence::Unknown, Presence::Running { start: None }] {
        let live = home
            .store()
            .live(&Machine(vec![(30415, presence)]))
            .unwrap();
        assert_eq!(live.len(), 1);
        assert!(!live[0].verified);
    }
    // Written in another container: its numbers mean nothing here.
    let elsewhere = WRITTEN[0].replace("pid:[4026531836]", "pid:[4026532999]");
    home.process("30415.json", &elsewhere);
    let live = home.store().live(&Machine(vec![])).unwrap();
    assert_eq!(live.len(), 1);
    assert!(!live[0].verified);
}

#[test]
fn only_files_named_by_a_process_are_opened() {
    let home = Home::new();
    // Each of them would count if it were opened.
    for name in [
        "30415.abcdef.key",
        "30415.key",
        "x.json",
        "-1.json",
        "30415.json.bak",
    ] {
        home.process(name, WRITTEN[0]);
    }
    home.process("30415.json", "{\"sessionId\":");
    let live = home
        .store()
        .live(&Machine(vec![(30415, running("101237"))]));
    assert_eq!(live.unwrap(), []);
}

#[cfg(target_os = "linux")]
#[test]
fn the_machines_own_facts_agree() {
    let home = Home::new();
    let pid = std::process::id();
    let Presence::Running { start: Some(start) } = SystemProcesses.presence(pid) else {
        panic!("we are not running");
    };
    let text = format!(r#"{{"pid":{pid},"sessionId":"{ONE}","procStart":"{start}"}}"#);
    home.process(&format!("{pid}.json"), &text);
    let live = home.store().live_session(ONE, &SystemProcesses).unwrap();
    assert!(live.is_some_and(|l| l.verified));
}
