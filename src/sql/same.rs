//! Whether a text gives the same on every server that has the same rows: it asks for no time, no chance, nothing of a server's or a
//! connection's own. Functions that are not built in are not known here: their trait is another.

use super::function::{Class, GROUPS};
use super::{Dialect, Tok, Tokens};

/// Such functions that need no parentheses.
const BARE: [&str; 10] = [
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

/// See the module's words; the word that is in the way.
///
/// # Errors
/// It does not, or may not.
pub fn gives_the_same(text: &[u8], d: &Dialect) -> Result<(), String> {
    let mut tokens = Tokens::new(text, d).peekable();
    let mut before = Tok::End;
    while let Some(token) = tokens.next() {
        let word = text.get(token.start..token.end).unwrap_or_default();
        let is_called = tokens.peek().is_some_and(|next| next.tok == Tok::Open);
        let is_told = || String::from_utf8_lossy(word).into_owned();
        match token.tok {
            Tok::SysVar => return Err("@@".to_owned()),
            Tok::Word if before != Tok::Dot => {
                let is = |name: &&str| name.as_bytes().eq_ignore_ascii_case(word);
                let is_volatile = || {
                    let mut others = GROUPS.iter().filter(|group| group.class != Class::Pure);
                    others.any(|group| group.names.split(' ').any(|name| is(&name)))
                };
                if BARE.iter().any(is) || is_called && is_volatile() {
                    return Err(is_told());
                }
            }
            _ => {}
        }
        before = token.tok;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Server;

    #[test]
    fn what_servers_answer_each_in_its_own_way_is_seen() {
        let d = Dialect::new(Server::MariaDb, 101_119);
        let of = |text: &str| gives_the_same(text.as_bytes(), &d).err();
        for text in [
            "UPDATE zone SET name = CONCAT(name, 'now()'), at = '2020-01-01' WHERE id IN (1, 2)",
            "INSERT INTO zone (now, `rand`, user) VALUES (1, /* uuid() */ 2, 3)",
            "UPDATE zone z SET z.current_date = z.localtime + @x",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        for (text, word) in [
            ("UPDATE zone SET at = NOW()", "NOW"),
            ("UPDATE zone SET at = now ( 3 )", "now"),
            (
                "INSERT INTO zone VALUES (1, Current_Timestamp)",
                "Current_Timestamp",
            ),
            ("DELETE FROM zone WHERE id < RAND() * 5", "RAND"),
            ("UPDATE zone SET a = uuid()", "uuid"),
            ("UPDATE zone SET a = @@server_id", "@@"),
            ("UPDATE zone SET a = LAST_INSERT_ID()", "LAST_INSERT_ID"),
        ] {
            assert_eq!(of(text).as_deref(), Some(word), "{text}");
        }
    }
}
