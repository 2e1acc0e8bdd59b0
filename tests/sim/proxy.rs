//! Atlas in the simulation: real sessions, and a driver in place of `src/worker` that carries out their outputs as the worker
//! does, and fails the test when an output makes no sense.

use atlas::pool::HostId;
use atlas::session::{
    Access, Ask, Cx, Known, Lend, NoLender, Output, Outputs, Parting, Role, Session, Wants,
};

use crate::backends::Back;
use crate::rng::Rng;
use crate::world::{Deferred, Event, World};

/// One client as Atlas has it.
#[derive(Debug)]
pub struct Front {
    pub session: Session,
    /// What was read and not consumed.
    pub received: Vec<u8>,
    /// What the client's socket did not take.
    pub out: Vec<u8>,
    pub backends: [Option<usize>; 2],
    pub waiting_since: Option<u64>,
    /// Atlas has closed the client's socket and forgotten the session.
    pub is_gone: bool,
    /// The session is over; what is left is being sent.
    is_finishing: bool,
}

impl Front {
    pub fn new(session: Session) -> Self {
        Self {
            session,
            received: Vec::new(),
            out: Vec::new(),
            backends: [None; 2],
            waiting_since: None,
            is_gone: false,
            is_finishing: false,
        }
    }
}

/// Idle server connections, which clients take from one another whenever they can.
#[derive(Debug, Default)]
pub struct Pool {
    pub idle: Vec<usize>,
    pub serials: u64,
    /// How often a connection went from one client to another.
    pub passed_on: u64,
}

#[derive(Debug)]
struct Lender<'w> {
    backs: &'w mut Vec<Back>,
    pool: &'w mut Pool,
    primary: usize,
    place: usize,
    lent: [Option<usize>; 2],
}

impl Lend for Lender<'_> {
    fn lend(&mut self, ask: &Ask) -> Option<Box<Known>> {
        // The longest idle first: it has most likely been another client's.
        let at = self.pool.idle.iter().position(|b| {
            let back = &self.backs[*b];
            let known = back.known.as_ref().expect("an idle connection is known");
            match ask.same {
                Some(serial) => known.serial() == serial,
                None => {
                    known.shape() == ask.shape
                        && (back.host == self.primary) == (ask.role == Role::Primary)
                        && ask.avoid.is_none_or(|host| host.index() != back.host)
                }
            }
        })?;
        let b = self.pool.idle.remove(at);
        let back = &mut self.backs[b];
        let mut known = back.known.take()?;
        if ask.same.is_none() {
            self.pool.serials += 1;
            known.set_serial(self.pool.serials);
        }
        self.pool.passed_on += u64::from(back.owner.0 != self.place);
        back.owner = (self.place, ask.role);
        back.served[ask.role as usize] = true;
        self.lent[ask.role as usize] = Some(b);
        Some(known)
    }
}

fn nonce_of(rng: &mut Rng) -> [u8; 20] {
    let mut nonce = [0; 20];
    for byte in &mut nonce {
        *byte = u8::try_from(rng.between(1, 127)).expect("below 128");
    }
    nonce
}

impl World {
    /// Takes a client in and greets it.
    pub fn adopt(&mut self, place: usize) {
        let mut out = Outputs::default();
        let mut rng = self.rng.fork();
        let mut nonce = || nonce_of(&mut rng);
        let mut cx = Cx {
            snapshot: &self.snapshot,
            offer: &self.offer,
            nonce: &mut nonce,
            now: std::time::Duration::from_micros(self.now),
            lender: &mut NoLender,
            texts: &mut self.texts,
        };
        let id = atlas::session::client_id(0, u32::try_from(place + 1).expect("few clients"));
        let session = Session::new(id, atlas::session::Peer::Local, &mut cx, &mut out);
        self.fronts.push(Front::new(session));
        self.perform(place, &[], out);
    }

