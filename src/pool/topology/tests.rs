//! The rules one by one; MySQL's replication groups are in `groups`, what holds in any history is in
//! `histories`.

mod groups;
mod histories;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What a made-up server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Server {
    is_up: bool,
    is_read_only: bool,
    source: Option<usize>,
}

const PRIMARY: Server = Server {
    is_up: true,
    is_read_only: false,
    source: None,
};
const REPLICA: Server = Server {
    is_up: true,
    is_read_only: true,
    source: Some(0),
};

/// Three servers, the first of which is the configured primary.
struct World {
    servers: [Server; 3],
    topology: Topology,
    /// Whether the last look at each was answered.
    answered: [bool; 3],
    now: Duration,
    notices: Vec<Notice>,
}

fn host(place: usize) -> HostId {
    HostId(u16::try_from(place).unwrap())
}

fn address(place: usize) -> String {
    format!("10.0.0.{place}:3306")
}

impl World {
    fn new() -> Self {
        Self {
            servers: [PRIMARY, REPLICA, REPLICA],
            topology: Topology::new((0..3).map(|place| (host(place), address(place))), None),
            answered: [true; 3],
            now: Duration::ZERO,
            notices: Vec::new(),
        }
    }

    fn settled() -> Self {
        let mut world = Self::new();
        world.rounds(2);
        assert_eq!(world.primary(), Some(0));
        world.notices.clear();
        world
    }

    fn look(&self, place: usize) -> Look {
        let server = self.servers[place];
        if !server.is_up {
            return Look::Silent;
        }
        Look::Answered(Sight {
            identity: Identity {
                server_id: place as u64 + 1,
                uuid: Vec::new(),
            },
            is_read_only: Some(server.is_read_only),
            sources: server
                .source
                .map(|source| Source {
                    address: address(source),
                    identity: Identity::default(),
                })
                .into_iter()
                .collect(),
            view: None,
            is_continuous: self.answered[place],
        })
    }

    fn tell(&mut self, place: usize, look: Look, begun: Duration) -> Vec<Notice> {
        self.answered[place] = look != Look::Silent;
        self.now += Duration::from_millis(1);
        self.topology.note(host(place), look, begun);
        let notices = self.topology.decide(self.now);
        self.notices.extend(notices.iter().cloned());
        notices
    }

    fn check(&mut self, place: usize) -> Vec<Notice> {
        self.now += SECOND;
        let look = self.look(place);
        self.tell(place, look, self.now)
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            for place in 0..self.servers.len() {
                self.check(place);
            }
        }
    }

    fn primary(&self) -> Option<usize> {
        self.topology.primary().map(HostId::index)
    }

    fn fenced(&self) -> Vec<usize> {
        self.topology.fenced().map(HostId::index).collect()
    }

    /// The roles after some rounds of checks.
    fn ends(&mut self, primary: Option<usize>, fenced: &[usize]) {
        self.rounds(4);
        assert_eq!(
            (self.primary(), self.fenced()),
            (primary, fenced.to_vec()),
            "{:?}",
            self.notices
        );
    }
}

const CLAIMANT: Server = PRIMARY;

fn follower(of: usize) -> Server {
    Server {
        source: Some(of),
        ..REPLICA
    }
}

#[test]
fn the_configured_primary_begins() {
    let mut world = World::new();
    assert_eq!(world.primary(), None);
    world.check(1);
    assert_eq!(world.primary(), None);
    world.check(0);
    assert_eq!(world.primary(), Some(0));
    world.ends(Some(0), &[]);
    assert!(!world.topology.is_in_question(world.now));
}

#[test]
fn another_begins_where_the_configured_one_is_a_replica() {
    let mut world = World::new();
    world.servers = [follower(1), CLAIMANT, follower(1)];
    world.ends(Some(1), &[]);
    // Also where it takes writes.
    let mut world = World::new();
    world.servers = [
        Server {
            is_read_only: false,
            ..follower(1)
        },
        CLAIMANT,
        follower(1),
    ];
    world.ends(Some(1), &[]);
}

#[test]
fn a_dead_primary_begins_where_no_other_claims() {
    let mut world = World::new();
    world.servers[0].is_up = false;
    world.ends(Some(0), &[]);
    world.servers[1] = CLAIMANT;
    world.ends(Some(1), &[]);
}

#[test]
fn a_switchover() {
    let mut world = World::settled();
    world.servers[0].is_read_only = true;
    world.ends(None, &[]);
    world.servers[1] = CLAIMANT;
    world.servers[0] = follower(1);
    world.servers[2] = follower(1);
    world.ends(Some(1), &[]);
    // And back, opened before the other is closed.
    world.servers[0] = CLAIMANT;
    world.ends(Some(1), &[0]);
    world.servers[1].is_read_only = true;
    world.ends(Some(0), &[]);
    world.servers[1] = follower(0);
    world.ends(Some(0), &[]);
}

