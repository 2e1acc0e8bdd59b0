//! How a script's bytes reach the other side, and the packets that come back for each of its steps.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{Bed, Ended, Expect, Login, Packet, Part, Refused, Reply, Schema, Wire, frame};
use crate::script::{Act, Place, Script};

/// How the bytes of a script reach the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Each command in one write, the next one when its reply is there.
    Whole,
    /// The same, but each command in two writes, the first with so many bytes (or all but one).
    CutAt(usize),
    /// Every byte in a write of its own.
    Bytes,
    /// All commands in one write.
    Pipelined,
    /// All commands in two writes, the first with so many bytes.
    PipelinedCutAt(usize),
}

/// Between two writes that are to be two reads.
const PAUSE: Duration = Duration::from_micros(300);

/// What a step brought.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Reply(Reply),
    /// The other side closed.
    Ended,
}

/// Runs scripts in one schema.
pub(crate) struct Runner<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) schema: &'a Schema,
    /// Whether `Act::Sync` waits.
    pub(crate) syncs: bool,
}

impl Runner<'_> {
    pub(crate) fn run(
        &self,
        address: SocketAddr,
        login: &Login,
        script: &Script,
        delivery: Delivery,
    ) -> Vec<Outcome> {
        let login = login.clone().schema(self.schema);
        let bytewise = (delivery == Delivery::Bytes).then_some((1, PAUSE / 10));
        let wire = Wire::greet(address)
            .map(|wire| wire.in_pieces(bytewise))
            .and_then(|wire| wire.log_in(&login));
        let mut wire = match wire {
            Ok(wire) => wire,
            Err(refused) => panic!("log-in at {address}: {refused:?}"),
        };
        let mut outcomes = match delivery {
            Delivery::Pipelined => self.pipelined(&mut wire, script, None),
            Delivery::PipelinedCutAt(cut) => self.pipelined(&mut wire, script, Some(cut)),
            Delivery::Whole | Delivery::CutAt(_) | Delivery::Bytes => {
                self.one_by_one(&mut wire, script, delivery)
            }
        };
        if outcomes.last() != Some(&Outcome::Ended) {
            // A reply too many, or one too few, shows here.
            match wire.try_command(&[0x0e]) {
                Ok(pong) => {
                    assert_eq!(pong.last().part, Part::Ok, "after the script, {delivery:?}");
                    wire.in_pieces(None).quit();
                }
                Err(Ended::Closed { .. } | Ended::Reset) => outcomes.push(Outcome::Ended),
                Err(other) => panic!("after the script, {delivery:?}: {other:?}"),
            }
        }
        outcomes
    }

    fn one_by_one(&self, wire: &mut Wire, script: &Script, delivery: Delivery) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let mut ids = Vec::new();
        for (i, step) in script.steps.iter().enumerate() {
            let mut outcome = match &step.act {
                Act::Sync => {
                    if self.syncs {
                        self.bed.wait_replicas();
                    }
                    Ok(Reply::default())
                }
                Act::ChangeUser { login, schema } => {
                    let mut login = login.clone();
                    if *schema {
                        login = login.schema(self.schema);
                    }
                    change_user(wire, &login)
                }
                act => {
                    let schema = self.schema.name();
                    let payload = act.payload(&Place {
                        schema,
                        tag: &step.tag(schema, i),
                        connection: wire.id,
                        ids: &ids,
                        caps: wire.capabilities,
                    });
                    let payload = payload.expect("a command");
                    self.one(wire, act, &payload, delivery)
                }
            };
            if let Ok(reply) = &mut outcome {
                number_statements(&step.act, reply, &mut ids);
            }
            match outcome {
                Ok(reply) => outcomes.push(Outcome::Reply(reply)),
                Err(Ended::Closed { .. } | Ended::Reset) => {
                    outcomes.push(Outcome::Ended);
                    break;
                }
                Err(other) => panic!("step {i} {}, {delivery:?}: {other:?}", step.act.words()),
            }
        }
        outcomes
    }

    fn one(
        &self,
        wire: &mut Wire,
        act: &Act,
        payload: &[u8],
        delivery: Delivery,
    ) -> Result<Reply, Ended> {
        let seq = if let Act::OutOfTurn { seq, .. } = act {
            *seq
        } else {
            0
        };
        let framed = frame(seq, payload);
        send(wire, &framed, delivery)?;
        match act {
            Act::OutOfTurn { .. } => return raw(wire, 1),
            Act::Malformed(_) => {
                wire.try_send_bytes(&frame(0, &[0x0e]))?;
                return raw(wire, usize::MAX);
            }
            _ => {}
        }
        let due = behind(seq, payload.len());
        let mut reply = wire.try_reply_from(act.expect(), due)?;
        while let Some(request) = file_request(&reply) {
            let tail = act.tail(request.wrapping_add(1));
            send(wire, &tail, delivery)?;
            let rest = wire.try_reply_from(act.expect(), behind_tail(&tail))?;
            reply.packets.extend(rest.packets);
        }
        Ok(reply)
    }

    fn pipelined(&self, wire: &mut Wire, script: &Script, cut: Option<usize>) -> Vec<Outcome> {
        let schema = self.schema.name();
        let mut bytes = Vec::new();
        let mut due = Vec::new();
        for (i, step) in script.steps.iter().enumerate() {
            let payload = step.act.payload(&Place {
                schema,
                tag: &step.tag(schema, i),
                connection: wire.id,
                // Atlas numbers statements from 1, so they need not be learned.
                ids: &[],
                caps: wire.capabilities,
            });
            let payload = payload.expect("a command");
            bytes.extend(frame(0, &payload));
            if step.act.is_file() {
                bytes.extend(step.act.tail(2));
            }
            due.push(behind(0, payload.len()));
        }
        let (head, tail) = bytes.split_at(cut.unwrap_or(0));
        if !head.is_empty() {
            wire.send_bytes(head);
            std::thread::sleep(PAUSE);
        }
        wire.send_bytes(tail);
        let mut outcomes = Vec::new();
        for (step, due) in script.steps.iter().zip(due) {
            let reply = wire.try_reply_from(step.act.expect(), due);
            let reply = reply.and_then(|mut reply| {
                if file_request(&reply).is_some() {
                    let due = behind_tail(&step.act.tail(2));
                    let rest = wire.try_reply_from(Expect::Text, due)?;
                    reply.packets.extend(rest.packets);
                }
                Ok(reply)
            });
            match reply {
                Ok(reply) => outcomes.push(Outcome::Reply(reply)),
                Err(Ended::Closed { .. } | Ended::Reset) => {
                    outcomes.push(Outcome::Ended);
                    break;
                }
                Err(other) => panic!("{}, pipelined: {other:?}", step.act.words()),
            }
        }
        outcomes
    }
}

