//! The world of one seed: virtual time, clients, Atlas, servers and the network between them. One event after the other, in
//! an order that follows from the seed alone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use atlas::pool::{HostId, Offer};
use atlas::route::{Balance, Candidate};
use atlas::session::{Failure, Role, Texts, Upstream};
use atlas::snapshot::Snapshot;
use atlas::wire::Capabilities;

use crate::backends::Back;
use crate::client::{Client, Phase};
use crate::greeter::Greeter;
use crate::memory::{Defaults, Flavour};
use crate::net::{Link, Pipe};
use crate::oracle::Lenience;
use crate::outcome::Databases;
use crate::proxy::{Front, Pool};
use crate::rng::Rng;
use crate::server::{Estate, ServerConn};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    NewClient,
    ClientTick(usize),
    ClientUp(usize),
    ClientDown(usize),
    TlsReady(usize),
    Connected(usize),
    BackendTls(usize),
    ConnectTimeout(usize),
    ServerUp(usize),
    ServerDown(usize),
    /// A server connection executes what it got.
    Execute(usize),
    Reopen(usize, IsReplica),
    /// Somebody needs a connection that this client has on call.
    Reclaim(usize, IsReplica),
    KillThread(u32),
    CheckHosts,
    Fault,
    HostUp(usize),
}

pub type IsReplica = bool;

/// To be told to a session when its outputs have been carried out.
#[derive(Debug)]
pub enum Deferred {
    OpenFailed {
        client: usize,
        role: Role,
        host: Option<usize>,
        failure: Failure,
    },
    WriteRefused {
        client: usize,
        host: usize,
    },
    KillDone {
        client: usize,
        found: bool,
    },
    Denied {
        client: usize,
    },
}

#[derive(Debug)]
pub struct Host {
    pub accepts: bool,
    pub defaults: Defaults,
    /// As Atlas's checks saw it last.
    pub is_known_up: bool,
}

/// See the module's words.
#[derive(Debug)]
pub struct World {
    pub now: u64,
    pub rng: Rng,
    pub events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pub serial: u64,
    pub flavour: Flavour,
    pub tls: bool,
    pub faulty: bool,
    /// Something has gone wrong by intent.
    pub faults_seen: bool,
    pub faults_end: u64,
    pub snapshot: Snapshot,
    pub offer: Offer,
    pub capabilities: Capabilities,
    pub primary_wait: u64,
    pub estate: Estate,
    pub hosts: Vec<Host>,
    /// The host that is the primary now.
    pub primary: usize,
    pub balance: Balance,
    pub clients: Vec<Client>,
    pub fronts: Vec<Front>,
    pub links: Vec<Link>,
    pub backs: Vec<Back>,
    pub back_links: Vec<Link>,
    pub servers: Vec<ServerConn>,
    pub deferred: VecDeque<Deferred>,
    pub pool: Pool,
    pub texts: Texts,
    pub output_count: usize,
    pub clients_to_come: usize,
    pub next_tag: u32,
}

/// More events than any world needs: something goes round in circles.
const EVENTS_MAX: usize = 2_000_000;

impl World {
    pub fn after(&mut self, delay: u64, event: Event) {
        self.serial += 1;
        self.events
            .push(Reverse((self.now + delay, self.serial, event)));
    }