#[test]
fn a_switch_that_one_check_sees_half_is_no_second_primary() {
    let mut world = World::settled();
    world.check(0);
    world.servers[0].is_read_only = true;
    world.servers[1] = CLAIMANT;
    let notices = world.check(1);
    assert_eq!((notices, world.fenced()), (vec![], vec![]));
    assert!(world.topology.is_in_question(world.now));
    world.check(0);
    assert_eq!(world.primary(), None);
    world.check(1);
    assert_eq!(world.primary(), Some(1));
}

#[test]
fn a_closed_primary_that_opens_again_is_it_again() {
    let mut world = World::settled();
    world.servers[0].is_read_only = true;
    world.check(0);
    world.servers[0].is_read_only = false;
    world.check(0);
    assert_eq!(world.primary(), None, "the others were not asked yet");
    world.ends(Some(0), &[]);
}

#[test]
fn who_does_not_answer_stays_until_another_is_promoted() {
    let mut world = World::settled();
    world.servers[0].is_up = false;
    world.ends(Some(0), &[]);
    // Detached is not promoted, nor is one that takes writes and still waits for its source.
    world.servers[1].source = None;
    world.ends(Some(0), &[]);
    world.servers[1] = Server {
        is_read_only: false,
        ..REPLICA
    };
    world.ends(Some(0), &[]);
    world.servers[1] = CLAIMANT;
    world.ends(Some(1), &[]);
}

#[test]
fn one_failed_check_takes_nobody_out_of_office() {
    let mut world = World::settled();
    world.servers[0].is_up = false;
    world.servers[1] = CLAIMANT;
    world.check(0);
    world.check(1);
    world.servers[0].is_up = true;
    world.ends(Some(0), &[1]);
}

#[test]
fn an_old_primary_that_comes_back_is_fenced_until_it_was_seen_closed() {
    let mut world = World::settled();
    world.servers[0].is_up = false;
    world.rounds(2);
    world.servers[1] = CLAIMANT;
    world.servers[2] = follower(1);
    world.ends(Some(1), &[]);
    world.servers[0].is_up = true;
    world.ends(Some(1), &[0]);
    assert!(world.notices.contains(&Notice::Fenced {
        host: host(0),
        must_rejoin: true
    }));
    // Neither when the new one dies nor when it closes: what the old one has is of another time.
    world.servers[1].is_up = false;
    world.ends(Some(1), &[0]);
    world.servers[1].is_up = true;
    world.ends(Some(1), &[0]);
    world.servers[1].is_read_only = true;
    world.ends(None, &[0]);
    world.servers[1].is_read_only = false;
    world.ends(Some(1), &[0]);
    // Seen closed it is a server like others.
    world.servers[0] = follower(1);
    world.ends(Some(1), &[]);
    world.servers[1].is_read_only = true;
    world.rounds(1);
    world.servers[0] = CLAIMANT;
    world.ends(Some(0), &[]);
}

#[test]
fn a_second_one_is_not_promoted_by_a_death() {
    let mut world = World::settled();
    world.servers[2] = CLAIMANT;
    world.ends(Some(0), &[2]);
    world.servers[0].is_up = false;
    world.ends(Some(0), &[2]);
    // An operator's act is needed: closing the first, or closing and opening the second.
    world.servers[2].is_read_only = true;
    world.rounds(1);
    world.servers[2].is_read_only = false;
    world.ends(Some(2), &[]);
}

#[test]
fn a_second_one_is_not_promoted_when_the_primary_restarts_closed() {
    let mut world = World::settled();
    world.servers[2] = CLAIMANT;
    world.ends(Some(0), &[2]);
    // As servers do whose file says that they are replicas; so quickly that no check fails.
    world.servers[0].is_read_only = true;
    world.answered[0] = false;
    world.ends(None, &[2]);
    world.servers[0].is_read_only = false;
    world.ends(Some(0), &[2]);
}

#[test]
fn one_that_comes_back_open_is_fenced_though_it_never_was_primary() {
    let mut world = World::settled();
    world.servers[1].is_up = false;
    world.rounds(3);
    world.servers[1] = CLAIMANT;
    world.ends(Some(0), &[1]);
    world.servers[0].is_read_only = true;
    world.ends(None, &[1]);
}

/// B201.
#[test]
fn two_that_replicate_from_each_other() {
    let mut world = World::settled();
    world.servers[0].source = Some(1);
    world.ends(Some(0), &[]);
    world.servers[1].is_up = false;
    world.ends(Some(0), &[]);
    world.servers[1].is_up = true;
    world.ends(Some(0), &[]);
    // They change parts.
    world.servers[0].is_read_only = true;
    world.rounds(1);
    world.servers[1].is_read_only = false;
    world.ends(Some(1), &[]);
    // Both: the last one stays.
    world.servers[0].is_read_only = false;
    world.ends(Some(1), &[0]);
}

