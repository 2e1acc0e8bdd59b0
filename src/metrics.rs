//! The figures that operators collect: their names, what they mean, and the Prometheus text of one reading. Whoever reads them
//! from the running process is `control`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet, prometheus_text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// The media type of [`to_text`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All figures at one moment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Atlas's own version.
    pub version: &'static str,
    /// Whether it wants clients.
    pub is_ready: bool,
    /// When it was started, since 1970.
    pub started: Duration,
    /// Clients connected.
    pub clients: usize,
    /// Clients that may be connected.
    pub clients_max: usize,
    /// Every server of every group.
    pub backends: Vec<BackendReading>,
    /// Every account.
    pub accounts: Vec<AccountReading>,
    /// Statements by kind, route and reason.
    pub statements: Vec<(&'static str, &'static str, &'static str, u64)>,
    /// How long statements took, by route.
    pub statement_seconds: Vec<(&'static str, Histogram)>,
    /// What Atlas added to that, by stage.
    pub added_seconds: Vec<(&'static str, Histogram)>,
    /// Sessions that are tied to a connection, by reason; nothing when it is not known now.
    pub pins: Vec<(&'static str, usize)>,
    /// Errors that clients were told, by code.
    pub errors: Vec<(u32, u64)>,
    /// Clients that were turned away, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Bytes sent, by direction.
    pub bytes: Vec<(&'static str, u64)>,
    /// Statements that took as long as the slow log asks for.
    pub slow: u64,
    /// Entries of the logs of statements, by log: how many were written, and how many dropped.
    pub logs: [(&'static str, (u64, u64)); 2],
    /// Copies of statements, by rule and by what became of them.
    pub mirrored: Vec<(String, [(&'static str, u64); 5])>,
}

/// How many times fell into each class.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Upper ends, in seconds, and how many were in each class by itself.
    pub classes: Vec<(f64, u64)>,
    /// How many there were, those above the last end among them.
    pub count: u64,
    /// The sum, in seconds.
    pub sum: f64,
}

/// The figures of an account.
#[derive(Debug, Clone, Default)]
pub struct AccountReading {
    /// Its name.
    pub name: String,
    /// What the configuration calls it besides.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Its clients.
    pub clients: usize,
    /// Statements that servers answered, by route.
    pub statements: [(&'static str, u64); 2],
    /// Those of them that were answered by an error.
    pub errors: u64,
    /// Statements that Atlas refused.
    pub refused: u64,
    /// Statements that were ended, by the limit that they had come to.
    pub ended: [(&'static str, u64); 2],
}

/// The figures of a server in its group.
#[derive(Debug, Clone)]
pub struct BackendReading {
    /// The group's name.
    pub group: String,
    /// As in the configuration.
    pub address: String,
    /// `primary` or `replica`.
    pub role: &'static str,
    /// The last checks reached it.
    pub is_up: bool,
    /// New reads may go to it; nothing for a primary.
    pub may_serve: Option<bool>,
    /// How far it is behind, as far as that is known.
    pub lag: Option<Duration>,
    /// Connections to it, by what they do.
    pub connections: [(&'static str, usize); 3],
    /// Its breaker is open: too many connections to it have failed.
    pub is_stopped: bool,
}

/// A reading as Prometheus's text format has it.
#[must_use]
pub fn to_text(reading: &Reading) -> String {
    let mut registry = Registry::with_prefix("atlas");
    registry.register_collector(Box::new(reading.clone()));
    let mut text = String::new();
    // Writing into a String does not fail.
    let _ = prometheus_text::encode(&mut text, &registry);
    text
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        gauge(out, "up", "1: the process answers.", &1_u64)?;
        gauge(
            out,
            "ready",
            "Whether /readyz says that this instance wants clients.",
            &u64::from(self.is_ready),
        )?;
        let help = "Always 1; the version is in the label.";
        family(
            out,
            "build_info",
            help,
            [([("version", self.version)], 1_u64)],
        )?;
        let help = "When the process was started, in seconds since 1970.";
        gauge(out, "start_time_seconds", help, &self.started.as_secs_f64())?;
        gauge(out, "clients", "Clients connected.", &self.clients)?;
        let help = "Clients that may be connected (server.max_connections).";
        gauge(out, "clients_max", help, &self.clients_max)?;
        family(
            out,
            "backend_up",
            "Whether the last checks of the server succeeded.",
            self.backends
                .iter()
                .map(|backend| (backend.labels(), u64::from(backend.is_up))),
        )?;
        family(
            out,
            "backend_serving",
            "Whether new reads may go to the replica: it is up, and its data are fresh enough.",
            self.backends
                .iter()
                .filter_map(|backend| Some((backend.labels(), u64::from(backend.may_serve?)))),
        )?;
        family(
            out,
            "backend_breaker_open",
            "Whether no connections to the server are opened, because too many have failed.",
            self.backends
                .iter()
                .map(|backend| (backend.labels(), u64::from(backend.is_stopped))),
        )?;
        family(
            out,
            "backend_lag_seconds",
            "How far the replica is behind, as far as that is known.",
            self.backends
                .iter()
                .filter_map(|backend| Some((backend.labels(), backend.lag?.as_secs_f64()))),
        )?;
        let help = "Connections to the server: idle, in_use, and statements that wait for one.";
        family(
            out,
            "backend_connections",
            help,
            self.backends.iter().flat_map(|backend| {
                let [group, address, role] = backend.labels();
                backend
                    .connections
                    .iter()
                    .map(move |(state, count)| ([group, address, role, ("state", *state)], *count))
            }),
        )?;
        self.encode_accounts(out)?;
        self.encode_work(out)
    }
}

impl Reading {
    /// Who did how much.
    fn encode_accounts(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        fn labels(account: &AccountReading) -> Vec<(&str, &str)> {
            let own = [("account", account.name.as_str())];
            let given = account.labels.iter();
            let given = given.map(|(name, text)| (name.as_str(), text.as_str()));
            own.into_iter().chain(given).collect()
        }
        let accounts = || self.accounts.iter();
        let clients = accounts().map(|account| (labels(account), account.clients));
        family(out, "account_clients", "Clients of the account.", clients)?;
        let help = "Statements of the account that servers answered.";
        let statements = accounts().flat_map(|account| {
            account.statements.iter().map(|(route, count)| {
                let mut labels = labels(account);
                labels.insert(1, ("route", route));
                (labels, *count)
            })
        });
        counters(out, "account_statements", help, statements)?;
        let help = "Those of them that were answered by an error.";
        let errors = accounts().map(|account| (labels(account), account.errors));
        counters(out, "account_errors", help, errors)?;
        let help = "Statements of the account that Atlas refused.";
        let refused = accounts().map(|account| (labels(account), account.refused));
        counters(out, "account_refused", help, refused)?;
        let help = "Statements of the account that were ended for their time or their rows.";
        let ended = accounts().flat_map(|account| {
            account.ended.iter().map(|(limit, count)| {
                let mut labels = labels(account);
                labels.insert(1, ("limit", limit));
                (labels, *count)
            })
        });
        counters(out, "account_ended", help, ended)
    }

    /// What statements and clients did.
    fn encode_work(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        counters(
            out,
            "statements",
            "Statements that servers answered.",
            self.statements.iter().map(|(kind, route, reason, count)| {
                (
                    [("kind", *kind), ("route", *route), ("reason", *reason)],
                    *count,
                )
            }),
        )?;
        let help = "How long a client waited for the whole answer to a statement.";
        histograms(
            out,
            "statement_seconds",
            help,
            "route",
            &self.statement_seconds,
        )?;
        let help = "What Atlas added to that; stage acquire: until there was a connection in the right state.";
        histograms(out, "added_seconds", help, "stage", &self.added_seconds)?;
        let help = "Sessions that keep their server connection.";
        let pins = self
            .pins
            .iter()
            .map(|(reason, count)| ([("reason", *reason)], *count));
        family(out, "pins", help, pins)?;
        let codes: Vec<(String, u64)> = self
            .errors
            .iter()
            .map(|(code, count)| (code.to_string(), *count))
            .collect();
        let help =
            "Errors that clients were told; code 0 for codes that are not counted by themselves.";
        let errors = codes
            .iter()
            .map(|(code, count)| ([("code", code.as_str())], *count));
        counters(out, "errors", help, errors)?;
        let refused = self
            .refused
            .iter()
            .map(|(reason, count)| ([("reason", *reason)], *count));
        counters(out, "refused", "Clients that were not let in.", refused)?;
        let bytes = self
            .bytes
            .iter()
            .map(|(direction, count)| ([("direction", *direction)], *count));
        counters(out, "bytes", "Bytes sent.", bytes)?;
        let logs = self.logs.iter();
        let written = logs.clone().map(|(log, (n, _))| ([("log", *log)], *n));
        let help = "Entries of the logs of statements that were written.";
        counters(out, "log_entries", help, written)?;
        let dropped = logs.map(|(log, (_, n))| ([("log", *log)], *n));
        let help = "Entries that were dropped, because the log could not take them.";
        counters(out, "log_dropped", help, dropped)?;
        let mirrored = self.mirrored.iter().flat_map(|(rule, counts)| {
            let labels = move |outcome| [("rule", rule.as_str()), ("outcome", outcome)];
            counts
                .iter()
                .map(move |(outcome, n)| (labels(*outcome), *n))
        });
        let help = "Copies of statements for other groups.";
        counters(out, "mirrored", help, mirrored)?;
        let help = "Statements that took log.slow.threshold or longer.";
        out.encode_descriptor("slow", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, u64, f64>(&self.slow, None)
    }
}

impl BackendReading {
    fn labels(&self) -> [(&'static str, &str); 3] {
        [
            ("group", &self.group),
            ("address", &self.address),
            ("role", self.role),
        ]
    }
}

fn gauge(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: &impl EncodeGaugeValue,
) -> fmt::Result {
    out.encode_descriptor(name, help, None, MetricType::Gauge)?
        .encode_gauge(value)
}

/// One gauge with labels: a line for each label set.
fn family(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    lines: impl IntoIterator<Item = (impl EncodeLabelSet, impl EncodeGaugeValue)>,
) -> fmt::Result {
    let mut encoder = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in lines {
        encoder.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// One counter with labels, whose name gets `_total` behind it.
fn counters(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    lines: impl IntoIterator<Item = (impl EncodeLabelSet, u64)>,
) -> fmt::Result {
    let mut encoder = out.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in lines {
        encoder
            .encode_family(&labels)?
            .encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
    }
    Ok(())
}

/// One histogram with a label.
fn histograms(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &'static str,
    lines: &[(&'static str, Histogram)],
) -> fmt::Result {
    let mut encoder = out.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (value, histogram) in lines {
        encoder
            .encode_family(&[(label, *value)])?
            .encode_histogram::<NoLabelSet>(
                histogram.sum,
                histogram.count,
                &histogram.classes,
                None,
            )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_reading() {
        let backend = |group: &str, address: &str, role, is_up| BackendReading {
            group: group.to_owned(),
            address: address.to_owned(),
            role,
            is_up,
            may_serve: (role == "replica").then_some(is_up),
            lag: (role == "replica").then_some(Duration::from_millis(1500)),
            connections: [("idle", 2), ("in_use", 1), ("waiting", 0)],
            is_stopped: !is_up,
        };
        let reading = Reading {
            version: "1.2.3",
            is_ready: true,
            started: Duration::from_millis(1_700_000_000_500),
            clients: 7,
            clients_max: 10_000,
            backends: vec![
                backend("main", "10.0.0.1:3306", "primary", true),
                backend("main", "unix:/a\"b\\c\n", "replica", false),
            ],
            accounts: vec![AccountReading {
                name: "shop".to_owned(),
                labels: Arc::new([("business".to_owned(), "a\"b\\c\n".to_owned())].into()),
                clients: 3,
                statements: [("primary", 4), ("replica", 5)],
                errors: 6,
                refused: 7,
                ended: [("statement_timeout", 8), ("result_rows", 9)],
            }],
            statements: vec![("read", "replica", "plain-read", 12)],
            statement_seconds: vec![(
                "replica",
                Histogram {
                    classes: vec![(0.001, 3)],
                    count: 4,
                    sum: 0.5,
                },
            )],
            added_seconds: Vec::new(),
            pins: vec![("transaction", 4)],
            errors: vec![(1064, 5)],
            refused: vec![("access-denied", 6)],
            bytes: vec![("to_clients", 7)],
            slow: 8,
            logs: [("slow", (9, 0)), ("audit", (10, 11))],
            mirrored: vec![("try".to_owned(), [("dropped", 12); 5])],
        };
        let text = to_text(&reading);
        let (servers, work) = text.split_once("# HELP atlas_backend_connections").unwrap();
        for line in [
            "atlas_backend_connections{group=\"main\",address=\"10.0.0.1:3306\",role=\"primary\",state=\"in_use\"} 1",
            "atlas_account_clients{account=\"shop\",business=\"a\\\"b\\\\c\\n\"} 3",
            "atlas_account_statements_total{account=\"shop\",route=\"primary\",business=\"a\\\"b\\\\c\\n\"} 4",
            "atlas_account_statements_total{account=\"shop\",route=\"replica\",business=\"a\\\"b\\\\c\\n\"} 5",
            "atlas_account_errors_total{account=\"shop\",business=\"a\\\"b\\\\c\\n\"} 6",
            "atlas_account_refused_total{account=\"shop\",business=\"a\\\"b\\\\c\\n\"} 7",
            "atlas_account_ended_total{account=\"shop\",limit=\"statement_timeout\",business=\"a\\\"b\\\\c\\n\"} 8",
            "atlas_account_ended_total{account=\"shop\",limit=\"result_rows\",business=\"a\\\"b\\\\c\\n\"} 9",
            "atlas_statements_total{kind=\"read\",route=\"replica\",reason=\"plain-read\"} 12",
            "atlas_statement_seconds_bucket{route=\"replica\",le=\"0.001\"} 3",
            "atlas_statement_seconds_bucket{route=\"replica\",le=\"+Inf\"} 4",
            "atlas_statement_seconds_sum{route=\"replica\"} 0.5",
            "atlas_statement_seconds_count{route=\"replica\"} 4",
            "atlas_pins{reason=\"transaction\"} 4",
            "atlas_errors_total{code=\"1064\"} 5",
            "atlas_refused_total{reason=\"access-denied\"} 6",
            "atlas_bytes_total{direction=\"to_clients\"} 7",
            "atlas_slow_total 8",
            "atlas_log_entries_total{log=\"slow\"} 9",
            "atlas_log_dropped_total{log=\"audit\"} 11",
            "atlas_mirrored_total{rule=\"try\",outcome=\"dropped\"} 12",
            "# TYPE atlas_statement_seconds histogram",
        ] {
            assert!(work.lines().any(|known| known == line), "{line}\n{work}");
        }
        assert_eq!(
            servers,
            "# HELP atlas_up 1: the process answers.\n\
             # TYPE atlas_up gauge\n\
             atlas_up 1\n\
             # HELP atlas_ready Whether /readyz says that this instance wants clients.\n\
             # TYPE atlas_ready gauge\n\
             atlas_ready 1\n\
             # HELP atlas_build_info Always 1; the version is in the label.\n\
             # TYPE atlas_build_info gauge\n\
             atlas_build_info{version=\"1.2.3\"} 1\n\
             # HELP atlas_start_time_seconds When the process was started, in seconds since 1970.\n\
             # TYPE atlas_start_time_seconds gauge\n\
             atlas_start_time_seconds 1700000000.5\n\
             # HELP atlas_clients Clients connected.\n\
             # TYPE atlas_clients gauge\n\
             atlas_clients 7\n\
             # HELP atlas_clients_max Clients that may be connected (server.max_connections).\n\
             # TYPE atlas_clients_max gauge\n\
             atlas_clients_max 10000\n\
             # HELP atlas_backend_up Whether the last checks of the server succeeded.\n\
             # TYPE atlas_backend_up gauge\n\
             atlas_backend_up{group=\"main\",address=\"10.0.0.1:3306\",role=\"primary\"} 1\n\
             atlas_backend_up{group=\"main\",address=\"unix:/a\\\"b\\\\c\\n\",role=\"replica\"} 0\n\
             # HELP atlas_backend_serving Whether new reads may go to the replica: it is up, and its data are fresh enough.\n\
             # TYPE atlas_backend_serving gauge\n\
             atlas_backend_serving{group=\"main\",address=\"unix:/a\\\"b\\\\c\\n\",role=\"replica\"} 0\n\
             # HELP atlas_backend_breaker_open Whether no connections to the server are opened, because too many have failed.\n\
             # TYPE atlas_backend_breaker_open gauge\n\
             atlas_backend_breaker_open{group=\"main\",address=\"10.0.0.1:3306\",role=\"primary\"} 0\n\
             atlas_backend_breaker_open{group=\"main\",address=\"unix:/a\\\"b\\\\c\\n\",role=\"replica\"} 1\n\
             # HELP atlas_backend_lag_seconds How far the replica is behind, as far as that is known.\n\
             # TYPE atlas_backend_lag_seconds gauge\n\
             atlas_backend_lag_seconds{group=\"main\",address=\"unix:/a\\\"b\\\\c\\n\",role=\"replica\"} 1.5\n"
        );
    }
}
