//! GET DIAGNOSTICS and the forms of SHOW WARNINGS: what is asked of the conditions that the statement before left.

use super::Dialect;
use super::cursor::Cursor;
use super::scan::Tok;

/// A question about those conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AreaQuestion<'a> {
    /// SHOW WARNINGS, SHOW ERRORS: so many from this one on.
    Show {
        /// Errors only.
        errors: bool,
        /// How many are left out before.
        from: u64,
        /// At most so many.
        limit: u64,
    },
    /// SHOW COUNT(*) WARNINGS, SHOW COUNT(*) ERRORS.
    Count {
        /// Errors only.
        errors: bool,
    },
    /// GET DIAGNOSTICS of the statement as a whole.
    Statement(Vec<(&'a [u8], StatementItem)>),
    /// GET DIAGNOSTICS that every server refuses outside stored code.
    Wrong,
    /// GET DIAGNOSTICS of one condition.
    Condition(ConditionNumber<'a>, Vec<(&'a [u8], ConditionItem)>),
}

/// Which condition, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionNumber<'a> {
    /// This one.
    Literal(u64),
    /// What the variable says (without `@` and quotes).
    Variable(&'a [u8]),
}

/// What may be asked of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementItem {
    /// How many conditions there are.
    Number,
    /// The rows that it changed.
    RowCount,
}

/// What may be asked of a condition: a place in [`CONDITION_ITEMS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionItem(pub usize);

/// All that may be asked of a condition; the last one of MariaDB since 10.7 only.
pub const CONDITION_ITEMS: [&str; 14] = [
    "class_origin",
    "subclass_origin",
    "returned_sqlstate",
    "message_text",
    "constraint_catalog",
    "constraint_schema",
    "constraint_name",
    "catalog_name",
    "schema_name",
    "table_name",
    "column_name",
    "cursor_name",
    "mysql_errno",
    "row_number",
];

/// Reads such a question, alone in its text. The targets of GET DIAGNOSTICS are variables as written. `None` for anything else, and
/// where a server is to say what is wrong.
#[must_use]
pub fn area_question<'a>(sql: &'a [u8], d: &Dialect) -> Option<AreaQuestion<'a>> {
    let mut c = Cursor::new(sql, d);
    let question = if c.eat_word("show") {
        show(&mut c)?
    } else if c.eat_word("get") {
        c.eat_word("current");
        if !c.eat_word("diagnostics") {
            return Some(AreaQuestion::Wrong);
        }
        match get(&mut c)? {
            AreaQuestion::Wrong => return Some(AreaQuestion::Wrong),
            question => question,
        }
    } else {
        return None;
    };
    while c.eat(Tok::Semicolon) {}
    (c.tok() == Tok::End && c.found().is_empty()).then_some(question)
}

fn show<'a>(c: &mut Cursor<'a>) -> Option<AreaQuestion<'a>> {
    let counts = c.eat_word("count");
    if counts {
        let is_all = c.eat(Tok::Open) && c.text() == b"*";
        c.step();
        if !is_all || !c.eat(Tok::Close) {
            return None;
        }
    }
    let errors = c.eat_word("errors");
    if !errors && !c.eat_word("warnings") {
        return None;
    }
    if counts {
        return Some(AreaQuestion::Count { errors });
    }
    let (mut from, mut limit) = (0, u64::MAX);
    if c.eat_word("limit") {
        limit = number(c)?;
        if c.eat(Tok::Comma) {
            from = limit;
            limit = number(c)?;
        } else if c.eat_word("offset") {
            from = number(c)?;
        }
    }
    Some(AreaQuestion::Show {
        errors,
        from,
        limit,
    })
}

fn get<'a>(c: &mut Cursor<'a>) -> Option<AreaQuestion<'a>> {
    if !c.eat_word("condition") {
        let item = |word: &[u8]| {
            let items = [
                (&b"number"[..], StatementItem::Number),
                (b"row_count", StatementItem::RowCount),
            ];
            let found = items
                .iter()
                .find(|(name, _)| word.eq_ignore_ascii_case(name));
            found.map(|(_, item)| *item)
        };
        return Some(targets(c, item).map_or(AreaQuestion::Wrong, AreaQuestion::Statement));
    }
    let which = if c.tok() == Tok::UserVar {
        let name = c.text();
        c.step();
        ConditionNumber::Variable(super::cursor::unquoted(
            name.strip_prefix(b"@").unwrap_or(name),
        ))
    } else {
        ConditionNumber::Literal(number(c)?)
    };
    let item = |word: &[u8]| {
        let place = CONDITION_ITEMS
            .iter()
            .position(|name| word.eq_ignore_ascii_case(name.as_bytes()));
        place.map(ConditionItem)
    };
    Some(match targets(c, item) {
        Some(list) => AreaQuestion::Condition(which, list),
        None => AreaQuestion::Wrong,
    })
}

