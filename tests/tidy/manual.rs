//! The manual names every key of the configuration, with its default, as the program knows it.

use std::fmt::Write;
use std::fs;

use atlas::config::{Acted, KEYS};

use crate::top;

/// The tables of the README's section on the configuration.
fn tables() -> String {
    let mut text = String::new();
    let mut section = "";
    for key in KEYS {
        let (of, name) = key.path.split_once('.').expect("keys are in sections");
        if of != section {
            section = of;
            let header = if matches!(of, "groups" | "users" | "tables" | "rules") {
                format!("[[{of}]]")
            } else {
                format!("[{of}]")
            };
            let _ = write!(
                text,
                "\n`{header}`\n\n| key | default | meaning |\n| --- | --- | --- |\n"
            );
        }
        let default = if key.default.is_empty() {
            String::new()
        } else {
            format!("`{}`", key.default)
        };
        let sign = match key.acted {
            Acted::Yes => "",
            Acted::No => " ○",
        };
        let _ = writeln!(text, "| `{name}`{sign} | {default} | {} |", key.meaning);
    }
    text
}

/// B31: the settings of the pool among them.
#[test]
fn the_readme_has_the_table_of_keys() {
    let readme = fs::read_to_string(top().join("README.md")).expect("README.md");
    let tables = tables();
    assert!(
        readme.contains(&tables),
        "README.md must hold these tables, as they are:\n{tables}"
    );
}

#[test]
fn the_readme_names_no_key_that_is_not_there() {
    let readme = fs::read_to_string(top().join("README.md")).expect("README.md");
    let mut examples = 0;
    for part in readme.split("```toml\n").skip(1) {
        let example = part.split("```").next().unwrap_or_default();
        let problems = match atlas::config::load(example, "README.md", &|_| Some(String::new())) {
            Ok(_) => Vec::new(),
            Err(problems) => problems,
        };
        let wrong: Vec<String> = problems
            .iter()
            .filter(|problem| problem.is_error())
            .map(ToString::to_string)
            .collect();
        assert!(wrong.is_empty(), "{}\n{example}", wrong.join("\n"));
        examples += 1;
    }
    assert!(examples > 0, "README.md shows no configuration");
}