/// Puts the script's number in the place of a statement's id, and notes the id: MariaDB goes on counting from where another client's
/// connection stopped.
fn number_statements(act: &Act, reply: &mut Reply, ids: &mut Vec<u32>) {
    let prepares = matches!(act, Act::Prepare(_));
    for packet in &mut reply.packets {
        match packet.part {
            Part::Prepared => {
                let place = &mut packet.payload[1..5];
                ids.push(u32::from_le_bytes([place[0], place[1], place[2], place[3]]));
                let number = u32::try_from(ids.len()).expect("few statements");
                place.copy_from_slice(&number.to_le_bytes());
            }
            // One that failed is counted too.
            Part::Err if prepares => ids.push(ids.last().map_or(1, |id| id.wrapping_add(1))),
            Part::Err => {
                for (number, id) in ids.iter().enumerate() {
                    let (from, to) = (format!(" ({id}) "), format!(" ({}) ", number + 1));
                    let payload = &mut packet.payload;
                    let at = payload
                        .windows(from.len())
                        .position(|w| w == from.as_bytes());
                    if let Some(at) = at {
                        payload.splice(at..at + from.len(), to.into_bytes());
                        break;
                    }
                }
            }
            _ => {}
        }
    }
}

fn send(wire: &mut Wire, framed: &[u8], delivery: Delivery) -> Result<(), Ended> {
    if let Delivery::CutAt(at) = delivery
        && framed.len() > 1
    {
        let (head, tail) = framed.split_at(at.min(framed.len() - 1));
        wire.try_send_bytes(head)?;
        std::thread::sleep(PAUSE);
        return wire.try_send_bytes(tail);
    }
    wire.try_send_bytes(framed)
}

/// So many packets as they come, or all up to an OK.
fn raw(wire: &mut Wire, most: usize) -> Result<Reply, Ended> {
    let mut reply = Reply {
        packets: Vec::new(),
        capabilities: wire.capabilities,
    };
    while reply.packets.len() < most {
        let packet = wire.try_packet()?;
        let is_ok = packet.first() == 0 && packet.payload.len() >= 7;
        reply.packets.push(packet);
        if is_ok {
            break;
        }
    }
    Ok(reply)
}

/// The sequence id of the request for a file that a reply ends with.
fn file_request(reply: &Reply) -> Option<u8> {
    let last = reply.packets.last()?;
    (last.part == Part::FileRequest).then_some(last.seq)
}

/// The sequence id behind a packet.
fn behind(seq: u8, len: usize) -> u8 {
    let frames = u8::try_from((len / 0xff_ff_ff + 1) % 256).expect("small");
    seq.wrapping_add(frames)
}

/// The sequence id behind the empty packet that ends these.
fn behind_tail(tail: &[u8]) -> u8 {
    tail.last().copied().unwrap_or(0).wrapping_add(1)
}

fn change_user(wire: &mut Wire, login: &Login) -> Result<Reply, Ended> {
    let packets = match wire.change_user(login) {
        Ok(packets) => packets,
        Err(Refused::Error { code, state, text }) => vec![Packet {
            part: Part::Err,
            seq: 0,
            frames: 1,
            payload: format!("{code} {state} {text}").into_bytes(),
        }],
        Err(Refused::Ended(ended)) => return Err(ended),
        Err(other) => panic!("COM_CHANGE_USER: {other:?}"),
    };
    let mut reply = Reply {
        packets,
        capabilities: wire.capabilities,
    };
    for packet in &mut reply.packets {
        // The nonce of an auth switch lies behind the plugin's name.
        if packet.part == Part::Auth && packet.first() == 0xfe {
            let name = packet.payload.iter().position(|byte| *byte == 0);
            let nonce = name.map_or(packet.payload.len(), |at| at + 1);
            packet.payload[nonce..].fill(b'#');
        }
    }
    Ok(reply)
}
