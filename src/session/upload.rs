//! Bytes of a client that stream through: the rest of a long command, or a file for LOAD DATA LOCAL.

use super::{Output, Outputs, Session};
use crate::wire::{Header, MAX_PAYLOAD};

impl Session {
    /// Forwards what there is of a long command or of a file; gives the number of bytes dealt with.
    pub(super) fn upload(&mut self, rest: &[u8], at: usize, out: &mut Outputs) -> usize {
        let Some(upload) = &mut self.upload else {
            return 0;
        };
        let mut end = 0_usize;
        let mut done = false;
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
            upload.left -= step;
            end += step;
            if upload.left == 0 && !upload.more && !upload.is_file {
                done = true;
                break;
            }
        }
        if let (Some(role), true) = (upload.to, end > 0) {
            out.push(Output::ForwardToBackend {
                role,
                range: at..at + end,
                access: upload.access,
            });
        }
        if done && let Some(upload) = self.upload.take() {
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
}
