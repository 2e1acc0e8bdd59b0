//! Bytes of a client that stream through: the rest of a long command, or a file for LOAD DATA LOCAL.

use super::{Access, Attempt, Cx, Fault, Link, Output, Outputs, Parting, Role, Session, Upload};
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
            self.stop_upload(role, out);
        }
        let Some(upload) = &mut self.upload else {
            return end;
        };
        if let (Some(role), true) = (upload.to, end > 0) {
            out.push(Output::ForwardToBackend {
                role,
                range: at..at + end,
                access: upload.access,
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

    /// A sharded table may be named in a statement that is on its way to a server: it is not sent to its end, without which the server
    /// does nothing. The client is told when it has sent it.
    fn stop_upload(&mut self, role: Role, out: &mut Outputs) {
        self.late = Some(Box::new(Late {
            fault: Fault::Sharded(Refused::LONG),
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
