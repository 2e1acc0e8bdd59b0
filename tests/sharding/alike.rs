//! What could lead a statement to the wrong shard, or change the wrong bytes of it: values in every form that servers convert, and
//! statements in every form that they read. Each is held against one server with the whole tables.
//!
//! `values` compares keys with values, `inserts` stores them, `forms` and `listed` read lists of statements.

mod forms;
mod inserts;
mod listed;
mod values;

use crate::common::{Atlas, Bed, Login, Node, Reply, Schema, Wire, config_for};
use crate::stage::all;

/// A sharded table: its columns, and how it is placed.
struct Table {
    name: &'static str,
    columns: &'static str,
    placed: &'static str,
    /// Numbers behind the name of its physical tables in the groups `main` and `s1`; none for its own name.
    parts: [&'static [&'static str]; 2],
    key: &'static str,
}

const HASHED: [&[&str]; 2] = [&["_0", "_1"], &["_2", "_3"]];
const PLAIN: [&[&str]; 2] = [&[""], &[""]];

const TABLES: [Table; 11] = [
    Table {
        name: "n",
        columns: "k BIGINT PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "ranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
        parts: HASHED,
        key: "k",
    },
    Table {
        name: "m",
        columns: "k BIGINT, v INT, w VARCHAR(20), KEY (k)",
        placed: "ranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
        parts: HASHED,
        key: "k",
    },
    Table {
        name: "u",
        columns: "k BIGINT UNSIGNED PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "ranges = [{ to = 2, groups = [\"s1\"] }, { from = 2, to = 9223372036854775807, groups = [\"main\"] }, { from = 9223372036854775807, groups = [\"s1\"] }]",
        parts: PLAIN,
        key: "k",
    },
    Table {
        name: "i",
        columns: "k INT, v INT, w VARCHAR(20)",
        placed: "ranges = [{ to = 0, groups = [\"main\"] }, { from = 0, to = 4, groups = [\"s1\"] }, { from = 4, groups = [\"main\"] }]",
        parts: PLAIN,
        key: "k",
    },
    Table {
        name: "y",
        columns: "k TINYINT UNSIGNED PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "ranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
        parts: HASHED,
        key: "k",
    },
    Table {
        name: "s",
        columns: "k VARCHAR(8) PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "key_type = \"string\"\nhash = \"crc32\"\nranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
        parts: HASHED,
        key: "k",
    },
    Table {
        name: "b",
        columns: "k VARBINARY(8) PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "key_type = \"string\"\nhash = \"crc32\"\nranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]",
        parts: HASHED,
        key: "k",
    },
    Table {
        name: "c",
        columns: "k CHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "key_type = \"string\"\nranges = [{ to = \"b\", groups = [\"main\"] }, { from = \"b\", groups = [\"s1\"] }]",
        parts: PLAIN,
        key: "k",
    },
    Table {
        name: "d",
        columns: "k DATE PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "key_type = \"date\"\nranges = [{ to = \"2024-01-06\", groups = [\"main\"] }, { from = \"2024-01-06\", groups = [\"s1\"] }]",
        parts: PLAIN,
        key: "k",
    },
    Table {
        name: "t",
        columns: "k DATETIME PRIMARY KEY, v INT, w VARCHAR(20)",
        placed: "key_type = \"date\"\nranges = [{ to = \"2024-01-06\", groups = [\"main\"] }, { from = \"2024-01-06\", groups = [\"s1\"] }]",
        parts: PLAIN,
        key: "k",
    },
    Table {
        name: "t3",
        columns: "k DATETIME(3), v INT, w VARCHAR(20)",
        placed: "key_type = \"date\"\nranges = [{ to = \"2024-01-06\", groups = [\"main\"] }, { from = \"2024-01-06\", groups = [\"s1\"] }]",
        parts: PLAIN,
        key: "k",
    },
];

/// Rows that are there, by the name of the table: their keys.
fn keys(table: &str) -> &'static [&'static str] {
    match table {
        "n" | "m" => &[
            "-9223372036854775808",
            "-17",
            "-2",
            "-1",
            "0",
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "15",
            "16",
            "17",
            "255",
            "9007199254740992",
            "9007199254740993",
            "9007199254740994",
            "9223372036854775806",
            "9223372036854775807",
        ],
        "u" => &[
            "0",
            "1",
            "2",
            "3",
            "16",
            "9007199254740993",
            "9223372036854775806",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551614",
            "18446744073709551615",
        ],
        "i" => &[
            "-2147483648",
            "-2",
            "-1",
            "0",
            "1",
            "2",
            "3",
            "4",
            "5",
            "16",
            "17",
            "2147483647",
        ],
        "y" => &["0", "1", "2", "3", "4", "5", "16", "17", "255"],
        "s" => &[
            "''", "'a'", "'B'", "'Ab'", "'12'", "'012'", "'1a'", "' 1'", "'1'", "'-1'", "'1e1'",
            "'x y'", "'it''s'", "'0x61'", "'true'",
        ],
        "b" => &[
            "''", "'a'", "'A'", "'a '", "'12'", "'012'", "'1a'", "' 1'", "'1'", "'-1'", "'1e1'",
            "'x y'", "'it''s'", "'0x61'",
        ],
        "c" => &[
            "''", "'a'", "'A'", "'B'", "'b'", "'12'", "'012'", "'1a'", "' 1'", "'1'", "'-1'",
            "'1e1'", "'x y'", "'it''s'",
        ],
        "d" => &[
            "'2023-12-31'",
            "'2024-01-04'",
            "'2024-01-05'",
            "'2024-01-06'",
            "'2024-01-07'",
            "'2026-01-01'",
        ],
        _ => &[
            "'2023-12-31 23:59:59'",
            "'2024-01-05'",
            "'2024-01-05 10:00:00'",
            "'2024-01-05 23:59:59'",
            "'2024-01-06'",
            "'2024-01-06 00:00:01'",
            "'2024-01-07 12:00:00'",
            "'2026-01-01'",
        ],
    }
}

/// What was tried: how much was answered, what was refused, and what is different.
#[derive(Default)]
struct Outcome {
    answered: usize,
    refused: Vec<String>,
    different: Vec<String>,
}

impl Outcome {
    fn refused(&mut self, what: &str, why: &str) {
        self.refused.push(format!("{what}: {why}"));
    }

    fn compare(&mut self, what: &str, ours: &str, theirs: &str) {
        if ours != theirs {
            let told = format!("{what}\n  ours {ours}\n  theirs {theirs}");
            self.different.push(told);
        }
    }

    /// Says what came of it; nothing may be different.
    fn check(&self, bed: &Bed) {
        for why in &self.refused {
            println!("refused: {why}");
        }
        println!(
            "{:?}: {} answered, {} refused, {} different",
            bed.kind,
            self.answered,
            self.refused.len(),
            self.different.len()
        );
        assert!(self.different.is_empty(), "{}", self.different.join("\n"));
    }
}

struct Field {
    atlas: Atlas,
    schema: Schema,
    whole: Schema,
    second: Wire,
}

impl Field {
    fn new(bed: &Bed) -> Self {
        let field = Self::of(bed, &TABLES);
        field.fill(bed);
        field
    }

    /// With other tables, which are empty.
    fn of(bed: &Bed, tables: &[Table]) -> Self {
        let (schema, whole) = (bed.schema(), bed.schema());
        let (mut primary, mut second) = (bed.root(Node::Primary), bed.root(Node::Second));
        second.ok(&format!("CREATE DATABASE {schema}_b"));
        let mut config = config_for(bed)
            .all_users("group = \"main\"")
            .all_users("read_from = \"primary\"")
            .append(&format!(
                "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_b\" }}",
                bed.address(Node::Second)
            ));
        for table in tables {
            let (name, columns) = (table.name, table.columns);
            primary.ok(&format!("CREATE TABLE {whole}.{name} ({columns})"));
            for part in table.parts[0] {
                primary.ok(&format!("CREATE TABLE {schema}.{name}{part} ({columns})"));
            }
            for part in table.parts[1] {
                second.ok(&format!("CREATE TABLE {schema}_b.{name}{part} ({columns})"));
            }
            config = config.append(&format!(
                "[[tables]]\nname = \"{schema}.{name}\"\nkey = \"{}\"\nmulti_shard_writes = \"xa\"\n{}",
                table.key, table.placed
            ));
        }
        for of in [format!("{schema}"), format!("{whole}")] {
            primary.ok(&format!(
                "CREATE TABLE {of}.p (k BIGINT, v INT, w VARCHAR(20))"
            ));
            primary.ok(&format!(
                "INSERT INTO {of}.p VALUES (1, 1, 'one'), (2, 2, 'two'), (4, 4, 'four')"
            ));
        }
        for (server, of) in [
            (0, whole.to_string()),
            (0, schema.to_string()),
            (1, format!("{schema}_b")),
        ] {
            let server = if server == 0 {
                &mut primary
            } else {
                &mut second
            };
            server.ok(&format!(
                "CREATE TABLE {of}.g (k BIGINT, v INT, w VARCHAR(20))"
            ));
            server.ok(&format!(
                "INSERT INTO {of}.g VALUES (1, 1, 'one'), (2, 2, 'two'), (4, 4, 'four')"
            ));
        }
        bed.wait_replicas();
        let config = config.append(&format!(
            "[sharding]\nglobal_writes = \"xa\"\nglobal_tables = [\"{schema}.g\"]"
        ));
        Self {
            atlas: Atlas::start(config),
            schema,
            whole,
            second,
        }
    }

    fn fill(&self, bed: &Bed) {
        let (mut client, mut direct) = (self.client(), self.direct(bed));
        for table in &TABLES {
            for (at, key) in keys(table.name).iter().enumerate() {
                let sql = format!(
                    "INSERT INTO {} (k, v, w) VALUES ({key}, {}, 'r{at}')",
                    table.name,
                    at % 5
                );
                client.ok(&sql);
                direct.ok(&sql);
            }
        }
    }

    fn client(&self) -> Wire {
        Wire::connect(self.atlas.address(), &Login::plain().schema(&self.schema))
    }

    fn direct(&self, bed: &Bed) -> Wire {
        Wire::connect(
            bed.address(Node::Primary),
            &Login::plain().schema(&self.whole),
        )
    }

    /// What is told of a reply, the rows in any order, with the name of the one schema for the other.
    fn told(&self, reply: &Reply, in_order: bool) -> String {
        let text = match reply.error() {
            None if !reply.rows().is_empty() && !in_order => {
                let mut rows = reply.rows();
                rows.sort();
                format!("{rows:?}")
            }
            _ => all(reply),
        };
        text.replace(self.whole.name(), self.schema.name())
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        let _ = self.second.try_query("SET lock_wait_timeout = 2");
        let _ = self
            .second
            .try_query(&format!("DROP DATABASE IF EXISTS {}_b", self.schema));
    }
}

/// Why Atlas does not run it, if it does not.
fn refusal(reply: &Reply) -> Option<String> {
    let (code, _, text) = reply.error()?;
    (code == 1105 && text.contains("Proxy Warning") || code == 1179).then_some(text)
}
