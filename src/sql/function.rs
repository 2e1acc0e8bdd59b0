//! The built-in functions of MySQL and MariaDB, and the other words that may stand before `(` in a
//! query without calling anything.
//!
//! Whatever else stands before `(` is a stored or loadable function, which may write. The lists were
//! made by asking MySQL 9.7.4 and MariaDB 10.11.19 for every word in their programs: a stored function
//! of that name was made, and a word is listed if `word(…)` does not reach it. The versions are from
//! the manuals. (MariaDB's POINT with other than two arguments does reach it.)

use super::{Dialect, Server};

/// What a call tells about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Arguments and session state alone decide its value, and it changes nothing.
    Pure,
    /// As `Pure`, but its value differs from call to call or from server to server.
    Volatile,
    /// The session's last insert id.
    LastInsertId,
    /// A lock that belongs to a connection.
    Lock,
    /// A sequence moves.
    Sequence,
    /// The connection's id.
    ConnectionId,
    /// What the previous statement left on its connection.
    Diagnostics,
    /// What the last statement with rows left on its connection.
    FoundRows,
    /// One server's state, or a wait for it.
    ServerState,
}

/// From which version on, and up to which, a server has a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lives {
    since: u32,
    until: u32,
}

const EVER: Lives = since(0);
const NEVER: Lives = since(u32::MAX);

const fn since(since: u32) -> Lives {
    Lives {
        since,
        until: u32::MAX,
    }
}

impl Lives {
    const fn at(self, version: u32) -> bool {
        // An unknown version has only what every version has.
        self.since <= version && (self.until == u32::MAX || 0 < version && version < self.until)
    }
}

/// Functions that share everything but the name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    mysql: Lives,
    mariadb: Lives,
    /// On these servers the name is a function only if `(` follows at once; behind a blank it is an
    /// ordinary name (unless sql_mode has IGNORE_SPACE), and so may be a stored function.
    tight: &'static [Server],
    pub(super) class: Class,
    /// In lower case, separated by blanks.
    pub(super) names: &'static str,
}

impl Group {
    /// True if a name of this group before `(` is no stored function.
    pub(super) fn is_built_in(&self, d: &Dialect, blank_before_paren: bool) -> bool {
        let lives = match d.server {
            Server::MySql => self.mysql,
            Server::MariaDb => self.mariadb,
        };
        lives.at(d.version) && !(blank_before_paren && self.tight.contains(&d.server))
    }
}

const BOTH: &[Server] = &[Server::MySql, Server::MariaDb];

const fn pure(mysql: Lives, mariadb: Lives, names: &'static str) -> Group {
    Group {
        mysql,
        mariadb,
        tight: &[],
        class: Class::Pure,
        names,
    }
}

const fn special(class: Class, mysql: Lives, mariadb: Lives, names: &'static str) -> Group {
    Group {
        mysql,
        mariadb,
        tight: &[],
        class,
        names,
    }
}

const fn tight(
    servers: &'static [Server],
    class: Class,
    mysql: Lives,
    mariadb: Lives,
    names: &'static str,
) -> Group {
    Group {
        mysql,
        mariadb,
        tight: servers,
        class,
        names,
    }
}

