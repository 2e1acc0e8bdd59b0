//! Bytes of a client that stream through: the rest of a long command, or a file for LOAD DATA LOCAL.

use super::loss::host_name;
use super::{Access, Attempt, Cx, Fault, Link, Output, Outputs, Parting, Role, Session, Upload};
use crate::pool::HostId;
use crate::shard::Refused;
use crate::wire::{Header, MAX_PAYLOAD};

/// A refusal that waits for the end of the client's command.
#[derive(Debug)]
pub(super) struct Late {
    fault: Fault,
    /// The session ends with it.
    ends: bool,
}

impl Session {
    /// What the client sends now is its file. Retained bytes of the statement must be out of the way first, and what other
    /// statements of the batch do to the session cannot be read in them any more.
    #[cold]
    pub(super) fn await_file(&mut self, role: Role, out: &mut Outputs) {
        if self.notes_at_end() {
            self.state.set_opaque();
            self.state.set_user_variables_unknown();
        }
        self.release_command(out);
        // The client takes its own time.
        self.attempt.set_deadline(None);
        self.upload = Some(Upload {
            to: Some(role),
            access: Access::Write,
            left: 0,
            more: false,
            seq: 0,
            is_file: true,
        });
    }

    /// Forwards what there is of a long command or of a file; gives the number of bytes dealt with. With its end the server's time begins.
    #[inline(never)]
    pub(super) fn upload_on(
        &mut self,
        cx: &Cx<'_>,
        rest: &[u8],
        at: usize,
        out: &mut Outputs,
    ) -> usize {
        let consumed = self.upload(rest, at, out);
        if self.upload.is_none() {
            self.restart_clock(cx.now, out);
        }
        consumed
    }

    fn upload(&mut self, rest: &[u8], at: usize, out: &mut Outputs) -> usize {
        let Some(upload) = &mut self.upload else {
            return 0;
        };
        let mut end = 0_usize;
        let mut done = false;
        let mut is_named = false;
        let is_text = upload.to.is_some() && !upload.is_file;
        let mut lookout = self.lookout.as_deref_mut().filter(|_| is_text);
        while end < rest.len() {
            if upload.left == 0 {
                let Some(header) = Header::parse(rest.get(end..).unwrap_or_default()) else {
                    break;
                };
                let continues = upload.more;
                upload.more = header.len == MAX_PAYLOAD;
                upload.left = header.len;
                upload.seq = header.seq;
                end += 4;
                // Behind a full frame an empty one only says that the packet ended there. Elsewhere it ends a file.
                if header.len == 0 && !(upload.is_file && continues) {
                    done = true;
                    break;
                }
                continue;
            }
            let step = upload.left.min(rest.len() - end);
            if let Some(lookout) = &mut lookout {
                is_named |= lookout.sees(rest.get(end..end + step).unwrap_or_default());
            }
            upload.left -= step;
            end += step;
            if upload.left == 0 && !upload.more && !upload.is_file {
                done = true;
                break;
            }
        }
        if done && let Some(lookout) = &mut lookout {
            is_named |= lookout.ends();
        }
        if is_named && let Some(role) = upload.to.take() {
            self.stop_upload(role, Fault::Sharded(Refused::LONG), out);
        }
        let Some(upload) = &mut self.upload else {
            return end;
        };
        if let (Some(role), true) = (upload.to, end > 0) {
            out.push(Output::ForwardToBackend {
                role,
                range: at..at + end,
                // What may leave is asked anew for each piece: the one before may have left long ago.
                access: match upload.access {
                    Access::Read => Access::Read,
                    Access::Write | Access::Rest => Access::Rest,
                },
            });
        }
        if done && let Some(upload) = self.upload.take() {
            self.lookout = None;
            if let Some(late) = self.late.take() {
                self.refuse_late(upload.seq.wrapping_add(1), &late, out);
                return end;
            }
            // What the server says from here on follows the client's last packet.
            match &mut self.reply {
                Some(reply) if upload.to == Some(reply.role) && upload.seq > 0 => {
                    reply.tracker.follows(upload.seq);
                }
                _ => {}
            }
        }
        end
    }

