//! What a client is told of a statement in parts: SHOW WARNINGS, and what became of each part of a definition.

use std::cmp::Ordering;

use super::super::{Fault, Last, Role, Session};
use super::Series;
use crate::wire::{ColumnDef, ResultSetWriter, RowFormat};

/// The use of a connection that there is never: what it would tell is kept by the session.
const NOWHERE: u64 = u64::MAX;

impl Session {
    /// A statement for several servers has failed: SHOW WARNINGS is to tell its error, and no connection knows of it.
    pub(in super::super) fn note_failure(&mut self, fault: &Fault) {
        let (code, _) = fault.code();
        let error = [
            b"Error".to_vec(),
            code.to_string().into_bytes(),
            fault.to_string().into_bytes(),
        ];
        self.numbers.row_count = Some(-1);
        self.note_shown_warnings(1, &[error]);
    }

    /// What SHOW WARNINGS is to tell, of which the connection knows nothing any more.
    pub(in super::super) fn note_shown_warnings(&mut self, warnings: u16, shown: &[[Vec<u8>; 3]]) {
        self.last = None;
        self.has_moved = true;
        self.warned_dress = None;
        self.warned = Some(Last {
            role: Role::Primary,
            serial: NOWHERE,
            holds: false,
            warnings,
            failed: false,
            lost: false,
        });
        let mut reply = Vec::new();
        let columns = [
            ColumnDef::text(b"Level"),
            ColumnDef::number(b"Code"),
            ColumnDef::text(b"Message"),
        ];
        let mut rows = ResultSetWriter::begin_with(
            &mut reply,
            1,
            self.capabilities,
            self.status,
            RowFormat::Text,
            &columns,
        );
        for [level, code, message] in shown {
            rows.row(&[Some(level), Some(code), Some(message)]);
        }
        rows.finish();
        let area = super::super::area::Area::new(reply, warnings, self.capabilities);
        self.kept = Some(Box::new(area));
    }
}

impl Series {
    /// What became of each part of a definition that failed.
    pub(super) fn notes(&self) -> Vec<String> {
        let places = self.places.iter().flatten().enumerate();
        let note = |(at, place): (usize, &String)| {
            let what = match at.cmp(&self.at) {
                Ordering::Less => "done",
                Ordering::Equal => "failed",
                Ordering::Greater => "not tried",
            };
            format!("{place}: {what}")
        };
        places.map(note).collect()
    }

    /// The error of a definition, with what became of its parts.
    pub(in super::super) fn report(&self, fault: &Fault) -> Option<Fault> {
        let places = self.places.as_ref().filter(|places| places.len() > 1)?;
        let failed = places.get(self.at)?;
        let list = |some: Option<&[String]>| match some {
            None | Some([]) => "nothing".to_owned(),
            Some(some) => some.join(", "),
        };
        let (done, left) = (list(places.get(..self.at)), list(places.get(self.at + 1..)));
        let (code, sqlstate) = fault.code();
        Some(Fault::Server {
            code,
            sqlstate,
            message: format!("{fault} (failed on {failed}; done on {done}; not tried on {left})"),
        })
    }
}
