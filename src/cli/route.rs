//! `atlas route`: where a statement would go from a fresh session of an account, and why.

use std::io::{self, BufRead, Write};

use super::RouteArguments;
use crate::config::{Config, GroupConfig, NoReplica, ReadFrom, RuleTarget, UserConfig};
use crate::route::{self, Room, Rules, Sent, Verdict, View};
use crate::session::{Pins, Role};
use crate::shard::{Asked, Placement, Plan};
use crate::sql::{self, Dialect, Kind, Server, Statement, Traits};

/// The session that the statements are thought to come from.
#[derive(Debug)]
pub(super) struct Session<'a> {
    groups: &'a [GroupConfig],
    user: Option<&'a UserConfig>,
    placement: Option<Placement>,
    rules: Option<Rules>,
    schema: Option<&'a [u8]>,
    in_transaction: bool,
}

/// Versions that functions are looked up for: those of the servers that Atlas is tested with.
const VERSIONS: [(Server, u32); 2] = [(Server::MariaDb, 101_119), (Server::MySql, 90_704)];

/// Which server it will be is not known here: a plain read is one that is so in both grammars, of any version. Only functions are
/// those of current servers, since most have come with some version.
fn classify(sql: &[u8]) -> Statement<'_> {
    let [mariadb, mysql] = VERSIONS.map(|(server, _)| sql::classify(sql, &Dialect::new(server, 0)));
    let careful = if mariadb.wants_primary().is_some() {
        mariadb
    } else {
        mysql
    };
    if !careful.traits.contains(Traits::UNKNOWN_FUNCTION) {
        return careful;
    }
    let [mariadb, mysql] =
        VERSIONS.map(|(server, version)| sql::classify(sql, &Dialect::new(server, version)));
    if mariadb.wants_primary().is_some() {
        mariadb
    } else {
        mysql
    }
}

