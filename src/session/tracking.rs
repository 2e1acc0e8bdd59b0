//! Session tracking: Atlas has servers tell of every change of session state, so that what stored programs and triggers change
//! does not stay unseen on a connection that serves others afterwards. The client sees of it what its own settings show.
//!
//! What changed is noted at the reply's end (`seen`); here are the settings, and what of a packet is the client's.
//!
//! What no server tells of: user variables assigned by `:=` and INTO, user locks. Changes by a statement that fails MySQL tells of
//! with the next statement, MariaDB with the next one that changes state itself.

use std::collections::VecDeque;

use super::bring::write_query;
use super::sync::Said;
use super::{Outputs, Role, Session};
use crate::config::Causal;
use crate::sql::{Kind, Server, Traits};
use crate::wire::{Capabilities, OkPacket, StateChange, hide_change, keep_changes};

/// The question for the settings with which a connection begins, which are its clients'.
const ASK: &[u8] =
    b"SELECT @@session_track_schema, @@session_track_state_change, @@session_track_system_variables";

/// MariaDB tells of what changes only.
const TRACK_MARIADB: &[u8] =
    b"SET SESSION session_track_state_change = 1, session_track_system_variables = '*'";

/// MySQL would tell of `statement_id` with every statement if it were told to tell of all, so these are named; it passes over names
/// that it does not know, with warnings. Not among them: what cannot be set to what was told, and what Atlas knows otherwise.
const TRACK_MYSQL: &[u8] = b"SET SESSION session_track_state_change = 1, session_track_system_variables = '\
auto_increment_increment,auto_increment_offset,autocommit,big_tables,binlog_direct_non_transactional_updates,\
binlog_format,binlog_row_image,binlog_row_value_options,binlog_rows_query_log_events,binlog_transaction_compression,\
binlog_transaction_compression_level_zstd,block_encryption_mode,bulk_insert_buffer_size,character_set_client,\
character_set_connection,character_set_filesystem,character_set_results,character_set_server,collation_connection,\
collation_server,completion_type,connection_memory_chunk_size,connection_memory_limit,cte_max_recursion_depth,\
default_collation_for_utf8mb4,default_storage_engine,default_table_encryption,default_tmp_storage_engine,\
default_week_format,div_precision_increment,enable_cascade_triggers,enable_secondary_engine_statistics,\
end_markers_in_json,eq_range_index_dive_limit,explain_format,explain_json_format_version,\
explicit_defaults_for_timestamp,external_table_secondary_storage_engine,external_table_storage_engine,\
foreign_key_checks,generated_random_password_length,group_concat_max_len,histogram_generation_max_mem_size,\
information_schema_stats_expiry,innodb_ddl_buffer_size,innodb_ddl_threads,innodb_ft_enable_stopword,\
innodb_ft_user_stopword_table,innodb_lock_wait_timeout,innodb_parallel_read_threads,innodb_strict_mode,\
innodb_table_locks,innodb_tmpdir,interactive_timeout,internal_tmp_mem_storage_engine,\
join_buffer_size,keep_files_on_create,lc_messages,lc_time_names,lock_wait_timeout,long_query_time,\
low_priority_updates,max_delayed_threads,max_error_count,max_execution_time,max_heap_table_size,\
max_insert_delayed_threads,max_join_size,max_length_for_sort_data,max_points_in_geometry,max_seeks_for_key,\
max_sort_length,max_sp_recursion_depth,min_examined_row_limit,\
myisam_sort_buffer_size,myisam_stats_method,net_read_timeout,net_retry_count,net_write_timeout,old_alter_table,\
optimizer_max_subgraph_pairs,optimizer_prune_level,optimizer_search_depth,optimizer_switch,\
optimizer_trace,optimizer_trace_features,optimizer_trace_limit,optimizer_trace_max_mem_size,optimizer_trace_offset,\
parser_max_mem_size,preload_buffer_size,print_identified_with_as_hex,profiling,profiling_history_size,\
query_alloc_block_size,query_prealloc_size,range_alloc_block_size,range_optimizer_max_mem_size,read_buffer_size,\
read_rnd_buffer_size,require_row_format,restrict_fk_on_non_standard_key,resultset_metadata,\
secondary_engine_cost_threshold,select_into_buffer_size,select_into_disk_sync,select_into_disk_sync_delay,\
set_operations_buffer_size,show_create_table_skip_secondary_engine,show_create_table_verbosity,\
show_gipk_in_create_table_and_information_schema,sort_buffer_size,sql_auto_is_null,sql_big_selects,\
sql_buffer_result,sql_generate_invisible_primary_key,sql_log_bin,sql_log_off,sql_mode,sql_notes,sql_quote_show_create,\
sql_require_primary_key,sql_safe_updates,sql_select_limit,sql_warnings,terminology_use_previous,time_zone,\
tmp_table_size,transaction_alloc_block_size,transaction_isolation,transaction_prealloc_size,transaction_read_only,\
unique_checks,updatable_views_with_limit,\
use_secondary_engine,wait_timeout,windowing_use_high_precision,xa_detach_on_prepare'";

