//! Two groups with sharded tables, and the same tables whole in another schema.
//!
//! Group `main` is the bed's primary with its replicas, group `s1` the second primary, where the schema has another name. `ord` and
//! `item` are spread over the two by the parity of `uid`, `log` has two physical tables in each, `sk` is spread by a text; `zone` is in
//! both groups, `misc` in `main` only.

use atlas::wire::OkPacket;

use crate::common::{Atlas, Bed, Login, Node, Reply, Schema, Wire, config_for};

pub(crate) struct Stage<'b> {
    pub(crate) bed: &'b Bed,
    pub(crate) atlas: Atlas,
    /// The sharded schema.
    pub(crate) schema: Schema,
    /// The schema with the whole tables, on the primary.
    pub(crate) whole: Schema,
}

const ORD: &str = "ord (uid BIGINT PRIMARY KEY, amt INT, code VARCHAR(10), n INT NULL)";
const ITEM: &str = "item (uid BIGINT, sku INT)";
const SK: &str = "sk (k VARCHAR(20) PRIMARY KEY, c INT)";
const ZONE: &str = "zone (id INT, name VARCHAR(40))";
const ORD_ROWS: [(i64, &str); 6] = [
    (1, "(1, 1, 'a', NULL)"),
    (2, "(2, 2, 'A', 5)"),
    (3, "(3, 4, 'b', NULL)"),
    (4, "(4, 8, 'B', 1)"),
    (5, "(5, 5, 'c', 3)"),
    (6, "(6, 5, 'A', NULL)"),
];

fn log(name: &str) -> String {
    format!("{name} (id BIGINT PRIMARY KEY, s VARCHAR(40))")
}

impl<'b> Stage<'b> {
    pub(crate) fn new(bed: &'b Bed, sharing: &str) -> Self {
        Self::with(bed, sharing, "", "")
    }

    /// With more in `[sharding]`, and more sections.
    pub(crate) fn with(bed: &'b Bed, sharing: &str, sharding: &str, more: &str) -> Self {
        Self::made(bed, sharing, sharding, more, "", "")
    }

    /// Writes go to several groups at once.
    pub(crate) fn xa(bed: &'b Bed, sharing: &str) -> Self {
        let each = "multi_shard_writes = \"xa\"";
        Self::made(bed, sharing, "global_writes = \"xa\"", "", each, "")
    }

    /// Reads without the key are for statements that one of these rules allows.
    pub(crate) fn listed(bed: &'b Bed, rules: &str) -> Self {
        Self::made(bed, "transaction", "", rules, "broadcast = \"listed\"", "")
    }

    /// The same with limits for each account.
    pub(crate) fn limited(bed: &'b Bed, limits: &str) -> Self {
        let each = "multi_shard_writes = \"xa\"";
        let limits = format!("limits = {limits}");
        Self::made(bed, "transaction", "", "", each, &limits)
    }