/// The answer about one statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    class: &'static str,
    /// `replica`, `primary`, `local`, `refused` or `sharded`.
    route: &'static str,
    group: String,
    reason: String,
    /// Group and text for each shard.
    shards: Vec<(String, String)>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        config: Option<&'a Config>,
        arguments: &'a RouteArguments,
    ) -> Result<Self, String> {
        let users = config.map_or(&[][..], |config| &config.users);
        let user = match &arguments.user {
            None => users.first(),
            Some(_) if config.is_none() => None,
            Some(name) => Some(
                users
                    .iter()
                    .find(|user| user.name == *name)
                    .ok_or_else(|| format!("there is no account \"{name}\""))?,
            ),
        };
        let groups = config.map_or(&[][..], |config| &config.groups);
        Ok(Self {
            groups,
            user,
            placement: config.and_then(|config| {
                let places: Vec<usize> = (0..config.groups.len()).collect();
                Placement::new(config, &places)
            }),
            rules: config.and_then(|config| Rules::new(&config.rules, config.safety, None)),
            schema: arguments
                .schema
                .as_deref()
                .or_else(|| user?.schema.as_deref())
                .map(str::as_bytes),
            in_transaction: arguments.in_transaction,
        })
    }

    pub(super) fn explain(&self, sql: &[u8]) -> Explanation {
        let statement = classify(sql);
        let group = self.user.and_then(|user| self.groups.get(user.group));
        let mut room = Room::default();
        let verdict = self.judge(sql, &statement, &mut room);
        let (route, reason) = self.route(&statement, group, verdict.target());
        let plain = Explanation {
            class: statement.kind.as_str(),
            route,
            group: group.map_or("main", |group| group.name.as_str()).to_owned(),
            reason: reason.to_owned(),
            shards: Vec::new(),
        };
        if let Some(reason) = verdict.refusal() {
            return Explanation {
                route: "refused",
                reason,
                ..plain
            };
        }
        match self.plan(sql, statement.kind, verdict.allows()) {
            None => plain,
            Some(plan) => self.explain_plan(sql, plain, plan),
        }
    }

    /// Rules about networks are about clients that come over one.
    fn judge(&self, sql: &[u8], statement: &Statement<'_>, room: &mut Room) -> Verdict<'_> {
        let Some(rules) = &self.rules else {
            return Verdict::None;
        };
        let sent = Sent {
            user: self.user.map_or(b"", |user| user.name.as_bytes()),
            schema: self.schema,
            address: None,
            text: sql,
            is_whole: true,
            dialect: &Dialect::new(Server::MariaDb, 0),
        };
        rules.judge(sent, statement, room)
    }

    fn plan(&self, sql: &[u8], kind: Kind, is_listed: bool) -> Option<Plan> {
        if matches!(kind, Kind::ExplainRoute | Kind::ShowLastRoute) {
            return None;
        }
        let d = Dialect::new(Server::MariaDb, 0);
        let home = self.user.map_or(0, |user| user.group);
        let asked = Asked {
            is_listed,
            ..Asked::of(sql, &d, home)
        };
        self.placement.as_ref()?.plan_text(asked, self.schema)
    }

    fn explain_plan(&self, sql: &[u8], plain: Explanation, plan: Plan) -> Explanation {
        let (legs, what) = match plan {
            Plan::Refuse(refused) => {
                return Explanation {
                    route: "refused",
                    reason: refused.reason().to_owned(),
                    ..plain
                };
            }
            Plan::One(leg) => (vec![leg], "one-shard"),
            Plan::Scatter { legs, .. } => (legs, "several-shards"),
            Plan::Parts(legs) => (legs, "several-tables"),
            Plan::Across(legs) => (legs, "several-groups"),
            Plan::Everywhere(legs) => (legs, "every-group"),
            Plan::Each(legs) => (legs, "every-table"),
            Plan::Columns(_) => (Vec::new(), "by-the-columns-that-a-server-tells"),
            Plan::Ids { .. } => (Vec::new(), "with-generated-keys"),
        };
        let group = |at: usize| self.groups.get(at).map_or("", |group| group.name.as_str());
        let mut groups: Vec<&str> = legs.iter().map(|leg| group(leg.group)).collect();
        groups.dedup();
        let shards = legs.iter().map(|leg| {
            let text = leg.text.as_deref().unwrap_or(sql);
            (group(leg.group).to_owned(), on_one_line(text))
        });
        Explanation {
            route: "sharded",
            group: groups.join(", "),
            reason: format!("{what}: {}", plain.reason),
            shards: shards.collect(),
            ..plain
        }
    }

    fn route(
        &self,
        statement: &Statement<'_>,
        group: Option<&GroupConfig>,
        target: Option<RuleTarget>,
    ) -> (&'static str, &'static str) {
        if matches!(statement.kind, Kind::ExplainRoute | Kind::ShowLastRoute) {
            return ("local", "answered-by-atlas");
        }
        let read_from = self.user.map_or(ReadFrom::Replica, |user| user.read_from);
        let view = View {
            must_see_writes: false,
            in_transaction: self.in_transaction,
            autocommit: true,
            pins: Pins::default(),
            last: None,
            last_rows: None,
            warned: None,
            read_from,
        };
        let route = route::decide_for(statement, &view, target);
        match (route.role, group) {
            (Role::Primary, _) => ("primary", route.reason.as_str()),
            (Role::Replica, Some(group)) if group.replicas.is_empty() => {
                let fails =
                    group.no_replica == NoReplica::Error || read_from == ReadFrom::ReplicaOnly;
                let word = if fails { "refused" } else { "primary" };
                (word, route::Reason::NoReplica.as_str())
            }
            (Role::Replica, _) => ("replica", route.reason.as_str()),
        }
    }

    /// One statement a line in, one answer a line out.
    pub(super) fn explain_lines(
        &self,
        input: &mut impl BufRead,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                return out.flush();
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            out.write_all(self.explain(&unescape(text)).to_line().as_bytes())?;
        }
    }
}

