//! What is answered on the HTTP port, from the state that all threads share.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::exchange::{Answer, Status};
use crate::control::ask::ask;
use crate::metrics::{self, AccountReading, BackendReading, Histogram, Reading};
use crate::session::Pins;
use crate::worker::{CLASSES, Classes, Counts, Gate, Live, Question, Readiness, Shared};

pub(super) struct Pages {
    shared: Arc<Shared>,
    /// Since 1970.
    started: Duration,
}

impl Pages {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            started: since_1970(),
        }
    }

    pub(super) fn answer(&self, path: &str) -> Answer {
        match path {
            "/healthz" => self.health(),
            "/readyz" => self.readiness(),
            "/metrics" => Answer {
                status: Status::Ok,
                media_type: metrics::MEDIA_TYPE,
                body: metrics::to_text(&self.read()),
            },
            "/" => Answer {
                status: Status::Ok,
                media_type: "text/html; charset=utf-8",
                body: self.status_page(),
            },
            _ => Answer::text(
                Status::NotFound,
                "not found: there are / /healthz /readyz /metrics",
            ),
        }
    }

    /// Whether the process should go on: a restart would help otherwise.
    fn health(&self) -> Answer {
        match self.shared.condition.lost_workers() {
            0 => Answer::text(Status::Ok, "ok"),
            n => Answer::text(Status::Unavailable, &format!("{n} workers have ended")),
        }
    }

    /// Whether clients should come here.
    fn readiness(&self) -> Answer {
        let readiness = self.shared.condition.readiness();
        let status = match readiness {
            Readiness::Ready => Status::Ok,
            Readiness::Starting | Readiness::Offline | Readiness::Draining => Status::Unavailable,
        };
        Answer::text(status, readiness.name())
    }

    fn read(&self) -> Reading {
        let shared = &self.shared;
        // First: with that what was answered before is counted, also of accounts.
        let pins = self.read_pins();
        let live = shared.live();
        let snapshot = &live.snapshot;
        let mut backends = Vec::new();
        for group in snapshot.groups.iter().filter(|group| !group.is_gone) {
            let replicas = group.replicas.iter().map(|(host, _)| (*host, "replica"));
            let primary = group.primary.map(|host| (host, "primary"));
            // What is left takes writes beside the primary, and gets none.
            let fenced = live.present().filter(|host| {
                let entry = &snapshot.hosts[host.index()];
                snapshot.groups[entry.group].name == group.name
                    && group.members().all(|member| member != *host)
            });
            let fenced = fenced.map(|host| (host, "fenced"));
            for (host, role) in primary.into_iter().chain(replicas).chain(fenced) {
                let state = live.hosts.get(host);
                backends.push(BackendReading {
                    group: group.name.clone(),
                    address: snapshot.hosts[host.index()].address.to_string(),
                    role,
                    is_up: state.is_up(),
                    may_serve: (role == "replica").then(|| state.may_serve()),
                    lag: state.lag(),
                    connections: connections(&live.gates[host.index()]),
                    is_stopped: live
                        .gates
                        .get(host.index())
                        .is_some_and(|gate| gate.is_stopped()),
                });
            }
        }
        Reading {
            version: env!("CARGO_PKG_VERSION"),
            is_ready: shared.condition.readiness() == Readiness::Ready,
            started: self.started,
            clients: shared.clients(),
            clients_max: snapshot.config.server.max_connections,
            backends,
            accounts: self.read_accounts(&live),
            mirrored: read_mirrored(&live),
            pins,
            ..self.read_work()
        }
    }

    fn read_accounts(&self, live: &Live) -> Vec<AccountReading> {
        let accounts = live.snapshot.accounts.iter().enumerate();
        accounts
            .filter(|(_, account)| !account.is_gone)
            .map(|(index, account)| {
                let figures = self.shared.account_figures(index);
                let [primary, replica] = figures.statements;
                AccountReading {
                    name: String::from_utf8_lossy(&account.name).into_owned(),
                    labels: account.labels.clone(),
                    clients: live.clients_of(index),
                    statements: [("primary", primary), ("replica", replica)],
                    errors: figures.errors,
                    refused: figures.refused,
                    ended: [
                        ("statement_timeout", figures.ended[0]),
                        ("result_rows", figures.ended[1]),
                    ],
                }
            })
            .collect()
    }

    /// What workers have counted.
    fn read_work(&self) -> Reading {
        let counts = Counts::of(self.shared.meters.iter());
        let mut refused: Vec<(&'static str, u64)> = Vec::new();
        for (code, count) in counts.refused {
            let reason = refusal(code);
            match refused.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, sum)) => *sum += count,
                None => refused.push((reason, count)),
            }
        }
        Reading {
            statements: counts.statements,
            statement_seconds: counts
                .seconds
                .iter()
                .map(|(route, classes)| (*route, histogram(classes)))
                .collect(),
            added_seconds: counts
                .added
                .iter()
                .map(|(stage, classes)| (*stage, histogram(classes)))
                .collect(),
            errors: counts.errors,
            refused,
            bytes: vec![
                ("to_clients", counts.to_clients),
                ("to_servers", counts.to_servers),
            ],
            slow: counts.slow,
            logs: [
                ("slow", self.shared.logs.slow.counts()),
                ("audit", self.shared.logs.audit.counts()),
            ],
            ..Reading::default()
        }
    }

    fn read_pins(&self) -> Vec<(&'static str, usize)> {
        let answers = ask(&self.shared, PATIENCE, Question::Ties);
        if answers.len() < self.shared.mailboxes.len() {
            // Of a part it would look as if some were gone.
            return Vec::new();
        }
        let transactions = answers.iter().map(|ties| ties.transactions).sum();
        let pins = Pins::ALL.iter().enumerate().map(|(at, (_, name))| {
            let count = answers.iter().filter_map(|ties| ties.pins.get(at)).sum();
            (*name, count)
        });
        std::iter::once(("transaction", transactions))
            .chain(pins)
            .collect()
    }

    fn status_page(&self) -> String {
        let reading = self.read();
        let up_for = since_1970().saturating_sub(reading.started).as_secs();
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Atlas</title>\n\
             <style>body{{font:15px sans-serif;margin:2em}}td,th{{text-align:left;padding:.2em 1em .2em 0}}</style></head><body>\n\
             <h1>Atlas {}</h1>\n<p>{}, up for {}, {} of {} clients</p>\n\
             <table><tr><th>group</th><th>role</th><th>server</th><th>state</th><th>behind</th></tr>\n",
            escape(reading.version),
            self.shared.condition.readiness().name(),
            span(up_for),
            reading.clients,
            reading.clients_max,
        );
        for backend in &reading.backends {
            let state = match (backend.is_up, backend.may_serve) {
                (false, _) => "down",
                (true, Some(false)) => "up, serves no reads",
                (true, None | Some(true)) => "up",
            };
            let lag = backend
                .lag
                .map_or_else(String::new, |lag| format!("{} s", lag.as_secs()));
            // Writing into a String does not fail.
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{state}</td><td>{lag}</td></tr>",
                escape(&backend.group),
                backend.role,
                escape(&backend.address),
            );
        }
        page.push_str("</table>\n<p><a href=\"metrics\">metrics</a></p>\n</body></html>\n");
        page
    }
}

