//! One client: logs in, sends what its script says, reads replies and has its oracle judge them.

use std::collections::VecDeque;

use atlas::auth::{caching_sha2_scramble, native_scramble};
use atlas::wire::{AuthSwitch, Capabilities, Greeting, Login, SslRequest, write_payload};

use crate::command::{Batch, Kind, Sent};
use crate::memory::{CHARSETS, Defaults, Flavour, Memory, charset_of};
use crate::oracle::{Lenience, Oracle};
use crate::outcome::Databases;
use crate::reply::{Parser, Part, Progress, Receiver, Want};
use crate::rng::Rng;
use crate::script::View;

/// The client's password, the same for all accounts.
pub const PASSWORD: &str = "secret";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Greeting,
    Login,
    Ready,
    Closed,
}

/// How a client is.
#[derive(Debug, Clone)]
pub struct Habits {
    pub user: &'static str,
    pub plugin: &'static str,
    pub caps: Capabilities,
    pub charset: u16,
    pub schema: Option<String>,
    pub tls: bool,
    /// Commands under way at a time.
    pub depth: usize,
    pub commands: usize,
    /// It goes without a word when it has sent so many commands.
    pub leaves_at: Option<usize>,
}

/// See the module's words.
#[derive(Debug)]
pub struct Client {
    pub place: usize,
    pub phase: Phase,
    /// The id in the greeting.
    pub id: u32,
    pub habits: Habits,
    rng: Rng,
    receiver: Receiver,
    parser: Parser,
    pub pending: VecDeque<Sent>,
    pub oracle: Oracle,
    databases: Databases,
    nonce: [u8; 20],
    pub sent_count: usize,
    /// It has said that it goes, or did something for which Atlas closes.
    pub expects_end: bool,
    /// Another client may have killed it.
    pub may_be_killed: bool,
    /// Left a file unfinished.
    pub vanishes: bool,
    is_traced: bool,
}

impl Client {
    pub fn new(
        place: usize,
        defaults: Defaults,
        habits: Habits,
        databases: Databases,
        rng: Rng,
    ) -> Self {
        let shadow = Memory::new(defaults, "utf8mb4", None);
        Self {
            place,
            phase: Phase::Greeting,
            id: 0,
            oracle: Oracle::new(shadow, habits.caps, databases.clone()),
            habits,
            rng,
            receiver: Receiver::default(),
            parser: Parser::new(Want::Login, Capabilities::NONE),
            pending: VecDeque::new(),
            databases,
            nonce: [0; 20],
            sent_count: 0,
            expects_end: false,
            may_be_killed: false,
            vanishes: false,
            is_traced: std::env::var_os("ATLAS_SIM_TRACE").is_some(),
        }
    }

    /// How the client's habits come about.
    pub fn habits(rng: &mut Rng, flavour: Flavour, place: usize, offered: Capabilities) -> Habits {
        let mut caps = Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::TRANSACTIONS
            | Capabilities::LONG_FLAG
            | Capabilities::MULTI_RESULTS
            | Capabilities::PS_MULTI_RESULTS;
        let mut maybe = |flag: Capabilities, one_in: usize| {
            if offered.contains(flag) && rng.one_in(one_in) {
                caps = caps | flag;
            }
        };
        maybe(Capabilities::DEPRECATE_EOF, 2);
        maybe(Capabilities::SESSION_TRACK, 2);
        maybe(Capabilities::MULTI_STATEMENTS, 2);
        maybe(Capabilities::LOCAL_FILES, 2);
        maybe(Capabilities::FOUND_ROWS, 2);
        maybe(Capabilities::QUERY_ATTRIBUTES, 2);
        maybe(Capabilities::OPTIONAL_RESULTSET_METADATA, 2);
        maybe(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA, 2);
        maybe(Capabilities::MARIADB_CACHE_METADATA, 2);
        maybe(Capabilities::MARIADB_EXTENDED_METADATA, 2);
        if !rng.one_in(8) {
            caps = caps | Capabilities::PLUGIN_AUTH;
        }
        // A MySQL client, which knows nothing of MariaDB's extended capabilities.
        if flavour == Flavour::MySql || rng.one_in(3) {
            caps = (caps | Capabilities::LONG_PASSWORD) & Capabilities(0xffff_ffff);
        }
        Habits {
            user: rng.pick(&["both", "both", "both", "both", "writer", "reader"]),
            plugin: rng.pick(&["mysql_native_password", "caching_sha2_password"]),
            caps,
            charset: CHARSETS[rng.below(CHARSETS.len())].1,
            schema: match rng.below(3) {
                0 => None,
                1 => Some("t1".to_owned()),
                _ => Some(format!("d{place}a")),
            },
            tls: rng.one_in(5),
            depth: match rng.below(3) {
                0 => rng.between(2, 5),
                _ => 1,
            },
            commands: rng.between(5, 60),
            leaves_at: rng.one_in(4).then(|| rng.between(0, 40)),
        }
    }

