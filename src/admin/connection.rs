//! One client of the admin port: log-in, commands, and who may do what. Bytes in, bytes and requests out; what a request finds and
//! changes is the caller's.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::command::{Command, Said, read};
use super::local::Facts;
use super::table::{Answer, Refusal};
use crate::auth::{Denied, Plugin, Proof, ServerAuth, ServerStep, access_denied_text};
use crate::config::AdminUser;
use crate::wire::{
    self, AuthMore, AuthSwitch, Capabilities, ChangeUser, EofPacket, Greeting, HEADER_LEN, Header,
    Login, OkPacket, PrepareOk, RowFormat, Status, write_payload,
};

/// What is offered: what drivers need, and nothing that would have to be supported for no use.
const OFFERED: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::FOUND_ROWS)
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::NO_SCHEMA)
    .union(Capabilities::ODBC)
    .union(Capabilities::IGNORE_SPACE)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::INTERACTIVE)
    .union(Capabilities::IGNORE_SIGPIPE)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::RESERVED)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::DEPRECATE_EOF)
    .union(Capabilities::QUERY_ATTRIBUTES);

/// utf8mb4_general_ci.
const CHARSET: u8 = 45;
/// Bytes of a log-in's packets.
const LOGIN_MAX: usize = 64 * 1024 + 4096;
/// Bytes of a command's packet: some texts are too long for a command, and are to be told so.
const COMMAND_MAX: usize = 2 * 1024 * 1024;
/// Prepared commands of a connection.
const PREPARED_MAX: usize = 64;

/// What a connection needs to know of its surroundings.
pub struct Cx<'a> {
    /// Who may log in.
    pub users: &'a [AdminUser],
    /// A nonce that nobody can guess.
    pub nonce: &'a mut dyn FnMut() -> [u8; 20],
}

impl std::fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx")
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

/// Who says a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The account.
    pub user: String,
    /// Where it is.
    pub host: String,
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

/// A command to be carried out; the answer goes to [`Connection::answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub command: Command,
    /// By whom.
    pub who: Who,
    format: RowFormat,
}

/// What became of the bytes that were shown.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no whole packet among them.
    More,
    /// One was read, and what there was to say is in the buffer.
    Said,
    /// The log-in has failed: what is in the buffer is to be sent, and then the end.
    Denied {
        /// For the log.
        why: String,
        /// A password was tried: who tries many is to wait for the answers.
        is_guess: bool,
    },
    /// One was read, which is to be carried out.
    Run(Request),
    /// What is in the buffer is to be sent, and then the end.
    Close,
}

/// See the module's words.
#[derive(Debug)]
pub struct Connection {
    phase: Phase,
    id: u32,
    host: String,
    version: String,
    offered: Plugin,
    nonce: [u8; 20],
    capabilities: Capabilities,
    /// Sequence id that the client's next packet of a log-in must have.
    seq: u8,
    user: String,
    is_operator: bool,
    schema: Option<String>,
    prepared: BTreeMap<u32, String>,
    last_prepared: u32,
}

#[derive(Debug)]
enum Phase {
    Login,
    Answer(ServerAuth),
    Ready,
}

impl Connection {
    /// A client that has just come from `host`. `version` is what it is told to talk to.
    #[must_use]
    pub fn new(id: u32, host: String, version: String, offered: Plugin, nonce: [u8; 20]) -> Self {
        Self {
            phase: Phase::Login,
            id,
            host,
            version,
            offered,
            nonce,
            capabilities: OFFERED,
            seq: 1,
            user: String::new(),
            is_operator: false,
            schema: None,
            prepared: BTreeMap::new(),
            last_prepared: 0,
        }
    }

    /// Writes the greeting.
    pub fn greet(&self, out: &mut Vec<u8>) {
        let greeting = Greeting {
            version: self.version.as_bytes(),
            thread_id: self.id,
            nonce: self.nonce,
            capabilities: OFFERED,
            charset: CHARSET,
            status: Status::AUTOCOMMIT,
            plugin: self.offered.name().as_bytes(),
        };
        greeting.write(out, 0);
    }

    /// Whether somebody is logged in.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Who is logged in.
    #[must_use]
    pub fn who(&self) -> Who {
        Who {
            user: self.user.clone(),
            host: self.host.clone(),
        }
    }

