//! `[[tables]]` and `[sharding]`. What is placed wrongly is lost, so whatever is ambiguous is an error.

use std::path::PathBuf;

use super::field::Field;
use super::group::GroupConfig;
use super::rule::{RuleAction, RuleConfig};
use super::server::{to_u32, to_usize};
use super::tree::Section;
use super::value;

/// Physical tables that one table may have.
const SHARDS_MAX: u64 = 65_536;

/// Type of a sharding key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// Whole numbers.
    Int,
    /// Texts.
    String,
    /// Dates, `YYYY-MM-DD`.
    Date,
}

/// An end of a range of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Below every key.
    Min,
    /// A number.
    Int(i64),
    /// A text, folded as keys are.
    Text(String),
    /// A day since 1970-01-01.
    Date(i32),
    /// Above every key.
    Max,
}

/// Keys in `[from, to)` and where they are.
#[derive(Clone, Debug)]
pub struct RangeConfig {
    /// First key.
    pub from: Bound,
    /// Key after the last.
    pub to: Bound,
    /// Indices into [`Config::groups`](super::Config::groups).
    pub groups: Vec<usize>,
    /// Tables in each group.
    pub tables: u32,
    /// Number of the first physical table.
    pub first: u32,
}

/// How a key is spread within its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// The key modulo the number of buckets.
    Mod,
    /// CRC-32 of the key's text.
    Crc32,
    /// The original's unsigned 32-bit arithmetic.
    Atlas32,
}

/// What happens to reads without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// They go to every shard.
    Allow,
    /// Only those on a list.
    Listed,
    /// They are refused.
    Deny,
}

/// A sharded table.
#[derive(Clone, Debug)]
pub struct TableConfig {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// The column that decides the shard.
    pub key: String,
    /// Type of that column.
    pub key_type: KeyType,
    /// Where which keys are.
    pub ranges: Vec<RangeConfig>,
    /// How a key is spread within its range.
    pub hash: Hash,
    /// The column that Atlas fills with a snowflake id.
    pub id_column: Option<String>,
    /// What happens to reads without the key.
    pub broadcast: Broadcast,
    /// Whether writes to several shards run as an XA transaction; otherwise they are refused.
    pub multi_shard_xa: bool,
}

/// `[sharding]`.
#[derive(Clone, Debug)]
pub struct ShardingConfig {
    /// Tables present in every group.
    pub global_tables: Vec<String>,
    /// Those that are not named are found.
    pub finds_globals: bool,
    /// Tables that are not among them, whatever is found.
    pub not_global: Vec<String>,
    /// Whether writes to global tables run as an XA transaction over all groups; otherwise they are refused.
    pub global_xa: bool,
    /// The folder in which decisions of writes over several groups are written down.
    pub decision_log: PathBuf,
    /// Shards that one statement asks at a time.
    pub fan_out: usize,
    /// Bound of offset + limit for a merged statement.
    pub merge_rows: u64,
    /// Bytes that one merge may use.
    pub merge_bytes_max: u64,
}

impl TableConfig {
    pub(super) fn read_all(root: &Section<'_>, groups: &[GroupConfig]) -> Vec<Self> {
        let mut tables: Vec<Self> = Vec::new();
        for section in root.sections("tables") {
            let table = Self::read(&section, groups);
            if !table.table.is_empty()
                && tables.iter().any(|other| {
                    other.schema.eq_ignore_ascii_case(&table.schema)
                        && other.table.eq_ignore_ascii_case(&table.table)
                })
            {
                section.error(format!(
                    "table \"{}.{}\" is defined twice",
                    table.schema, table.table
                ));
            }
            tables.push(table);
        }
        tables
    }