    fn scramble(&self, plugin: &[u8], password: &[u8]) -> Vec<u8> {
        if plugin == b"caching_sha2_password" {
            caching_sha2_scramble(password, &self.nonce)
        } else {
            native_scramble(password, &self.nonce)
        }
    }

    /// Reads what arrived; gives what is to be sent at once.
    pub fn receive(&mut self, bytes: &[u8], lenience: Lenience<'_>) -> Result<Vec<u8>, String> {
        self.receiver.receive(bytes);
        let mut out = Vec::new();
        while self.phase != Phase::Closed {
            if self.phase == Phase::Ready && !self.is_waiting() {
                if !self.receiver.is_empty() {
                    return self.unasked(lenience).map(|()| out);
                }
                break;
            }
            let Some(payload) = self.receiver.next()? else {
                break;
            };
            if self.phase == Phase::Greeting {
                if payload.first() == Some(&0xff) {
                    return Err(format!("refused: {}", String::from_utf8_lossy(&payload)));
                }
                self.log_in(&payload, &mut out)?;
                continue;
            }
            match self.parser.push(&payload)? {
                Progress::More => {}
                Progress::File => self.send_file(&mut out),
                Progress::Challenge => self.answer(&mut out)?,
                Progress::Done => self.reply_done(lenience)?,
            }
        }
        Ok(out)
    }

    /// A packet for which nothing was asked: only a farewell may come.
    fn unasked(&mut self, lenience: Lenience<'_>) -> Result<(), String> {
        self.receiver.seq = 0;
        let Some(payload) = self.receiver.next()? else {
            return Ok(());
        };
        if lenience.faults && payload.first() == Some(&0xff) {
            self.expects_end = true;
            return Ok(());
        }
        Err(format!("nothing was asked but this came: {payload:02x?}"))
    }

    fn log_in(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let greeting = Greeting::parse(payload).map_err(|e| e.to_string())?;
        self.id = greeting.thread_id;
        self.nonce = greeting.nonce;
        // No client asks for what it was not offered.
        let caps = self.habits.caps & (greeting.capabilities | Capabilities::LONG_PASSWORD);
        self.habits.caps = caps;
        let mut seq = 1;
        if self.habits.tls {
            let request = SslRequest {
                capabilities: caps,
                max_packet: 1 << 24,
                charset: self.habits.charset,
            };
            seq = request.write(out, seq);
        }
        let attributes: &[u8] = if caps.contains(Capabilities::CONNECT_ATTRS) {
            b"\x04name\x03sim"
        } else {
            b""
        };
        let with_plugin = caps.contains(Capabilities::PLUGIN_AUTH);
        let plugin = if with_plugin {
            self.habits.plugin
        } else {
            "mysql_native_password"
        };
        let auth = self.scramble(plugin.as_bytes(), PASSWORD.as_bytes());
        let login = Login {
            capabilities: caps,
            max_packet: 1 << 24,
            charset: self.habits.charset,
            user: self.habits.user.as_bytes(),
            auth: &auth,
            schema: self.habits.schema.as_deref().map(str::as_bytes),
            plugin: with_plugin.then_some(plugin.as_bytes()),
            attributes,
            zstd_level: None,
        };
        seq = login.write(out, seq);
        self.receiver.seq = seq;
        self.phase = Phase::Login;
        self.parser = Parser::new(Want::Login, caps);
        Ok(())
    }