    /// Runs until nothing is left to happen, then looks at what is left.
    pub fn run(&mut self) {
        let mut count = 0;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            self.now = self.now.max(time);
            self.happen(event);
            self.settle_deferred();
            count += 1;
            assert!(count < EVENTS_MAX, "the world does not come to rest");
        }
        self.check_end();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::NewClient => self.new_client(),
            Event::ClientTick(place) => self.tick(place),
            Event::ClientUp(place) => {
                self.links[place].up.scheduled = false;
                if self.links[place].up.deliver(&mut self.rng) {
                    self.links[place].break_off();
                    self.schedule_client_down(place);
                }
                self.schedule_client_up(place);
                self.work_client(place);
            }
            Event::ClientDown(place) => self.client_receives(place),
            Event::TlsReady(place) => {
                if !self.fronts[place].is_gone {
                    self.fronts[place].session.on_tls_ready();
                    self.pump_client(place);
                }
            }
            Event::Connected(b) => self.connected(b),
            Event::BackendTls(b) => {
                if !self.backs[b].is_gone
                    && let Some(login) = &mut self.backs[b].login
                {
                    let step = login.tls_ready();
                    self.take_step(b, step);
                    self.step_login(b);
                }
            }
            Event::ConnectTimeout(b) => {
                if self.backs[b].login.is_some() {
                    self.login_failed(b, Failure::Unreachable("too late".into()));
                }
            }
            Event::ServerUp(b) => self.server_receives(b),
            Event::ServerDown(b) => {
                self.back_links[b].down.scheduled = false;
                if self.back_links[b].down.deliver(&mut self.rng) {
                    self.back_links[b].break_off();
                }
                self.schedule_server_down(b);
                self.work_backend(b);
            }
            Event::Execute(b) => self.execute(b),
            Event::Reopen(place, is_replica) => {
                let role = if is_replica {
                    Role::Replica
                } else {
                    Role::Primary
                };
                self.reopen(place, role);
            }
            Event::Reclaim(place, is_replica) => {
                let role = if is_replica {
                    Role::Replica
                } else {
                    Role::Primary
                };
                self.tell(place, &mut [], |session, _, _, _, out| {
                    session.on_reclaim(role, out);
                });
            }
            Event::KillThread(thread) => {
                let found = self
                    .servers
                    .iter()
                    .position(|s| s.thread_id == thread && !s.is_closed);
                if let Some(b) = found {
                    self.close_server(b);
                }
            }
            Event::CheckHosts => {
                for host in &mut self.hosts {
                    host.is_known_up = host.accepts;
                }
                let alive = self.clients.iter().any(|c| c.phase != Phase::Closed);
                if alive || self.clients_to_come > 0 {
                    self.after(500_000, Event::CheckHosts);
                }
            }
            Event::Fault => self.fault(),
            Event::HostUp(host) => self.hosts[host].accepts = true,
        }
    }

    fn new_client(&mut self) {
        if self.clients_to_come == 0 {
            return;
        }
        self.clients_to_come -= 1;
        let place = self.clients.len();
        let own = [format!("d{place}a"), format!("d{place}b")];
        self.estate.databases.names.extend(own.clone());
        let mut databases = Databases::default();
        databases.names.insert("t1".to_owned());
        databases.names.extend(own);
        let mut rng = self.rng.fork();
        let mut habits = Client::habits(&mut rng, self.flavour, place, self.capabilities);
        if let Some(first) = self.clients.first()
            && !rng.one_in(4)
        {
            // Most come by the same driver, so that they can share connections.
            let own = habits.caps & Capabilities::MULTI_STATEMENTS;
            let common = first.habits.caps.without(Capabilities::MULTI_STATEMENTS);
            habits.caps = common | own;
            habits.charset = first.habits.charset;
            habits.user = first.habits.user;
        }
        if habits.user == "reader" && self.hosts.len() == 1 {
            habits.user = "both";
        }
        self.clients.push(Client::new(
            place,
            self.hosts[0].defaults,
            habits,
            databases,
            rng,
        ));
        let window = self.rng.between(40, 30_000);
        self.links.push(Link {
            up: Pipe::new(usize::MAX),
            down: Pipe::new(window),
        });
        self.adopt(place);
        self.after(1, Event::ClientTick(place));
        let pause = self.rng.between(0, 400_000) as u64;
        self.after(pause, Event::NewClient);
    }

    fn lenience<R>(
        &mut self,
        place: usize,
        call: impl FnOnce(&mut Client, Lenience<'_>) -> R,
    ) -> R {
        let backs = &self.backs;
        let is_replica = |b: usize| backs[b].served[Role::Replica as usize];
        let was_both = |b: usize| backs[b].served == [true; 2];
        let lenience = Lenience {
            faults: self.faults_seen,
            is_replica: &is_replica,
            was_both: &was_both,
        };
        call(&mut self.clients[place], lenience)
    }

    fn tick(&mut self, place: usize) {
        if self.clients[place].phase == Phase::Closed {
            return;
        }
        let leaves = self.clients[place]
            .habits
            .leaves_at
            .is_some_and(|at| self.clients[place].sent_count >= at);
        if leaves || self.clients[place].vanishes {
            return self.client_leaves(place);
        }
        let others: Vec<(usize, u32)> = self
            .clients
            .iter()
            .filter(|c| c.place != place && c.id != 0)
            .map(|c| (c.place, c.id))
            .collect();
        let mut next_tag = self.next_tag;
        let produced = self.lenience(place, |client, lenience| {
            client.produce(&mut next_tag, &others, lenience)
        });
        self.next_tag = next_tag;
        let bytes = self.agreed(place, produced);
        let killed: Vec<usize> = self.clients[place].kills().collect();
        for other in killed {
            self.clients[other].may_be_killed = true;
        }
        self.client_sends(place, &bytes);
        let pause = match self.rng.below(8) {
            0 => self.rng.between(1, 100_000),
            1 => 0,
            _ => self.rng.between(1, 2000),
        };
        self.after(pause as u64 + 1, Event::ClientTick(place));
    }

    fn client_leaves(&mut self, place: usize) {
        self.clients[place].leave();
        if self.rng.one_in(2) {
            self.links[place].up.close();
            self.schedule_client_up(place);
        } else {
            self.links[place].break_off();
            self.schedule_client_up(place);
        }
    }

    fn client_sends(&mut self, place: usize, bytes: &[u8]) {
        self.links[place].up.send_all(bytes);
        self.schedule_client_up(place);
    }

    fn client_receives(&mut self, place: usize) {
        let link = &mut self.links[place];
        link.down.scheduled = false;
        let breaks = link.down.deliver(&mut self.rng);
        let bytes = link.down.read(usize::MAX);
        if breaks {
            link.break_off();
            self.schedule_client_up(place);
        }
        self.schedule_client_down(place);
        if self.clients[place].phase != Phase::Closed {
            let received =
                self.lenience(place, |client, lenience| client.receive(&bytes, lenience));
            let answer = self.agreed(place, received);
            self.client_sends(place, &answer);
            if self.links[place].down.is_at_end() {
                let ended = self.lenience(place, |client, lenience| client.ended(lenience));
                self.agreed(place, ended);
                self.links[place].up.close();
                self.schedule_client_up(place);
            }
        }
        self.work_client(place);
    }

    /// What a client says is wrong ends the test.
    fn agreed<T>(&self, place: usize, result: Result<T, String>) -> T {
        result.unwrap_or_else(|why| {
            let client = &self.clients[place];
            panic!(
                "client {place} at {} us ({:?}, capabilities {:09x}, user {}): {why}",
                self.now, self.flavour, client.habits.caps.0, client.habits.user
            )
        })
    }

    pub fn choose(&mut self, role: Role, avoid: Option<HostId>) -> Option<usize> {
        if role == Role::Primary {
            return Some(self.primary);
        }
        let hosts = &self.hosts;
        let candidates = self.snapshot.groups[0]
            .replicas
            .iter()
            .filter(|(host, _)| Some(*host) != avoid && hosts[host.index()].is_known_up)
            .map(|(host, weight)| Candidate {
                host: *host,
                weight: *weight,
            });
        self.balance.pick(candidates).map(HostId::index)
    }

    /// Opens a connection to a host; `None` when it is refused on the spot.
    pub fn connect(
        &mut self,
        host: usize,
        owner: (usize, Role),
        upstream: Upstream,
    ) -> Option<usize> {
        if !self.hosts[host].accepts && self.rng.one_in(2) {
            return None;
        }
        let b = self.backs.len();
        let thread_id = u32::try_from(b + 100).expect("few connections");
        let mut nonce = [0; 20];
        for byte in &mut nonce {
            *byte = u8::try_from(self.rng.between(1, 127)).expect("below 128");
        }
        let mut greeter = Greeter::new(self.hosts[host].defaults, self.capabilities, nonce);
        greeter.asks_to_switch = self.rng.one_in(3);
        greeter.refusal = self.refusal();
        self.backs.push(Back {
            host,
            owner,
            login: Some(upstream),
            received: Vec::new(),
            out: Vec::new(),
            thread_id: 0,
            is_connected: false,
            is_gone: false,
            made: None,
            served: [owner.1 == Role::Primary, owner.1 == Role::Replica],
            known: None,
        });
        let window = self.rng.between(40, 30_000);
        self.back_links.push(Link {
            up: Pipe::new(window),
            down: Pipe::new(usize::MAX),
        });
        self.servers.push(ServerConn::new(
            thread_id,
            b,
            owner.1 == Role::Replica && host != self.primary,
            greeter,
        ));
        let delay = self.rng.between(50, 2000) as u64;
        self.after(delay, Event::Connected(b));
        self.after(2_000_000, Event::ConnectTimeout(b));
        Some(b)
    }

    fn connected(&mut self, b: usize) {
        if self.backs[b].is_gone {
            return;
        }
        if !self.hosts[self.backs[b].host].accepts {
            self.servers[b].is_closed = true;
            return self.login_failed(b, Failure::Unreachable("refused".into()));
        }
        self.backs[b].is_connected = true;
        let server = &self.servers[b];
        let greeting = server
            .greeter
            .as_ref()
            .map(|greeter| greeter.greet(server.thread_id));
        if let Some(reaction) = greeting {
            self.server_sends(b, &reaction);
        }
    }

    pub fn schedule_client_up(&mut self, place: usize) {
        let pipe = &mut self.links[place].up;
        let delay = delay_of(pipe, self.now, &mut self.rng);
        if let Some(delay) = delay {
            self.after(delay, Event::ClientUp(place));
        }
    }

    pub fn schedule_client_down(&mut self, place: usize) {
        let pipe = &mut self.links[place].down;
        let delay = delay_of(pipe, self.now, &mut self.rng);
        if let Some(delay) = delay {
            self.after(delay, Event::ClientDown(place));
        }
    }

    pub fn schedule_server_up(&mut self, b: usize) {
        let pipe = &mut self.back_links[b].up;
        let delay = delay_of(pipe, self.now, &mut self.rng);
        if let Some(delay) = delay {
            self.after(delay, Event::ServerUp(b));
        }
    }

    pub fn schedule_server_down(&mut self, b: usize) {
        let pipe = &mut self.back_links[b].down;
        let delay = delay_of(pipe, self.now, &mut self.rng);
        if let Some(delay) = delay {
            self.after(delay, Event::ServerDown(b));
        }
    }
}

fn delay_of(pipe: &mut Pipe, now: u64, rng: &mut Rng) -> Option<u64> {
    if pipe.scheduled || !pipe.wants_delivery() {
        return None;
    }
    pipe.scheduled = true;
    let delay = match rng.below(10) {
        0 => rng.between(0, 20_000),
        1..4 => 0,
        _ => rng.between(0, 500),
    } as u64;
    Some(delay.max(pipe.stalled_until.saturating_sub(now)))
}
