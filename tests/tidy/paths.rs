//! The paths (`std::thread::spawn`, `crate::config::Config`) that a source text names, whether written out or imported in
//! braces. Comments, texts in quotes and unit tests do not count.

/// All paths of two or more parts, and single names after `use`, each with its line.
pub(crate) fn paths(source: &str) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = at;
        tree(&tokens, &mut at, "", tokens[before].0, &mut found);
        if at == before {
            at += 1;
        }
    }
    found
}

/// Reads one path, with its groups in braces, from `at` on.
fn tree(
    tokens: &[(usize, &str)],
    at: &mut usize,
    prefix: &str,
    line: usize,
    found: &mut Vec<(usize, String)>,
) {
    let mut path = prefix.to_owned();
    while let Some((_, token)) = tokens.get(*at) {
        if *token == "{" && path.ends_with("::") {
            *at += 1;
            while let Some((line, token)) = tokens.get(*at) {
                match *token {
                    "}" => {
                        *at += 1;
                        return;
                    }
                    "," => *at += 1,
                    "as" => *at += 2,
                    _ => {
                        let before = *at;
                        tree(tokens, at, &path, *line, found);
                        if *at == before {
                            *at += 1;
                        }
                    }
                }
            }
            return;
        }
        let is_name = token.starts_with(|c: char| c.is_alphabetic() || c == '_') || *token == "*";
        if !is_name || (*token == "*" && path.is_empty()) {
            break;
        }
        path.push_str(token);
        *at += 1;
        if tokens.get(*at).is_none_or(|(_, token)| *token != "::") {
            break;
        }
        path.push_str("::");
        *at += 1;
    }
    if path != prefix {
        found.push((line, path.trim_end_matches("::").to_owned()));
    }
}

/// Words and signs with their lines.
fn tokens(source: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            'r' | 'b' if raw_quote(rest).is_some() => {
                let (start, end) = raw_quote(rest).expect("just seen");
                rest[start..]
                    .find(&end)
                    .map_or(rest.len(), |at| start + at + end.len())
            }
            '"' => quoted(rest),
            '\'' => character(rest),
            c if c.is_alphanumeric() || c == '_' => rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_code =
            !token.starts_with("//") && !token.starts_with("/*") && !token.contains(['"', '\'']);
        if is_code && !first.is_whitespace() {
            tokens.push((line, token));
        }
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The start of the text of a raw string and what ends it.
fn raw_quote(text: &str) -> Option<(usize, String)> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then(|| {
        (
            text.len() - after.len() + hashes + 1,
            format!("\"{}", "#".repeat(hashes)),
        )
    })
}

fn quoted(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// A character or a lifetime; of the latter only the sign, so that its name follows as a word.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => text[3..].find('\'').map_or(text.len(), |end| end + 4),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The source without its unit tests, which by convention stand at its end.
pub(crate) fn without_tests(source: &str) -> &str {
    let mut from = 0;
    while let Some(at) = source[from..].find("#[cfg(test)]\n") {
        let after = source[from + at..].trim_start_matches("#[cfg(test)]\n");
        if after.starts_with("mod ") && after.lines().next().is_some_and(|line| line.ends_with('{'))
        {
            return &source[..from + at];
        }
        from += at + 1;
    }
    source
}

/// Whether a file holds nothing but tests.
pub(crate) fn is_test_file(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

#[test]
fn paths_are_found() {
    let source = r##"
use std::{fs, net::{TcpStream, UdpSocket as U}, thread};
use crate::config::{self, Config};
// std::process in a comment, "std::env" and
/* crate::worker */ fn f<'a>(x: &'a str) -> std::io::Result<()> {
    let _ = ("std::env", 'x', '\'', '"', r#"std::hidden"#, b"\"std::env");
    Instant::now();
    if a < b::c { d }
}
use mio;
"##;
    let found: Vec<String> = paths(source)
        .into_iter()
        .map(|(line, path)| format!("{line} {path}"))
        .filter(|path| path.contains("::") || path.ends_with("mio"))
        .collect();
    assert_eq!(
        found,
        [
            "2 std::fs",
            "2 std::net::TcpStream",
            "2 std::net::UdpSocket",
            "2 std::thread",
            "3 crate::config::self",
            "3 crate::config::Config",
            "5 std::io::Result",
            "7 Instant::now",
            "8 b::c",
            "10 mio",
        ]
    );
}

#[test]
fn tests_are_cut_off() {
    assert_eq!(
        without_tests("a\n#[cfg(test)]\nmod tests {\n b\n}\n"),
        "a\n"
    );
    assert_eq!(
        without_tests("a\n#[cfg(test)]\nmod tests;\nb\n"),
        "a\n#[cfg(test)]\nmod tests;\nb\n"
    );
    assert_eq!(
        without_tests("a\n#[cfg(test)]\nuse x;\n#[cfg(test)]\nmod tests {\n"),
        "a\n#[cfg(test)]\nuse x;\n"
    );
}
