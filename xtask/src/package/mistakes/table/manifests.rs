//! The marketplace and the manifests: names, versions, options.

use std::fs;

use serde_json::json;

use super::{COMPACT, CORE, MARKET, Mistake, edit};

pub(super) const MISTAKES: &[Mistake] = &[
    (
        "the marketplace is no JSON",
        |d| fs::write(d.join(MARKET), "{").unwrap(),
        MARKET,
        "correct it",
    ),
    (
        "an empty marketplace",
        |d| edit(&d.join(MARKET), |v| v["plugins"] = json!([])),
        MARKET,
        "add one",
    ),
    (
        "a folder that is missing",
        |d| fs::remove_dir_all(d.join("plugins/ctxfold-core")).unwrap(),
        MARKET,
        "make the folder",
    ),
    (
        "a source without ./",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["source"] = json!("plugins/ctxfold-core");
            });
        },
        MARKET,
        "./plugins/ctxfold-core",
    ),
    (
        "a source above the marketplace",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["source"] = json!("./../ctxfold-core");
            });
        },
        MARKET,
        "./plugins/ctxfold-core",
    ),
    (
        "a name listed twice",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][1] = v["plugins"][0].clone();
            });
        },
        MARKET,
        "remove one",
    ),
    (
        "a name that differs from the list's",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["name"] = json!("ctxfold-base");
            });
        },
        CORE,
        "the same name",
    ),
    (
        "a name that differs from the folder's",
        |d| edit(&d.join(CORE), |v| v["name"] = json!("core")),
        CORE,
        "the same name",
    ),
    (
        "a version in the list",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["version"] = json!("9.9.9");
            });
        },
        MARKET,
        "remove the version",
    ),
    (
        "a plugin that is not listed",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"].as_array_mut().unwrap().pop();
            });
        },
        "plugins/ctxfold-monitor",
        "list the plugin",
    ),
    (
        "two versions in one release",
        |d| edit(&d.join(CORE), |v| v["version"] = json!("1.2.4")),
        MARKET,
        "one version",
    ),
    (
        "a manifest that is missing",
        |d| fs::remove_file(d.join(CORE)).unwrap(),
        CORE,
        "write it",
    ),
    (
        "a manifest that is no JSON",
        |d| fs::write(d.join(CORE), "{,}").unwrap(),
        CORE,
        "correct it",
    ),
    (
        "a name in capitals",
        |d| edit(&d.join(CORE), |v| v["name"] = json!("Core_1")),
        CORE,
        "lower-case",
    ),
    (
        "a name of the client's maker",
        |d| edit(&d.join(CORE), |v| v["name"] = json!("claude-core")),
        CORE,
        "what it does",
    ),
    (
        "a version that is none",
        |d| edit(&d.join(CORE), |v| v["version"] = json!("1.2")),
        CORE,
        "1.2.3",
    ),
    (
        "a version left to be filled in",
        |d| edit(&d.join(CORE), |v| v["version"] = json!("0.0.0")),
        CORE,
        "cargo xtask package",
    ),
    (
        "no description",
        |d| edit(&d.join(CORE), |v| v["description"] = json!(" ")),
        CORE,
        "in a sentence",
    ),
    (
        "no licence in the manifest",
        |d| {
            edit(&d.join(CORE), |v| {
                v.as_object_mut().unwrap().remove("license");
            });
        },
        CORE,
        "SPDX",
    ),
    (
        "a dependency that is not there",
        |d| {
            edit(&d.join(COMPACT), |v| {
                v["dependencies"][0]["name"] = json!("ctxfold-base");
            });
        },
        COMPACT,
        "list it",
    ),
    (
        "a dependency on another version",
        |d| {
            edit(&d.join(COMPACT), |v| {
                v["dependencies"][0]["version"] = json!("^2.0.0");
            });
        },
        COMPACT,
        "^1.2.3",
    ),
    (
        "types that are not there",
        |d| edit(&d.join(CORE), |v| v["types"] = json!("./types/none.d.ts")),
        CORE,
        "add the file",
    ),
    (
        "a module without engines",
        |d| {
            edit(&d.join(CORE), |v| {
                v.as_object_mut().unwrap().remove("engines");
            });
        },
        CORE,
        "engines",
    ),
    (
        "a module that is missing",
        |d| fs::remove_file(d.join("plugins/ctxfold-core/hooks/register.ts")).unwrap(),
        "plugins/ctxfold-core/hooks/hooks.json",
        "relative to hooks.json",
    ),
    (
        "a secret in plain settings",
        |d| {
            edit(&d.join(CORE), |v| {
                v["userConfig"]["apiKey"]["sensitive"] = json!(false);
            });
        },
        CORE,
        "sensitive",
    ),
    (
        "a default that is no choice",
        |d| {
            edit(&d.join(CORE), |v| {
                v["userConfig"]["tier"]["default"] = json!("gold");
            });
        },
        CORE,
        "one of its options",
    ),
];
