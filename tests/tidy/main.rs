//! Checks of the source itself: who may use whom, sizes, leftovers, what the manual says, licences.

mod code;
mod hot_code;
mod layers;
mod licences;
mod manual;
mod paths;

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the repository.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below some folders, as (path from the top, text), in order.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&top().join(folder), &mut files);
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path
                .strip_prefix(top())
                .expect("below the top")
                .to_string_lossy()
                .into_owned();
            (name, text)
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    // Not every folder is there from the start.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Fails with all findings, one a line.
fn report(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}
