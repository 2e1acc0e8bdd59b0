//! A text in which questions that only another connection could answer are replaced by their answers: `ROW_COUNT()`,
//! `FOUND_ROWS()` and `CONNECTION_ID()`.

use super::Dialect;
use super::cursor::Cursor;
use super::scan::Tok;

/// What is known. A question without an answer here stays in the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    /// `ROW_COUNT()`.
    pub row_count: Option<i64>,
    /// `FOUND_ROWS()`.
    pub found_rows: Option<u64>,
    /// `@@warning_count`.
    pub warnings: Option<u16>,
    /// `@@error_count`.
    pub errors: Option<u16>,
    /// `CONNECTION_ID()` and `@@pseudo_thread_id`.
    pub connection_id: Option<u32>,
}

/// What became of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The text with the answers in place.
    pub text: Vec<u8>,
    /// How many questions were answered.
    pub count: usize,
    /// A question about the previous statement is left.
    pub is_open: bool,
}

/// Puts answers into the text's first statement (those behind it ask about statements of the text itself; the id of the
/// connection is the same in all). Where the question is the whole of a selected column the column keeps its name.
#[must_use]
pub fn answered(sql: &[u8], d: &Dialect, answers: &Answers) -> Answered {
    let mut c = Cursor::new(sql, d);
    let mut done = Answered {
        text: Vec::with_capacity(sql.len() + 32),
        count: 0,
        is_open: false,
    };
    let mut copied = 0;
    let mut is_first = true;
    let mut columns = Columns::default();
    let mut begins_column = false;
    let mut is_name = false;
    let mut has_from = false;
    while c.tok() != Tok::End {
        has_from |= !is_name && c.is_word("from");
        // GET DIAGNOSTICS asks in its own way.
        done.is_open |= is_first && c.is_word("diagnostics");
        let question = if is_name { None } else { question(&c, sql, d) };
        let Some((which, tokens)) = question else {
            is_first &= c.tok() != Tok::Semicolon;
            begins_column = columns.pass(&c);
            is_name = matches!(c.tok(), Tok::Dot | Tok::SysVar);
            c.step();
            continue;
        };
        let start = c.start();
        for _ in 0..tokens {
            c.step();
        }
        let end = c.last_end();
        let ends_column = c.is_at_end()
            || c.tok() == Tok::Comma
            || c.is_one_of(&["from", "into", "union", "limit", "where", "order", "for"]);
        let is_column = begins_column && ends_column;
        let value = match which {
            Which::RowCount if is_first => answers.row_count.map(|n| n.to_string()),
            Which::FoundRows if is_first => answers.found_rows.map(|n| n.to_string()),
            Which::Warnings if is_first => answers.warnings.map(|n| n.to_string()),
            Which::Errors if is_first => answers.errors.map(|n| n.to_string()),
            Which::RowCount | Which::FoundRows | Which::Warnings | Which::Errors => {
                begins_column = false;
                continue;
            }
            // Compared with what servers tell of their connections it has to be the server's own.
            Which::ConnectionId if !is_column || has_from || c.is_word("from") => None,
            Which::ConnectionId => answers.connection_id.map(|n| n.to_string()),
        };
        let Some(value) = value else {
            done.is_open |= which != Which::ConnectionId;
            begins_column = false;
            continue;
        };
        // As a branch beside the question, so that the column is described as the question's is.
        let number = match which {
            Which::ConnectionId | Which::Warnings | Which::Errors => {
                format!("CAST({value} AS UNSIGNED)")
            }
            Which::RowCount | Which::FoundRows => value,
        };
        done.text.extend_from_slice(c.span(copied, start));
        done.text
            .extend_from_slice(format!("IF(1,{number},").as_bytes());
        done.text.extend_from_slice(c.span(start, end));
        done.text.push(b')');
        if is_column {
            done.text.extend_from_slice(b" AS `");
            done.text.extend_from_slice(c.span(start, end));
            done.text.push(b'`');
        }
        copied = end;
        done.count += 1;
        begins_column = false;
    }
    done.text
        .extend_from_slice(sql.get(copied..).unwrap_or_default());
    done
}

