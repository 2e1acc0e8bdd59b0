//! The oracle's comparison of results: what the shadow answered against what came.

use atlas::wire::Status;

use crate::answer::Echo;
use crate::engine::{loaded, run};
use crate::memory::OF_A_COMMAND;
use crate::oracle::{Lenience, Oracle, ShadowOutside, expect_error, insert_ids};
use crate::outcome::{After, Done, Outcome};
use crate::prepared::{parameters, prepare, take_rows};
use crate::reply::{Part, values};

/// Flags that say something of the session.
const FLAGS: [Status; 3] = [
    Status::IN_TRANS,
    Status::AUTOCOMMIT,
    Status::NO_BACKSLASH_ESCAPES,
];

impl Oracle {
    pub fn status(&self, status: Status) -> Result<(), String> {
        same_flags(status, self.shadow.status())
    }

    pub fn plain_ok(&self, parts: &[Part]) -> Result<(), String> {
        match parts {
            [Part::Ok { status, .. }] => self.status(*status),
            other => Err(format!("instead of OK: {other:?}")),
        }
    }

    pub fn eof(&self, parts: &[Part]) -> Result<(), String> {
        match parts {
            [Part::Eof(status)] => self.status(*status),
            other => Err(format!("instead of EOF: {other:?}")),
        }
    }

    pub fn prepare(&mut self, text: &[u8], parts: &[Part]) -> Result<(), String> {
        let found = prepare(&mut self.shadow, &self.databases, text);
        match (found, parts) {
            (Err(code), _) => expect_error(code, parts),
            (
                Ok((shadow, params, gives_rows, tag)),
                [
                    Part::Prepared {
                        id,
                        params: found,
                        names,
                    },
                ],
            ) => {
                let mut expected = vec![b"?".to_vec(); usize::from(params)];
                if gives_rows {
                    expected.push(format!("prepared {tag}").into_bytes());
                }
                if params != *found || expected != *names {
                    return Err(format!(
                        "prepare of {tag}: {found} parameters, columns {names:02x?}"
                    ));
                }
                if self.ids.insert(*id, shadow).is_some() {
                    return Err(format!("two statements with the id {id}"));
                }
                Ok(())
            }
            (_, other) => Err(format!("prepare: {other:?}")),
        }
    }

    pub fn execute(
        &mut self,
        id: u32,
        body: &[u8],
        parts: &[Part],
        lenience: Lenience<'_>,
    ) -> Result<(), String> {
        let caps = self.caps;
        self.last_role = None;
        let Some(shadow_id) = self.ids.get(&id).copied() else {
            return self.command_error(1243, parts);
        };
        let Some(mut statement) = self.shadow.prepared.remove(&shadow_id) else {
            return Err(format!("the oracle lost statement {id}"));
        };
        let verdict = match parameters(&mut statement, caps, body) {
            Err(code) => {
                statement.long_data.clear();
                expect_error(code, parts)
            }
            Ok((flags, values)) => {
                statement.long_data.clear();
                statement.cursor = None;
                let mut outside = ShadowOutside {
                    databases: &mut self.databases,
                    believed: &mut self.believed,
                    insert_ids: insert_ids(parts),
                };
                let done = run(&mut self.shadow, &mut outside, &statement.text, &values);
                match &done[0].outcome {
                    Outcome::Rows {
                        rows,
                        error_after: None,
                        ..
                    } if flags & 1 != 0 && !may_skip_cursor(&statement.text, parts) => {
                        statement.cursor = Some(*rows);
                        self.opens_cursor(parts)
                    }
                    _ => self.results(&done, parts, true, lenience),
                }
            }
        };
        self.shadow.prepared.insert(shadow_id, statement);
        verdict
    }

    fn opens_cursor(&mut self, parts: &[Part]) -> Result<(), String> {
        self.last_role = Some(false);
        match parts {
            [
                Part::Rows {
                    rows,
                    status,
                    error: None,
                    ..
                },
            ] if rows.is_empty() && status.contains(Status::CURSOR_EXISTS) => self.status(*status),
            other => Err(format!("instead of a cursor: {other:?}")),
        }
    }