#[test]
fn replicas_that_take_writes_are_replicas() {
    let mut world = World::settled();
    world.servers[1].is_read_only = false;
    world.servers[2] = Server {
        is_read_only: false,
        ..follower(1)
    };
    world.ends(Some(0), &[]);
    world.servers[0].is_read_only = true;
    world.ends(None, &[]);
}

#[test]
fn of_several_the_one_with_followers() {
    let mut world = World::settled();
    world.servers[0].is_read_only = true;
    world.rounds(1);
    world.servers = [follower(2), CLAIMANT, CLAIMANT];
    world.now += SECOND;
    // Both are seen at the same time.
    for place in 0..3 {
        let look = world.look(place);
        world.topology.note(host(place), look, world.now);
    }
    world.ends(Some(2), &[1]);

    let mut world = World::settled();
    world.servers[0].is_read_only = true;
    world.rounds(1);
    world.servers[1] = CLAIMANT;
    world.servers[2] = CLAIMANT;
    world.now += SECOND;
    for place in 1..3 {
        let look = world.look(place);
        world.topology.note(host(place), look, world.now);
    }
    world.ends(None, &[]);
    let tied = |notice: &&Notice| matches!(notice, Notice::Tied { .. });
    assert_eq!(world.notices.iter().filter(tied).count(), 1);
    world.topology.switch_to(host(1), world.now).unwrap();
    world.ends(Some(1), &[2]);
}

#[test]
fn an_operator_decides_between_those_that_take_writes() {
    let mut world = World::settled();
    let switch = |world: &mut World, to: u16| world.topology.switch_to(HostId(to), world.now);
    assert_eq!(switch(&mut world, 7), Err(SwitchRefused::NoMember));
    assert_eq!(
        switch(&mut world, 1),
        Err(SwitchRefused::Closed("it is read-only"))
    );
    world.servers[1].is_read_only = false;
    world.rounds(1);
    assert_eq!(switch(&mut world, 1), Err(SwitchRefused::Replicates));
    world.servers[1].is_up = false;
    world.rounds(3);
    assert_eq!(switch(&mut world, 1), Err(SwitchRefused::Silent));
    world.servers[1] = CLAIMANT;
    world.ends(Some(0), &[1]);
    assert_eq!(switch(&mut world, 0), Ok(vec![]));
    let elected = Notice::Elected {
        host: host(1),
        before: Some(host(0)),
    };
    assert_eq!(switch(&mut world, 1), Ok(vec![elected]));
    world.ends(Some(1), &[0]);
}

#[test]
fn servers_come_and_go_by_configuration() {
    let mut world = World::settled();
    world.topology.set_members(
        [1, 2]
            .map(|place| (host(place), address(place)))
            .into_iter(),
    );
    world.topology.decide(world.now);
    assert_eq!(world.primary(), None);
    world.servers[1] = CLAIMANT;
    world.ends(Some(1), &[]);
    world.topology.set_members(
        [2, 0, 1]
            .map(|place| (host(place), address(place)))
            .into_iter(),
    );
    world.ends(Some(1), &[0]);
}

#[test]
fn where_servers_are_not_what_is_configured() {
    let mut world = World::settled();
    let odd = |world: &World| world.topology.oddities(host(0));
    assert_eq!(odd(&world), []);
    world.servers[0].is_read_only = true;
    world.servers[1] = CLAIMANT;
    world.rounds(1);
    let why = "it is read-only";
    let closed = Oddity::ClosedPrimary { host: host(0), why };
    let open = Oddity::OpenReplica { host: host(1) };
    assert_eq!(odd(&world), [closed, open]);
    world.servers[0] = Server {
        is_read_only: false,
        ..follower(1)
    };
    world.rounds(1);
    let following = Oddity::FollowingPrimary {
        host: host(0),
        source: host(1),
    };
    assert_eq!(odd(&world), [following, open]);
    // One that is gone says nothing.
    world.servers[1].is_up = false;
    world.rounds(2);
    assert_eq!(odd(&world), []);
}

#[test]
fn who_was_the_primary_so_far_stays() {
    let mut world = World::new();
    let members = (0..3).map(|place| (host(place), address(place)));
    world.topology = Topology::new(members, Some(host(1)));
    assert_eq!(world.primary(), Some(1));
    world.servers = [follower(1), CLAIMANT, follower(1)];
    world.ends(Some(1), &[]);
    world.servers[0] = CLAIMANT;
    world.ends(Some(1), &[0]);
}
