//! The functions that `hot-code.txt` names are there: one that was renamed would be left out by the linker without a word.

use std::fs;

use crate::{report, sources, top};

#[test]
fn names_are_true() {
    let files = sources(&["src"]);
    let list = fs::read_to_string(top().join("hot-code.txt")).expect("hot-code.txt");
    let mut findings = Vec::new();
    let names = list
        .lines()
        .filter(|line| !(line.is_empty() || line.starts_with(['#', '*'])));
    for name in names {
        let words: Vec<&str> = name.split("::").collect();
        let Some((function, path)) = words.split_last() else {
            continue;
        };
        // Types have no file of their own.
        let modules: Vec<&str> = path
            .iter()
            .copied()
            .take_while(|word| !word.starts_with(char::is_uppercase))
            .collect();
        let module = modules.join("/");
        let own = [format!("src/{module}.rs"), format!("src/{module}/mod.rs")];
        let is_there = files.iter().any(|(file, text)| {
            own.contains(file)
                && [format!("fn {function}("), format!("fn {function}<")]
                    .iter()
                    .any(|head| text.contains(head))
        });
        if !is_there {
            findings.push(format!("hot-code.txt: no `{name}` in src/{module}"));
        }
    }
    report(&findings);
}
