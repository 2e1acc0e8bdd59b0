//! Descriptors in reserve for all workers: one is given up for a moment when there are no more, so that whoever waits in a
//! listener's queue can be told. Who is told what is not here.
//!
//! Descriptors belong to the process, so what one worker gives up another may take for a client of its own between the
//! close and the accept; the next who gets a descriptor from accepting gives it back then instead of keeping it. A server
//! connection or a check may take it too, and keeps it. That is rare, so there are a few in reserve.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Descriptors in reserve.
const RESERVE: usize = 8;

/// See the module's words.
#[derive(Debug)]
pub struct Spare {
    /// Whether one has been in use since all were last seen to be there: accepting takes no lock otherwise.
    in_use: AtomicBool,
    files: Mutex<Vec<File>>,
}

impl Default for Spare {
    fn default() -> Self {
        let mut files = Vec::with_capacity(RESERVE);
        let is_full = fill(&mut files);
        Self {
            in_use: AtomicBool::new(!is_full),
            files: Mutex::new(files),
        }
    }
}

impl Spare {
    /// Whether who has just been accepted may keep the descriptor. The caller that may not closes it and says
    /// [`Self::replace`].
    pub(super) fn is_there(&self) -> bool {
        !self.in_use.load(Ordering::SeqCst) || self.replace()
    }

    /// Takes descriptors for what is missing of the reserve as far as there are any; whether it is there now.
    pub(super) fn replace(&self) -> bool {
        self.refill(&mut self.lock())
    }

    /// Does what needs one descriptor, and has it closed at its end, with one in reserve.
    ///
    /// # Errors
    /// What `act` returns: that there is no descriptor when the whole reserve was taken by others.
    pub(super) fn lend<T>(&self, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut files = self.lock();
        // Before the close: whoever is accepted by it sees this.
        self.in_use.store(true, Ordering::SeqCst);
        loop {
            let lent = files.pop().is_some();
            match act() {
                Err(error) if lent && error.raw_os_error() == Some(libc::EMFILE) => {}
                done => {
                    self.refill(&mut files);
                    return done;
                }
            }
        }
    }

    fn refill(&self, files: &mut Vec<File>) -> bool {
        let is_full = fill(files);
        self.in_use.store(!is_full, Ordering::SeqCst);
        is_full
    }

    fn lock(&self) -> MutexGuard<'_, Vec<File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fill(files: &mut Vec<File>) -> bool {
    while files.len() < RESERVE {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_meanwhile_is_missed_until_somebody_gives_one_back() {
        let spare = Spare::default();
        assert!(spare.is_there());
        assert_eq!(spare.lend(|| Ok(7)).expect("lent"), 7);
        assert_eq!(spare.lock().len(), RESERVE, "it is back when it was lent");
        // As after a lending during which somebody took it.
        spare.lock().pop();
        spare.in_use.store(true, Ordering::SeqCst);
        assert!(
            spare.is_there(),
            "there are descriptors: it is opened again"
        );
        assert_eq!(spare.lock().len(), RESERVE);
    }

    #[test]
    fn when_the_first_is_taken_the_next_is_tried() {
        let spare = Spare::default();
        let mut tries = 0;
        let taken = || Err::<(), _>(io::Error::from_raw_os_error(libc::EMFILE));
        let done = spare.lend(|| {
            tries += 1;
            if tries < 3 { taken() } else { Ok(()) }
        });
        assert!(done.is_ok());
        let mut tries = 0;
        let done = spare.lend(|| {
            tries += 1;
            taken()
        });
        assert!(done.is_err());
        assert_eq!(tries, RESERVE + 1, "with each, and once with none");
        let done = spare.lend(|| Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock)));
        assert!(done.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        assert!(spare.is_there());
    }
}
