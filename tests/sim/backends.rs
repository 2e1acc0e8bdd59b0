//! Atlas's server connections in the simulation: opened, logged in, read and given up as `src/worker/backend.rs` does.

use atlas::pool::HostId;
use atlas::pool::Shape;
use atlas::session::{Failure, Known, Parting, Role, Step, TlsWish, Upstream};

use crate::world::{Deferred, Event, World};

/// One server connection as Atlas has it.
#[derive(Debug)]
pub struct Back {
    pub host: usize,
    pub owner: (usize, Role),
    /// It has served as the primary's connection, and as a replica's, before or now: its host may have changed roles.
    pub served: [bool; 2],
    pub login: Option<Upstream>,
    pub received: Vec<u8>,
    pub out: Vec<u8>,
    pub thread_id: u32,
    pub is_connected: bool,
    pub is_gone: bool,
    pub made: Option<(Shape, Option<Vec<u8>>)>,
    /// What is known of it while it is idle.
    pub known: Option<Box<Known>>,
}

/// While the primary does not answer it is tried again after so long (microseconds).
const RETRY: u64 = 200_000;
/// What a tracker may leave unread for want of the rest of a packet.
const HELD_MAX: usize = 4096 + 8;

impl World {
    pub fn open(&mut self, place: usize, role: Role, avoid: Option<HostId>) {
        let Some(host) = self.choose(role, avoid) else {
            self.deferred.push_back(Deferred::OpenFailed {
                client: place,
                role,
                host: None,
                failure: Failure::NoHost,
            });
            return;
        };
        let tls = if self.tls {
            TlsWish::Required
        } else {
            TlsWish::No
        };
        let (wish, credentials) = self.fronts[place]
            .session
            .wish(role, &self.snapshot, tls, false);
        let shape = self.fronts[place].session.shape(role, &self.snapshot);
        let made = Some((shape, wish.schema.clone()));
        let upstream = Upstream::new(wish, credentials, 0);
        match self.connect(host, (place, role), upstream) {
            Some(b) => {
                self.backs[b].made = made;
                self.fronts[place].backends[role as usize] = Some(b);
            }
            None => self.open_failed(place, role, host, Failure::Unreachable("refused".into())),
        }
    }

    /// Reads what a server sent and passes it on.
    pub fn work_backend(&mut self, b: usize) {
        loop {
            let back = &mut self.backs[b];
            if back.is_gone || !back.is_connected {
                return;
            }
            if !back.out.is_empty() {
                let taken = self.back_links[b].up.send(&back.out);
                back.out.drain(..taken);
                self.schedule_server_up(b);
                if self.backs[b].out.is_empty() {
                    let (place, _) = self.backs[b].owner;
                    self.pump_client(place);
                    if self.backs[b].is_gone {
                        return;
                    }
                }
            }
            if self.backs[b].known.is_some() {
                let ended = self.back_links[b].down.is_at_end();
                if ended || !self.back_links[b].down.read(1).is_empty() {
                    self.pool.idle.retain(|idle| *idle != b);
                    self.drop_backend(b, Parting::Silent);
                }
                return;
            }
            let (place, role) = self.backs[b].owner;
            if self.backs[b].login.is_none() && !self.fronts[place].out.is_empty() {
                return;
            }
            let max = self.rng.between(1, 20_000);
            let bytes = self.back_links[b].down.read(max);
            if bytes.is_empty() {
                if self.back_links[b].down.is_at_end() {
                    self.end_of_backend(b);
                }
                return;
            }
            self.schedule_server_down(b);
            if self.backs[b].login.is_some() {
                self.backs[b].received.extend(bytes);
                self.step_login(b);
                continue;
            }
            let mut input = std::mem::take(&mut self.backs[b].received);
            input.extend(bytes);
            let n = self
                .tell(place, &mut input, |session, cx, input, client, out| {
                    session.on_backend(cx, role, input, client, out)
                })
                .unwrap_or(input.len());
            assert!(n <= input.len(), "more consumed than there was");
            input.drain(..n);
            assert!(
                input.len() < HELD_MAX || self.backs[b].is_gone,
                "{} bytes of a server are held back",
                input.len()
            );
            assert!(
                input.is_empty() || self.backs[b].known.is_none(),
                "a connection was given back with something unread"
            );
            self.backs[b].received = input;
            self.pump_client(place);
        }
    }

