//! Transactions over several groups against servers that a test plays: what they say comes in any pieces and in any order of servers, they
//! refuse or vanish at any step, and the decision is written down, or not, or nobody knows.

use proptest::prelude::*;

use super::branches::Across;
use super::*;
use crate::shard::Shows;
use crate::wire::{Capabilities, ErrPacket, Packets, write_payload};

const CAPS: Capabilities = Capabilities::PROTOCOL_41;
const OK: &[u8] = b"\0\x01\0\0\0\0\0";
const OK_WARNED: &[u8] = b"\0\x01\0\0\0\x01\0";

/// What has become of a branch on its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    None,
    Active,
    Ended,
    Prepared,
    Committed,
}

/// What happens to the command of this number that is sent, over all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// It is done.
    Done,
    /// A part has warned.
    Warned,
    /// It is refused, and not done.
    Refused,
    /// It is not done, and the connection ends.
    LostBefore,
    /// It is done, and the connection ends.
    LostBehind,
    /// The server answers with what is no answer to it, and no more.
    Garbled,
}

#[derive(Debug)]
struct Server {
    state: State,
    /// What it is about to say.
    answer: Vec<u8>,
    is_connected: bool,
    /// The connection ends when the answer was heard.
    is_leaving: bool,
}

/// The servers, and what they were told.
struct World {
    servers: Vec<Server>,
    events: Vec<Event>,
    count: usize,
    is_decided: bool,
    said_commit: bool,
    said_rollback: bool,
    asks_decision: bool,
}

impl World {
    fn new(servers: usize, events: Vec<Event>) -> Self {
        let server = || Server {
            state: State::None,
            answer: Vec::new(),
            is_connected: true,
            is_leaving: false,
        };
        Self {
            servers: (0..servers).map(|_| server()).collect(),
            events,
            count: 0,
            is_decided: false,
            said_commit: false,
            said_rollback: false,
            asks_decision: false,
        }
    }

    /// Carries out what the session wants.
    fn take(&mut self, out: &mut Outputs) {
        for output in std::mem::take(&mut out.list) {
            match output {
                Output::BeginLeg { leg, range } | Output::TellLeg { leg, range } => {
                    let bytes = out.arena.get(range).unwrap().to_vec();
                    let (_, payload) = Packets::new(&bytes).next().unwrap();
                    self.run(leg, &String::from_utf8_lossy(&payload[1..]));
                }
                Output::Across(_, Turn::Decide) => self.asks_decision = true,
                Output::Across(..) => {}
                other => panic!("{other:?}"),
            }
        }
        out.clear();
    }

    fn run(&mut self, leg: usize, text: &str) {
        let event = self.events.get(self.count).copied().unwrap_or(Event::Done);
        self.count += 1;
        let server = &mut self.servers[leg];
        if !server.is_connected {
            return;
        }
        assert!(
            server.answer.is_empty(),
            "a server is asked {text} before it was heard"
        );
        let is_done = !matches!(event, Event::Refused | Event::LostBefore);
        let word = text
            .strip_prefix("XA ")
            .and_then(|rest| rest.split(' ').next());
        let next = match (word, server.state) {
            (Some("START"), State::None) => Some(State::Active),
            (Some("END"), State::Active) => Some(State::Ended),
            (Some("PREPARE"), State::Ended) => Some(State::Prepared),
            (Some("COMMIT"), State::Prepared) => {
                assert!(self.is_decided, "a commit before the decision");
                Some(State::Committed)
            }
            (Some("ROLLBACK"), State::Ended | State::Prepared) => Some(State::None),
            (None, State::Active) => Some(State::Active),
            // As a server has it: not in this state.
            _ => None,
        };
        self.said_commit |= word == Some("COMMIT");
        self.said_rollback |= word == Some("ROLLBACK");
        let is_told = is_done && next.is_some();
        if is_told {
            server.state = next.unwrap();
        }
        let payload = match event {
            Event::Garbled => b"\x05what".to_vec(),
            _ if !is_told => {
                let mut packet = Vec::new();
                let error = ErrPacket {
                    code: 1399,
                    sqlstate: Some(*b"XAE07"),
                    message: b"no",
                };
                error.write(&mut packet, 1, CAPS);
                packet[4..].to_vec()
            }
            Event::Warned if word.is_none() && !text.starts_with("SHOW") => OK_WARNED.to_vec(),
            _ => OK.to_vec(),
        };
        write_payload(&mut server.answer, 1, &payload);
        match event {
            Event::LostBefore | Event::LostBehind => {
                server.answer.clear();
                self.leave(leg);
            }
            Event::Garbled => self.leave(leg),
            _ => {}
        }
    }

