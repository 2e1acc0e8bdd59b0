//! Many connections that ask all the time: each has one point select under way, and sends the next one when it has the answer. One
//! thread serves all of them, so that the client costs little: with a thread for each it would take more of the machine than the
//! server does, and the figures would be of the client.

use std::fmt::Write as _;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use super::point::Random;
use super::{Task, histogram, micros, through};
use crate::database::TABLES;
use crate::error::{Doing, Error, Result};
use crate::figures::{count, count64};
use crate::mysql::{ClientError, Connection, Pending};
use crate::record::{Record, say};
use crate::sys::{self, Epoll};

/// Not counted at the beginning.
const WARM: Duration = Duration::from_secs(2);

/// A connection with the statement that it waits for.
#[derive(Debug)]
struct Client {
    connection: Connection,
    pending: Option<Pending>,
    sent_ns: u64,
}

impl Client {
    fn ask(&mut self, sql: &mut String, random: &mut Random, rows: u32) -> Result<(), ClientError> {
        let table = 1 + random.below(usize::try_from(TABLES).unwrap_or(1));
        let id = 1 + random.next() % u64::from(rows);
        sql.clear();
        let _ = write!(sql, "SELECT c FROM sbtest{table} WHERE id={id}");
        self.sent_ns = sys::now_ns();
        self.pending = Some(self.connection.ask(sql)?);
        Ok(())
    }
}

/// Opens `task.threads` connections to the only target, asks for [`WARM`] and `task.secs`, and prints one line.
pub(super) fn run(task: &Task) -> Result<()> {
    let (name, address) = task.only_target()?;
    let through = through(name);
    let epoll = &mut Epoll::new().doing(|| "make an epoll".into())?;
    let mut clients = Vec::with_capacity(task.threads);
    for token in 0..task.threads {
        let connection = Connection::open(address).map_err(&through)?;
        epoll
            .add(connection.as_fd(), token as u64, true, false)
            .doing(|| "watch a connection".into())?;
        clients.push(Client {
            connection,
            pending: None,
            sent_ns: 0,
        });
    }
    let (mut sql, mut random) = (String::new(), Random::new(0));
    for client in &mut clients {
        client
            .ask(&mut sql, &mut random, task.rows)
            .map_err(&through)?;
    }
    let from = sys::now_ns() + nanoseconds(WARM);
    let until = from + nanoseconds(Duration::from_secs(task.secs));
    let (mut times, mut open) = (histogram(3)?, clients.len());
    let (mut statements, mut errors) = (0_u64, 0_u64);
    let (mut events, mut chunk) = (Vec::new(), vec![0; 65536]);
    while open > 0 {
        match epoll.wait(&mut events) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other.doing(|| "wait for answers".into())?,
        }
        for event in &events {
            let place = usize::try_from(event.token).unwrap_or(usize::MAX);
            let Some(client) = clients.get_mut(place) else {
                continue;
            };
            let Some(pending) = &mut client.pending else {
                return Err(Error::Failed(format!("{name}: nobody asked")));
            };
            if !client
                .connection
                .take(pending, &mut chunk)
                .map_err(&through)?
            {
                continue;
            }
            errors += u64::from(pending.rows() != 1);
            statements += 1;
            let now = sys::now_ns();
            if now >= until {
                // Without a connection that is closed, or the loop would be woken by it.
                client.pending = None;
                open -= 1;
                continue;
            }
            if now >= from {
                times.saturating_record(now - client.sent_ns);
            }
            client
                .ask(&mut sql, &mut random, task.rows)
                .map_err(&through)?;
        }
    }
    clients.into_iter().for_each(|c| c.connection.quit());
    let line = Record::new()
        .text("target", name)
        .number("clients", count(task.threads))
        .number("statements", count64(statements))
        .number("qps", count64(times.len()) / count64(task.secs))
        .number("p50_ms", micros(&times, 0.50) / 1000.0)
        .number("p99_ms", micros(&times, 0.99) / 1000.0)
        .number("errors", count64(errors));
    say(&line.to_line());
    Ok(())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