/// As the session began.
const UNTRACK: &[u8] =
    b"SET SESSION session_track_state_change = DEFAULT, session_track_system_variables = DEFAULT";

/// MySQL warns of names that it does not know, and tells of the warnings in replies that have none of their own.
const CLEAR_MYSQL: &[u8] = b"DO 0";

/// MariaDB tells of the variables that it tells everybody of in the order of a hash table over addresses: another one in each
/// process, and when there are more of them. So it is asked to tell of all while these are the only ones. A connection that has
/// just logged in is left as it was.
const ORDER_MARIADB: &[u8] =
    b"EXECUTE IMMEDIATE CONCAT('SET autocommit = @@autocommit, time_zone = @@time_zone, NAMES ', \
@@character_set_client, ' COLLATE ', @@collation_connection)";

/// MySQL only.
const TRACK_GTIDS: &[u8] = b"SET SESSION session_track_gtids = OWN_GTID";

/// So many variables of one statement are noted; of more it is not known what they are.
const VARIABLES: usize = 128;

/// What a connection's server tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tracking {
    /// What it tells everybody.
    #[default]
    Own,
    /// All that there is; GTIDs too, if set.
    Full { gtids: bool },
    /// The server would not.
    Refused,
}

/// What the command at the front has to do with these settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Settings {
    /// Nothing.
    #[default]
    Unseen,
    /// It may set or show them.
    Shown,
    /// It asks about the statement before it, which is to be the previous one still.
    AsTheyAre,
}

impl Settings {
    /// Of a text.
    pub(super) fn of(sql: &[u8], kind: Kind, traits: Traits) -> Self {
        if traits.contains(Traits::DIAGNOSTICS) {
            Self::AsTheyAre
        } else if names_tracking(sql, kind, traits) {
            Self::Shown
        } else {
            Self::Unseen
        }
    }
}

/// What a connection's server tells everybody.
#[derive(Debug, Default)]
pub(super) struct Shown {
    schema: bool,
    state: bool,
    /// Names with commas between them.
    variables: Box<[u8]>,
    /// Those of them that MariaDB has told of, in its order.
    order: Vec<Box<[u8]>>,
}

impl Shown {
    /// Reads the answer to [`ASK`].
    pub(super) fn read(answer: &[u8]) -> Option<Self> {
        let row = super::hold::last_row(answer)?;
        let [schema, state, variables] = row.as_slice() else {
            return None;
        };
        Some(Self {
            schema: *schema == b"1",
            state: *state == b"1",
            variables: variables.to_ascii_lowercase().into(),
            order: Vec::new(),
        })
    }

    /// Reads the answer to [`ORDER_MARIADB`].
    pub(super) fn read_order(&mut self, packet: &[u8]) {
        let payload = packet.get(4..).unwrap_or_default();
        let Ok(ok) = OkPacket::parse(payload, Capabilities::SESSION_TRACK) else {
            return;
        };
        self.order = ok
            .changes()
            .filter_map(|change| match change {
                Ok(StateChange::Variable { name, .. }) => Some(name.into()),
                _ => None,
            })
            .collect();
    }

