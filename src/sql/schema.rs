//! The servers' own schemas: what in them a replica shows as the primary does.

/// A schema that a server makes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `information_schema`: partly definitions, which are replicated, partly the server's state.
    Information,
    /// `performance_schema`: the server's state.
    Performance,
}

/// Which of them a name is, quoted or not.
#[inline]
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    let name = match name {
        [b'`' | b'"', inside @ .., _] => inside,
        _ => name,
    };
    if name.len() != INFORMATION.len() {
        None
    } else if name.eq_ignore_ascii_case(INFORMATION) {
        Some(Kind::Information)
    } else if name.eq_ignore_ascii_case(b"performance_schema") {
        Some(Kind::Performance)
    } else {
        None
    }
}

const INFORMATION: &[u8] = b"information_schema";

/// True if a table of `information_schema` tells of definitions and not of one server's state.
pub(super) fn is_replicated(table: &[u8]) -> bool {
    DEFINITIONS
        .iter()
        .any(|name| name.eq_ignore_ascii_case(table))
}

const DEFINITIONS: &[&[u8]] = &[
    b"character_sets",
    b"check_constraints",
    b"collation_character_set_applicability",
    b"collations",
    b"column_privileges",
    b"columns",
    b"columns_extensions",
    b"geometry_columns",
    b"key_column_usage",
    b"keywords",
    b"parameters",
    b"partitions",
    b"periods",
    b"referential_constraints",
    b"routines",
    b"schema_privileges",
    b"schemata",
    b"schemata_extensions",
    b"spatial_ref_sys",
    b"sql_functions",
    b"st_geometry_columns",
    b"st_spatial_reference_systems",
    b"statistics",
    b"table_constraints",
    b"table_constraints_extensions",
    b"table_privileges",
    b"tables",
    b"tables_extensions",
    b"triggers",
    b"view_routine_usage",
    b"view_table_usage",
    b"views",
];