    fn read(section: &Section<'_>, groups: &[GroupConfig]) -> Self {
        let name = required(section, "name", "`schema.table`")
            .and_then(|field| field.parse(value::table_name));
        let (schema, table) = name.unwrap_or_default();
        let key_type = section.choice(
            "key_type",
            &[
                ("int", KeyType::Int),
                ("string", KeyType::String),
                ("date", KeyType::Date),
            ],
            KeyType::Int,
        );
        let id = section.section("id");
        id.choice("generator", &[("snowflake", ())], ());
        if id.is_present() && id.get("column").is_none() {
            id.missing("column", "the column that Atlas fills");
        }
        let ranges = read_ranges(section, key_type, groups);
        let hash = section.choice(
            "hash",
            &[
                ("mod", Hash::Mod),
                ("crc32", Hash::Crc32),
                ("atlas32", Hash::Atlas32),
            ],
            Hash::Mod,
        );
        check_hash(section, key_type, hash, &ranges);
        Self {
            schema,
            table,
            key: required(section, "key", "the column that decides the shard")
                .and_then(|field| field.parse(value::schema_name))
                .unwrap_or_default(),
            key_type,
            ranges,
            hash,
            id_column: id
                .get("column")
                .and_then(|field| field.parse(value::schema_name)),
            broadcast: section.choice(
                "broadcast",
                &[
                    ("allow", Broadcast::Allow),
                    ("listed", Broadcast::Listed),
                    ("deny", Broadcast::Deny),
                ],
                Broadcast::Allow,
            ),
            multi_shard_xa: section.choice(
                "multi_shard_writes",
                &[("deny", false), ("xa", true)],
                false,
            ),
        }
    }
}

/// `broadcast = "listed"` needs a list.
pub(super) fn check_listed(root: &Section<'_>, tables: &[TableConfig], rules: &[RuleConfig]) {
    if rules.iter().any(|rule| rule.action == RuleAction::Allow) {
        return;
    }
    for (section, table) in root.sections("tables").iter().zip(tables) {
        if table.broadcast == Broadcast::Listed
            && let Some(field) = section.get("broadcast")
        {
            field.note("no rule has `action = \"allow\"`, which lists statements: it is as `deny`");
        }
    }
}

fn required<'a>(section: &Section<'a>, name: &str, what: &str) -> Option<Field<'a>> {
    let field = section.get(name);
    if field.is_none() {
        section.missing(name, what);
    }
    field
}

fn read_ranges(
    section: &Section<'_>,
    key_type: KeyType,
    groups: &[GroupConfig],
) -> Vec<RangeConfig> {
    let Some(field) = required(section, "ranges", "at least one range") else {
        return Vec::new();
    };
    let mut ranges: Vec<RangeConfig> = Vec::new();
    for item in field.list() {
        let part = item.section();
        let from = part
            .get("from")
            .map_or(Some(Bound::Min), |field| read_bound(&field, key_type));
        let to = part
            .get("to")
            .map_or(Some(Bound::Max), |field| read_bound(&field, key_type));
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        if from >= to {
            part.error("the range is empty: `from` must be below `to`");
        } else if ranges
            .iter()
            .any(|other| from < other.to && other.from < to && other.from < other.to)
        {
            part.error("the range overlaps another one: a range ends before its `to`");
        }
        let names = required(&part, "groups", "the groups that hold the range")
            .map_or_else(Vec::new, |field| field.list());
        if names.is_empty() && part.get("groups").is_some() {
            part.error("the range has no group");
        }
        ranges.push(RangeConfig {
            from,
            to,
            groups: names
                .iter()
                .filter_map(|name| read_group(name, groups))
                .collect(),
            tables: to_u32(part.int("tables", 1..=10_000, 1)),
            first: to_u32(part.int("first", 0..=1_000_000, 0)),
        });
    }
    check_gaps(section, &ranges);
    let shards: u64 = ranges
        .iter()
        .map(|range| range.groups.len() as u64 * u64::from(range.tables))
        .sum();
    if shards > SHARDS_MAX {
        section.error(format!(
            "{shards} physical tables are more than Atlas can keep apart: at most {SHARDS_MAX}"
        ));
    }
    ranges
}

/// A key between two ranges would have no place.
fn check_gaps(section: &Section<'_>, ranges: &[RangeConfig]) {
    let mut order: Vec<&RangeConfig> = ranges.iter().collect();
    order.sort_by(|a, b| a.from.cmp(&b.from));
    for pair in order.windows(2) {
        if let [below, above] = pair
            && below.to < above.from
        {
            section.error(format!(
                "the keys from {} to {} are in no range: one range ends where the next begins",
                below.to, above.from
            ));
        }
    }
}