/// How long workers may take to say what their clients are tied by.
const PATIENCE: Duration = Duration::from_millis(200);

fn connections(gate: &Gate) -> [(&'static str, usize); 3] {
    let (open, idle) = (gate.open(), gate.idle());
    [
        ("idle", idle),
        ("in_use", open.saturating_sub(idle)),
        ("waiting", gate.waiting()),
    ]
}

fn histogram(classes: &Classes) -> Histogram {
    let ends = CLASSES
        .iter()
        .map(|micros| Duration::from_micros(*micros).as_secs_f64());
    Histogram {
        classes: ends.zip(classes.counts).collect(),
        count: classes.counts.iter().sum(),
        sum: classes.sum.as_secs_f64(),
    }
}

/// Why a client was turned away, by the code that it was told.
fn refusal(code: u32) -> &'static str {
    match code {
        1040 => "too-many-clients",
        1043 | 1156 | 1251 => "bad-handshake",
        1045 => "access-denied",
        1053 => "draining",
        1130 => "network",
        1226 => "too-many-of-account",
        3159 => "tls-required",
        _ => "other",
    }
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{days} d {hours} h {minutes} min {} s", seconds % 60)
}

/// Text that is text in HTML, in quotes too.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// What became of the copies that rules have made.
fn read_mirrored(live: &Live) -> Vec<(String, [(&'static str, u64); 5])> {
    let rules = live.snapshot.rules.iter().flat_map(|rules| rules.iter());
    let mirrors = rules.filter_map(|rule| rule.mirror.as_ref());
    let read = mirrors.map(|mirror| {
        let figures = mirror.figures();
        let counts = [
            ("same", figures.same),
            ("differs", figures.differs),
            ("failed", figures.failed),
            ("dropped", figures.dropped),
            ("skipped", figures.skipped),
        ];
        (mirror.rule.to_string(), counts)
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(escape("unix:/<b>&\"'"), "unix:/&lt;b&gt;&amp;&quot;&#39;");
    }

    #[test]
    fn spans() {
        assert_eq!(span(0), "0 d 0 h 0 min 0 s");
        assert_eq!(span(90_061), "1 d 1 h 1 min 1 s");
    }
}
