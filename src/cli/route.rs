//! `atlas route`: where a statement would go from a fresh session of an account, and why.

use std::io::{self, BufRead, Write};

use super::RouteArguments;
use crate::config::{Config, GroupConfig, NoReplica, ReadFrom, UserConfig};
use crate::route::{self, View};
use crate::session::{Pins, Role};
use crate::sql::{self, Dialect, Kind, Server, Statement};

/// The session that the statements are thought to come from.
#[derive(Debug)]
pub(super) struct Session<'a> {
    groups: &'a [GroupConfig],
    user: Option<&'a UserConfig>,
    in_transaction: bool,
}

/// The answer about one statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    class: &'static str,
    /// `replica`, `primary`, `local` or `refused`.
    route: &'static str,
    group: String,
    reason: String,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        config: Option<&'a Config>,
        arguments: &RouteArguments,
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
            in_transaction: arguments.in_transaction,
        })
    }

    pub(super) fn explain(&self, sql: &[u8]) -> Explanation {
        // Which server it will be is not known here: a plain read is one that is so in both grammars, of any version.
        let mut statement = sql::classify(sql, &Dialect::new(Server::MariaDb, 0));
        if statement.wants_primary().is_none() {
            statement = sql::classify(sql, &Dialect::new(Server::MySql, 0));
        }
        let group = self.user.and_then(|user| self.groups.get(user.group));
        let (route, reason) = self.route(&statement, group);
        Explanation {
            class: statement.kind.as_str(),
            route,
            group: group.map_or("main", |group| group.name.as_str()).to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn route(
        &self,
        statement: &Statement<'_>,
        group: Option<&GroupConfig>,
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
        let route = route::decide(statement, &view);
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
        } = self;
        format!("class: {class}\nroute: {route}\ngroup: {group}\nreason: {reason}\n")
    }

    /// One line, separated by tabs.
    fn to_line(&self) -> String {
        let Self {
            class,
            route,
            group,
            reason,
        } = self;
        format!("{class}\t{route}\t{group}\t{reason}\n")
    }
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
            let session = Session::new(Some(&config), &arguments(user, in_transaction)).unwrap();
            assert_eq!(session.explain(sql.as_bytes()).to_line(), wanted, "{sql}");
        }
        assert_eq!(
            Session::new(Some(&config), &arguments(Some("z"), false)).unwrap_err(),
            "there is no account \"z\""
        );
    }

    #[test]
    fn without_a_configuration() {
        let session = Session::new(None, &arguments(Some("z"), false)).unwrap();
        assert_eq!(
            session.explain(b"SELECT 1").to_text(),
            "class: read\nroute: replica\ngroup: main\nreason: plain-read\n"
        );
    }

    #[test]
    fn lines() {
        let session = Session::new(None, &arguments(None, false)).unwrap();
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