    /// With more for each sharded table, and for each account.
    fn made(
        bed: &'b Bed,
        sharing: &str,
        sharding: &str,
        more: &str,
        each: &str,
        user: &str,
    ) -> Self {
        let (schema, whole) = (bed.schema(), bed.schema());
        let mut primary = bed.root(Node::Primary);
        let mut second = bed.root(Node::Second);
        second.ok(&format!("CREATE DATABASE {schema}_b"));
        for of in [&whole, &schema] {
            for table in [ORD, ITEM, SK, ZONE, "misc (uid BIGINT, k INT)"] {
                primary.ok(&format!("CREATE TABLE {of}.{table}"));
            }
        }
        for table in [ORD, ITEM, SK, ZONE] {
            second.ok(&format!("CREATE TABLE {schema}_b.{table}"));
        }
        primary.ok(&format!("CREATE TABLE {whole}.{}", log("log")));
        for number in 0..2 {
            primary.ok(&format!(
                "CREATE TABLE {schema}.{}",
                log(&format!("log_{number}"))
            ));
            second.ok(&format!(
                "CREATE TABLE {schema}_b.{}",
                log(&format!("log_{}", number + 2))
            ));
        }
        for (uid, row) in ORD_ROWS {
            primary.ok(&format!("INSERT INTO {whole}.ord VALUES {row}"));
            primary.ok(&format!(
                "INSERT INTO {whole}.item VALUES ({uid}, {uid} * 10)"
            ));
            let (server, of) = if uid % 2 == 0 {
                (&mut primary, schema.to_string())
            } else {
                (&mut second, format!("{schema}_b"))
            };
            server.ok(&format!("INSERT INTO {of}.ord VALUES {row}"));
            server.ok(&format!("INSERT INTO {of}.item VALUES ({uid}, {uid} * 10)"));
        }
        for of in [&whole, &schema] {
            primary.ok(&format!(
                "INSERT INTO {of}.zone VALUES (1, 'one'), (2, 'two')"
            ));
            primary.ok(&format!("INSERT INTO {of}.misc VALUES (1, 11), (2, 22)"));
        }
        second.ok(&format!(
            "INSERT INTO {schema}_b.zone VALUES (1, 'one'), (2, 'two')"
        ));
        bed.wait_replicas();
        let globals = if sharding.contains("global_tables") {
            String::new()
        } else {
            format!("global_tables = [\"{schema}.zone\"]")
        };
        let table = |name: &str, rest: &str| {
            format!("[[tables]]\nname = \"{schema}.{name}\"\n{rest}\n{each}\n")
        };
        let config = match user {
            "" => config_for(bed),
            line => config_for(bed).all_users(line),
        };
        let atlas = Atlas::start(
            config
                .all_users("group = \"main\"")
                .all_users("causal = \"session\"")
                .all_users(&format!("sharing = \"{sharing}\""))
                .append(&format!(
                    "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_b\" }}",
                    bed.address(Node::Second)
                ))
                .append(&table("ord", "key = \"uid\"\nranges = [{ groups = [\"main\", \"s1\"] }]"))
                .append(&table("item", "key = \"uid\"\nranges = [{ groups = [\"main\", \"s1\"] }]"))
                .append(&table(
                    "log",
                    "key = \"id\"\nranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
                ))
                .append(&table(
                    "sk",
                    "key = \"k\"\nkey_type = \"string\"\nhash = \"crc32\"\nranges = [{ groups = [\"main\", \"s1\"] }]",
                ))
                .append(&format!("[sharding]\nmerge_memory = \"1MiB\"\n{globals}\n{sharding}"))
                .append(more),
        );
        Self {
            bed,
            atlas,
            schema,
            whole,
        }
    }

    /// A client of Atlas.
    pub(crate) fn client(&self) -> Wire {
        Wire::connect(self.atlas.address(), &Login::plain().schema(&self.schema))
    }

    /// A client of the server that has all.
    pub(crate) fn direct(&self) -> Wire {
        Wire::connect(
            self.bed.address(Node::Primary),
            &Login::plain().schema(&self.whole),
        )
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if let Ok(mut root) = Wire::try_connect(self.bed.address(Node::Second), &Login::root()) {
            let _ = root.try_query("SET lock_wait_timeout = 2");
            let _ = root.try_query(&format!("DROP DATABASE IF EXISTS {}_b", self.schema));
        }
    }
}

/// What a client learns of a reply that must not differ: rows, numbers, or the error's code.
pub(crate) fn seen(reply: &Reply) -> String {
    if let Some((code, _, _)) = reply.error() {
        return format!("error {code}");
    }
    let results = reply.results();
    if results.len() == 1 && results[0].len() == 1 {
        return format!("{:?}", reply.affected_and_insert_id());
    }
    format!("{:?}", reply.rows())
}

/// Numbers, warnings and the line of information; rows; or the whole of an error.
pub(crate) fn all(reply: &Reply) -> String {
    if let Some(error) = reply.error() {
        return format!("{error:?}");
    }
    let results = reply.results();
    if results.len() == 1 && results[0].len() == 1 {
        let ok = OkPacket::parse(&reply.last().payload, reply.capabilities).unwrap();
        let info = String::from_utf8_lossy(ok.info).into_owned();
        return format!("{} {} {} {info}", ok.affected, ok.insert_id, ok.warnings);
    }
    format!("{:?}", reply.rows())
}