    fn end_of_backend(&mut self, b: usize) {
        let (place, role) = self.backs[b].owner;
        if self.backs[b].login.is_some() {
            return self.login_failed(b, Failure::Unreachable("closed during log-in".into()));
        }
        self.drop_backend(b, Parting::Silent);
        self.fronts[place].backends[role as usize] = None;
        self.tell(place, &mut [], |session, cx, _, bytes, out| {
            session.on_backend_lost(cx, role, "the server closed the connection", bytes, out);
        });
        self.pump_client(place);
    }

    pub fn step_login(&mut self, b: usize) {
        loop {
            let back = &mut self.backs[b];
            if back.is_gone {
                return;
            }
            let Some(login) = &mut back.login else {
                return;
            };
            if login.awaits_tls() {
                return;
            }
            let (consumed, step) = login.handle(&back.received);
            back.received.drain(..consumed);
            let waits = step == Step::Wait && consumed == 0;
            self.take_step(b, step);
            if waits {
                return;
            }
        }
    }

    pub fn take_step(&mut self, b: usize, step: Step) {
        match step {
            Step::Wait => {}
            Step::Send(packets) => self.write_raw(b, &packets),
            Step::SendThenTls(packets) => {
                self.write_raw(b, &packets);
                let delay = self.rng.between(10, 3000) as u64;
                self.after(delay, Event::BackendTls(b));
            }
            Step::Ready(ready) => {
                let back = &mut self.backs[b];
                back.login = None;
                back.thread_id = ready.thread_id;
                let (place, role) = back.owner;
                let host = HostId(u16::try_from(back.host).expect("few hosts"));
                let (shape, schema) = back.made.take().expect("it was made for somebody");
                let mut known = Known::new(host, shape, schema.as_deref(), &ready);
                self.pool.serials += 1;
                known.set_serial(self.pool.serials);
                self.fronts[place].waiting_since = None;
                self.tell(place, &mut [], |session, _, _, _, out| {
                    session.on_backend_ready(role, known, out);
                });
                self.pump_client(place);
            }
            Step::Failed(failure) => self.login_failed(b, failure),
        }
    }

    pub fn login_failed(&mut self, b: usize, failure: Failure) {
        if self.backs[b].is_gone {
            return;
        }
        let (place, role) = self.backs[b].owner;
        let host = self.backs[b].host;
        self.drop_backend(b, Parting::Silent);
        self.fronts[place].backends[role as usize] = None;
        self.open_failed(place, role, host, failure);
    }

    fn open_failed(&mut self, place: usize, role: Role, host: usize, failure: Failure) {
        let unreachable = matches!(failure, Failure::Unreachable(_));
        if unreachable && role == Role::Replica {
            self.hosts[host].is_known_up = false;
        }
        if unreachable && role == Role::Primary {
            let since = *self.fronts[place].waiting_since.get_or_insert(self.now);
            if self.now - since + RETRY <= self.primary_wait {
                return self.after(RETRY, Event::Reopen(place, false));
            }
        }
        self.fronts[place].waiting_since = None;
        self.deferred.push_back(Deferred::OpenFailed {
            client: place,
            role,
            host: Some(host),
            failure,
        });
    }

    pub fn reopen(&mut self, place: usize, role: Role) {
        let front = &self.fronts[place];
        if !front.is_gone && !front.session.is_closed() && front.backends[role as usize].is_none() {
            self.open(place, role, None);
        }
    }

    /// A connection is given back. Some are closed, as those whose time is over are.
    pub fn put_idle(&mut self, b: usize, known: Box<Known>) {
        if self.rng.one_in(20) {
            return self.drop_backend(b, Parting::Quit);
        }
        self.backs[b].known = Some(known);
        self.pool.idle.push(b);
        self.work_backend(b);
    }

    /// Closes Atlas's side of a server connection.
    pub fn drop_backend(&mut self, b: usize, parting: Parting) {
        let back = &mut self.backs[b];
        if back.is_gone {
            return;
        }
        back.is_gone = true;
        let link = &mut self.back_links[b];
        let may_speak = back.login.is_none() && back.out.is_empty();
        if may_speak && parting == Parting::Quit {
            link.up.send_all(&[1, 0, 0, 0, 1]);
        }
        link.up.close();
        link.down.break_off();
        self.schedule_server_up(b);
    }
}
