//! INSERTs that do not name their columns: a server is asked which there are, since without that it is not known which value is the
//! shard key.

use super::sync::Said;
use super::{Access, Cx, Fault, Outputs, Role, Session};
use crate::shard::{Placement, Refused};
use crate::sql;
use crate::wire::{Capabilities, ColumnCount, Packets, TextRow};

/// Errors that tell of other columns than those that are known: ER_BAD_FIELD_ERROR, ER_WRONG_VALUE_COUNT_ON_ROW, ER_NO_DEFAULT_FOR_FIELD.
pub(super) const OTHER_COLUMNS: [u16; 3] = [1054, 1136, 1364];

impl Session {
    /// Whether the reply to a statement about a sharded table tells of other columns than those that are known.
    pub(super) fn tells_of_columns(&self) -> bool {
        let error = self
            .reply
            .as_ref()
            .and_then(|reply| reply.tracker.outcome().error);
        self.dress.is_some() && error.is_some_and(|code| OTHER_COLUMNS.contains(&code))
    }

    /// Asks for the columns of a sharded table. The command is looked at again when they are known.
    ///
    /// # Errors
    /// They cannot be asked for.
    pub(super) fn ask_columns(
        &mut self,
        cx: &mut Cx<'_>,
        table: usize,
        out: &mut Outputs,
    ) -> Result<(), Fault> {
        let placement = cx.snapshot.placement.clone();
        let here = self.group_index(cx.snapshot);
        let Some((placement, of)) = placement
            .as_ref()
            .and_then(|placement| Some((placement, placement.tables.get(table)?)))
        else {
            return Err(Fault::Sharded(Refused::GONE));
        };
        // Any of its physical tables will do, one at hand first.
        let at_hand = of.shards.iter().find(|shard| shard.group == here);
        let Some(shard) = at_hand.or_else(|| of.shards.first()) else {
            return Err(Fault::Sharded(Refused::GONE));
        };
        if !self.go_to(cx, shard.group, out)? || !self.ensure(cx, Role::Primary, false, out) {
            return Ok(());
        }
        let dialect = self.dialect();
        let mut text = b"SHOW COLUMNS FROM ".to_vec();
        let schema = placement.schema_on(shard.group, &of.schema);
        let is_written = sql::push_name(&mut text, schema.as_bytes(), &dialect) && {
            text.push(b'.');
            sql::push_name(&mut text, shard.name.as_bytes(), &dialect)
        };
        if !is_written {
            return Err(Fault::Sharded(Refused::GONE));
        }
        let capabilities = self.capabilities_of(Role::Primary);
        out.backend(Role::Primary, Access::Read, |buffer| {
            super::bring::write_query(buffer, capabilities, &text);
        });
        self.start_sync(Role::Primary, [Said::Columns(table)].into());
        Ok(())
    }

    /// The answer to that.
    pub(super) fn columns_told(
        &mut self,
        cx: &mut Cx<'_>,
        table: usize,
        answer: &[u8],
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let capabilities = self.capabilities_of(Role::Primary);
        let placement: Option<&Placement> = cx.snapshot.placement.as_deref();
        let table = placement.and_then(|placement| placement.tables.get(table));
        let rows = rows_of(answer, capabilities).into_iter();
        let rows = rows.filter_map(|row| {
            let mut values = TextRow::new(row).map(|value| value.ok().flatten());
            Some((values.next()??, values.next()??, values.last()??))
        });
        let is_known = table.is_some_and(|table| cx.texts.columns.note(table, rows, cx.now));
        if !is_known {
            let fault = Fault::BadReply("a server does not tell a table's columns".to_owned());
            self.fail_command(cx, &fault, client, out);
        }
    }
}

/// The rows in a whole answer.
pub(super) fn rows_of(answer: &[u8], capabilities: Capabilities) -> Vec<&[u8]> {
    let packets: Vec<&[u8]> = Packets::new(answer).map(|(_, payload)| payload).collect();
    let count = packets
        .first()
        .map(|first| ColumnCount::parse(first, capabilities));
    let Some(Ok(count)) = count else {
        return Vec::new();
    };
    let definitions = if count.has_definitions {
        count.columns
    } else {
        0
    };
    let mid = u64::from(!capabilities.contains(Capabilities::DEPRECATE_EOF));
    let head = usize::try_from(1 + definitions + mid).unwrap_or(usize::MAX);
    let end = packets.len().saturating_sub(1);
    packets.get(head..end).unwrap_or_default().to_vec()
}