    pub fn fetch(&mut self, id: u32, wanted: u32, parts: &[Part]) -> Result<(), String> {
        let Some(shadow_id) = self.ids.get(&id).copied() else {
            return self.command_error(1243, parts);
        };
        let Some(mut statement) = self.shadow.prepared.remove(&shadow_id) else {
            return Err(format!("the oracle lost statement {id}"));
        };
        let taken = take_rows(&mut self.shadow, &mut statement, wanted);
        self.shadow.prepared.insert(shadow_id, statement);
        let tag = self.shadow.previous.warned;
        match (taken, parts) {
            (Err(_), [Part::Error(_, message)]) if is_of_prepare(message, tag) => Ok(()),
            (Err(code), _) => expect_error(code, parts),
            (
                Ok((count, tag)),
                [
                    Part::Rows {
                        rows, error: None, ..
                    },
                ],
            ) if rows.len() == count => {
                for row in rows {
                    let echo = echo_of(row, true)?;
                    if echo.tag != tag {
                        return Err(format!("fetched a row of {} instead of {tag}", echo.tag));
                    }
                }
                Ok(())
            }
            (Ok((count, _)), other) => Err(format!("instead of {count} fetched rows: {other:?}")),
        }
    }

    pub fn results(
        &mut self,
        done: &[Done],
        parts: &[Part],
        binary: bool,
        lenience: Lenience<'_>,
    ) -> Result<(), String> {
        let mut parts = parts.iter();
        for one in done {
            let part = parts
                .next()
                .ok_or_else(|| format!("no result for {} {:?}", one.tag, one.outcome))?;
            let wrong = || format!("instead of {:?} for {}: {part:?}", one.outcome, one.tag);
            match (&one.outcome, part) {
                (
                    Outcome::Ok { affected, .. },
                    Part::Ok {
                        affected: found,
                        info,
                        status,
                        ..
                    },
                ) if affected == found => {
                    same_flags(*status, one.after.status)?;
                    self.echo(one, &Echo::parse(info).ok_or_else(wrong)?, None, lenience)?;
                }
                // Warnings that Atlas asked for before it gave their connection back.
                (Outcome::Rows { value, .. }, Part::Rows { rows, .. }) if matches!(rows.as_slice(), [row] if is_kept(row, value)) =>
                    {}
                (
                    Outcome::Rows {
                        rows: count,
                        value,
                        error_after,
                    },
                    Part::Rows {
                        rows,
                        status,
                        error,
                        ..
                    },
                ) if rows.len() == *count && error.is_some() == error_after.is_some() => {
                    if error.is_none() {
                        same_flags(*status, one.after.status)?;
                    }
                    let first = rows.first().map(|row| echo_of(row, binary)).transpose()?;
                    for row in rows {
                        let echo = echo_of(row, binary)?;
                        if Some(&echo) != first.as_ref() {
                            return Err(format!("rows of two executions: {echo:?}, {first:?}"));
                        }
                    }
                    if let Some(echo) = first {
                        self.echo(one, &echo, Some(value), lenience)?;
                    }
                    if let Some((code, _)) = error
                        && *code != 1242
                    {
                        return Err(wrong());
                    }
                }
                // The statement could not be prepared where it was to run, for the same reason.
                (Outcome::Error(code), Part::Error(found, message))
                    if code == found && is_of_prepare(message, one.tag) => {}
                (Outcome::Error(code), Part::Error(found, message)) if code == found => {
                    self.echo(
                        one,
                        &Echo::parse(message).ok_or_else(wrong)?,
                        None,
                        lenience,
                    )?;
                }
                (Outcome::File, Part::Error(1148, _))
                    if !self.caps.contains(atlas::wire::Capabilities::LOCAL_FILES) => {}
                (Outcome::File, Part::File(name)) => {
                    if *name != format!("file {}", one.tag).into_bytes() {
                        return Err(wrong());
                    }
                    self.load(one, parts.next(), lenience)?;
                }
                _ => return Err(wrong()),
            }
        }
        match parts.next() {
            Some(more) => Err(format!("one result too many: {more:?}")),
            None => Ok(()),
        }
    }

