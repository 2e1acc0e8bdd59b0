//! The value of an assignment: how far it reaches, and whether the same text gives the same value on
//! another connection.

use super::cursor::Cursor;
use super::effects::assigned;
use super::function::{self, Class};
use super::keyword::Kw;
use super::scan::Tok;
use super::word::{self, Word};
use super::{Dialect, Effect, Traits, Value};

/// Reads the value that starts here, up to the comma or the end. Assignments inside it (`@x := 1`) are
/// reported; `None` if there is no value.
pub(super) fn read<'a>(
    c: &mut Cursor<'a>,
    d: &Dialect,
    sink: &mut dyn FnMut(Effect<'a>),
) -> Option<Value<'a>> {
    let (start, edges) = (c.start(), c.version_comment_edges());
    let mut value = Judge {
        d,
        replayable: true,
        user_vars: false,
        depth: 0,
        selects: 0,
        arguments: 0,
        from: From::Nothing,
    };
    let mut prev = Prev {
        tok: Tok::Other,
        word: None,
        end: start,
    };
    let mut end = start;
    while !c.is_at_end() && (value.depth > 0 || c.tok() != Tok::Comma) {
        if value.depth == 0 && c.tok() == Tok::Close {
            break;
        }
        if c.tok() == Tok::UserVar && c.peek().tok == Tok::Assign {
            assigned(c.text(), sink);
            value.replayable = false;
        }
        // Text that runs only partly inside a version comment would not do so elsewhere.
        value.replayable &= c.version_comment_edges() == edges;
        value.token(c, prev);
        let word = if c.tok() == Tok::Word {
            word::lookup(c.text())
        } else {
            None
        };
        prev = Prev {
            tok: c.tok(),
            word,
            end: c.start() + c.text().len(),
        };
        c.step();
        end = c.last_end();
    }
    let text = c.span(start, end);
    (!text.is_empty()).then_some(Value {
        text,
        // What does not end fails, and would swallow what is put behind it; two dashes at an end begin a comment.
        replayable: value.replayable
            && value.depth == 0
            && !c.found().contains(Traits::UNTERMINATED)
            && !text.ends_with(b"--"),
        user_vars: value.user_vars,
    })
}

#[derive(Clone, Copy)]
struct Prev {
    tok: Tok,
    word: Option<&'static Word>,
    end: usize,
}

struct Judge<'d> {
    d: &'d Dialect,
    replayable: bool,
    user_vars: bool,
    depth: u32,
    /// One bit for each open parenthesis: a SELECT stands in it.
    selects: u64,
    /// One bit for each open parenthesis: a function's arguments stand in it.
    arguments: u64,
    from: From,
}

/// What must come next for a FROM to read no table: DUAL, and then the end of the query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Nothing,
    Table,
    Dual,
}

impl Judge<'_> {
    fn token(&mut self, c: &Cursor<'_>, prev: Prev) {
        match std::mem::replace(&mut self.from, From::Nothing) {
            From::Nothing => {}
            From::Table => {
                self.replayable &= c.is_word("dual");
                self.from = From::Dual;
            }
            From::Dual => self.replayable &= c.tok() == Tok::Close,
        }
        match c.tok() {
            Tok::Text | Tok::Number | Tok::Comma | Tok::Equal | Tok::SysVar => {}
            Tok::UserVar => self.user_vars = true,
            Tok::Open => self.open(c, prev),
            Tok::Close => {
                self.depth = self.depth.saturating_sub(1);
                let inside = bit(self.depth);
                self.selects &= !inside;
                self.arguments &= !inside;
            }
            Tok::Word => self.word(c, prev),
            // The parts of a system variable's name.
            Tok::Dot => self.replayable &= prev.tok == Tok::Word,
            // A column, or a sequence.
            Tok::Name => self.replayable &= self.depth == 0 && prev.tok == Tok::Other,
            // Placeholders, `{`, a zero byte.
            Tok::Other => self.replayable &= c.text().iter().all(|b| b"+-*/%<>!~&|^".contains(b)),
            Tok::Assign | Tok::Semicolon | Tok::End => self.replayable = false,
        }
    }

    fn open(&mut self, c: &Cursor<'_>, prev: Prev) {
        let inside = bit(self.depth);
        if self.depth >= 64 {
            self.replayable = false;
        }
        if matches!(prev.tok, Tok::Word | Tok::Name) {
            let group = prev.word.and_then(|w| function::group(w.group));
            let is_pure = group.is_some_and(|g| {
                g.class == Class::Pure && g.is_built_in(self.d, prev.end != c.start())
            });
            self.replayable &= is_pure;
            self.arguments |= inside;
        }
        self.depth = self.depth.saturating_add(1);
    }

    fn word(&mut self, c: &Cursor<'_>, prev: Prev) {
        let word = word::lookup(c.text());
        if prev.tok == Tok::SysVar || prev.tok == Tok::Dot {
            let is_scope = c.peek().tok == Tok::Dot && c.is_one_of(&["session", "local"]);
            self.replayable &= is_scope || is_session_variable(c.text());
            return;
        }
        let inside = bit(self.depth.wrapping_sub(1));
        match word.map_or(Kw::Name, |w| w.kw) {
            Kw::Select => self.selects |= inside,
            // EXTRACT(YEAR FROM x) reads no table.
            Kw::From if self.selects & inside != 0 || self.arguments & inside == 0 => {
                self.from = From::Table;
            }
            Kw::Table
            | Kw::With
            | Kw::Into
            | Kw::Next
            | Kw::SequenceColumn
            | Kw::Update
            | Kw::Share => self.replayable = false,
            _ => {}
        }
        // CURRENT_TIMESTAMP and its like need no parentheses.
        let class = word.and_then(|w| function::group(w.group)).map(|g| g.class);
        self.replayable &=
            class.is_none_or(|class| class == Class::Pure) || c.peek().tok == Tok::Open;
    }
}

const fn bit(depth: u32) -> u64 {
    if depth < 64 { 1 << depth } else { 0 }
}

/// True for variables whose value is a session's own, and the same on every server for the same
/// session. Others, such as `@@server_id` and `@@timestamp`, may have another value there.
fn is_session_variable(name: &[u8]) -> bool {
    SESSION_VARIABLES
        .iter()
        .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

const SESSION_VARIABLES: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "autocommit",
    "big_tables",
    "binlog_format",
    "binlog_row_image",
    "block_encryption_mode",
    "bulk_insert_buffer_size",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "completion_type",
    "cte_max_recursion_depth",
    "default_storage_engine",
    "default_week_format",
    "div_precision_increment",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "innodb_strict_mode",
    "interactive_timeout",
    "join_buffer_size",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "long_query_time",
    "low_priority_updates",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_recursive_iterations",
    "max_sort_length",
    "max_sp_recursion_depth",
    "max_statement_time",
    "net_buffer_length",
    "net_read_timeout",
    "net_retry_count",
    "net_write_timeout",
    "old_mode",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "session_track_gtids",
    "session_track_schema",
    "session_track_state_change",
    "session_track_system_variables",
    "session_track_transaction_info",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_generate_invisible_primary_key",
    "sql_log_bin",
    "sql_log_off",
    "sql_mode",
    "sql_notes",
    "sql_quote_show_create",
    "sql_require_primary_key",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "time_zone",
    "tmp_table_size",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "unique_checks",
    "updatable_views_with_limit",
    "use_stat_tables",
    "wait_timeout",
    "windowing_use_high_precision",
];