    /// The place of a change among those of a packet, if the client is to see it.
    fn place(&self, change: StateChange<'_>) -> Option<u8> {
        let is_shown = match change {
            StateChange::Variable { name, .. } => self
                .variables
                .split(|b| *b == b',')
                .any(|shown| shown == b"*" || shown.trim_ascii().eq_ignore_ascii_case(name)),
            StateChange::Schema(_) => self.schema,
            StateChange::StateChanged(_) => self.state,
            StateChange::Gtids(_) => false,
            StateChange::Characteristics(_)
            | StateChange::TransactionState(_)
            | StateChange::Other(..) => true,
        };
        let place = match change {
            StateChange::Variable { name, .. } => self.order.iter().position(|n| **n == *name),
            _ => Some(0xff),
        };
        is_shown.then(|| place.and_then(|n| u8::try_from(n).ok()).unwrap_or(0xfe))
    }
}

/// A variable's name and its value.
type Variable = (Box<[u8]>, Box<[u8]>);

/// What the reply that is being received has told of.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Variables and their values.
    pub(super) variables: Vec<Variable>,
    /// Something changed: a variable of any kind, a temporary table, a named statement.
    pub(super) state: bool,
}

/// What servers told a session.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    /// Changes that the present reply tells of.
    pub(super) told: Told,
    /// The session's transactions that left something.
    pub(super) writes: super::causal::Writes,
    /// They are wanted.
    pub(super) follows: bool,
}

impl Told {
    fn note(&mut self, change: StateChange<'_>) {
        match change {
            StateChange::Variable { name, value }
                if name != LAST_GTID && self.variables.len() < VARIABLES =>
            {
                self.variables.push((name.into(), value.into()));
            }
            StateChange::StateChanged(true) => self.state = true,
            _ => {}
        }
    }
}

/// The variable by which MariaDB tells of GTIDs.
const LAST_GTID: &[u8] = b"last_gtid";

impl Session {
    /// Abilities of the session's connections: what the client has, and that their servers tell of changes.
    pub(super) fn abilities(&self) -> Capabilities {
        if self.shares {
            self.capabilities | Capabilities::SESSION_TRACK
        } else {
            self.capabilities
        }
    }

    /// What the connection should tell of for the command at the front. A session that has settings of its own gets what it
    /// asked for, and who looks at the settings finds the client's.
    fn wanted_tracking(&self, known: &super::Known) -> Tracking {
        let may = self.shares && known.capabilities.contains(Capabilities::SESSION_TRACK);
        if self.attempt.settings == Settings::AsTheyAre {
            return known.tracking;
        }
        if !may || self.state.tracks_itself() || self.attempt.settings == Settings::Shown {
            return Tracking::Own;
        }
        let has = matches!(known.tracking, Tracking::Full { gtids: true });
        Tracking::Full {
            gtids: has || (self.tracked.follows && known.server == Server::MySql),
        }
    }

    /// Whether the connection tells of what it should.
    pub(super) fn tracks_as_wanted(&self, known: &super::Known) -> bool {
        known.tracking == Tracking::Refused
            || known.tracking == self.wanted_tracking(known) && !self.is_to_be_asked(known)
    }

    fn is_to_be_asked(&self, known: &super::Known) -> bool {
        self.shares
            && !known.was_asked
            && self.attempt.settings != Settings::AsTheyAre
            && known.capabilities.contains(Capabilities::SESSION_TRACK)
    }

    /// Says what is to be said before the session's own settings are brought.
    pub(super) fn say_untrack(&mut self, role: Role, said: &mut VecDeque<Said>, out: &mut Outputs) {
        let Some(known) = self.link(role).known() else {
            return;
        };
        let capabilities = known.capabilities;
        let stops = matches!(known.tracking, Tracking::Full { .. })
            && self.wanted_tracking(known) == Tracking::Own;
        if !stops {
            return;
        }
        write_query(&mut out.arena, capabilities, UNTRACK);
        said.push_back(Said::State);
        if let Some(known) = self.link_mut(role).known_mut() {
            if known.tracking == (Tracking::Full { gtids: true }) {
                const STOP: &[u8] = b"SET SESSION session_track_gtids = DEFAULT";
                write_query(&mut out.arena, capabilities, STOP);
                said.push_back(Said::State);
            }
            known.tracking = Tracking::Own;
        }
    }