    pub fn tell<R>(
        &mut self,
        place: usize,
        input: &mut [u8],
        call: impl FnOnce(&mut Session, &mut Cx<'_>, &mut [u8], &mut [u8], &mut Outputs) -> R,
    ) -> Option<R> {
        let front = &mut self.fronts[place];
        if front.is_gone {
            return None;
        }
        let mut out = Outputs::default();
        let mut rng = self.rng.fork();
        let mut lender = Lender {
            backs: &mut self.backs,
            pool: &mut self.pool,
            primary: self.primary,
            place,
            lent: [None; 2],
        };
        let mut nonce = || nonce_of(&mut rng);
        let mut cx = Cx {
            snapshot: &self.snapshot,
            offer: &self.offer,
            nonce: &mut nonce,
            now: std::time::Duration::from_micros(self.now),
            lender: &mut lender,
            texts: &mut self.texts,
        };
        let result = call(
            &mut front.session,
            &mut cx,
            input,
            &mut front.received,
            &mut out,
        );
        // The same as when everything else has been carried out.
        let now = cx.now;
        front.session.afterwards(now, &mut self.texts, &mut out);
        for (backend, lent) in front.backends.iter_mut().zip(lender.lent) {
            if let Some(b) = lent {
                assert!(backend.is_none(), "a second connection is taken");
                *backend = Some(b);
            }
        }
        self.perform(place, input, out);
        Some(result)
    }

    fn perform(&mut self, place: usize, input: &[u8], outputs: Outputs) {
        let mut consumed = 0;
        self.output_count += outputs.list.len();
        for output in outputs.list {
            match output {
                Output::ForwardToBackend {
                    role,
                    range,
                    access,
                } => {
                    let bytes = self.fronts[place].received[range].to_vec();
                    if !self.write_backend(place, role, access, &bytes) {
                        break;
                    }
                }
                Output::SendToBackend {
                    role,
                    range,
                    access,
                } => {
                    let bytes = outputs.arena[range].to_vec();
                    if !self.write_backend(place, role, access, &bytes) {
                        break;
                    }
                }
                Output::ForwardToClient(range) => self.write_client(place, &input[range]),
                Output::SendToClient(range) => self.write_client(place, &outputs.arena[range]),
                Output::Consume(n) => consumed += n,
                Output::Open { role, avoid } => {
                    assert!(
                        self.fronts[place].backends[role as usize].is_none(),
                        "a second {role:?} connection is opened"
                    );
                    self.open(place, role, avoid);
                }
                Output::Release { role, known } => {
                    let b = self.fronts[place].backends[role as usize]
                        .take()
                        .expect("a connection that is not there is given back");
                    assert!(
                        self.backs[b].out.is_empty(),
                        "it is given back with bytes unsent"
                    );
                    self.put_idle(b, known);
                }
                Output::OnCall { role } => {
                    if self.rng.one_in(3) {
                        let delay = self.rng.between(1, 3000) as u64;
                        self.after(delay, Event::Reclaim(place, role == Role::Replica));
                    }
                }
                Output::CloseBackend { role, parting } => {
                    if let Some(b) = self.fronts[place].backends[role as usize].take() {
                        if parting == Parting::Kill && self.backs[b].login.is_none() {
                            let thread = self.backs[b].thread_id;
                            let delay = self.rng.between(100, 5000) as u64;
                            self.after(delay, Event::KillThread(thread));
                        }
                        self.drop_backend(b, parting);
                    }
                }
                // No script does so.
                Output::DefaultsChanged { .. } | Output::PrimaryIsReadOnly | Output::Cut { .. } => {
                }
                Output::StartTls => {
                    let delay = self.rng.between(10, 3000) as u64;
                    self.after(delay, Event::TlsReady(place));
                }
                Output::Denied => self.deferred.push_back(Deferred::Denied { client: place }),
                Output::LoggedIn(_) | Output::Unseen | Output::Note(_) | Output::CloseClient => {}
                Output::BeginLeg { .. }
                | Output::TellLeg { .. }
                | Output::Across(..)
                | Output::EndLeg(_)
                | Output::EndLegs
                | Output::InterruptLegs => {
                    panic!("no table is sharded here")
                }
                Output::Alarm(_)
                | Output::Interrupt { .. }
                | Output::CallOff { .. }
                | Output::Spare { .. } => panic!("no account has limits here"),
                Output::Kill { id, query_only } => {
                    assert!(!query_only, "no script kills statements only");
                    let found = self.fronts.iter().position(|other| {
                        other.session.id() == id && !other.is_gone && !other.is_finishing
                    });
                    self.deferred.push_back(Deferred::KillDone {
                        client: place,
                        found: found.is_some(),
                    });
                    if let Some(other) = found {
                        self.client_gone(other);
                    }
                }
            }
        }
        let front = &mut self.fronts[place];
        assert!(
            consumed <= front.received.len(),
            "consumed {consumed} of {} bytes",
            front.received.len()
        );
        front.received.drain(..consumed);
        if front.session.is_closed() && !front.is_gone {
            self.finish_client(place);
        }
    }

    fn write_client(&mut self, place: usize, bytes: &[u8]) {
        let front = &mut self.fronts[place];
        let link = &mut self.links[place];
        let mut taken = 0;
        if front.out.is_empty() {
            taken = link.down.send(bytes);
        }
        front.out.extend_from_slice(&bytes[taken..]);
        self.schedule_client_down(place);
    }

    /// The last-moment check and the write. False when the write was refused.
    fn write_backend(&mut self, place: usize, role: Role, access: Access, bytes: &[u8]) -> bool {
        let b = self.fronts[place].backends[role as usize]
            .expect("bytes for a server connection that is not there");
        let back = &mut self.backs[b];
        assert!(
            back.login.is_none(),
            "a command for a server connection that is not logged in"
        );
        if access == Access::Write && back.host != self.primary {
            let host = back.host;
            self.deferred.push_back(Deferred::WriteRefused {
                client: place,
                host,
            });
            return false;
        }
        self.write_raw(b, bytes);
        true
    }

    pub fn write_raw(&mut self, b: usize, bytes: &[u8]) {
        let back = &mut self.backs[b];
        let mut taken = 0;
        if back.out.is_empty() {
            taken = self.back_links[b].up.send(bytes);
        }
        back.out.extend_from_slice(&bytes[taken..]);
        self.schedule_server_up(b);
    }

    /// The client's socket took something or something came from it.
    pub fn work_client(&mut self, place: usize) {
        let front = &mut self.fronts[place];
        if front.is_gone {
            return;
        }
        if !front.out.is_empty() {
            let taken = self.links[place].down.send(&front.out);
            front.out.drain(..taken);
            self.schedule_client_down(place);
            if self.fronts[place].out.is_empty() {
                for b in self.fronts[place].backends.into_iter().flatten() {
                    self.work_backend(b);
                }
            }
        }
        if self.fronts[place].is_finishing {
            return self.finish_client(place);
        }
        self.pump_client(place);
    }

    pub fn pump_client(&mut self, place: usize) {
        let mut seen = 0;
        loop {
            let front = &self.fronts[place];
            if front.is_gone {
                return;
            }
            if front.session.is_closed() {
                return self.finish_client(place);
            }
            let Wants::Bytes(wanted) = front.session.wants() else {
                if self.links[place].up.end_is_known() {
                    self.client_gone(place);
                }
                return;
            };
            let behind = front
                .backends
                .iter()
                .flatten()
                .any(|b| !self.backs[*b].out.is_empty());
            if !front.out.is_empty() || behind {
                return;
            }
            let held = front.received.len();
            if held >= wanted && held > seen {
                seen = held;
                let before = (held, front.session.wants());
                let outputs = self.output_count;
                self.tell(place, &mut [], |session, cx, _, bytes, out| {
                    session.on_client(cx, bytes, out);
                });
                let front = &self.fronts[place];
                if front.received.len() < held {
                    seen = 0;
                }
                let after = (front.received.len(), front.session.wants());
                let waits_for_more = matches!(after.1, Wants::Bytes(n) if n <= after.0);
                assert!(
                    before != after || !waits_for_more || outputs != self.output_count,
                    "the session wants {wanted} bytes, has {held} and does nothing"
                );
                continue;
            }
            let max = wanted.saturating_sub(held).max(self.rng.between(1, 20_000));
            let bytes = self.links[place].up.read(max);
            if bytes.is_empty() {
                if self.links[place].up.is_at_end() {
                    self.client_gone(place);
                }
                return;
            }
            self.schedule_client_up(place);
            self.fronts[place].received.extend(bytes);
        }
    }

    /// The client is gone: the session ends, and with it its server connections.
    pub fn client_gone(&mut self, place: usize) {
        self.tell(place, &mut [], |session, _, _, _, out| {
            session.on_client_closed(out);
        });
        self.drop_client(place);
    }

    fn finish_client(&mut self, place: usize) {
        self.fronts[place].is_finishing = true;
        if self.fronts[place].out.is_empty() {
            self.drop_client(place);
        }
    }

    pub fn drop_client(&mut self, place: usize) {
        let front = &mut self.fronts[place];
        if front.is_gone {
            return;
        }
        front.is_gone = true;
        let left = front.backends;
        for b in left.into_iter().flatten() {
            self.drop_backend(b, Parting::Silent);
        }
        self.links[place].down.close();
        self.links[place].up.break_off();
        self.schedule_client_down(place);
    }

    pub fn settle_deferred(&mut self) {
        while let Some(deferred) = self.deferred.pop_front() {
            match deferred {
                Deferred::OpenFailed {
                    client,
                    role,
                    host,
                    failure,
                } => {
                    let host = host.map(|host| HostId(u16::try_from(host).expect("few hosts")));
                    self.tell(client, &mut [], |session, cx, _, bytes, out| {
                        session.on_backend_failed(cx, role, host, &failure, bytes, out);
                    });
                    self.work_client(client);
                }
                Deferred::WriteRefused { client, host } => {
                    let host = HostId(u16::try_from(host).expect("few hosts"));
                    self.tell(client, &mut [], |session, cx, _, bytes, out| {
                        session.on_write_refused(cx, host, bytes, out);
                    });
                    self.work_client(client);
                }
                Deferred::Denied { client } => {
                    self.tell(client, &mut [], |session, _, _, _, out| {
                        session.on_denial(out);
                    });
                    self.work_client(client);
                }
                Deferred::KillDone { client, found } => {
                    self.tell(client, &mut [], |session, _, _, _, out| {
                        session.on_kill_done(found, out);
                    });
                    self.work_client(client);
                }
            }
        }
    }
}
