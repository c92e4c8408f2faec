//! Installing, validating, updating and removing, from a folder and from a git server.

use std::fs;
use std::path::Path;
use std::process::Command;

use ctxfold_test_support::require_client;
use serde_json::{Value, json};

use crate::git::GitServer;
use crate::lab::{Lab, OURS, dist, own_market};

#[test]
fn the_clients_own_checks_pass_in_the_package() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    lab.done(&["plugin", "validate", "--strict", dist().to_str().unwrap()]);
    for name in ["ctxfold-core", "ctxfold-compact", "ctxfold-monitor"] {
        let plugin = dist().join("plugins").join(name);
        let plugin = plugin.to_str().unwrap();
        lab.done(&["plugin", "validate", "--strict", plugin]);
        lab.done(&["plugin", "test", plugin]);
    }
}

/// Files of a home whose name or content speaks of us, but for copies that the client itself has
/// marked for removal and its note that the plugin is not wanted any more.
fn traces(folder: &Path, found: &mut Vec<String>) {
    if folder.join(".orphaned_at").exists() {
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Sessions and logs tell what was done; they are no part of an installation.
        if ["projects", "debug", "backups", ".claude.json"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            traces(&path, found);
            continue;
        }
        let text = fs::read(&path).unwrap_or_default();
        if name.contains("ctxfold-") || String::from_utf8_lossy(&text).contains("ctxfold-") {
            found.push(path.display().to_string());
        }
    }
}

/// What a command of the plugins says, in a process of its own.
#[track_caller]
fn says(lab: &Lab, line: &str) -> String {
    lab.home.prompt(line).run().success().text().to_owned()
}

#[test]
fn core_comes_along_and_nothing_stays_behind() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    let core = &["ctxfold-core@ctxfold", "--config", "apiKey=KEY-OF-A-TEST"];
    lab.install(dist(), &["ctxfold-compact@ctxfold"]);
    lab.done(&["plugin", "install", "ctxfold-monitor@ctxfold"]);
    let listed = lab.done(&["plugin", "list"]).stdout;
    for name in ["ctxfold-core", "ctxfold-compact", "ctxfold-monitor"] {
        assert!(listed.contains(name), "{listed}");
    }
    // A key and settings of both plugins, of which each process knows.
    lab.done(&[&["plugin", "install"], &core[..]].concat());
    for line in ["/ctxfold on", "/ctxfold idle on", "/ctxfold-core paid"] {
        says(&lab, line);
    }
    let set = says(&lab, "/ctxfold") + &says(&lab, "/ctxfold-core");
    for part in [
        "ctxfold is on",
        "idle       after",
        "key       set",
        "tier      paid",
    ] {
        assert!(set.contains(part), "{part}: {set}");
    }

    lab.done(&["plugin", "uninstall", "ctxfold-monitor@ctxfold"]);
    lab.done(&["plugin", "uninstall", "ctxfold-compact@ctxfold"]);
    lab.done(&["plugin", "uninstall", "ctxfold-core@ctxfold"]);
    let listed = lab.done(&["plugin", "list"]).stdout;
    assert!(!listed.contains("ctxfold"), "{listed}");
    lab.done(&["plugin", "marketplace", "remove", "ctxfold"]);
    let mut found = Vec::new();
    traces(&lab.home.config(), &mut found);
    assert_eq!(found, [""; 0]);

    // What is installed anew is off, and knows nothing. Now core goes as it came: along.
    lab.install(dist(), &["ctxfold-compact@ctxfold"]);
    let set = says(&lab, "/ctxfold") + &says(&lab, "/ctxfold-core");
    for part in [
        "ctxfold is off",
        "idle       off",
        "key       none",
        "tier      free",
    ] {
        assert!(set.contains(part), "{part}: {set}");
    }
    for line in ["/ctxfold on", "/ctxfold-core paid"] {
        says(&lab, line);
    }
    let compact = "ctxfold-compact@ctxfold";
    lab.done(&["plugin", "uninstall", compact, "--prune", "-y"]);
    lab.done(&["plugin", "marketplace", "remove", "ctxfold"]);
    traces(&lab.home.config(), &mut found);
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_change_of_the_configuration_holds_beside_what_was_said() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    lab.install(dist(), &["ctxfold-compact@ctxfold"]);
    let set = says(&lab, "/ctxfold on");
    assert!(
        set.contains("mode       summary") && set.contains("at 60%"),
        "{set}"
    );
    let path = lab.home.config().join("settings.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let options = json!({"mode": "mask", "threshold": 40, "keepRecent": 3});
    settings["pluginConfigs"]["ctxfold-compact@ctxfold"]["options"] = options;
    fs::write(&path, settings.to_string()).unwrap();
    let set = says(&lab, "/ctxfold");
    for part in [
        "ctxfold is on",
        "mode       mask",
        "at 40%",
        "keep       3 newest",
    ] {
        assert!(set.contains(part), "{part}: {set}");
    }
}

