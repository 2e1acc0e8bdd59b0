//! Every key of the configuration file, in the order of the manual: the one list behind the check for unknown keys,
//! the notes about keys that this version does not act on, and the table in the README.
//! How a value is read and what its limits are lives beside the type that holds it.

use Acted::{No, Yes};

/// Whether the proxy does what a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It does.
    Yes,
    /// It does nothing about it yet, whatever the value.
    No,
}

/// One key of the configuration file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Path without indices: `groups.replicas.weight`. A last part `*` stands for names that the user chooses.
    pub path: &'static str,
    /// The default as it would be written in the file; empty for a key that must be given or has none.
    pub default: &'static str,
    /// Whether this version does what it says.
    pub acted: Acted,
    /// What it is for, with the values that it takes.
    pub meaning: &'static str,
}

const fn key(
    path: &'static str,
    default: &'static str,
    acted: Acted,
    meaning: &'static str,
) -> Key {
    Key {
        path,
        default,
        acted,
        meaning,
    }
}

/// All keys.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("server.listen", r#"["0.0.0.0:1234"]"#, Yes, "addresses for clients: `IP:PORT` or `unix:/path`"),
    key("server.admin_listen", r#""""#, Yes, "address of the admin port; empty for none"),
    key("server.http_listen", r#""""#, Yes, "address for `/metrics`, `/healthz`, `/readyz` and the status page; empty for none"),
    key("server.workers", "0", Yes, "event loops; 0 for one per core"),
    key("server.pin_workers", "false", Yes, "bind each worker to a core: `true`, or a list of cores"),
    key("server.server_version", r#""auto""#, Yes, "version that clients are told, three numbers at least; `auto` for the primary's own"),
    key("server.auth_plugin", r#""caching_sha2_password""#, Yes, "offered first: `caching_sha2_password` or `mysql_native_password`; a client may ask for the other"),
    key("server.max_connections", "10000", Yes, "clients at a time"),
    key("server.drain_delay", r#""0s""#, Yes, "how long `/readyz` fails before a stop begins, for balancers to notice"),
    key("server.drain_timeout", r#""30s""#, Yes, "how long a stop waits for transactions to end"),
    key("server.upgrade_socket", r#""""#, Yes, "unix socket by which a new process takes over; empty for the configuration's path with `.upgrade` at its end"),
    key("server.proxy_protocol_from", "[]", Yes, "networks of balancers, whose connections begin with a PROXY v1 or v2 header"),
    key("server.client_networks", "[]", Yes, "networks that may connect: CIDR, an address, or leading octets; empty for everyone"),
    key("server.key_file", r#""atlas.key""#, Yes, "file with the key for `enc:v1:` values; `atlas encrypt` makes it"),
    key("server.tls.mode", r#""off""#, Yes, "TLS towards clients: `off`, `optional`, `required`"),
    key("server.tls.cert", r#""""#, Yes, "PEM file with the certificate chain; needed unless the mode is `off`"),
    key("server.tls.key", r#""""#, Yes, "PEM file with the private key; needed unless the mode is `off`"),
    key("server.tls.ca", r#""""#, Yes, "PEM file with the authorities of client certificates; empty to ask for none"),

    key("admin.users.name", "", Yes, "account of the admin port"),
    key("admin.users.password", "", Yes, "its password"),
    key("admin.users.role", r#""viewer""#, Yes, "`operator` or `viewer`"),

    key("monitor.user", "", Yes, "account for checks of the servers; without the section the first account is used"),
    key("monitor.password", "", Yes, "its password"),
    key("monitor.interval", r#""1s""#, Yes, "time between two checks of a server"),
    key("monitor.timeout", r#""1s""#, Yes, "how long a check may take"),
    key("monitor.fall", "3", Yes, "failed checks that take a server out"),
    key("monitor.rise", "2", Yes, "good checks that bring it back"),
    key("monitor.heartbeat", r#""""#, Yes, "`schema.table` with a heartbeat (as pt-heartbeat writes it) by which lag is measured; empty for the servers' own figures"),

    key("pool.min_idle", "4", Yes, "connections to each server opened before the instance is ready"),
    key("pool.max_connections", "200", Yes, "connections to each server, all workers together"),
    key("pool.connect_rate", "50", Yes, "new connections to each server a second"),
    key("pool.connect_timeout", r#""2s""#, Yes, "how long connecting and logging in to a server may take"),
    key("pool.acquire_timeout", r#""5s""#, Yes, "how long a statement waits for a connection"),
    key("pool.idle_timeout", r#""300s""#, Yes, "an idle connection is closed after this"),
    key("pool.max_lifetime", r#""1h""#, Yes, "a connection is replaced after this"),
    key("pool.statements", "256", Yes, "prepared statements kept per server connection"),
    key("pool.breaker.failure_ratio", "0.5", Yes, "share of failures that stops new connections to a server"),
    key("pool.breaker.window", r#""10s""#, Yes, "time over which failures are counted"),
    key("pool.breaker.open_for", r#""5s""#, Yes, "how long new connections are stopped"),

    key("groups.name", "", Yes, "name of the group"),
    key("groups.primary", "", Yes, "address of the primary: `HOST:PORT` or `unix:/path`"),
    key("groups.replicas", "[]", Yes, "the replicas, each an address or a table of the next two keys"),
    key("groups.replicas.address", "", Yes, "address of a replica"),
    key("groups.replicas.weight", "1", Yes, "its share of the reads, 1 to 1000"),
    key("groups.topology", r#""fixed""#, Yes, "`fixed`, or `follow` to read roles from the servers"),
    key("groups.max_lag", r#""10s""#, Yes, "a replica further behind serves no reads; `0s` to not look at replication"),
    key("groups.no_replica", r#""primary""#, Yes, "what a read does when no replica may serve it: go to the `primary`, or `error`"),
    key("groups.primary_wait", r#""10s""#, Yes, "how long a write waits for a primary"),
    key("groups.schemas.*", "", Yes, "physical name, on this group, of the logical schema"),
    key("groups.tls.mode", r#""off""#, Yes, "TLS towards servers: `off`, `preferred`, `required`, `verify-ca`, `verify-identity`"),
    key("groups.tls.ca", r#""""#, Yes, "PEM file with the authorities of the servers' certificates; needed for the two verify modes"),
    key("groups.tls.cert", r#""""#, Yes, "PEM file with Atlas's own certificate for the servers"),
    key("groups.tls.key", r#""""#, Yes, "PEM file with its private key"),

    key("users.name", "", Yes, "account that clients log in with"),
    key("users.password", "", Yes, "its password, or a list of which each is accepted (for rotation); clear, `enc:v1:…`, or `env:NAME`"),
    key("users.backend.user", "", Yes, "account on the servers; the same account when left out"),
    key("users.backend.password", "", Yes, "its password, or a list that is tried in order; the account's own when left out"),
    key("users.backend.read_user", r#""""#, Yes, "account on replicas; empty for the same as on the primary"),
    key("users.backend.read_password", r#""""#, Yes, "its password, or a list"),
    key("users.group", "", Yes, "group of the account; may be left out when there is only one"),
    key("users.schema", r#""""#, Yes, "default schema of clients that name none"),
    key("users.networks", "[]", Yes, "networks from which the account may log in; empty for all"),
    key("users.read_from", r#""replica""#, Yes, "where plain reads go: `replica`, `primary`, or `replica-only` (they fail when no replica may serve them)"),
    key("users.sharing", r#""transaction""#, Yes, "when a server connection may be given to another client: after each `transaction`, or after the `session`"),
    key("users.causal", r#""off""#, Yes, "reads see earlier writes: `off`; `window:500ms` (after a write the session's reads go to the primary for that long); `session` or `session:2s` (reads see the session's own writes: a replica that has not got them is waited for so long, 500ms unless said, then the primary is asked); `global` (everybody's: reads go to the primary)"),
    key("users.max_connections", "0", Yes, "clients of the account at a time; 0 for no limit of its own"),
    key("users.limits.rate", "0", Yes, "statements a second, those of a second at once; 0 for no limit"),
    key("users.limits.concurrency", "0", Yes, "statements at a time; 0 for no limit"),
    key("users.limits.statement_timeout", r#""0s""#, Yes, "a statement that runs longer is ended on its server; `0s` for never"),
    key("users.limits.result_rows", "0", Yes, "rows that a result may have; one with more is ended there, with an error; 0 for no limit"),
    key("users.labels.*", "", Yes, "labels of the account in metrics, logs and `SHOW ACCOUNTS`: 16 at most, of 128 bytes"),

    key("tables.name", "", Yes, "sharded table, `schema.table`"),
    key("tables.key", "", Yes, "column that decides the shard"),
    key("tables.key_type", r#""int""#, Yes, "`int`, `string` or `date`"),
    key("tables.ranges.from", r#""min""#, Yes, "first key of the range, or `min`"),
    key("tables.ranges.to", r#""max""#, Yes, "key after the last of the range, or `max`"),
    key("tables.ranges.groups", "", Yes, "groups that hold the range"),
    key("tables.ranges.tables", "1", Yes, "tables in each of these groups"),
    key("tables.ranges.first", "0", Yes, "number of the first physical table"),
    key("tables.hash", r#""mod""#, Yes, "within a range: `mod`, `crc32` or `atlas32`"),
    key("tables.id.column", "", Yes, "column that Atlas fills"),
    key("tables.id.generator", r#""snowflake""#, Yes, "`snowflake`"),
    key("tables.broadcast", r#""allow""#, Yes, "reads that several shards have rows for: `allow`, `deny`, or `listed`: those for which a rule has `allow`"),
    key("tables.multi_shard_writes", r#""deny""#, Yes, "writes to several shards: `deny` or `xa`"),

    key("sharding.global_tables", "[]", Yes, "tables present in every group; `auto` finds them, `!schema.table` leaves one out of that"),
    key("sharding.global_writes", r#""deny""#, Yes, "writes to tables present in every group: `deny`, or `xa`, to all of them or none"),
    key("sharding.decision_log", r#""atlas.decisions""#, Yes, "folder in which decisions of writes over several groups are written down"),
    key("sharding.fan_out", "4", Yes, "shards that one statement asks at a time"),
    key("sharding.merge_rows", "10000", No, "bound of offset + limit for a merged statement"),
    key("sharding.merge_memory", r#""64MiB""#, Yes, "rows of one statement that may be collected from several shards"),

    key("rules.name", "", Yes, "name of the rule; the first that matches wins"),
    key("rules.match.user", r#""*""#, Yes, "account, `*` for all"),
    key("rules.match.digest", r#""""#, Yes, "digest of the statement, as `SHOW DIGESTS` has it"),
    key("rules.match.regex", r#""""#, Yes, "regular expression on the statement, which is seen without comments and with each run of blanks as one"),
    key("rules.match.kind", r#""""#, Yes, "kind of statement: `read` or `write`"),
    key("rules.match.schema", r#""""#, Yes, "default schema"),
    key("rules.match.network", r#""""#, Yes, "network of the client"),
    key("rules.action", "", Yes, "`reject`; `route` (of plain reads, see `to`); `timeout` (in place of `limits.statement_timeout`); `limit` (see `rate`); `mirror` (a copy runs in another group, see `to`); `log` (the statement, without its literals, goes to the log); `allow` (later rules and `[safety]` are passed over; lists the statement for `broadcast = \"listed\"`)"),
    key("rules.message", r#""""#, Yes, "what a refused client is told"),
    key("rules.to", r#""""#, Yes, "of `route`: `primary` or `replica`; of `mirror`: the group that copies go to"),
    key("rules.rate", "0", Yes, "of `limit`: statements a second that the rule lets pass"),
    key("rules.concurrency", "0", Yes, "of `limit`: statements at a time; of `mirror`: copies at a time, 0 for 4"),
    key("rules.timeout", "", Yes, "of `timeout`: how long a statement may run; `0s` for as long as it likes. Of `mirror`: how long a copy may run; 10 s unless said"),
    key("rules.sample", "100", Yes, "of `mirror`: of a hundred statements so many are copied, chosen by chance"),
    key("rules.writes", "false", Yes, "of `mirror`: INSERT, UPDATE, DELETE, REPLACE and definitions are copied too, one after the other; otherwise plain reads only"),

    key("safety.require_where", "false", Yes, "refuse UPDATE and DELETE without WHERE"),
    key("safety.refuse_sleep", "false", Yes, "refuse SLEEP and BENCHMARK"),

    key("log.level", r#""info""#, Yes, "`error`, `warn`, `info`, `debug`, `trace` or `off`"),
    key("log.slow.file", r#""""#, Yes, "slow log, in MySQL's format; empty for none"),
    key("log.slow.threshold", r#""1s""#, Yes, "statements that take at least this long go to the slow log, and are counted"),
    key("log.audit.file", r#""""#, Yes, "audit log, JSON lines; empty for none"),
    key("log.audit.statements", r#""all""#, Yes, "which statements: `all`; `write` (what may change something, and transactions); `errors` (what failed); `none` (log-ins only, which always go there)"),
    key("log.audit.text", r#""full""#, Yes, "how much of a statement: `full`; `masked`, without its literals; `none`, only the number of its kind"),
    key("log.audit.when_full", r#""wait""#, Yes, "while the file cannot take more: statements `wait`, or records `drop` and are counted"),
    key("log.text_max", r#""16KiB""#, Yes, "bytes of a statement that either log has, 128B to 1MiB; of a longer one the beginning"),
];

/// The keys directly under a path (`""` for the sections), each once, in the order of the list.
pub(super) fn children(parent: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for key in KEYS {
        let rest = if parent.is_empty() {
            Some(key.path)
        } else {
            key.path
                .strip_prefix(parent)
                .and_then(|r| r.strip_prefix('.'))
        };
        if let Some(name) = rest.and_then(|r| r.split('.').next())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// Whether this version acts on nothing at or below the path.
pub(super) fn is_ignored(path: &str) -> bool {
    let below = |key: &&Key| {
        key.path == path
            || key
                .path
                .strip_prefix(path)
                .is_some_and(|r| r.starts_with('.'))
    };
    KEYS.iter().filter(below).all(|key| key.acted == No)
}

/// The name among `known` that was probably meant by `given`: within two edits, and a third of its length.
pub(super) fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let given = given.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|name| (edits(&given, name), *name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).clamp(1, 2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edit distance, with neighbours exchanged counted as one; names longer than any key are far from all.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > 64 || b.len() > 64 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best = (last[j] + 1)
                .min(row[j - 1] + 1)
                .min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_ignored() {
        assert_eq!(children("server.tls"), ["mode", "cert", "key", "ca"]);
        assert_eq!(children("")[..4], ["server", "admin", "monitor", "pool"]);
        assert_eq!(children("groups.schemas"), ["*"]);
        assert!(is_ignored("sharding.merge_rows") && !is_ignored("users.labels"));
        assert!(
            !is_ignored("pool.breaker") && !is_ignored("server") && !is_ignored("groups.replicas")
        );
    }

    #[test]
    fn paths_are_unique_and_documented() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(
                KEYS.iter()
                    .skip(index + 1)
                    .all(|other| other.path != key.path),
                "{}",
                key.path
            );
            assert!(
                !key.meaning.is_empty() && !key.meaning.contains('|'),
                "{}",
                key.path
            );
        }
    }

    #[test]
    fn nearest_names() {
        let known = ["listen", "workers", "max_connections", "tls"];
        for (given, want) in [
            ("lisen", Some("listen")),
            ("listne", Some("listen")),
            ("Workers", Some("workers")),
            ("max-connections", Some("max_connections")),
            ("max_connection", Some("max_connections")),
            ("tsl", Some("tls")),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, &known), want, "{given}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), &known), None);
    }
}