    /// Asks what the connection tells everybody, and how, while it is as its log-in left it.
    pub(super) fn say_ask(&mut self, role: Role, said: &mut VecDeque<Said>, out: &mut Outputs) {
        let Some(known) = self.link(role).known() else {
            return;
        };
        if !self.is_to_be_asked(known) || !known.history.entries().is_empty() {
            return;
        }
        let is_mariadb = known.server == Server::MariaDb;
        let capabilities = known.capabilities;
        write_query(&mut out.arena, capabilities, ASK);
        said.push_back(Said::Shown);
        if is_mariadb {
            write_query(&mut out.arena, capabilities, ORDER_MARIADB);
            said.push_back(Said::Order);
        }
        if let Some(known) = self.link_mut(role).known_mut() {
            known.was_asked = true;
        }
    }

    /// Says what makes the connection tell of all changes: last, so that it tells of nothing that Atlas itself says before it.
    pub(super) fn say_track(&mut self, role: Role, said: &mut VecDeque<Said>, out: &mut Outputs) {
        let Some(known) = self.link(role).known() else {
            return;
        };
        if self.tracks_as_wanted(known) {
            return;
        }
        let (capabilities, server) = (known.capabilities, known.server);
        let wanted = self.wanted_tracking(known);
        if !known.was_asked {
            // No session has settings of its own on it by now.
            write_query(&mut out.arena, capabilities, ASK);
            said.push_back(Said::Shown);
        }
        if known.tracking == Tracking::Own {
            let text = match server {
                Server::MySql => TRACK_MYSQL,
                Server::MariaDb => TRACK_MARIADB,
            };
            write_query(&mut out.arena, capabilities, text);
            said.push_back(Said::Track);
            if server == Server::MySql {
                write_query(&mut out.arena, capabilities, CLEAR_MYSQL);
                said.push_back(Said::Track);
            }
        }
        if wanted == (Tracking::Full { gtids: true }) {
            write_query(&mut out.arena, capabilities, TRACK_GTIDS);
            said.push_back(Said::Track);
        }
        if let Some(known) = self.link_mut(role).known_mut() {
            known.tracking = wanted;
            known.was_asked = true;
        }
    }

    /// Whether servers tell clients of the schema: they do unless their settings say otherwise.
    pub(super) fn is_told_of_schema(&self) -> bool {
        let mut shown = Role::BOTH
            .into_iter()
            .filter_map(|role| self.link(role).known()?.shown.as_ref());
        shown.all(|shown| shown.schema)
    }

    /// The answer to what [`Self::say_ask`] said first.
    pub(super) fn note_shown(&mut self, role: Role, answer: &[u8]) {
        if let Some(known) = self.link_mut(role).known_mut() {
            known.shown = Shown::read(answer);
        }
    }

    /// The answer to what it said second.
    pub(super) fn note_order(&mut self, role: Role, answer: &[u8]) {
        let known = self.link_mut(role).known_mut();
        if let Some(shown) = known.and_then(|known| known.shown.as_mut()) {
            shown.read_order(answer);
        }
    }

    /// The server would not.
    pub(super) fn note_track_refused(&mut self, role: Role) {
        if let Some(known) = self.link_mut(role).known_mut() {
            known.tracking = Tracking::Refused;
        }
    }

    /// Whether replies on the connection tell of more than the client is to know.
    pub(super) fn tells_more(&self, role: Role) -> bool {
        let Some(known) = self.link(role).known() else {
            return false;
        };
        let sees = self.capabilities.contains(Capabilities::SESSION_TRACK);
        matches!(known.tracking, Tracking::Full { .. })
            || (!sees && known.capabilities.contains(Capabilities::SESSION_TRACK))
    }

