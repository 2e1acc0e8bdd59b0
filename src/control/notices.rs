//! Makes events of what workers have noticed.

use std::io;
use std::sync::Arc;

use super::Desk;
use crate::worker::Shared;

/// Starts the thread.
///
/// # Errors
/// It could not be made.
pub fn start(shared: Arc<Shared>, desk: Arc<Desk>) -> io::Result<()> {
    std::thread::Builder::new()
        .name("notices".to_owned())
        .spawn(move || {
            loop {
                let notice = shared.notices.next();
                desk.events().record("atlas", notice.kind, notice.text);
            }
        })?;
    Ok(())
}
