//! Comments: where they end, which are code, and the hints in the others.

use memchr::{memchr, memchr2};

use super::version::{self, Version};
use super::{Charset, Scanner, Traits};

impl Scanner<'_> {
    /// True if `--` before `at` starts a comment: a blank, a control character or the end follows.
    pub(super) fn ends_dashes(&mut self, at: usize) -> bool {
        match self.sql.get(at) {
            None | Some(0..=b' ' | 0x7f) => true,
            Some(0x80..) => match self.d.charset {
                Charset::SingleByte { blank } => {
                    let is_blank = self.sql.get(at) == Some(&blank);
                    if !is_blank {
                        // Several 8-bit sets have control characters here.
                        self.found |= Traits::DOUBTFUL;
                    }
                    is_blank
                }
                _ => false,
            },
            Some(_) => false,
        }
    }

    /// A comment to the end of the line; a version comment around it does not end inside.
    pub(super) fn line_comment(&mut self, body: usize) {
        let end = memchr(b'\n', self.rest(body)).map_or(self.sql.len(), |n| body + n);
        self.hints.see(self.span(body, end));
        self.at = end;
    }

    pub(super) fn block_comment(&mut self, start: usize) {
        let body = start + 2;
        if self.sql.get(body) == Some(&b'+') {
            self.found |= Traits::FOR_ITSELF;
        }
        match version::version(self.rest(body), &self.d) {
            None => match comment_end(self.rest(body)) {
                Some(len) => {
                    self.hints.see(self.span(body, body + len));
                    self.at = body + len + 2;
                }
                None => self.unterminated_comment(),
            },
            Some(Version {
                runs: true,
                marker_len,
                doubtful,
            }) => {
                self.found |= Traits::EXECUTABLE;
                if doubtful {
                    self.found |= Traits::DOUBTFUL;
                }
                self.in_version = true;
                self.version_edges = self.version_edges.wrapping_add(1);
                self.at = body + marker_len;
            }
            Some(Version {
                runs: false,
                marker_len,
                ..
            }) => {
                let inside = body + marker_len;
                match skipped_end(self.rest(inside)) {
                    Some(len) => self.at = inside + len,
                    None => self.unterminated_comment(),
                }
            }
        }
    }

    fn unterminated_comment(&mut self) {
        self.found |= Traits::UNTERMINATED;
        self.at = self.sql.len();
    }
}

/// How long the comment text is that `*/` ends.
fn comment_end(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let star = from + memchr(b'*', text.get(from..)?)?;
        if text.get(star + 1) == Some(&b'/') {
            return Some(star);
        }
        from = star + 1;
    }
}

/// Where the code behind a version comment starts that does not run; one level of plain comments
/// may be nested in such a comment.
fn skipped_end(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(b'*', b'/', text.get(from..)?)?;
        match (text.get(at)?, text.get(at + 1)) {
            (b'*', Some(b'/')) => return Some(at + 2),
            (b'/', Some(b'*')) => from = at + 2 + comment_end(text.get(at + 2..)?)? + 2,
            _ => from = at + 1,
        }
    }
}