    /// The connection ends, and with it whatever is not prepared.
    fn leave(&mut self, leg: usize) {
        let server = &mut self.servers[leg];
        server.is_connected = false;
        server.is_leaving = true;
        if matches!(server.state, State::Active | State::Ended) {
            server.state = State::None;
        }
    }
}

fn parts(groups: usize, each: usize) -> Vec<Leg> {
    let part = |group: usize, number: usize| Leg {
        group,
        text: Some(format!("UPDATE t_{group}_{number} SET a = 1").into_bytes()),
        renamed: Vec::new(),
        shows: Shows::Data,
        rows: Vec::new(),
        params: None,
        put: Vec::new(),
        dress: None,
    };
    // The groups come in any order.
    let all = (0..groups)
        .rev()
        .flat_map(|group| (0..each).map(move |n| part(group, n)));
    all.collect()
}

/// Runs a transaction to its end; gives it and the world.
fn run(
    (groups, each): (usize, usize),
    events: Vec<Event>,
    verdict: Verdict,
    order: &[(usize, usize)],
    losses: &[usize],
) -> (Across, World) {
    let xid = Xid::new(7, [1; 20]);
    let sql = b"UPDATE t SET a = 1";
    let mut across = Across::new(xid, parts(groups, each), sql, Total::default(), false, CAPS);
    let mut world = World::new(groups, events);
    let mut out = Outputs::default();
    across.begin(CAPS, &mut out);
    world.take(&mut out);
    let rest = (0..).map(|turn: usize| (turn, usize::MAX));
    let mut quiet = 0;
    for (turn, (leg, size)) in order.iter().copied().chain(rest).enumerate() {
        if across.is_over() {
            return (across, world);
        }
        let leg = leg % groups;
        if losses.contains(&turn) && world.servers[leg].is_connected {
            world.leave(leg);
            world.servers[leg].answer.clear();
        }
        let server = &mut world.servers[leg];
        if !server.answer.is_empty() {
            let piece = size.min(server.answer.len());
            // What is not taken is shown again with more behind it.
            let mut shown = piece;
            let consumed = loop {
                let (heed, _) = across.hear(leg, &server.answer[..shown], 1 << 20, CAPS, &mut out);
                if heed.consumed > 0 || shown == server.answer.len() {
                    break heed.consumed;
                }
                shown += 1;
            };
            server.answer.drain(..consumed);
            quiet = 0;
        } else if server.is_leaving {
            server.is_leaving = false;
            across.lost(leg, |_| "g", CAPS, &mut out);
            quiet = 0;
        } else if world.asks_decision {
            world.asks_decision = false;
            world.is_decided = verdict == Verdict::Yes;
            across.decided(verdict, CAPS, &mut out);
            quiet = 0;
        } else {
            quiet += 1;
            assert!(quiet < 100, "it does not go on: {across:?}");
        }
        world.take(&mut out);
    }
    unreachable!()
}

