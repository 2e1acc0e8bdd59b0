//! Lag by a heartbeat table: which statement asks for a beat, what the answer says, and whose beats are compared. What they amount to
//! is `pool::heartbeat`'s.

use std::time::Instant;

use super::Prober;
use super::connection::Answer;
use crate::pool::{Beat, Pulse, Replication};

/// Times in columns that know their zone are told in the same one by all servers.
pub(super) const ZONE: &str = "SET time_zone = '+00:00'";

/// Whose row is looked at.
#[derive(Debug, Clone, Copy)]
enum Row {
    /// The server's own: it is the primary.
    Own,
    /// That of the server with this id.
    Of(u64),
}

/// The statement. `ts` is a time, or the text of one as pt-heartbeat writes it, in whatever zone: it is compared with other beats. The
/// second column is its age by the server's clock, by UTC or by the server's zone, whichever makes it less.
fn question((schema, table): &(String, String), row: Row) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let (schema, table) = (quoted(schema), quoted(table));
    let id = match row {
        Row::Own => "@@global.server_id".to_owned(),
        Row::Of(id) => id.to_string(),
    };
    format!(
        "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(ts)), \
         LEAST(ABS(TIMESTAMPDIFF(SECOND, MAX(ts), UTC_TIMESTAMP())), \
         COALESCE(ABS(TIMESTAMPDIFF(SECOND, MAX(ts), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone))), 4294967295)) \
         FROM {schema}.{table} WHERE server_id = {id}"
    )
}

/// What the answer says, or why it says nothing.
pub(super) fn read(answer: &Answer) -> Result<Beat, String> {
    let rows = match answer {
        Answer::Refused { code, message } => return Err(format!("{code} {message}")),
        Answer::Done => return Err("it gives no rows".to_owned()),
        Answer::Rows(_, rows) => rows,
    };
    let cell = |at: usize| std::str::from_utf8(rows.first()?.get(at)?.as_deref()?).ok();
    let written = cell(0).and_then(|text| text.parse().ok());
    let age = cell(1).and_then(|text| text.parse().ok());
    let written =
        written.ok_or("the heartbeat table has no time in a row with the primary's server_id")?;
    Ok(Beat {
        written,
        age: age.map(std::time::Duration::from_secs),
    })
}

impl Prober {
    /// What is asked for the heartbeat, where there is one to be asked for. A replica waits, for a part of its time, until the
    /// primary has been looked at once.
    pub(super) fn heartbeat_question(&self, deadline: Instant) -> Option<String> {
        let table = self.monitor().heartbeat.as_ref()?;
        if self.group().config.max_lag.is_zero() {
            return None;
        }
        if self.has_led {
            return Some(question(table, Row::Own));
        }
        self.lag_policy?;
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let pulse = self.checks.pulses.wait(self.entry().group, half)?.ok()?;
        Some(question(table, Row::Of(pulse.server_id)))
    }

    /// Notes what the primary shows; nothing when it does not answer, so that what was seen last holds.
    pub(super) fn note_pulse(&self, server_id: u64, shown: Option<&Result<Beat, String>>) {
        if !self.has_led || self.monitor().heartbeat.is_none() {
            return;
        }
        let (now, max) = (self.moment(), self.group().config.max_lag);
        self.checks
            .pulses
            .note(self.entry().group, |before| match shown {
                Some(Ok(beat)) => {
                    let before = before.and_then(|known| known.as_ref().ok());
                    Ok(Pulse::next(before, server_id, *beat, now, max))
                }
                Some(Err(why)) => Err(why.clone()),
                None => before
                    .cloned()
                    .unwrap_or_else(|| Err("it does not answer".to_owned())),
            });
    }

    /// What a replica says of its replication, with its heartbeat in the place of what the server itself takes for its lag. One that
    /// is stopped is stopped.
    pub(super) fn by_heartbeat(
        &self,
        said: (Replication, String),
        shown: Option<Result<Beat, String>>,
    ) -> (Replication, String) {
        if self.is_outside {
            return (
                Replication::Unmeasured,
                "it has no part in its replication group".to_owned(),
            );
        }
        if self.monitor().heartbeat.is_none() || said.0 == Replication::Stopped {
            return said;
        }
        let unknown = |why: String| (Replication::Unmeasured, why);
        match (shown, self.checks.pulses.get(self.entry().group)) {
            (Some(Err(why)), _) => unknown(why),
            (_, Some(Err(why))) => unknown(format!("the primary shows no heartbeat: {why}")),
            (None, _) | (_, None) => unknown("the primary shows no heartbeat".to_owned()),
            (Some(Ok(beat)), Some(Ok(pulse))) => match pulse.lag(beat) {
                Some(lag) => (Replication::Behind(lag), String::new()),
                None => unknown("nobody writes the heartbeat on the primary".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_are_quoted() {
        let table = ("a`b".to_owned(), "select".to_owned());
        let sql = question(&table, Row::Of(7));
        assert!(
            sql.ends_with("FROM `a``b`.`select` WHERE server_id = 7"),
            "{sql}"
        );
        assert!(question(&table, Row::Own).ends_with("= @@global.server_id"));
    }

    #[test]
    fn answers() {
        let rows = |cells: [Option<&str>; 2]| {
            let cells = cells.map(|cell| cell.map(|text| text.as_bytes().to_vec()));
            read(&Answer::Rows(Vec::new(), vec![cells.to_vec()]))
        };
        assert_eq!(
            rows([Some("1700000000000001"), Some("3")]),
            Ok(Beat {
                written: 1_700_000_000_000_001,
                age: Some(Duration::from_secs(3)),
            })
        );
        assert_eq!(rows([Some("5"), None]).map(|beat| beat.age), Ok(None));
        for cells in [[None, None], [Some("x"), Some("1")]] {
            assert!(rows(cells).is_err());
        }
        let refused = Answer::Refused {
            code: 1146,
            message: "Table 'a.b' doesn't exist".to_owned(),
        };
        assert_eq!(
            read(&refused),
            Err("1146 Table 'a.b' doesn't exist".to_owned())
        );
        assert!(read(&Answer::Done).is_err());
        assert!(read(&Answer::Rows(Vec::new(), Vec::new())).is_err());
    }
}