    fn answer(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let Some(Part::Auth(payload)) = self.parser.parts.last() else {
            return Err("a challenge without one".to_owned());
        };
        match payload.first() {
            // The fast path's word; OK follows.
            Some(1) if payload[1..] == [3] => return Ok(()),
            Some(0xfe) => {}
            _ => return Err(format!("no challenge: {payload:02x?}")),
        }
        let switch = AuthSwitch::parse(payload).map_err(|e| e.to_string())?;
        self.nonce = switch
            .nonce()
            .try_into()
            .map_err(|_| "a nonce of another length".to_owned())?;
        let plugin = switch.plugin.to_vec();
        let is_right = match self.pending.front().map(|sent| &sent.kind) {
            Some(Kind::ChangeUser {
                password_is_right, ..
            }) => *password_is_right,
            _ => true,
        };
        let password: &[u8] = if is_right {
            PASSWORD.as_bytes()
        } else {
            b"wrong"
        };
        let proof = self.scramble(&plugin, password);
        self.receiver.seq = write_payload(out, self.receiver.seq, &proof);
        Ok(())
    }

    fn send_file(&mut self, out: &mut Vec<u8>) {
        let tag = match self.parser.parts.last() {
            Some(Part::File(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        let mut seq = self.receiver.seq;
        for chunk in 0..self.rng.below(4) {
            let filler = "\u{3}".repeat(self.rng.below(300));
            seq = write_payload(out, seq, format!("{tag} {chunk} {filler}").as_bytes());
        }
        if self.rng.one_in(10) && self.habits.leaves_at.is_some() {
            // Goes away in the middle of the file.
            self.vanishes = true;
            return;
        }
        self.receiver.seq = write_payload(out, seq, b"");
    }

    fn reply_done(&mut self, lenience: Lenience<'_>) -> Result<(), String> {
        let parts = std::mem::take(&mut self.parser.parts);
        if self.phase == Phase::Login {
            match parts.last() {
                Some(Part::Ok { status, .. }) => {
                    self.begin_session();
                    let verdict = self.oracle.status(*status);
                    // Without the primary a replica's word is passed on, whose defaults may differ.
                    verdict.or_else(|why| lenience.faults.then_some(()).ok_or(why))?;
                }
                other => {
                    if !lenience.faults {
                        return Err(format!("log-in: {other:?}"));
                    }
                    self.expects_end = true;
                    self.phase = Phase::Closed;
                }
            }
            return Ok(());
        }
        let Some(sent) = self.pending.pop_front() else {
            return Err("a reply to nothing".to_owned());
        };
        self.judge(&sent, &parts, lenience)?;
        self.skip_silent(lenience)
    }

    fn begin_session(&mut self) {
        let habits = &self.habits;
        let mut shadow = Memory::new(
            self.oracle.shadow.defaults,
            charset_of(habits.charset),
            habits.schema.clone(),
        );
        shadow.multi_statements = habits.caps.contains(Capabilities::MULTI_STATEMENTS);
        self.oracle = Oracle::new(shadow, habits.caps, self.databases.clone());
        self.phase = Phase::Ready;
    }

    fn judge(&mut self, sent: &Sent, parts: &[Part], lenience: Lenience<'_>) -> Result<(), String> {
        if self.is_traced {
            eprintln!("client {}: {} -> {parts:?}", self.place, shown(sent));
        }
        self.oracle
            .judge(sent, parts, lenience)
            .map_err(|why| format!("{why}\n   in reply to {}", shown(sent)))?;
        if matches!(sent.kind, Kind::ChangeUser { .. }) && self.oracle.is_doomed {
            self.expects_end = true;
        }
        Ok(())
    }

    /// Commands without a reply are done when those before them are.
    fn skip_silent(&mut self, lenience: Lenience<'_>) -> Result<(), String> {
        while let Some(sent) = self.pending.front() {
            if sent.want != Want::Nothing {
                self.parser = Parser::new(sent.want, self.habits.caps);
                self.receiver.seq = 1;
                break;
            }
            if let Some(sent) = self.pending.pop_front() {
                self.judge(&sent, &[], lenience)?;
            }
        }
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The next commands, when it is time for some.
    pub fn produce(
        &mut self,
        next_tag: &mut u32,
        others: &[(usize, u32)],
        lenience: Lenience<'_>,
    ) -> Result<Vec<u8>, String> {
        if self.phase != Phase::Ready || self.expects_end || self.pending.len() >= self.habits.depth
        {
            return Ok(Vec::new());
        }
        // A change of user is answered before anything else is said.
        let changes = |sent: &Sent| matches!(sent.kind, Kind::ChangeUser { .. });
        let asks_for_file = |sent: &Sent| matches!(&sent.kind, Kind::Text(text) if text.windows(4).any(|w| w == b"LOAD"));
        if self
            .pending
            .iter()
            .any(|sent| changes(sent) || asks_for_file(sent))
        {
            return Ok(Vec::new());
        }
        if self.sent_count >= self.habits.commands {
            if !self.pending.is_empty() {
                return Ok(Vec::new());
            }
            self.expects_end = true;
            return Ok(vec![1, 0, 0, 0, 1]);
        }
        let statements = self.oracle.statements();
        let mut batch: Batch = View {
            rng: &mut self.rng,
            next_tag,
            caps: self.habits.caps,
            place: self.place,
            statements: &statements,
            others,
            types_are_known: self.pending.is_empty(),
            user: self.habits.user,
            plugin: self.habits.plugin,
        }
        .next();
        // Such commands are sent alone, so that what follows is not taken for a part of them.
        if !self.pending.is_empty() && batch.sent.iter().any(|s| changes(s) || asks_for_file(s)) {
            return Ok(Vec::new());
        }
        self.sent_count += 1;
        let was_waiting = self.is_waiting();
        for mut sent in batch.sent.drain(..) {
            self.oracle.note_sent(&mut sent);
            self.pending.push_back(sent);
        }
        if !was_waiting {
            self.skip_silent(lenience)?;
        }
        Ok(batch.bytes)
    }

    /// Whom it is about to kill.
    pub fn kills(&self) -> impl Iterator<Item = usize> {
        self.pending.iter().filter_map(|sent| match sent.kind {
            Kind::Kill(other) if other != usize::MAX => Some(other),
            _ => None,
        })
    }

    /// Nothing more comes from Atlas.
    pub fn ended(&mut self, lenience: Lenience<'_>) -> Result<(), String> {
        if self.phase == Phase::Closed {
            return Ok(());
        }
        let was = self.phase;
        self.phase = Phase::Closed;
        let pending = std::mem::take(&mut self.pending);
        self.oracle.ended(&pending);
        if self.expects_end || self.may_be_killed || lenience.faults {
            return Ok(());
        }
        let waiting: Vec<_> = pending.iter().map(shown).collect();
        Err(format!(
            "Atlas hung up in phase {was:?} with {waiting:?} pending"
        ))
    }

    /// The client leaves by its own will.
    pub fn leave(&mut self) {
        self.phase = Phase::Closed;
        let pending = std::mem::take(&mut self.pending);
        self.oracle.ended(&pending);
    }
}

fn shown(sent: &Sent) -> String {
    match &sent.kind {
        Kind::Text(text) | Kind::Prepare(text) => {
            let text = &text[..text.len().min(200)];
            format!("{:?} {:?}", sent.want, String::from_utf8_lossy(text))
        }
        other => format!("{other:?}"),
    }
}