/// Compacts once and sees our summary in the next request.
#[track_caller]
fn works(lab: &Lab) {
    let id = lab.conversation();
    lab.expect_summary();
    let printed = lab.stream(&id, "/compact");
    assert!(lab.mock.log().all().is_empty(), "{printed}");
    lab.home.prompt("SEVENTH").resume(&id).run().success();
    assert!(lab.mock.log().last().holds(OURS));
}

#[test]
fn a_read_only_package_works_with_nothing_but_the_system_on_the_path() {
    let client = require_client!(claude, "2.1.332");
    let (_folder, market) = own_market();
    let chmod = |mode| {
        Command::new("chmod")
            .args(["-R", mode])
            .arg(&market)
            .status()
            .unwrap()
    };
    assert!(chmod("a-w").success());
    let mut lab = Lab::with(&client, &market);
    let node = Command::new("sh")
        .args(["-c", "command -v node"])
        .output()
        .unwrap();
    let node = String::from_utf8(node.stdout).unwrap();
    let node = Path::new(node.trim()).parent().unwrap().display();
    lab.home.set_env("PATH", &format!("/usr/bin:/bin:{node}"));
    works(&lab);
    assert!(chmod("u+w").success());
}

/// Writes a version into every manifest, and into what depends on it.
fn set_version(market: &Path, from: &str, to: &str) {
    for name in ["ctxfold-core", "ctxfold-compact", "ctxfold-monitor"] {
        for manifest in [".claude-plugin/plugin.json", ".codex-plugin/plugin.json"] {
            let path = market.join("plugins").join(name).join(manifest);
            if let Ok(text) = fs::read_to_string(&path) {
                assert!(text.contains(from), "{text}");
                fs::write(path, text.replace(from, to)).unwrap();
            }
        }
    }
}

#[test]
fn a_git_server_delivers_it_and_later_an_update() {
    let client = require_client!(claude, "2.1.332");
    let (_folder, market) = own_market();
    let version = env!("CARGO_PKG_VERSION");
    set_version(&market, version, "0.0.9");
    let server = GitServer::start(&market);
    let mut lab = Lab::bare(&client);
    lab.home.set_env("CTXFOLD_GEMINI_API_KEY", "KEY-OF-A-TEST");
    let url = server.url();
    lab.done(&["plugin", "marketplace", "add", &url]);
    lab.done(&["plugin", "install", "ctxfold-compact@ctxfold"]);
    lab.home.prompt("/ctxfold on").run().success();
    let cached = |version: &str| {
        let cache = lab.home.config().join("plugins/cache/ctxfold/ctxfold-core");
        cache.join(version).join("bin/ctxfold").is_file()
    };
    assert!(cached("0.0.9"));
    works(&lab);

    set_version(&market, "0.0.9", version);
    server.commit("a new version");
    lab.done(&["plugin", "marketplace", "update", "ctxfold"]);
    for name in ["ctxfold-core@ctxfold", "ctxfold-compact@ctxfold"] {
        let updated = lab.done(&["plugin", "update", name]).stdout;
        assert!(updated.contains(version), "{updated}");
    }
    assert!(cached(version));
    // The settings are still there: it is on.
    works(&lab);
}