    /// Looks at what the client has sent; gives how many bytes of it are done with.
    pub fn on_bytes(&mut self, cx: &mut Cx<'_>, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let Some(header) = Header::parse(input) else {
            return (0, Step::More);
        };
        let max = match self.phase {
            Phase::Ready => COMMAND_MAX,
            Phase::Login | Phase::Answer(_) => LOGIN_MAX,
        };
        let seq = header.seq.wrapping_add(1);
        if header.len > max {
            let (code, state, text) = match self.phase {
                Phase::Ready => (
                    1153,
                    *b"08S01",
                    "Got a packet bigger than 'max_allowed_packet' bytes",
                ),
                Phase::Login | Phase::Answer(_) => BAD_HANDSHAKE,
            };
            return (input.len(), self.refuse(code, state, text, seq, out));
        }
        let end = HEADER_LEN + header.len;
        let Some(payload) = input.get(HEADER_LEN..end) else {
            return (0, Step::More);
        };
        let expected = if self.is_logged_in() { 0 } else { self.seq };
        if header.seq != expected {
            return (
                end,
                self.refuse(1156, *b"08S01", "Got packets out of order", seq, out),
            );
        }
        let step = match std::mem::replace(&mut self.phase, Phase::Login) {
            Phase::Ready => {
                self.phase = Phase::Ready;
                self.command(cx, payload, out)
            }
            Phase::Login => self.login(cx, payload, seq, out),
            Phase::Answer(mut auth) => {
                let step = auth.answer(payload);
                self.auth_step(auth, step, seq, cx, out)
            }
        };
        (end, step)
    }

    /// Writes the answer to a request.
    pub fn answer(&self, request: &Request, answer: &Answer, out: &mut Vec<u8>) {
        answer.write(out, self.capabilities, request.format);
    }

    fn refuse(&self, code: u16, state: [u8; 5], text: &str, seq: u8, out: &mut Vec<u8>) -> Step {
        Refusal::with(code, state, text).write(out, seq, self.capabilities);
        Step::Close
    }

    fn login(&mut self, cx: &mut Cx<'_>, payload: &[u8], seq: u8, out: &mut Vec<u8>) -> Step {
        let (code, state, text) = BAD_HANDSHAKE;
        if payload.len() >= 4 && Login::is_pre_41(payload) {
            self.capabilities = Capabilities::NONE;
            let text = "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
            return self.refuse(1251, *b"08004", text, seq, out);
        }
        let Ok(packet) = Login::parse(payload) else {
            return self.refuse(code, state, text, seq, out);
        };
        self.capabilities = packet.capabilities.intersection(OFFERED);
        self.user = String::from_utf8_lossy(packet.user).into_owned();
        self.schema = packet
            .schema
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let mut auth = self.start_auth(cx);
        let proof = Proof {
            plugin_auth: packet.capabilities.contains(Capabilities::PLUGIN_AUTH),
            plugin: packet.plugin,
            response: packet.auth,
        };
        let step = auth.login(proof, &self.nonce, &(cx.nonce)());
        self.auth_step(auth, step, seq, cx, out)
    }

    fn change_user(&mut self, cx: &mut Cx<'_>, payload: &[u8], out: &mut Vec<u8>) -> Step {
        let Ok(packet) = ChangeUser::parse(payload, self.capabilities) else {
            return self.refuse(1047, *b"08S01", "Unknown command", 1, out);
        };
        self.is_operator = false;
        self.prepared.clear();
        self.user = String::from_utf8_lossy(packet.user).into_owned();
        self.schema = Some(String::from_utf8_lossy(packet.schema).into_owned())
            .filter(|name| !name.is_empty());
        let mut auth = self.start_auth(cx);
        let proof = Proof {
            plugin_auth: self.capabilities.contains(Capabilities::PLUGIN_AUTH),
            plugin: packet.plugin,
            response: packet.auth,
        };
        let step = auth.change_user(proof, &self.nonce, &(cx.nonce)());
        self.auth_step(auth, step, 1, cx, out)
    }

    fn start_auth(&self, cx: &Cx<'_>) -> ServerAuth {
        let accepted = self
            .account(cx)
            .map(|user| Arc::from(user.passwords.as_slice()));
        ServerAuth::new(self.offered, accepted)
    }

    fn account<'c>(&self, cx: &Cx<'c>) -> Option<&'c AdminUser> {
        cx.users.iter().find(|user| user.name == self.user)
    }

    fn auth_step(
        &mut self,
        auth: ServerAuth,
        step: ServerStep,
        seq: u8,
        cx: &Cx<'_>,
        out: &mut Vec<u8>,
    ) -> Step {
        let seq = match step {
            ServerStep::Switch { plugin, nonce } => {
                let mut data = [0_u8; 21];
                data[..20].copy_from_slice(&nonce);
                let switch = AuthSwitch {
                    plugin: plugin.name().as_bytes(),
                    data: &data,
                };
                self.seq = switch.write(out, seq);
                self.nonce = nonce;
                self.phase = Phase::Answer(auth);
                return Step::Said;
            }
            ServerStep::Denied(Denied {
                using_password,
                is_guess,
                why,
            }) => {
                let text = access_denied_text(self.user.as_bytes(), &self.host, using_password);
                self.refuse(1045, *b"28000", &text, seq, out);
                return Step::Denied {
                    why: format!("{text}: {why}"),
                    is_guess,
                };
            }
            ServerStep::FastOk => AuthMore(&[3]).write(out, seq),
            ServerStep::Verified => seq,
        };
        // The account may be gone since its password was asked for.
        let Some(account) = self.account(cx) else {
            let (code, state, text) = BAD_HANDSHAKE;
            return self.refuse(code, state, text, seq, out);
        };
        self.is_operator = account.is_operator;
        self.phase = Phase::Ready;
        self.ok(seq, out);
        Step::Said
    }

    fn ok(&self, seq: u8, out: &mut Vec<u8>) {
        let ok = OkPacket {
            status: Status::AUTOCOMMIT,
            ..OkPacket::default()
        };
        ok.write(out, seq, self.capabilities);
    }

    fn command(&mut self, cx: &mut Cx<'_>, payload: &[u8], out: &mut Vec<u8>) -> Step {
        let body = payload.get(1..).unwrap_or_default();
        match payload.first().map(|code| wire::Command::from(*code)) {
            Some(wire::Command::Quit) => return Step::Close,
            Some(wire::Command::Query) => {
                let Ok(range) = wire::query_text(payload, self.capabilities) else {
                    return self.refuse(1835, *b"HY000", "Malformed communication packet", 1, out);
                };
                let text = payload.get(range).unwrap_or_default();
                return self.say(&String::from_utf8_lossy(text), RowFormat::Text, out);
            }
            Some(wire::Command::Ping | wire::Command::ResetConnection) => self.ok(1, out),
            Some(wire::Command::InitDb) => {
                self.schema = Some(String::from_utf8_lossy(body).into_owned());
                self.ok(1, out);
            }
            Some(wire::Command::ChangeUser) => return self.change_user(cx, payload, out),
            Some(wire::Command::SetOption) => {
                if self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
                    self.ok(1, out);
                } else {
                    let eof = EofPacket {
                        warnings: 0,
                        status: Status::AUTOCOMMIT,
                    };
                    eof.write(out, 1);
                }
            }
            Some(wire::Command::Statistics) => {
                write_payload(out, 1, b"Threads: 1  Atlas admin");
            }
            Some(wire::Command::ProcessKill) => {
                let id = body.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
                return self.say(&format!("KILL {id}"), RowFormat::Text, out);
            }
            Some(wire::Command::ProcessInfo) => {
                return self.say("SHOW PROCESSLIST", RowFormat::Text, out);
            }
            Some(wire::Command::StmtPrepare) => self.prepare(&String::from_utf8_lossy(body), out),
            Some(wire::Command::StmtExecute) => return self.execute(body, out),
            Some(wire::Command::StmtReset) => self.ok(1, out),
            // These have no reply.
            Some(wire::Command::StmtClose) => {
                let id = body.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
                self.prepared.remove(&id);
            }
            Some(wire::Command::StmtSendLongData) => {}
            _ => {
                let text = "[admin] we only handle text-based queries (COM_QUERY)";
                Refusal::new(text).write(out, 1, self.capabilities);
            }
        }
        Step::Said
    }

    /// A text: a command, or what drivers ask.
    fn say(&mut self, text: &str, format: RowFormat, out: &mut Vec<u8>) -> Step {
        let facts = Facts {
            version: &self.version,
            id: self.id,
            user: &self.user,
            host: &self.host,
            schema: self.schema.as_deref(),
        };
        let answer = match read(text, &facts) {
            Ok(Said::Do(command)) if command.needs_operator() && !self.is_operator => {
                let text = format!(
                    "Access denied; '{}' is a viewer on this admin port, and this command needs the role operator",
                    self.user
                );
                Answer::Refused(Refusal::with(1227, *b"42000", text))
            }
            Ok(Said::Do(command)) => {
                return Step::Run(Request {
                    command,
                    who: self.who(),
                    format,
                });
            }
            Ok(Said::Answered(answer)) => answer,
            Err(refusal) => Answer::Refused(refusal),
        };
        answer.write(out, self.capabilities, format);
        Step::Said
    }

    /// What a prepared command will answer is not known before it runs: the reply to its execution says it.
    fn prepare(&mut self, text: &str, out: &mut Vec<u8>) {
        let refusal = if self.prepared.len() >= PREPARED_MAX {
            Some(Refusal::with(
                1461,
                *b"42000",
                format!(
                    "Can't create more than {PREPARED_MAX} prepared commands on one admin connection"
                ),
            ))
        } else if text.contains('?') {
            Some(Refusal::new(
                "commands of the admin port take no parameters: write the value in place of `?`",
            ))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            refusal.write(out, 1, self.capabilities);
            return;
        }
        self.last_prepared = self.last_prepared.wrapping_add(1);
        self.prepared.insert(self.last_prepared, text.to_owned());
        let ok = PrepareOk {
            statement_id: self.last_prepared,
            columns: 0,
            params: 0,
            warnings: 0,
            metadata: None,
        };
        ok.write(out, 1);
    }

    fn execute(&mut self, body: &[u8], out: &mut Vec<u8>) -> Step {
        let id = body.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
        match self.prepared.get(&id).cloned() {
            Some(text) => self.say(&text, RowFormat::Binary, out),
            None => {
                let text = format!(
                    "Unknown prepared statement handler ({id}) given to mysqld_stmt_execute"
                );
                Refusal::with(1243, *b"HY000", text).write(out, 1, self.capabilities);
                Step::Said
            }
        }
    }
}

const BAD_HANDSHAKE: (u16, [u8; 5], &str) = (1043, *b"08S01", "Bad handshake");

#[cfg(test)]
mod tests;