    fn load(
        &mut self,
        one: &Done,
        part: Option<&Part>,
        lenience: Lenience<'_>,
    ) -> Result<(), String> {
        let Some(Part::Ok { info, status, .. }) = part else {
            return Err(format!("behind the file: {part:?}"));
        };
        let mut outside = ShadowOutside {
            databases: &mut self.databases,
            believed: &mut self.believed,
            insert_ids: std::collections::VecDeque::new(),
        };
        loaded(&mut self.shadow, &mut outside, one.tag);
        let after = After::of(&self.shadow);
        same_flags(*status, after.status)?;
        let one = Done {
            after,
            ..one.clone()
        };
        let echo = Echo::parse(info).ok_or_else(|| format!("behind the file: {part:?}"))?;
        self.echo(&one, &echo, None, lenience)
    }

    /// The statement ran once for this reply, in the right place, and saw the session as the client had set it.
    fn echo(
        &mut self,
        one: &Done,
        echo: &Echo,
        value: Option<&str>,
        lenience: Lenience<'_>,
    ) -> Result<(), String> {
        if echo.tag != one.tag {
            return Err(format!("the reply to {} for {}", echo.tag, one.tag));
        }
        if !self.executions.insert(echo.execution) {
            return Err(format!("two replies from one execution of {}", one.tag));
        }
        // Atlas answers a KILL of its own clients without a server, whose warnings then stay as they were.
        let of_a_command = format!("warnings of {OF_A_COMMAND}");
        let is_known = value != Some(&of_a_command) || !echo.value.starts_with("warnings");
        if let Some(value) = value
            && is_known
            && value != echo.value
        {
            return Err(format!("{}: {} instead of {value}", one.tag, echo.value));
        }
        let is_replica = (lenience.is_replica)(echo.backend);
        self.last_role = (!(lenience.was_both)(echo.backend)).then_some(is_replica);
        let mut pairs = vec![(&echo.common, &one.after.common)];
        if one.asks && is_replica {
            pairs.clear();
        } else if one.mentions_user_variables || !is_replica {
            pairs.push((&echo.users, &one.after.users));
        }
        if !is_replica {
            pairs.push((&echo.own, &one.after.own));
        }
        for (found, expected) in pairs {
            if found != expected {
                return Err(format!(
                    "{} ran on backend {} in a session of another state:\n   found {found}\nexpected {expected}",
                    one.tag, echo.backend
                ));
            }
        }
        Ok(())
    }
}

fn is_of_prepare(message: &[u8], tag: u32) -> bool {
    message == format!("prepare {tag}").as_bytes()
}

/// A question about the previous statement may be answered without a cursor.
fn may_skip_cursor(text: &[u8], parts: &[Part]) -> bool {
    let asks = text.ends_with(b"SHOW WARNINGS") || text.ends_with(b"_ROWS()");
    asks && !matches!(parts, [Part::Rows { status, .. }] if status.contains(Status::CURSOR_EXISTS))
}

fn same_flags(found: Status, expected: Status) -> Result<(), String> {
    for flag in FLAGS {
        if found.contains(flag) != expected.contains(flag) {
            return Err(format!(
                "status {:04x}, expected {:04x}",
                found.0, expected.0
            ));
        }
    }
    Ok(())
}

fn echo_of(row: &[u8], binary: bool) -> Result<Echo, String> {
    let values = values(row, binary, 1)?;
    values
        .first()
        .and_then(|text| Echo::parse(text))
        .ok_or_else(|| format!("no echo in {row:02x?}"))
}

fn is_kept(row: &[u8], value: &str) -> bool {
    row.ends_with(format!("kept|{value}").as_bytes())
}
