//! Sizes and leftovers.

use crate::paths::without_tests;
use crate::{report, sources};

/// Where Rust code of this repository is.
const ALL: &[&str] = &["src", "tests", "bench", "loadtest", "fuzz"];

/// Lines that a file may have: longer ones have more than one subject.
const LINES_MAX: usize = 500;

/// Files that may be longer, each with the reason and its own ceiling.
const LONGER: &[(&str, usize)] = &[];

#[test]
fn files_are_short() {
    let mut findings = Vec::new();
    for (name, text) in sources(ALL) {
        let lines = text.lines().count();
        let ceiling = LONGER
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(LINES_MAX, |(_, ceiling)| *ceiling);
        if lines > ceiling {
            findings.push(format!(
                "{name}: {lines} lines, more than {ceiling}: what wants to move out?"
            ));
        }
    }
    for (name, ceiling) in LONGER {
        if !sources(ALL)
            .iter()
            .any(|(other, text)| other == name && text.lines().count() > LINES_MAX)
        {
            findings.push(format!("{name}: needs no exception ({ceiling} lines)"));
        }
    }
    report(&findings);
}

#[test]
fn files_say_what_they_are_about() {
    let mut findings = Vec::new();
    for (name, text) in sources(ALL) {
        let first = text
            .lines()
            .find(|line| !line.starts_with("#!"))
            .unwrap_or_default();
        if !first.starts_with("//! ") {
            findings.push(format!(
                "{name}: does not start with `//! ` and what lives there"
            ));
        }
    }
    report(&findings);
}

#[test]
fn nothing_is_left_over() {
    // Put together here so that this file does not find itself.
    let marks = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("#[ign", "ore"),
    ];
    let mut findings = Vec::new();
    for (name, text) in sources(ALL) {
        for (index, line) in text.lines().enumerate() {
            if let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) {
                findings.push(format!("{name}:{}: `{mark}`", index + 1));
            }
        }
    }
    report(&findings);
}

#[test]
fn unit_tests_stand_at_the_end() {
    // What follows a module of unit tests would escape the other checks, which stop there.
    let mut findings = Vec::new();
    for (name, text) in sources(&["src"]) {
        let tests = &text[without_tests(&text).len()..];
        let closing = tests.lines().position(|line| line == "}");
        if let Some(closing) = closing
            && tests
                .lines()
                .skip(closing + 1)
                .any(|line| !line.trim().is_empty())
        {
            findings.push(format!("{name}: code after the unit tests"));
        }
    }
    report(&findings);
}
