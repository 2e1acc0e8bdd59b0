//! What Atlas is built from: licences that allow it, and sources that are pinned.

use std::fs;
use std::process::Command;

use crate::{report, top};

/// Licences of what ends up in the program.
const ALLOWED: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "OpenSSL",
];

/// Licences that only what tests and benchmarks use may have besides.
const ALLOWED_FOR_TESTS: &[&str] = &[
    "MPL-2.0",
    "CC0-1.0",
    "Unlicense",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
];

/// Packages that point to a file instead of naming their licence, and what the file says.
const READ_IN_THEIR_FILE: &[(&str, &str)] = &[("webpki v0.22.4", "ISC")];

/// Whether an SPDX expression can be satisfied with the given licences. `/` is the old way to write OR.
fn is_satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = any_of(&words, &mut at, allowed);
    result && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut result = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        // Both sides are read, whatever the first says.
        result |= all_of(words, at, allowed);
    }
    result
}

fn all_of(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut result = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(words, at, allowed);
    }
    result
}

fn one(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let result = any_of(words, at, allowed);
        *at += 1;
        return result && words.get(*at - 1) == Some(&")");
    }
    if words.get(*at) == Some(&"WITH") {
        let name = format!("{word} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
        return allowed(&name);
    }
    allowed(word)
}

#[test]
fn expressions() {
    let allowed = |name: &str| ["MIT", "ISC", "A WITH E"].contains(&name);
    for (expression, wanted) in [
        ("MIT", true),
        ("GPL", false),
        ("GPL OR MIT", true),
        ("MIT OR GPL", true),
        ("GPL/MIT", true),
        ("MIT AND GPL", false),
        ("MIT AND (GPL OR ISC)", true),
        ("(MIT OR GPL) AND ISC", true),
        ("GPL AND MIT OR ISC", true),
        ("A WITH E", true),
        ("A", false),
        ("", false),
        ("MIT ISC", false),
        ("(MIT", false),
    ] {
        assert_eq!(is_satisfied(expression, &allowed), wanted, "{expression}");
    }
}

/// `name version` and licence of the packages that `edges` lead to.
fn packages(edges: &str) -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--offline",
            "--locked",
            "--prefix",
            "none",
            "--format",
            "{p}\t{l}",
            "-e",
            edges,
        ])
        .current_dir(top())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut packages: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(package, licence)| {
            let read = READ_IN_THEIR_FILE.iter().find(|(name, _)| *name == package);
            let stated = licence.trim_end_matches(" (*)");
            let licence = read
                .filter(|_| stated.is_empty())
                .map_or(stated, |(_, licence)| licence);
            (package.to_owned(), licence.to_owned())
        })
        .collect();
    packages.sort();
    packages.dedup();
    packages
}

#[test]
fn licences_are_allowed() {
    let mut findings = Vec::new();
    for (edges, more) in [
        ("normal,build", &[][..]),
        ("normal,build,dev", ALLOWED_FOR_TESTS),
    ] {
        let allowed = |name: &str| ALLOWED.contains(&name) || more.contains(&name);
        let packages = packages(edges);
        assert!(packages.len() > 20, "{packages:?}");
        for (package, licence) in packages {
            if !is_satisfied(&licence, &allowed) {
                findings.push(format!("{package}: `{licence}` ({edges})"));
            }
        }
    }
    report(&findings);
}

#[test]
fn every_dependency_is_pinned() {
    let lock = fs::read_to_string(top().join("Cargo.lock")).expect("Cargo.lock");
    let mut findings = Vec::new();
    for package in lock.split("[[package]]\n").skip(1) {
        let value = |key: &str| {
            package
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
                .unwrap_or_default()
        };
        // Packages of this workspace have no source.
        let is_ours = value("source").is_empty();
        if !is_ours && (!value("source").starts_with("\"registry+") || value("checksum").is_empty())
        {
            findings.push(format!(
                "{} {}: not from a registry with a checksum",
                value("name"),
                value("version")
            ));
        }
    }
    report(&findings);
}
