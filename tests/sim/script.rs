//! What clients do: commands picked by chance, most of them sensible for the session as it stands.

use atlas::wire::Capabilities;

use crate::command::{Batch, Kind, Parameter, execute_body};
use crate::memory::CHARSETS;
use crate::rng::Rng;

/// What a script may look at.
#[derive(Debug)]
pub struct View<'a> {
    pub rng: &'a mut Rng,
    pub next_tag: &'a mut u32,
    pub caps: Capabilities,
    /// The client's place among all clients.
    pub place: usize,
    /// Prepared statements that the client may use: id, number of parameters, and types that were sent last.
    pub statements: &'a [(u32, u16, Option<Vec<bool>>)],
    /// Ids of other clients, by place.
    pub others: &'a [(usize, u32)],
    /// Nothing is under way, so the types that were sent last are known.
    pub types_are_known: bool,
    pub user: &'a str,
    pub plugin: &'a str,
}

impl View<'_> {
    fn tag(&mut self) -> u32 {
        *self.next_tag += 1;
        *self.next_tag
    }

    fn database(&mut self) -> String {
        match self.rng.below(4) {
            0 => "t1".to_owned(),
            1 => format!("d{}b", self.place),
            _ => format!("d{}a", self.place),
        }
    }

    fn temporary(&mut self) -> String {
        let name = self.rng.pick(&["tmp1", "tmp2", "tmp3"]);
        if self.rng.one_in(4) {
            format!("d{}b.{name}", self.place)
        } else {
            name.to_owned()
        }
    }

    /// The next commands.
    pub fn next(&mut self) -> Batch {
        let mut batch = Batch::default();
        match self.rng.below(100) {
            0..62 => self.text(&mut batch),
            62..80 => self.prepared(&mut batch),
            80..84 => batch.simple(Kind::Ping),
            84..87 => {
                let name = self.database();
                batch.simple(Kind::InitDb(name));
            }
            87..89 => {
                let name = self.rng.pick(&["t", "nosuch"]).to_owned();
                batch.simple(Kind::FieldList(name));
            }
            89 => batch.simple(Kind::Statistics),
            90 => batch.simple(Kind::ProcessInfo),
            91 => {
                let on = !self.rng.one_in(3);
                batch.simple(Kind::SetOption(on));
            }
            92 | 93 => batch.simple(Kind::Reset),
            94 => batch.simple(Kind::Debug),
            95 => {
                let kind = if self.rng.one_in(2) {
                    Kind::Unknown
                } else {
                    Kind::Empty
                };
                batch.simple(kind);
            }
            96 => self.change_user(&mut batch),
            97 => match self.rng.below(self.others.len() * 4 + 1) {
                place if place < self.others.len() => {
                    let (place, id) = self.others[place];
                    batch.kill(place, id);
                }
                _ => batch.kill(usize::MAX, 99_999),
            },
            98 => batch.local(self.caps, b"SHOW LAST ROUTE", Kind::LastRoute),
            _ => batch.local(
                self.caps,
                b"EXPLAIN ROUTE SELECT 1 FROM t",
                Kind::ExplainRoute,
            ),
        }
        batch
    }

    fn change_user(&mut self, batch: &mut Batch) {
        if !self.caps.contains(Capabilities::PLUGIN_AUTH) {
            return batch.simple(Kind::Ping);
        }
        let schema = self.rng.one_in(2).then(|| self.database());
        let kind = Kind::ChangeUser {
            password_is_right: !self.rng.one_in(6),
            schema,
            charset: CHARSETS[self.rng.below(CHARSETS.len())].1,
        };
        let (user, plugin) = (self.user, self.plugin);
        batch.change_user(self.caps, user, plugin, kind);
    }

    fn text(&mut self, batch: &mut Batch) {
        let mut text = Vec::new();
        let mut tags = Vec::new();
        let count = match self.rng.below(12) {
            0 => 2,
            1 => 3,
            _ => 1,
        };
        for index in 0..count {
            if index > 0 {
                text.extend_from_slice(b"; ");
            }
            let tag = self.tag();
            tags.push(tag);
            text.extend_from_slice(format!("/* tag:{tag} */ ").as_bytes());
            let statement = self.statement(count > 1);
            text.extend_from_slice(&statement);
        }
        if self.rng.one_in(6) {
            text.push(b';');
        }
        let attribute = self.rng.one_in(3);
        batch.text(self.caps, &text, tags, attribute);
    }

    fn statement(&mut self, is_of_batch: bool) -> Vec<u8> {
        match self.rng.below(100) {
            0..30 => self.read().into(),
            30..34 => self.tricky_read(),
            34..38 if !is_of_batch => self.diagnostic().into(),
            34..48 => self.write().into(),
            48..62 => self.transaction().into(),
            62..82 => self.setting(),
            82..90 => self.temporary_table(),
            90..93 => self.database_statement(),
            93..96 => self.lock().into(),
            _ => self.named().into(),
        }
    }

    fn read(&mut self) -> &'static str {
        self.rng.pick(&[
            "SELECT 1 FROM t",
            "SELECT 1 FROM t",
            "select 'x' from three",
            "SELECT 1 FROM many",
            "SELECT 1 FROM none",
            "SELECT 1 FROM late",
            "SELECT 1",
            "SELECT @a",
            "SELECT @b, @a FROM t",
            "SELECT @c, @d",
            "SELECT @@time_zone",
            "SELECT @@sql_mode, @@wait_timeout FROM t",
            "SELECT DATABASE()",
            "SELECT 1 FROM nosuch",
            "SELECT bogus FROM t",
            "SELECT 1 FROM tmp1",
            "SELECT 1 FROM tmp2",
        ])
    }

    /// Reads or locking reads, as the session's quotes and characters have it.
    fn tricky_read(&mut self) -> Vec<u8> {
        self.rng
            .pick::<[u8]>(&[
                &b"SELECT 'a\\' FROM t FOR UPDATE -- '"[..],
                b"SELECT '\xbf\x5c' FROM t FOR UPDATE -- '",
                b"SELECT \"x\" FROM t",
                b"SELECT 'it''s', \"a 'b\" FROM t FOR UPDATE",
                b"SELECT 1 FROM t FOR UPDATE",
                b"SELECT 'x' FROM t FOR SHARE",
                b"SELECT 'for update' FROM t -- for update",
            ])
            .to_vec()
    }

    fn diagnostic(&mut self) -> &'static str {
        self.rng.pick(&[
            "SHOW WARNINGS",
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT()",
            "SELECT LAST_INSERT_ID()",
            "SET @n = FOUND_ROWS()",
        ])
    }

    fn write(&mut self) -> String {
        if self.rng.one_in(10) {
            return "LOAD DATA LOCAL INFILE 'file' INTO TABLE t".to_owned();
        }
        if self.rng.one_in(400) {
            return format!("INSERT INTO t VALUES ('{}')", "x".repeat(1_200_000));
        }
        if self.rng.one_in(30) {
            return "INSERT INTO audited VALUES (1)".to_owned();
        }
        self.rng
            .pick(&[
                "INSERT INTO t(v) VALUES (1)",
                "insert into t(v) values (1)",
                "UPDATE t JOIN t AS u SET t.v = 2",
                "DELETE FROM t WHERE v = 1",
                "REPLACE INTO t VALUES (1)",
            ])
            .to_owned()
    }

    fn transaction(&mut self) -> &'static str {
        self.rng.pick(&[
            "BEGIN",
            "BEGIN",
            "START TRANSACTION",
            "START TRANSACTION READ ONLY",
            "COMMIT",
            "COMMIT",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT s",
            "ROLLBACK TO s",
            "SET autocommit = 0",
            "SET autocommit = 1",
            "SET @@autocommit = 1",
            "SET TRANSACTION READ ONLY",
            "SET TRANSACTION READ WRITE",
            "SET SESSION TRANSACTION READ WRITE",
            "SET SESSION TRANSACTION READ ONLY",
            "DO 1",
        ])
    }

    fn setting(&mut self) -> Vec<u8> {
        let number = self.rng.below(1000);
        match self.rng.below(30) {
            0..6 => format!("SET @{} = {number}", self.rng.pick(&["a", "b", "c", "A"])).into(),
            6 => format!("SET @a = 'v{number}', @b = {number}").into(),
            7 => b"SET @b = @a".to_vec(),
            8 => b"SET @a = 5, @b = @a".to_vec(),
            9 => b"SET @c = CONCAT(@a, '-', @b)".to_vec(),
            10 => b"SET @d = '\xc3\xa9'".to_vec(),
            11 => b"SET @d = \"q\"".to_vec(),
            12 => b"SET @d = 'a\\'b'".to_vec(),
            13 => b"SET @c = @@sql_mode".to_vec(),
            14 => format!("SET time_zone = '+0{}:00'", number % 10).into(),
            15 => format!("SET SESSION wait_timeout = {number}, @@session.sql_select_limit = 7")
                .into(),
            16 => b"SET wait_timeout = DEFAULT".to_vec(),
            17 => b"SET sql_mode = 'ANSI_QUOTES'".to_vec(),
            18 => b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'".to_vec(),
            19 | 20 => b"SET sql_mode = DEFAULT".to_vec(),
            21 => b"SET sql_mode = CONCAT(@@sql_mode, ',MORE'), time_zone = '+01:00'".to_vec(),
            22 => b"SET sql_mode = (SELECT CONCAT(@@sql_mode, ',X')), NAMES latin1".to_vec(),
            23 => format!("SET NAMES {}", CHARSETS[self.rng.below(CHARSETS.len())].0).into(),
            24 => b"SET NAMES utf8mb4".to_vec(),
            25 => b"SET NAMES utf8mb4 COLLATE utf8mb4_bin".to_vec(),
            26 => format!(
                "SET CHARACTER SET {}",
                self.rng.pick(&["latin1", "'utf8mb4'"])
            )
            .into(),
            27 => b"SET NAMES latin1, @d = '\xc3\xa9'".to_vec(),
            28 => self
                .rng
                .pick::<[u8]>(&[
                    &b"SET @a = 1, nosuch_variable = 2"[..],
                    b"SET @c = DATABASE()",
                    b"SET sql_mode = 'ANSI_QUOTES', @d = \"q\"",
                    b"SET time_zone = '+02:00', @c = @@time_zone",
                ])
                .to_vec(),
            _ => b"SELECT @a := 5".to_vec(),
        }
    }

    fn temporary_table(&mut self) -> Vec<u8> {
        let name = self.temporary();
        match self.rng.below(8) {
            0..3 => format!("CREATE TEMPORARY TABLE {name} (i INT)").into(),
            3 | 4 => format!("DROP TEMPORARY TABLE {name}").into(),
            5 => format!("DROP TABLE {name}").into(),
            6 => format!("DROP TABLE IF EXISTS {name}").into(),
            _ => {
                let to = self.temporary();
                format!("ALTER TABLE {name} RENAME TO {to}").into()
            }
        }
    }

    fn database_statement(&mut self) -> Vec<u8> {
        let name = format!("d{}b", self.place);
        match self.rng.below(6) {
            0 => format!("CREATE DATABASE {name}").into(),
            1 => format!("DROP DATABASE {name}").into(),
            2 => format!("CREATE TABLE {name}.tmp1 (i INT)").into(),
            _ => format!("USE {}", self.database()).into(),
        }
    }

    fn lock(&mut self) -> &'static str {
        self.rng.pick(&[
            "LOCK TABLES t READ",
            "UNLOCK TABLES",
            "UNLOCK TABLES",
            "SELECT GET_LOCK('l', 0)",
            "SELECT RELEASE_LOCK('l')",
            "CALL p()",
            // Behind rows an EOF packet tells of nothing.
            if self.caps.contains(Capabilities::DEPRECATE_EOF) {
                "SELECT stored()"
            } else {
                "CALL p()"
            },
        ])
    }

    fn named(&mut self) -> &'static str {
        self.rng.pick(&[
            "PREPARE p FROM 'SET @a = 77'",
            "PREPARE p FROM 'SELECT 1 FROM t'",
            "PREPARE p FROM 'BEGIN'",
            "EXECUTE p",
            "EXECUTE p",
            "DEALLOCATE PREPARE p",
            "this is no statement",
        ])
    }

    fn prepared(&mut self, batch: &mut Batch) {
        let known = self.rng.below(self.statements.len().max(1));
        let Some((id, params, types)) = self.statements.get(known).cloned() else {
            return self.prepare(batch);
        };
        let id = if self.rng.one_in(60) { 7777 } else { id };
        match self.rng.below(16) {
            0..4 => self.prepare(batch),
            4 => batch.simple(Kind::Close(id)),
            5 => batch.simple(Kind::StmtReset(id)),
            6 => batch.simple(Kind::Fetch(id, 2)),
            choice => {
                let mut parameters = Vec::new();
                let never_typed = types.is_none();
                let leave_out = types.filter(|_| self.types_are_known && self.rng.one_in(2));
                for index in 0..params {
                    let as_number = match &leave_out {
                        Some(types) => types[usize::from(index)],
                        None => self.rng.one_in(2),
                    };
                    parameters.push(if as_number {
                        Parameter::Number(self.rng.next() % 1000)
                    } else if choice == 7 {
                        let data = format!("data{}", self.rng.below(1000)).into_bytes();
                        batch.simple(Kind::LongData(id, index, data));
                        Parameter::Long
                    } else if self.rng.one_in(9) {
                        Parameter::Null
                    } else {
                        Parameter::Text(format!("p{}", self.rng.below(1000)))
                    });
                }
                let forgets_types = never_typed && self.types_are_known && self.rng.one_in(40);
                let with_types = leave_out.is_none() && !forgets_types;
                let flags = u8::from(choice == 8);
                let body = execute_body(self.caps, id, flags, &parameters, with_types);
                batch.execute(id, body, 0);
            }
        }
    }

    fn prepare(&mut self, batch: &mut Batch) {
        let tag = self.tag();
        let text = self.rng.pick(&[
            "SELECT ? FROM t",
            "SELECT ? FROM t",
            "SELECT ?, ? FROM three",
            "SELECT ?, @a",
            "SELECT 1 FROM many",
            "SELECT 1 FROM tmp1",
            "SELECT ? FROM t FOR UPDATE",
            "INSERT INTO t(v) VALUES (?)",
            "UPDATE t JOIN t AS u SET t.v = 3",
            "INSERT INTO audited VALUES (?)",
            "SET @a = ?",
            "SET @b = 2",
            "SET time_zone = '+03:00'",
            "BEGIN",
            "COMMIT",
            "SHOW WARNINGS",
            "SELECT FOUND_ROWS()",
            "SELECT LAST_INSERT_ID()",
            "SELECT \"x\" FROM t",
            "this is no statement",
            "CREATE TEMPORARY TABLE tmp1 (i INT)",
        ]);
        batch.prepare(format!("/* tag:{tag} */ {text}").as_bytes(), tag);
    }
}
