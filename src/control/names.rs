//! Names of servers, resolved again and again in the background: resolving blocks for as long as it likes, so each name has a
//! thread of its own, and nobody else waits for it but the start.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time between two looks. The system's resolver tells nothing of how long an answer holds; it, or a cache beside it, knows.
const EVERY: Duration = Duration::from_secs(5);

/// Between two looks at least, whoever asks.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known of one name.
#[derive(Debug, Default)]
pub(super) struct Name {
    answer: Mutex<Option<Result<Vec<SocketAddr>, String>>>,
    has_answer: Condvar,
    wish: Arc<Wish>,
}

/// Somebody wants the name to be looked up before it is time. Not a part of the name, which its thread does not keep alive.
#[derive(Debug, Default)]
struct Wish {
    is_there: Mutex<bool>,
    changed: Condvar,
}

impl Wish {
    /// Waits until there is one, for as long as a look holds at most.
    fn wait(&self) {
        let is_there = self.is_there.lock().unwrap_or_else(PoisonError::into_inner);
        let left = EVERY.saturating_sub(PAUSE);
        let (mut is_there, _) = self
            .changed
            .wait_timeout_while(is_there, left, |is_there| !*is_there)
            .unwrap_or_else(PoisonError::into_inner);
        *is_there = false;
    }
}

impl Name {
    /// The addresses, in the resolver's order; at the start once there are any, at most until the deadline.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn addresses(&self, deadline: Instant) -> Result<Vec<SocketAddr>, String> {
        let mut answer = self.lock();
        loop {
            if let Some(answer) = &*answer {
                return answer.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("its name was not resolved in time".to_owned());
            }
            answer = self
                .has_answer
                .wait_timeout(answer, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The server does not answer where it was: it may have moved.
    pub(super) fn look_again(&self) {
        let mut is_there = self
            .wish
            .is_there
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *is_there = true;
        self.wish.changed.notify_one();
    }

    /// Takes the resolver's answer. A failure does not take away what was found before: a server goes on when DNS is down.
    /// Gives what there is to say.
    fn take(&self, name: &str, found: Result<Vec<SocketAddr>, String>) -> Option<String> {
        let mut answer = self.lock();
        let told = match (&*answer, &found) {
            (Some(Ok(known)), Ok(now)) if is_same(known, now) => return None,
            (Some(Ok(_)), Err(why)) => {
                return Some(format!(
                    "cannot resolve {name}: {why}; what was found before holds"
                ));
            }
            (Some(Err(known)), Err(why)) if known == why => return None,
            (_, Err(why)) => format!("cannot resolve {name}: {why}"),
            (None, Ok(_)) => String::new(),
            (Some(_), Ok(now)) => format!("{name} is now at {now:?}"),
        };
        *answer = Some(found);
        self.has_answer.notify_all();
        Some(told).filter(|told| !told.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<Vec<SocketAddr>, String>>> {
        // What is held is replaced as a whole: a panic elsewhere leaves nothing half done.
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolvers rotate their answers: the order says nothing.
fn is_same(one: &[SocketAddr], other: &[SocketAddr]) -> bool {
    one.len() == other.len() && one.iter().all(|address| other.contains(address))
}

/// The names that are asked for.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<(String, u16), Weak<Name>>>);

impl Names {
    /// What is known of a name; a thread sees to it for as long as anybody holds it.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn get(&self, host: &str, port: u16) -> io::Result<Arc<Name>> {
        // What is held is changed by single calls.
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host.to_owned(), port);
        if let Some(name) = names.get(&key).and_then(Weak::upgrade) {
            return Ok(name);
        }
        let name = Arc::new(Name::default());
        let (resolved, (host, port)) = (Arc::downgrade(&name), key.clone());
        let wish = name.wish.clone();
        std::thread::Builder::new()
            .name("resolve".to_owned())
            .spawn(move || resolve(&resolved, &wish, &host, port))?;
        names.retain(|_, name| name.strong_count() > 0);
        names.insert(key, Arc::downgrade(&name));
        Ok(name)
    }
}

fn resolve(name: &Weak<Name>, wish: &Wish, host: &str, port: u16) {
    let mut last_failure = None;
    loop {
        let found = match (host, port).to_socket_addrs() {
            Ok(found) => Ok(found.collect::<Vec<_>>()).and_then(|found| {
                if found.is_empty() {
                    Err("it has no address".to_owned())
                } else {
                    Ok(found)
                }
            }),
            Err(error) => Err(error.to_string()),
        };
        let failure = found.as_ref().err().cloned();
        let Some(name) = name.upgrade() else {
            return;
        };
        let told = name.take(host, found);
        drop(name);
        // A failure that goes on is said once.
        if let Some(told) = told
            && (failure.is_none() || failure != last_failure)
        {
            log::warn!("{told}");
        }
        last_failure = failure;
        std::thread::sleep(PAUSE);
        wish.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(ports: &[u16]) -> Vec<SocketAddr> {
        ports
            .iter()
            .map(|port| SocketAddr::from(([10, 0, 0, 1], *port)))
            .collect()
    }

    #[test]
    fn answers_replace_each_other_and_failures_do_not() {
        let name = Name::default();
        let now = Instant::now();
        assert!(name.addresses(now).unwrap_err().contains("in time"));
        let told = name.take("db", Err("no".to_owned()));
        assert_eq!(told.unwrap(), "cannot resolve db: no");
        assert_eq!(name.take("db", Err("no".to_owned())), None);
        assert_eq!(name.addresses(now), Err("no".to_owned()));
        assert!(name.take("db", Ok(addresses(&[1, 2]))).is_some());
        assert_eq!(name.take("db", Ok(addresses(&[2, 1]))), None);
        assert!(
            name.take("db", Err("no".to_owned()))
                .unwrap()
                .contains("holds")
        );
        assert_eq!(name.addresses(now), Ok(addresses(&[1, 2])));
        assert!(
            name.take("db", Ok(addresses(&[3])))
                .unwrap()
                .contains("is now at")
        );
        assert_eq!(name.addresses(now), Ok(addresses(&[3])));
    }

    #[test]
    fn names_are_resolved_in_the_background() {
        let names = Names::default();
        let first = names.get("localhost", 7).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        assert!(
            first
                .addresses(deadline)
                .unwrap()
                .iter()
                .all(|a| a.port() == 7 && a.ip().is_loopback())
        );
        assert!(Arc::ptr_eq(&first, &names.get("localhost", 7).unwrap()));
        assert!(!Arc::ptr_eq(&first, &names.get("localhost", 8).unwrap()));
    }
}
