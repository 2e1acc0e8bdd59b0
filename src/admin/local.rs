//! What drivers and command lines ask of any server when they start, and what administration tools ask before they show anything:
//! answered from a few facts about the connection. Shapes are those of a server; values are those of a server that keeps no data.

use super::table::{Answer, Refusal, Table};
use super::words::Word;

/// What the answers are made of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts<'a> {
    /// The version that the greeting named.
    pub(super) version: &'a str,
    /// The connection's id.
    pub(super) id: u32,
    /// Who is logged in.
    pub(super) user: &'a str,
    /// From where.
    pub(super) host: &'a str,
    /// The schema that the client named; it means nothing here.
    pub(super) schema: Option<&'a str>,
}

/// System variables that drivers ask for, with values of a server's default configuration.
const VARIABLES: &[(&str, &str)] = &[
    ("auto_increment_increment", "1"),
    ("auto_increment_offset", "1"),
    ("autocommit", "1"),
    ("character_set_client", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("character_set_database", "utf8mb4"),
    ("character_set_filesystem", "binary"),
    ("character_set_results", "utf8mb4"),
    ("character_set_server", "utf8mb4"),
    ("character_set_system", "utf8mb3"),
    ("collation_connection", "utf8mb4_general_ci"),
    ("collation_database", "utf8mb4_general_ci"),
    ("collation_server", "utf8mb4_general_ci"),
    ("default_storage_engine", "NONE"),
    ("foreign_key_checks", "1"),
    ("have_openssl", "NO"),
    ("have_ssl", "NO"),
    ("init_connect", ""),
    ("interactive_timeout", "28800"),
    ("license", "Apache-2.0"),
    ("lower_case_table_names", "0"),
    ("max_allowed_packet", "67108864"),
    ("max_connections", "32"),
    ("net_buffer_length", "16384"),
    ("net_read_timeout", "30"),
    ("net_write_timeout", "60"),
    ("performance_schema", "0"),
    ("port", "0"),
    ("protocol_version", "10"),
    ("query_cache_size", "0"),
    ("query_cache_type", "0"),
    ("read_only", "0"),
    ("sql_auto_is_null", "0"),
    ("sql_mode", ""),
    ("sql_safe_updates", "0"),
    ("sql_select_limit", "18446744073709551615"),
    ("super_read_only", "0"),
    ("system_time_zone", "UTC"),
    ("time_zone", "SYSTEM"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("transaction_read_only", "0"),
    ("tx_isolation", "REPEATABLE-READ"),
    ("tx_read_only", "0"),
    ("unique_checks", "1"),
    ("version_comment", "Atlas admin"),
    ("version_compile_os", "Linux"),
    ("wait_timeout", "28800"),
];

/// A variable's value; nothing when no server has it.
fn variable(name: &str, facts: &Facts<'_>) -> Option<String> {
    if name.eq_ignore_ascii_case("version") {
        return Some(facts.version.to_owned());
    }
    VARIABLES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| (*value).to_owned())
}

/// The answer to what a driver asks; nothing when it is nothing of the kind.
pub(super) fn answer_driver(words: &[Word<'_>], facts: &Facts<'_>) -> Option<Answer> {
    let (first, rest) = words.split_first()?;
    const DONE: &[&str] = &["use", "begin", "commit", "rollback", "start", "flush"];
    if DONE.iter().any(|word| first.is(word)) {
        return Some(Answer::Ok);
    }
    if first.is("set") && rest.contains(&Word::Sign('=')) || first.is("set") && sets_names(rest) {
        return Some(Answer::Ok);
    }
    if first.is("select") {
        return select(rest, facts);
    }
    if first.is("show") {
        return show(rest, facts).map(Answer::Table);
    }
    None
}

/// `SET NAMES`, `SET CHARACTER SET`, `SET [SESSION] TRANSACTION …`.
fn sets_names(rest: &[Word<'_>]) -> bool {
    let word = match rest {
        [scope, word, ..] if scope.is("session") || scope.is("global") => word,
        [word, ..] => word,
        [] => return false,
    };
    ["names", "character", "charset", "transaction"]
        .iter()
        .any(|known| word.is(known))
}

/// A list of variables, functions and literals, as drivers ask for it.
fn select(words: &[Word<'_>], facts: &Facts<'_>) -> Option<Answer> {
    let end = words
        .iter()
        .position(|word| word.is("limit"))
        .unwrap_or(words.len());
    let words = words.get(..end)?;
    if words.is_empty() || words.iter().any(|word| word.is("from")) {
        return None;
    }
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for item in words.split(|word| *word == Word::Sign(',')) {
        let (name, value) = match item_value(item, facts)? {
            Ok(item) => item,
            Err(refusal) => return Some(Answer::Refused(refusal)),
        };
        names.push(name);
        values.push(value);
    }
    let mut table = Table::with_columns(names.into_iter());
    table.push_row(values);
    Some(Answer::Table(table))
}

type Item = (String, Option<String>);

/// One item of a list: its column's name and its value.
fn item_value(item: &[Word<'_>], facts: &Facts<'_>) -> Option<Result<Item, Refusal>> {
    let (expression, alias) = match item {
        [expression @ .., keyword, alias] if keyword.is("as") => (expression, alias.text()),
        [expression @ .., Word::Sign(')'), alias] => {
            (item.get(..expression.len() + 1)?, alias.text())
        }
        [variable, alias] if variable.text()?.starts_with("@@") => (item.get(..1)?, alias.text()),
        _ => (item, None),
    };
    let (name, value) = match expression {
        [Word::Bare(name)] if name.starts_with("@@") => {
            let bare = name.trim_start_matches('@');
            let bare = bare.rsplit_once('.').map_or(bare, |(_, last)| last);
            match variable(bare, facts) {
                Some(value) => ((*name).to_owned(), Some(value)),
                None => {
                    let text = format!("Unknown system variable '{bare}'");
                    return Some(Err(Refusal::with(1193, *b"HY000", text)));
                }
            }
        }
        [Word::Bare(name), Word::Sign('('), Word::Sign(')')] => {
            (format!("{name}()"), function(name, facts)?)
        }
        [Word::Bare(name)] if name.eq_ignore_ascii_case("current_user") => {
            ((*name).to_owned(), function(name, facts)?)
        }
        [Word::Bare(number)] if number.bytes().all(|b| b.is_ascii_digit()) => {
            ((*number).to_owned(), Some((*number).to_owned()))
        }
        [Word::Bare(word)] if word.eq_ignore_ascii_case("null") => ("NULL".to_owned(), None),
        [Word::Quoted(text)] => ((*text).to_owned(), Some((*text).to_owned())),
        _ => return None,
    };
    Some(Ok((alias.map_or(name, str::to_owned), value)))
}

fn function(name: &str, facts: &Facts<'_>) -> Option<Option<String>> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    Some(if is("version") {
        Some(facts.version.to_owned())
    } else if is("connection_id") {
        Some(facts.id.to_string())
    } else if is("user") || is("current_user") || is("session_user") || is("system_user") {
        Some(format!("{}@{}", facts.user, facts.host))
    } else if is("database") || is("schema") {
        facts.schema.map(str::to_owned)
    } else {
        return None;
    })
}

/// `SHOW …` of a server: its variables, and lists that are empty here.
fn show(words: &[Word<'_>], facts: &Facts<'_>) -> Option<Table> {
    let passed = words
        .iter()
        .take_while(|word| {
            ["session", "global", "local", "full", "extended"]
                .iter()
                .any(|known| word.is(known))
        })
        .count();
    let (subject, rest) = words.get(passed..)?.split_first()?;
    let is = |known: &str| subject.is(known);
    let is_next = |known: &str| rest.first().is_some_and(|word| word.is(known));
    if is("variables") || is("status") {
        let mut table = Table::new(["Variable_name", "Value"]);
        if is("variables") {
            table.push(["version".to_owned(), facts.version.to_owned()]);
            for (name, value) in VARIABLES {
                let shown = match (*name, *value) {
                    ("autocommit" | "foreign_key_checks" | "unique_checks", "1") => "ON",
                    ("read_only" | "super_read_only" | "performance_schema", "0") => "OFF",
                    (_, value) => value,
                };
                table.push([(*name).to_owned(), shown.to_owned()]);
            }
        }
        let keep = Filter::read(rest);
        table
            .retain(|row| keep.matches(row.first().and_then(Option::as_deref).unwrap_or_default()));
        return Some(table);
    }
    Some(if is("warnings") || is("errors") {
        Table::new(["Level", "Code#", "Message"])
    } else if is("databases") || is("schemas") {
        Table::new(["Database"])
    } else if is("tables") {
        // Those of a schema; the sharded ones are another command.
        Table::new(["Tables", "Table_type"])
    } else if is("table") && is_next("status") {
        Table::new(["Name", "Engine", "Rows#", "Comment"])
    } else if is("engines") || is("storage") {
        Table::new([
            "Engine",
            "Support",
            "Comment",
            "Transactions",
            "XA",
            "Savepoints",
        ])
    } else if is("plugins") {
        Table::new(["Name", "Status", "Type", "Library", "License"])
    } else if is("collation") {
        let mut table = Table::new([
            "Collation",
            "Charset",
            "Id#",
            "Default",
            "Compiled",
            "Sortlen#",
        ]);
        table.push(["utf8mb4_general_ci", "utf8mb4", "45", "Yes", "Yes", "1"].map(str::to_owned));
        table
    } else if is("charset") || is("character") && is_next("set") {
        let mut table = Table::new(["Charset", "Description", "Default collation", "Maxlen#"]);
        table.push(["utf8mb4", "UTF-8 Unicode", "utf8mb4_general_ci", "4"].map(str::to_owned));
        table
    } else if is("grants") {
        let column = format!("Grants for {}@{}", facts.user, facts.host);
        let mut table = Table::with_columns(std::iter::once(column));
        let grant = format!("GRANT USAGE ON *.* TO '{}'@'{}'", facts.user, facts.host);
        table.push([grant]);
        table
    } else if ["triggers", "events", "procedure", "function"]
        .iter()
        .any(|word| is(word))
        && is_next("status")
    {
        Table::new(["Db", "Name", "Type"])
    } else {
        return None;
    })
}

/// Which rows of SHOW VARIABLES are wanted.
enum Filter<'a> {
    All,
    Like(&'a str),
    OneOf(Vec<&'a str>),
}

impl<'a> Filter<'a> {
    fn read(words: &[Word<'a>]) -> Self {
        match words {
            [like, pattern, ..] if like.is("like") => {
                Self::Like(pattern.text().unwrap_or_default())
            }
            // `WHERE Variable_name = 'a' OR Variable_name IN ('b', 'c')`: the texts in it.
            [condition, rest @ ..] if condition.is("where") => {
                let pattern = rest.iter().position(|word| word.is("like"));
                match pattern
                    .and_then(|at| rest.get(at + 1))
                    .and_then(|word| word.text())
                {
                    Some(pattern) => Self::Like(pattern),
                    None => Self::OneOf(
                        rest.iter()
                            .filter_map(|word| match word {
                                Word::Quoted(text)
                                    if !text.eq_ignore_ascii_case("variable_name") =>
                                {
                                    Some(*text)
                                }
                                Word::Bare(_) | Word::Quoted(_) | Word::Sign(_) => None,
                            })
                            .collect(),
                    ),
                }
            }
            _ => Self::All,
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Like(pattern) => {
                is_like(name.as_bytes(), pattern.to_ascii_lowercase().as_bytes())
            }
            Self::OneOf(names) => names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name)),
        }
    }
}

/// `LIKE` with `%` and `_`, on names in lower case.
fn is_like(name: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut in_pattern) = (0, 0);
    // Where to go on when what follows the last `%` does not fit.
    let mut again: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(in_pattern), name.get(at)) {
            (Some(b'%'), _) => {
                again = Some((in_pattern + 1, at));
                in_pattern += 1;
            }
            (None, None) => return true,
            (Some(b'_'), Some(_)) => {
                at += 1;
                in_pattern += 1;
            }
            (Some(wanted), Some(byte)) if wanted == byte => {
                at += 1;
                in_pattern += 1;
            }
            _ => match again {
                Some((behind, from)) if from < name.len() => {
                    again = Some((behind, from + 1));
                    at = from + 1;
                    in_pattern = behind;
                }
                Some(_) | None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests;