    /// Whether a statement is on its way to this connection's server that has not arrived as a whole.
    pub(super) fn is_sending_statement(&self, role: Role) -> bool {
        let is_statement = |upload: &Upload| upload.to == Some(role) && !upload.is_file;
        // Long data has no reply that could be another.
        self.upload.as_ref().is_some_and(is_statement)
            && self.reply.as_ref().is_some_and(|reply| reply.role == role)
    }

    /// The server to which a statement is on its way is no longer the primary. What has not left of it does not leave any more, and it cannot
    /// be said to another one, since it was not kept.
    pub(super) fn stop_demoted_upload(&mut self, cx: &Cx<'_>, what: String, out: &mut Outputs) {
        if let Some(upload) = &mut self.upload {
            upload.to = None;
        }
        let fault = self.left_in_part(cx, what);
        self.stop_upload(Role::Primary, fault, out);
    }

    fn left_in_part(&self, cx: &Cx<'_>, what: String) -> Fault {
        if self.is_bound() {
            return Fault::Lost(what);
        }
        Fault::NoPrimary {
            group: self.group(cx.snapshot).name.clone(),
            why: format!("{what}, and the statement had left in part"),
        }
    }

    /// The last-moment check found that the connection's host is not the primary, for a piece of what had left in part. The piece was not sent,
    /// and is passed over.
    pub fn on_rest_refused(
        &mut self,
        cx: &Cx<'_>,
        host: HostId,
        client: &mut [u8],
        out: &mut Outputs,
    ) {
        let role = Role::Primary;
        if self.is_closed() || !self.link(role).is_ready() {
            return;
        }
        let what = format!("{} is no longer the primary", host_name(cx, Some(host)));
        if self.is_sending_statement(role) {
            return self.stop_demoted_upload(cx, what, out);
        }
        // Without its end the server does nothing with a statement.
        out.push(Output::CloseBackend {
            role,
            parting: Parting::Silent,
        });
        let is_whole = self.upload.is_none();
        match self.reply.take_if(|reply| reply.role == role && is_whole) {
            // It was the last piece.
            Some(reply) => {
                let late = Late {
                    fault: self.left_in_part(cx, what),
                    ends: self.is_bound(),
                };
                *self.link_mut(role) = Link::Absent;
                self.note_loss(role);
                self.preparing = None;
                self.refuse_late(reply.tracker.next_seq(), &late, out);
            }
            // A file, of which part may be stored, or data for a statement of which nobody may say a word.
            None => self.on_backend_lost(cx, role, &what, client, out),
        }
    }

    /// A statement that is on its way to a server is not sent to its end, without which the server does nothing. The client is told when it
    /// has sent it.
    fn stop_upload(&mut self, role: Role, fault: Fault, out: &mut Outputs) {
        self.late = Some(Box::new(Late {
            fault,
            ends: self.is_bound(),
        }));
        out.push(Output::CloseBackend {
            role,
            parting: Parting::Silent,
        });
        *self.link_mut(role) = Link::Absent;
        self.note_loss(role);
        self.reply = None;
        self.preparing = None;
    }

    fn refuse_late(&mut self, seq: u8, late: &Late, out: &mut Outputs) {
        self.attempt = Attempt::default();
        if late.ends {
            // With the connection went what the client had there.
            return self.refuse_and_close(&late.fault, seq, out);
        }
        self.refuse(&late.fault, seq, out);
        self.give_back(out);
    }

    /// Answers a command of several packets, of which the first is at the front and passed over, when all of it has come: the answer's
    /// number follows that of the last.
    pub(super) fn refuse_behind(&mut self, fault: &Fault) {
        self.late = Some(Box::new(Late {
            fault: fault.clone(),
            ends: false,
        }));
    }
}
