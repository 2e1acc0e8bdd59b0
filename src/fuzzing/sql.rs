//! The fuzz target of the statement scanner.

use crate::sql::{Charset, Dialect, Effect, Server, Traits};
use crate::sql::{
    classify, classify_prefix, effects, explain_route_target, kill_target, readings_agree,
};

/// A byte of the dialect, then a statement's text. What is said of the text must agree with itself.
pub fn sql_statement(data: &[u8]) {
    let Some((&choice, sql)) = data.split_first() else {
        return;
    };
    let d = dialect(choice);
    assert!(readings_agree(sql, &d), "not as plain as it looks");
    let statement = classify(sql, &d);
    let mut count = 0_usize;
    effects(sql, &d, &mut |effect| {
        count += 1;
        if let Effect::SetVariable { name, value, .. } = effect {
            assert!(!name.is_empty() || !sql.is_empty());
            assert!(is_inside(value.text, sql), "a value from elsewhere");
        }
    });
    let announced = statement.traits.contains(Traits::EFFECTS);
    assert!(count == 0 || announced, "effects that nobody would ask for");
    assert!(
        count == 0 || statement.wants_primary().is_some(),
        "a plain read that changes the session"
    );
    if let Some(at) = explain_route_target(sql, &d) {
        assert!(at <= sql.len());
    }
    let _ = kill_target(sql, &d);
    let _ = classify_prefix(sql, &d);
}

fn is_inside(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

pub(super) fn dialect(choice: u8) -> Dialect {
    let (server, version) = match choice & 3 {
        0 => (Server::MariaDb, 10_11_19),
        1 => (Server::MySql, 9_07_04),
        2 => (Server::MySql, 8_00_36),
        _ => (Server::MySql, 0),
    };
    let charset = match (choice >> 2) & 7 {
        1 => Charset::Gbk,
        2 => Charset::Gb18030,
        3 => Charset::Big5,
        4 => Charset::Sjis,
        5 => Charset::SingleByte { blank: 0xa0 },
        _ => Charset::Plain,
    };
    Dialect {
        server,
        version,
        charset,
        ansi_quotes: choice & 0x20 != 0,
        no_backslash_escapes: choice & 0x40 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_pass() {
        crate::fuzzing::replay("sql_statement", sql_statement);
    }
}
