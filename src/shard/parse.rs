//! The parser, behind its guards: what it is given is short enough, flat enough and one statement.

use sqlparser::ast::Statement;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::refused::Refused;
use super::tokens::feed;
use crate::sql::Dialect;

/// Statements longer than this are not parsed.
const LENGTH_MAX: usize = 1024 * 1024;

/// A statement as a tree.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) statement: Statement,
    /// Conditions cannot be trusted: an operator binds otherwise on the servers.
    pub(super) is_doubtful: bool,
    /// Ends in LOCK IN SHARE MODE, which is not in the tree.
    pub(super) is_locking: bool,
    /// Where the signs of parameters stand.
    pub(super) params: Vec<usize>,
}

/// See the module's words.
///
/// # Errors
/// It is not understood.
pub(super) fn parse(text: &[u8], d: &Dialect) -> Result<Parsed, Refused> {
    if text.len() > LENGTH_MAX {
        return Err(Refused::new(format!(
            "it is longer than {LENGTH_MAX} bytes: split it"
        )));
    }
    let fed = feed(text, d)?;
    let (is_doubtful, is_locking, params) = (fed.is_doubtful, fed.is_locking, fed.params);
    let dialect = MySqlDialect {};
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(fed.tokens);
    let statement = parser.parse_statement().map_err(|error| {
        let text = error.to_string();
        let text = text.trim_start_matches("sql parser error: ");
        Refused::new(format!("it is not understood: {}", first_part(text)))
    })?;
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token().token != Token::EOF {
        return Err(Refused::new(
            "it is not understood behind what looks like its end, or it is more than one statement: send them one by one",
        ));
    }
    Ok(Parsed {
        statement,
        is_doubtful,
        is_locking,
        params,
    })
}

/// Without the place, which the parser counts otherwise than its reader would.
fn first_part(text: &str) -> &str {
    let end = text.find(" at Line").unwrap_or(text.len());
    let text = text.get(..end).unwrap_or(text);
    text.char_indices()
        .nth(200)
        .and_then(|(at, _)| text.get(..at))
        .unwrap_or(text)
}
