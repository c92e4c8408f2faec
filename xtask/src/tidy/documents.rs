//! Documents: a link to a file of the repository leads somewhere.

use super::File;

pub(super) fn check(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let pages = files.iter().filter(|file| {
        file.has_extension("md")
            && !file.path.starts_with("template/")
            && !file.path.contains("/fixtures/")
    });
    let mut findings = Vec::new();
    for page in pages {
        for (line, target) in links(&page.text) {
            let path = resolve(&page.path, target);
            if !exists(&path) {
                findings.push(format!(
                    "{}:{line} links to {target}, which is not there",
                    page.path
                ));
            }
        }
    }
    findings
}

/// The targets of links that lead to files, with the line on which each stands.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, tail)) = after.split_once(')') else {
                break;
            };
            let target = target.split(['#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                found.push((number + 1, target));
            }
            rest = tail;
        }
    }
    found
}

/// The path from the root that a link of a page means.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn links_resolve_from_their_page() {
        let page = file(
            "docs/formats/a.md",
            "[up](../exit-codes.md#top) [side](b.md) [web](https://x.y)\n[gone](c.md)\n\
             ```\n[code](d.md)\n```\n[here](#part)\n",
        );
        let exists = |path: &str| ["docs/exit-codes.md", "docs/formats/b.md"].contains(&path);
        let findings = check(&[page], exists);
        assert_eq!(
            findings,
            ["docs/formats/a.md:2 links to c.md, which is not there"]
        );
    }
}