    /// Notes what a packet with changes tells of and leaves in it what is the client's. Gives the packet's length.
    pub(super) fn take_changes(&mut self, role: Role, packet: &mut [u8]) -> usize {
        let group = self.moved_to;
        let Some(known) = self.links[role as usize].known() else {
            return packet.len();
        };
        let tracks = matches!(known.tracking, Tracking::Full { .. });
        let sees = self.capabilities.contains(Capabilities::SESSION_TRACK);
        if (tracks || !sees) && hide_change(packet) {
            return packet.len();
        }
        let shown = known.shown.as_ref().filter(|_| sees);
        let Tracked {
            told,
            writes,
            follows,
        } = &mut self.tracked;
        let server = known.server;
        let before = told.variables.len();
        let had_state = std::mem::take(&mut told.state);
        let len = keep_changes(packet, sees, &mut |change| {
            if tracks {
                told.note(change);
                let latest = match change {
                    StateChange::Gtids(set) => Some(set),
                    StateChange::Variable { name, value } if name == LAST_GTID => Some(value),
                    _ => None,
                };
                if let Some(latest) = latest.filter(|_| *follows && role == Role::Primary) {
                    writes.note(group, server, latest);
                }
            }
            match (tracks, shown) {
                (true, shown) => shown.and_then(|shown| shown.place(change)),
                // What it tells everybody.
                (false, _) => sees.then_some(0),
            }
        });
        if !told.state {
            // MariaDB tells so of what SET STATEMENT gives back.
            told.variables.truncate(before);
        }
        told.state |= had_state;
        len
    }

    /// Whether the account's reads follow its writes by GTID.
    pub(super) fn follows_gtids(causal: Causal) -> bool {
        matches!(causal, Causal::Session(_))
    }
}

/// Whether a statement may set or show the settings of session tracking.
fn names_tracking(sql: &[u8], kind: Kind, traits: Traits) -> bool {
    let looks = match kind {
        Kind::Show => return has_word(sql, b"variables") || has_word(sql, b"session_track"),
        Kind::Set | Kind::Batch => true,
        _ => traits.contains(Traits::SERVER_STATE) || memchr::memchr(b'@', sql).is_some(),
    };
    looks
        && (has_word(sql, b"session_track")
            || traits.contains(Traits::SERVER_STATE) && has_word(sql, b"variables"))
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_look_at_the_settings_are_known() {
        let names = |sql: &[u8], kind, traits| names_tracking(sql, kind, traits);
        assert!(names(
            b"SELECT @@SESSION.Session_Track_Schema",
            Kind::Read,
            Traits::NONE
        ));
        assert!(names(b"SHOW SESSION VARIABLES", Kind::Show, Traits::NONE));
        assert!(names(
            b"SET session_track_gtids=OFF",
            Kind::Set,
            Traits::EFFECTS
        ));
        let of_server = Traits::SERVER_STATE;
        let sql = b"SELECT * FROM performance_schema.session_variables";
        assert!(names(sql, Kind::Read, of_server));
        assert!(!names(b"SELECT variables FROM t", Kind::Read, Traits::NONE));
        assert!(!names(
            b"SELECT 'session_track' FROM t",
            Kind::Read,
            Traits::NONE
        ));
    }

    #[test]
    fn a_client_is_shown_what_everybody_is_shown() {
        let shown = Shown {
            schema: true,
            state: false,
            variables: (*b"autocommit, time_zone").into(),
            order: vec![(*b"time_zone").into(), (*b"autocommit").into()],
        };
        let variable = |name| StateChange::Variable { name, value: b"x" };
        assert_eq!(shown.place(variable(b"time_zone")), Some(0));
        assert_eq!(shown.place(variable(b"autocommit")), Some(1));
        assert_eq!(shown.place(variable(b"sql_mode")), None);
        assert_eq!(shown.place(variable(b"last_gtid")), None);
        assert_eq!(shown.place(StateChange::Schema(b"x")), Some(0xff));
        assert_eq!(shown.place(StateChange::StateChanged(true)), None);
    }
}