impl Explanation {
    /// `key: value` lines.
    pub(super) fn to_text(&self) -> String {
        let Self {
            class,
            route,
            group,
            reason,
            shards,
        } = self;
        let mut text =
            format!("class: {class}\nroute: {route}\ngroup: {group}\nreason: {reason}\n");
        for (group, sql) in shards {
            text.push_str(&format!("shard: {group} {sql}\n"));
        }
        text
    }

    /// One line, separated by tabs.
    fn to_line(&self) -> String {
        let Self {
            class,
            route,
            group,
            reason,
            shards: _,
        } = self;
        format!("{class}\t{route}\t{group}\t{reason}\n")
    }
}

/// A statement as lines of standard input have it.
fn on_one_line(sql: &[u8]) -> String {
    let text = String::from_utf8_lossy(sql).replace('\\', "\\\\");
    text.replace('\n', "\\n").replace('\t', "\\t")
}

/// `\n`, `\t` and `\\` stand for a line feed, a tab and a backslash; any other backslash stands for itself.
fn unescape(line: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = match bytes.peek() {
            Some(b'n') => Some(b'\n'),
            Some(b't') => Some(b'\t'),
            Some(b'\\') => Some(b'\\'),
            Some(_) | None => None,
        };
        match escaped {
            Some(escaped) if byte == b'\\' => {
                text.push(escaped);
                bytes.next();
            }
            _ => text.push(byte),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Input;

    fn config(text: &str) -> Config {
        crate::config::load(text, "f", &|_| None).unwrap()
    }

    fn arguments(user: Option<&str>, in_transaction: bool) -> RouteArguments {
        RouteArguments {
            config: None,
            user: user.map(str::to_owned),
            schema: None,
            in_transaction,
            input: Input::Lines,
        }
    }

    const TWO_GROUPS: &str = r#"
        groups = [
            { name = "a", primary = "h1", replicas = ["h2"] },
            { name = "b", primary = "h3", no_replica = "error" },
            { name = "c", primary = "h4" },
        ]
        users = [
            { name = "u", password = "x", group = "a" },
            { name = "p", password = "x", group = "a", read_from = "primary" },
            { name = "v", password = "x", group = "b" },
            { name = "w", password = "x", group = "c" },
            { name = "o", password = "x", group = "c", read_from = "replica-only" },
        ]
    "#;

    #[test]
    fn accounts_and_groups() {
        let config = config(TWO_GROUPS);
        for (user, in_transaction, sql, wanted) in [
            (None, false, "SELECT 1", "read\treplica\ta\tplain-read\n"),
            (None, true, "SELECT 1", "read\tprimary\ta\tin-transaction\n"),
            (
                Some("u"),
                false,
                "DELETE FROM t",
                "write\tprimary\ta\twrite\n",
            ),
            (
                Some("p"),
                false,
                "SELECT 1",
                "read\tprimary\ta\taccount-reads-primary\n",
            ),
            (
                Some("p"),
                false,
                "/*slave*/ SELECT 1",
                "read\treplica\ta\tplain-read\n",
            ),
            (
                Some("v"),
                false,
                "SELECT 1",
                "read\trefused\tb\tno-replica\n",
            ),
            (
                Some("v"),
                false,
                "BEGIN",
                "begin\tprimary\tb\ttransaction-control\n",
            ),
            (
                None,
                false,
                "EXPLAIN ROUTE SELECT 1",
                "explain-route\tlocal\ta\tanswered-by-atlas\n",
            ),
            (
                Some("o"),
                false,
                "SELECT 1",
                "read\trefused\tc\tno-replica\n",
            ),
            (
                Some("w"),
                false,
                "SELECT 1",
                "read\tprimary\tc\tno-replica\n",
            ),
        ] {
            let arguments = arguments(user, in_transaction);
            let session = Session::new(Some(&config), &arguments).unwrap();
            assert_eq!(session.explain(sql.as_bytes()).to_line(), wanted, "{sql}");
        }
        assert_eq!(
            Session::new(Some(&config), &arguments(Some("z"), false)).unwrap_err(),
            "there is no account \"z\""
        );
    }

    #[test]
    fn functions_are_those_of_current_servers() {
        let fresh = arguments(None, false);
        let session = Session::new(None, &fresh).unwrap();
        for (sql, route) in [
            ("SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t", "replica"),
            ("SELECT RANK() OVER () FROM t", "replica"),
            ("SELECT JSON_VALUE(a, '$.b') FROM t", "replica"),
            // A function of one product only.
            ("SELECT BIN_TO_UUID(a) FROM t", "primary"),
            ("SELECT f(1)", "primary"),
            ("SELECT RANK() OVER () FROM t FOR UPDATE", "primary"),
        ] {
            assert_eq!(session.explain(sql.as_bytes()).route, route, "{sql}");
        }
    }

    #[test]
    fn shards() {
        let text = format!(
            "{TWO_GROUPS}
            [[tables]]
            name = \"shop.orders\"
            key = \"uid\"
            ranges = [{{ groups = [\"a\", \"b\"], tables = 2 }}]"
        );
        let config = config(&text);
        let arguments = RouteArguments {
            schema: Some("shop".to_owned()),
            ..arguments(Some("u"), false)
        };
        let session = Session::new(Some(&config), &arguments).unwrap();
        for (sql, wanted) in [
            (
                "SELECT *\nFROM orders\tWHERE uid = 7",
                "class: read\nroute: sharded\ngroup: b\nreason: one-shard: plain-read\n\
                 shard: b SELECT *\\nFROM `orders_3` AS orders\\tWHERE uid = 7\n",
            ),
            (
                "SELECT * FROM orders WHERE uid BETWEEN 1 AND 2",
                "class: read\nroute: sharded\ngroup: a, b\nreason: several-shards: plain-read\n\
                 shard: a SELECT * FROM `orders_1` AS orders WHERE uid BETWEEN 1 AND 2\n\
                 shard: b SELECT * FROM `orders_2` AS orders WHERE uid BETWEEN 1 AND 2\n",
            ),
            (
                "SELECT COUNT(*) FROM orders",
                "class: read\nroute: refused\ngroup: a\n\
                 reason: COUNT() over several shards: say which with uid = ...\n",
            ),
            (
                "UPDATE orders SET x = 1 WHERE uid = 4",
                "class: write\nroute: sharded\ngroup: a\nreason: one-shard: write\n\
                 shard: a UPDATE `orders_0` AS orders SET x = 1 WHERE uid = 4\n",
            ),
            (
                "SELECT * FROM other.orders",
                "class: read\nroute: replica\ngroup: a\nreason: plain-read\n",
            ),
        ] {
            assert_eq!(session.explain(sql.as_bytes()).to_text(), wanted, "{sql}");
        }
    }

    #[test]
    fn without_a_configuration() {
        let arguments = arguments(Some("z"), false);
        let session = Session::new(None, &arguments).unwrap();
        assert_eq!(
            session.explain(b"SELECT 1").to_text(),
            "class: read\nroute: replica\ngroup: main\nreason: plain-read\n"
        );
    }

    #[test]
    fn lines() {
        let arguments = arguments(None, false);
        let session = Session::new(None, &arguments).unwrap();
        let mut out = Vec::new();
        session
            .explain_lines(
                &mut &b"-- x\\nSELECT 1\r\n\nSELECT 'a\\\\' FOR UPDATE"[..],
                &mut out,
            )
            .unwrap();
        let out = String::from_utf8(out).unwrap();
        let routes: Vec<&str> = out
            .lines()
            .filter_map(|line| line.split('\t').nth(1))
            .collect();
        assert_eq!(routes, ["replica", "primary", "primary"], "{out}");
    }

    #[test]
    fn escapes() {
        for (line, wanted) in [
            ("a\\nb", "a\nb"),
            ("\\t", "\t"),
            ("\\\\n", "\\n"),
            ("\\x\\", "\\x\\"),
            ("\\\\\\\\", "\\\\"),
        ] {
            assert_eq!(unescape(line.as_bytes()), wanted.as_bytes(), "{line}");
        }
    }
}