/// What must hold at the end, whatever has happened.
fn check(across: &Across, world: &World) {
    let has = |state| world.servers.iter().any(|server| server.state == state);
    assert!(!has(State::Committed) || world.is_decided);
    assert!(
        !(world.is_decided && world.said_rollback),
        "undone behind the decision"
    );
    assert!(
        !(world.said_commit && world.said_rollback),
        "done and undone"
    );
    // The client is told what is so.
    match &across.failed {
        None => assert!(world.is_decided),
        Some(Fault::Undecided(_)) => assert!(!world.said_commit && !world.said_rollback),
        Some(_) => assert!(!has(State::Committed) && !world.is_decided),
    }
    for (group, server) in world.servers.iter().enumerate() {
        match server.state {
            // Somebody else sees to it, by what was decided.
            State::Prepared => assert!(!across.is_clean, "group {group} is left prepared"),
            State::Committed | State::None => {}
            // It has a connection yet, which ends with the legs: what was not prepared is gone.
            State::Active | State::Ended => assert!(across.failed.is_some()),
        }
        let is_confirmed = !across.unconfirmed.contains(&group);
        if across.failed.is_none() && is_confirmed {
            assert_eq!(server.state, State::Committed, "group {group}");
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => Just(Event::Done),
        2 => Just(Event::Warned),
        1 => Just(Event::Refused),
        1 => Just(Event::LostBefore),
        1 => Just(Event::LostBehind),
        1 => Just(Event::Garbled),
    ]
}

proptest! {
    /// All of it is done or nothing, and what is left prepared is left to somebody, whatever happens when.
    #[test]
    fn all_or_nothing(
        size in (1usize..4, 1usize..3),
        events in proptest::collection::vec(event(), 0..40),
        verdict in prop_oneof![6 => Just(Verdict::Yes), 1 => Just(Verdict::No), 1 => Just(Verdict::Unknown)],
        order in proptest::collection::vec((0usize..4, 1usize..12), 0..120),
        losses in proptest::collection::vec(0usize..120, 0..3),
    ) {
        let (across, world) = run(size, events, verdict, &order, &losses);
        check(&across, &world);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let xid = Xid::new(7, [1; 20]);
        let mut across = Across::new(xid, parts(2, 1), b"", Total::default(), false, CAPS);
        let mut out = Outputs::default();
        across.begin(CAPS, &mut out);
        let (heed, _) = across.hear(0, &bytes, 1 << 20, CAPS, &mut out);
        prop_assert!(heed.consumed <= bytes.len());
    }
}

/// One thing goes wrong, at each step in turn.
#[test]
fn one_thing_at_each_step() {
    let whole = run((3, 2), Vec::new(), Verdict::Yes, &[], &[]);
    check(&whole.0, &whole.1);
    assert!(whole.0.failed.is_none() && whole.0.is_clean);
    assert!(whole.1.servers.iter().all(|s| s.state == State::Committed));
    let steps = whole.1.count;
    let mut done = 0;
    for step in 0..steps {
        for event in [
            Event::Refused,
            Event::LostBefore,
            Event::LostBehind,
            Event::Garbled,
        ] {
            for verdict in [Verdict::Yes, Verdict::No, Verdict::Unknown] {
                let mut events = vec![Event::Done; step];
                events.push(event);
                let (across, world) = run((3, 2), events, verdict, &[], &[]);
                check(&across, &world);
                done += usize::from(across.failed.is_none());
            }
        }
    }
    // What goes wrong with a COMMIT changes nothing: three of them, four ways.
    assert_eq!(done, 12);
}

/// A log that fails: nothing is done, and nothing is left.
#[test]
fn a_decision_that_cannot_be_written() {
    let (across, world) = run((2, 1), Vec::new(), Verdict::No, &[], &[]);
    assert!(matches!(across.failed, Some(Fault::Sharded(_))) && across.is_clean);
    assert!(world.servers.iter().all(|s| s.state == State::None));
    let (across, world) = run((2, 1), Vec::new(), Verdict::Unknown, &[], &[]);
    assert!(matches!(across.failed, Some(Fault::Undecided(_))) && !across.is_clean);
    assert!(world.servers.iter().all(|s| s.state == State::Prepared));
}