/// Every group. A name is in one of them.
pub(super) const GROUPS: &[Group] = &[
    // Operators, clauses and types.
    pure(
        EVER,
        EVER,
        "all and any as asc between bigint binary by case char character collate convert cross dec decimal default \
         desc distinct distinctrow div double else exists fixed float from group having if ignore in index inner int \
         integer interval into is join key left like limit match mediumint mod national natural nchar not null \
         numeric nvarchar on or order outer partition procedure range real regexp return right rlike row rows select \
         set smallint some straight_join table then tinyint to union unique use using value values varbinary varchar \
         varcharacter when where while with xor high_priority sql_big_result sql_buffer_result sql_calc_found_rows \
         sql_no_cache sql_small_result",
    ),
    pure(NEVER, EVER, "sql_cache"),
    pure(since(80_000), EVER, "except over"),
    pure(since(80_031), EVER, "intersect"),
    pure(since(80_001), NEVER, "of grouping"),
    pure(since(80_014), NEVER, "lateral"),
    pure(EVER, NEVER, "rollup"),
    // Functions of both.
    pure(
        EVER,
        EVER,
        "abs acos addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg bin bit_count bit_length ceil ceiling \
         char_length character_length charset coalesce coercibility collation compress concat concat_ws contains conv \
         convert_tz cos cot crc32 date date_format datediff day dayname dayofmonth dayofweek dayofyear degrees elt exp \
         export_set extractvalue field find_in_set floor format from_base64 from_days from_unixtime geometrycollection \
         get_format greatest hex hour ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr is_ipv4 \
         is_ipv4_compat is_ipv4_mapped is_ipv6 isnull json_array json_array_append json_array_insert json_contains \
         json_contains_path json_depth json_extract json_insert json_keys json_length json_merge json_object \
         json_quote json_remove json_replace json_search json_set json_type json_unquote json_valid last_day lcase \
         least length linestring ln locate log log10 log2 lower lpad ltrim make_set makedate maketime mbrcontains \
         mbrdisjoint mbrequals mbrintersects mbroverlaps mbrtouches mbrwithin microsecond minute month monthname \
         multilinestring multipoint multipolygon name_const nullif octet_length ord password period_add period_diff pi \
         point polygon pow power quarter quote radians repeat replace reverse round rpad rtrim sec_to_time second sha2 \
         sign sin soundex sqrt st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer st_centroid \
         st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance st_endpoint \
         st_envelope st_equals st_exteriorring st_geomcollfromtext st_geomcollfromwkb st_geometrycollectionfromtext \
         st_geometrycollectionfromwkb st_geometryfromtext st_geometryfromwkb st_geometryn st_geometrytype \
         st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed \
         st_isempty st_issimple st_length st_linefromtext st_linefromwkb st_linestringfromtext st_linestringfromwkb \
         st_mlinefromtext st_mlinefromwkb st_mpointfromtext st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb \
         st_multilinestringfromtext st_multilinestringfromwkb st_multipointfromtext st_multipointfromwkb \
         st_multipolygonfromtext st_multipolygonfromwkb st_numgeometries st_numinteriorrings st_numpoints st_overlaps \
         st_pointfromtext st_pointfromwkb st_pointn st_polyfromtext st_polyfromwkb st_polygonfromtext st_polygonfromwkb \
         st_srid st_startpoint st_symdifference st_touches st_union st_within st_x st_y str_to_date strcmp \
         substring_index subtime tan time time_format time_to_sec timediff timestamp timestampadd timestampdiff \
         to_base64 to_days to_seconds truncate ucase uncompress uncompressed_length unhex updatexml upper week weekday \
         weekofyear weight_string year yearweek",
    ),
    pure(
        since(80_000),
        EVER,
        "last_value regexp_instr regexp_replace regexp_substr",
    ),
    pure(since(80_021), EVER, "json_value"),
    pure(since(80_017), since(100_900), "json_overlaps"),
    pure(since(50_722), EVER, "json_merge_patch json_merge_preserve"),
    pure(since(50_722), since(101_003), "json_pretty"),
    pure(EVER, since(100_500), "st_distance_sphere"),
    pure(
        Lives {
            since: 0,
            until: 90_600,
        },
        EVER,
        "md5 sha sha1",
    ),
    tight(
        BOTH,
        Class::Pure,
        EVER,
        EVER,
        "adddate bit_and bit_or bit_xor cast count date_add date_sub extract group_concat max mid min position std \
         stddev stddev_pop stddev_samp subdate substr substring sum trim var_pop var_samp variance",
    ),
    tight(
        BOTH,
        Class::Pure,
        since(50_722),
        since(100_500),
        "json_arrayagg json_objectagg",
    ),
    tight(
        &[Server::MariaDb],
        Class::Pure,
        since(80_002),
        EVER,
        "cume_dist dense_rank first_value lag lead nth_value ntile percent_rank rank",
    ),
    pure(since(80_002), EVER, "row_number"),
    // Functions of MySQL.
    pure(
        EVER,
        NEVER,
        "any_value gtid_subset gtid_subtract mbrcoveredby mbrcovers st_buffer_strategy st_geohash st_geomcollfromtxt \
         st_isvalid st_latfromgeohash st_longfromgeohash st_makeenvelope st_numinteriorring st_pointfromgeohash \
         st_simplify st_validate validate_password_strength",
    ),
    pure(since(50_722), NEVER, "json_storage_size"),
    // On MariaDB only where a table stands: the classifier sees to it.
    pure(since(80_004), NEVER, "json_table"),
    pure(
        since(80_004),
        NEVER,
        "bin_to_uuid geomcollection icu_version is_uuid json_storage_free regexp_like roles_graphml st_swapxy \
         statement_digest statement_digest_text uuid_to_bin",
    ),
    pure(
        since(80_013),
        NEVER,
        "st_latitude st_longitude st_transform",
    ),
    pure(since(80_017), since(110_400), "json_schema_valid"),
    pure(
        since(80_017),
        NEVER,
        "format_pico_time json_schema_validation_report",
    ),
    pure(since(80_017), since(110_800), "format_bytes"),
    pure(
        since(80_024),
        NEVER,
        "st_frechetdistance st_hausdorffdistance st_lineinterpolatepoint st_lineinterpolatepoints st_pointatdistance",
    ),
    tight(
        &[Server::MySql],
        Class::Pure,
        since(80_024),
        NEVER,
        "st_collect",
    ),
    pure(
        since(90_000),
        NEVER,
        "from_vector string_to_vector to_vector vector_dim vector_to_string",
    ),
    // Functions of MariaDB.
    pure(
        NEVER,
        EVER,
        "area asbinary astext aswkb aswkt boundary buffer centroid column_add column_check column_create column_delete \
         column_exists column_get column_json column_list convexhull crosses decode decode_histogram dimension disjoint \
         encode endpoint envelope equals exteriorring geomcollfromtext geomcollfromwkb geometrycollectionfromtext \
         geometrycollectionfromwkb geometryfromtext geometryfromwkb geometryn geometrytype geomfromtext geomfromwkb \
         glength interiorringn intersects isclosed isempty isring issimple json_compact json_detailed json_exists \
         json_loose json_query linefromtext linefromwkb linestringfromtext linestringfromwkb mbrequal mlinefromtext \
         mlinefromwkb mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb multilinestringfromtext \
         multilinestringfromwkb multipointfromtext multipointfromwkb multipolygonfromtext multipolygonfromwkb \
         numgeometries numinteriorrings numpoints old_password overlaps pointfromtext pointfromwkb pointn pointonsurface \
         polyfromtext polyfromwkb polygonfromtext polygonfromwkb st_boundary st_isring st_pointonsurface st_relate \
         startpoint touches within x y",
    ),
    pure(
        NEVER,
        Lives {
            since: 0,
            until: 130_000,
        },
        "des_decrypt des_encrypt",
    ),
    pure(
        NEVER,
        since(100_303),
        "chr concat_operator_oracle decode_oracle lengthb lpad_oracle ltrim_oracle nvl nvl2 replace_oracle rpad_oracle \
         rtrim_oracle substr_oracle",
    ),
    tight(
        &[Server::MariaDb],
        Class::Pure,
        NEVER,
        since(100_303),
        "median percentile_cont percentile_disc trim_oracle",
    ),
    pure(NEVER, since(100_603), "add_months rownum to_char"),
    pure(
        NEVER,
        since(100_703),
        "json_equals json_normalize natural_sort_key sformat",
    ),
    pure(NEVER, since(100_800), "crc32c"),
    pure(
        NEVER,
        since(110_400),
        "json_array_intersect json_key_value json_object_filter_keys json_object_to_array kdf",
    ),
    pure(
        NEVER,
        since(110_800),
        "vec_distance vec_distance_cosine vec_distance_euclidean vec_fromtext vec_totext",
    ),
    // Values that another call or another server would not give.
    special(
        Class::Volatile,
        EVER,
        EVER,
        "benchmark current_date current_time current_timestamp current_user database load_file localtime \
         localtimestamp rand schema sleep unix_timestamp user utc_date utc_time utc_timestamp uuid uuid_short version",
    ),
    special(Class::Volatile, since(80_000), EVER, "current_role"),
    special(Class::Volatile, EVER, since(101_000), "random_bytes"),
    special(Class::Volatile, NEVER, EVER, "encrypt"),
    special(Class::Volatile, NEVER, since(100_603), "sys_guid"),
    special(Class::Volatile, NEVER, since(110_800), "uuid_v4 uuid_v7"),
    tight(
        BOTH,
        Class::Volatile,
        EVER,
        EVER,
        "curdate curtime now session_user system_user",
    ),
    tight(&[Server::MySql], Class::Volatile, EVER, EVER, "sysdate"),
    // Functions that bind a statement to a connection or a server. Their versions do not matter: an
    // unknown function goes the same way.
    special(Class::LastInsertId, EVER, EVER, "last_insert_id"),
    special(
        Class::Lock,
        EVER,
        EVER,
        "get_lock is_free_lock is_used_lock release_all_locks release_lock",
    ),
    special(Class::Sequence, NEVER, EVER, "lastval nextval setval"),
    special(Class::ConnectionId, EVER, EVER, "connection_id"),
    special(
        Class::ConnectionId,
        EVER,
        NEVER,
        "ps_current_thread_id ps_thread_id",
    ),
    special(Class::Diagnostics, EVER, EVER, "row_count"),
    special(Class::FoundRows, EVER, EVER, "found_rows"),
    special(
        Class::ServerState,
        EVER,
        EVER,
        "binlog_gtid_pos master_gtid_wait master_pos_wait source_pos_wait wait_for_executed_gtid_set \
         wait_until_sql_thread_after_gtids wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid",
    ),
];

/// Which group a word belongs to in a table of words: its place in `GROUPS` and 1, 0 for none.
pub(super) fn group(index: u16) -> Option<&'static Group> {
    GROUPS.get(usize::from(index).checked_sub(1)?)
}