/// `@a = NUMBER, @b = ROW_COUNT`; nothing where it is something else.
fn targets<'a, T>(
    c: &mut Cursor<'a>,
    item: impl Fn(&[u8]) -> Option<T>,
) -> Option<Vec<(&'a [u8], T)>> {
    let mut list = Vec::new();
    loop {
        if c.tok() != Tok::UserVar {
            return None;
        }
        let target = c.text();
        c.step();
        if c.text() != b"=" {
            return None;
        }
        c.step();
        let found = item(c.text()).filter(|_| c.tok() == Tok::Word)?;
        c.step();
        list.push((target, found));
        if !c.eat(Tok::Comma) {
            return Some(list);
        }
    }
}

fn number(c: &mut Cursor<'_>) -> Option<u64> {
    let number = std::str::from_utf8(c.text()).ok()?.parse().ok();
    if c.tok() != Tok::Number {
        return None;
    }
    c.step();
    number
}

#[cfg(test)]
mod tests {
    use super::super::{Charset, Server};
    use super::*;

    const D: Dialect = Dialect {
        server: Server::MariaDb,
        version: 101_119,
        charset: Charset::Plain,
        ansi_quotes: false,
        no_backslash_escapes: false,
    };

    #[test]
    fn questions_are_read() {
        let show = |errors, from, limit| AreaQuestion::Show {
            errors,
            from,
            limit,
        };
        for (sql, wanted) in [
            ("SHOW WARNINGS", show(false, 0, u64::MAX)),
            ("show errors limit 2;", show(true, 0, 2)),
            ("SHOW WARNINGS LIMIT 1, 2", show(false, 1, 2)),
            ("SHOW WARNINGS LIMIT 2 OFFSET 1", show(false, 1, 2)),
            (
                "SHOW COUNT(*) WARNINGS",
                AreaQuestion::Count { errors: false },
            ),
            (
                "SHOW COUNT( * ) ERRORS",
                AreaQuestion::Count { errors: true },
            ),
            (
                "GET DIAGNOSTICS @n = NUMBER, @`r c` = row_count",
                AreaQuestion::Statement(vec![
                    (b"@n", StatementItem::Number),
                    (b"@`r c`", StatementItem::RowCount),
                ]),
            ),
            (
                "GET CURRENT DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE",
                AreaQuestion::Condition(
                    ConditionNumber::Literal(1),
                    vec![(b"@s", ConditionItem(2))],
                ),
            ),
            (
                "GET DIAGNOSTICS CONDITION @i @m=MESSAGE_TEXT, @e=MYSQL_ERRNO",
                AreaQuestion::Condition(
                    ConditionNumber::Variable(b"i"),
                    vec![(b"@m", ConditionItem(3)), (b"@e", ConditionItem(12))],
                ),
            ),
        ] {
            assert_eq!(area_question(sql.as_bytes(), &D), Some(wanted), "{sql}");
        }
    }

    #[test]
    fn others_are_not() {
        for sql in [
            "SHOW TABLES",
            "SHOW WARNINGS LIMIT x",
            "SHOW COUNT(1) WARNINGS",
            "SHOW WARNINGS; SELECT 1",
            "GET DIAGNOSTICS CONDITION '1' @n = MYSQL_ERRNO",
            "GET DIAGNOSTICS @n = NUMBER; SELECT 1",
            "SELECT 1",
        ] {
            assert_eq!(area_question(sql.as_bytes(), &D), None, "{sql}");
        }
        for sql in [
            "GET STACKED DIAGNOSTICS @n = NUMBER",
            "GET DIAGNOSTICS n = NUMBER",
            "GET DIAGNOSTICS @n = NUMBERS",
            "GET DIAGNOSTICS CONDITION 1 @n = NUMBER",
            "GET DIAGNOSTICS",
        ] {
            let wrong = Some(AreaQuestion::Wrong);
            assert_eq!(area_question(sql.as_bytes(), &D), wrong, "{sql}");
        }
    }
}