/// What a hash makes of a key must be clear.
fn check_hash(section: &Section<'_>, key_type: KeyType, hash: Hash, ranges: &[RangeConfig]) {
    let is_hashed = ranges
        .iter()
        .any(|range| range.groups.len() > 1 || range.tables > 1);
    let why = match (key_type, hash) {
        _ if !is_hashed => return,
        (KeyType::String, Hash::Mod) => "a text has no modulus: use `crc32`",
        (KeyType::Date, Hash::Mod | Hash::Atlas32) => "a date is no number: use `crc32`",
        _ => return,
    };
    match section.get("hash") {
        Some(field) => field.error(why),
        None => section.missing("hash", why),
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Min => f.write_str("\"min\""),
            Self::Int(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Date(day) => write!(f, "\"{}\"", super::print_day(*day)),
            Self::Max => f.write_str("\"max\""),
        }
    }
}

fn read_group(field: &Field<'_>, groups: &[GroupConfig]) -> Option<usize> {
    let name = field.string()?;
    let found = groups.iter().position(|group| group.name == name);
    if found.is_none() {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        field.error(format!(
            "there is no group \"{name}\"; the groups are \"{}\"",
            names.join("\", \"")
        ));
    }
    found
}

fn read_bound(field: &Field<'_>, key_type: KeyType) -> Option<Bound> {
    if !field.is_string() {
        if key_type == KeyType::Int {
            return field.int(i64::MIN..=i64::MAX).map(Bound::Int);
        }
        field.error(
            "this key's ends are \"min\", \"max\", or texts in quotes, because its type is not int",
        );
        return None;
    }
    match field.string()? {
        "min" => Some(Bound::Min),
        "max" => Some(Bound::Max),
        _ if key_type == KeyType::Int => {
            field.error(
                "the ends of an int key are \"min\", \"max\", or whole numbers without quotes",
            );
            None
        }
        text if key_type == KeyType::Date => {
            let day = super::day(text.as_bytes());
            if day.is_none() {
                field.error(format!("`{text}` is not a date: write YYYY-MM-DD"));
            }
            day.map(Bound::Date)
        }
        text if text.bytes().all(|b| matches!(b, b' '..=b'~')) => {
            // As keys are placed: without regard to case and to blanks at the end.
            Some(Bound::Text(text.trim_end_matches(' ').to_ascii_lowercase()))
        }
        _ => {
            field.error("text keys are placed by printable ASCII: so are the ends of ranges");
            None
        }
    }
}

impl ShardingConfig {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let names = section
            .get("global_tables")
            .map_or_else(Vec::new, |field| field.one_or_list());
        let (mut global_tables, mut not_global, mut finds_globals) =
            (Vec::new(), Vec::new(), false);
        for field in &names {
            let (list, name) = match field.string() {
                Some("auto") => {
                    finds_globals = true;
                    continue;
                }
                Some(text) => match text.strip_prefix('!') {
                    Some(name) => (&mut not_global, name),
                    None => (&mut global_tables, text),
                },
                None => continue,
            };
            match value::table_name(name) {
                Ok(_) => list.push(name.to_owned()),
                Err(why) => field.error(why),
            }
        }
        if let Some(field) = names
            .first()
            .filter(|_| !finds_globals && !not_global.is_empty())
        {
            field.error(
                "a name behind `!` is left out of what `auto` finds, and `auto` is not in the list",
            );
        }
        Self {
            global_tables,
            finds_globals,
            not_global,
            global_xa: section.choice("global_writes", &[("deny", false), ("xa", true)], false),
            decision_log: section
                .file("decision_log")
                .unwrap_or_else(|| section.path_beside("atlas.decisions")),
            fan_out: to_usize(section.int("fan_out", 1..=1024, 4)),
            merge_rows: section
                .int("merge_rows", 1..=1_000_000_000, 10_000)
                .unsigned_abs(),
            merge_bytes_max: section
                .get("merge_memory")
                .and_then(|field| field.parse(value::size))
                .unwrap_or(64 << 20),
        }
    }
}