/// The lists of columns that the cursor is in, by the parentheses around them.
#[derive(Debug, Default)]
struct Columns {
    depth: usize,
    lists: Vec<usize>,
}

impl Columns {
    /// Takes a token that is no question; whether a column may begin behind it.
    fn pass(&mut self, c: &Cursor<'_>) -> bool {
        let is_list = |columns: &Self| columns.lists.last() == Some(&columns.depth);
        match c.tok() {
            Tok::Open => self.depth += 1,
            Tok::Close => {
                if is_list(self) {
                    self.lists.pop();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            Tok::Comma => return is_list(self),
            Tok::Semicolon => *self = Self::default(),
            _ if c.is_word("select") => {
                if !is_list(self) {
                    self.lists.push(self.depth);
                }
                return true;
            }
            _ if c.is_one_of(&["all", "distinct"]) => return is_list(self),
            _ if c.is_one_of(&["from", "into", "where", "group", "having", "order", "limit"])
                && is_list(self) =>
            {
                self.lists.pop();
            }
            _ => {}
        }
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    RowCount,
    FoundRows,
    Warnings,
    Errors,
    ConnectionId,
}

/// The question at the cursor, and of how many tokens it is.
fn question(c: &Cursor<'_>, sql: &[u8], d: &Dialect) -> Option<(Which, usize)> {
    if c.tok() == Tok::SysVar {
        return variable(sql.get(c.start()..)?, d);
    }
    let which = if c.is_word("row_count") {
        Which::RowCount
    } else if c.is_word("found_rows") {
        Which::FoundRows
    } else if c.is_word("connection_id") {
        Which::ConnectionId
    } else {
        return None;
    };
    // With its parentheses.
    c.is_call_without_arguments().then_some((which, 3))
}

/// The same of a variable with which a text begins: `@@warning_count`, `@@session.warning_count`.
fn variable(sql: &[u8], d: &Dialect) -> Option<(Which, usize)> {
    let mut c = Cursor::new(sql, d);
    c.step();
    let mut tokens = 2;
    if c.is_one_of(&["session", "local"]) && c.peek().tok == Tok::Dot {
        c.step();
        c.step();
        tokens += 2;
    }
    let which = match c.text() {
        name if name.eq_ignore_ascii_case(b"pseudo_thread_id") => Which::ConnectionId,
        name if name.eq_ignore_ascii_case(b"warning_count") => Which::Warnings,
        name if name.eq_ignore_ascii_case(b"error_count") => Which::Errors,
        _ => return None,
    };
    Some((which, tokens))
}

#[cfg(test)]
mod tests {
    use super::super::{Charset, Server};
    use super::*;

    const MARIADB: Dialect = Dialect {
        server: Server::MariaDb,
        version: 101_119,
        charset: Charset::Plain,
        ansi_quotes: false,
        no_backslash_escapes: false,
    };

    const ALL: Answers = Answers {
        row_count: Some(-1),
        found_rows: Some(17),
        warnings: Some(2),
        errors: Some(0),
        connection_id: Some(1_090_519_041),
    };

    #[test]
    fn questions_are_answered_and_columns_keep_their_names() {
        for (sql, text) in [
            (
                "SELECT ROW_COUNT()",
                "SELECT IF(1,-1,ROW_COUNT()) AS `ROW_COUNT()`",
            ),
            (
                "select row_count ( ), found_rows() from t",
                "select IF(1,-1,row_count ( )) AS `row_count ( )`, IF(1,17,found_rows()) AS `found_rows()` from t",
            ),
            (
                "SELECT FOUND_ROWS() AS n",
                "SELECT IF(1,17,FOUND_ROWS()) AS n",
            ),
            (
                "SELECT @@warning_count, @@error_count+1",
                "SELECT IF(1,CAST(2 AS UNSIGNED),@@warning_count) AS `@@warning_count`, IF(1,CAST(0 AS UNSIGNED),@@error_count)+1",
            ),
            (
                "SELECT @@session.warning_count, @@LOCAL.error_count + @@session.sql_mode",
                "SELECT IF(1,CAST(2 AS UNSIGNED),@@session.warning_count) AS `@@session.warning_count`, \
                 IF(1,CAST(0 AS UNSIGNED),@@LOCAL.error_count) + @@session.sql_mode",
            ),
            ("SELECT FOUND_ROWS() n", "SELECT IF(1,17,FOUND_ROWS()) n"),
            ("SELECT 1 + ROW_COUNT()", "SELECT 1 + IF(1,-1,ROW_COUNT())"),
            (
                "INSERT INTO t VALUES (ROW_COUNT(), 1)",
                "INSERT INTO t VALUES (IF(1,-1,ROW_COUNT()), 1)",
            ),
            ("SET @n = FOUND_ROWS()", "SET @n = IF(1,17,FOUND_ROWS())"),
            // Commas that do not part columns.
            (
                "SELECT IF(0, ROW_COUNT(), ROW_COUNT()), CONCAT(1, ROW_COUNT(), 2) FROM t ORDER BY a, ROW_COUNT()",
                "SELECT IF(0, IF(1,-1,ROW_COUNT()), IF(1,-1,ROW_COUNT())), CONCAT(1, IF(1,-1,ROW_COUNT()), 2) FROM t \
                 ORDER BY a, IF(1,-1,ROW_COUNT())",
            ),
            (
                "SELECT COALESCE(1, (SELECT a, b FROM t), CONNECTION_ID(), 2), ROW_COUNT()",
                "SELECT COALESCE(1, (SELECT a, b FROM t), CONNECTION_ID(), 2), IF(1,-1,ROW_COUNT()) AS `ROW_COUNT()`",
            ),
            (
                "CALL p(1, ROW_COUNT(), 2)",
                "CALL p(1, IF(1,-1,ROW_COUNT()), 2)",
            ),
            (
                "SELECT CONNECTION_ID(), @@pseudo_thread_id",
                "SELECT IF(1,CAST(1090519041 AS UNSIGNED),CONNECTION_ID()) AS `CONNECTION_ID()`, \
                 IF(1,CAST(1090519041 AS UNSIGNED),@@pseudo_thread_id) AS `@@pseudo_thread_id`",
            ),
            (
                "SELECT ROW_COUNT(); SELECT ROW_COUNT()",
                "SELECT IF(1,-1,ROW_COUNT()) AS `ROW_COUNT()`; SELECT ROW_COUNT()",
            ),
            (
                "SELECT 'ROW_COUNT()', `row_count`, t.found_rows",
                "SELECT 'ROW_COUNT()', `row_count`, t.found_rows",
            ),
            ("SELECT row_count FROM t", "SELECT row_count FROM t"),
            (
                "SELECT IS_USED_LOCK('l') = CONNECTION_ID()",
                "SELECT IS_USED_LOCK('l') = CONNECTION_ID()",
            ),
            (
                "SELECT 1 FROM information_schema.processlist WHERE id = CONNECTION_ID()",
                "SELECT 1 FROM information_schema.processlist WHERE id = CONNECTION_ID()",
            ),
            (
                "SELECT s.row_count() /* ROW_COUNT() */",
                "SELECT s.row_count() /* ROW_COUNT() */",
            ),
        ] {
            let done = answered(sql.as_bytes(), &MARIADB, &ALL);
            assert_eq!(String::from_utf8_lossy(&done.text), text, "{sql}");
            assert!(!done.is_open);
        }
    }

    #[test]
    fn what_is_not_known_stays_and_is_told() {
        let none = Answers::default();
        let done = answered(b"SELECT FOUND_ROWS(), CONNECTION_ID()", &MARIADB, &none);
        assert_eq!(done.text, b"SELECT FOUND_ROWS(), CONNECTION_ID()");
        assert!(done.is_open);
        assert_eq!(done.count, 0);
        assert!(!answered(b"SELECT CONNECTION_ID()", &MARIADB, &none).is_open);
        assert!(answered(b"GET DIAGNOSTICS @n = ROW_COUNT", &MARIADB, &ALL).is_open);
    }
}
