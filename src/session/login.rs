//! The client's side of log-in, and COM_CHANGE_USER: greeting, TLS, proof of the password. Whom the account is allowed to
//! be on the servers is the servers' business: a log-in that names a schema is answered with the primary's own words.
//! What stands before the log-in is `greet`'s.

mod greet;

use super::{Cx, Failure, Fault, Output, Outputs, Peer, Phase, Role, Session, state};
use crate::auth::{Denied, Proof, ServerAuth, ServerStep, access_denied_text};
use crate::config::ServerTlsMode;
use crate::sql::{Charset, Server};
use crate::wire::{
    AuthMore, AuthSwitch, Capabilities, ChangeUser, Header, Login as LoginPacket, OkPacket,
    SslRequest, StateChange, keep_changes, write_payload,
};

/// Bytes of a log-in's packets. Servers take connection attributes up to 64 KiB.
const PACKET_MAX: usize = 64 * 1024 + 4096;

/// A log-in in progress.
#[derive(Debug)]
pub(super) struct Login {
    stage: Stage,
    encrypted: bool,
    /// Sequence id that the client's next packet must have.
    seq: u8,
    account: Option<usize>,
    schema: Option<Vec<u8>>,
    /// A collation whose id is too large for a log-in.
    collation: Option<u16>,
}

/// What is awaited.
#[derive(Debug)]
enum Stage {
    /// What a balancer says of the client.
    Proxy,
    Login,
    Tls,
    Answer(ServerAuth),
    Backend {
        seq: u8,
    },
    /// The time at which the client is told so.
    Denied {
        seq: u8,
        text: String,
    },
}

impl Login {
    pub(super) fn new() -> Self {
        Self::at(Stage::Login)
    }

    fn at(stage: Stage) -> Self {
        Self {
            stage,
            encrypted: false,
            seq: 1,
            account: None,
            schema: None,
            collation: None,
        }
    }

    pub(super) fn awaits_client(&self) -> bool {
        matches!(self.stage, Stage::Proxy | Stage::Login | Stage::Answer(_))
    }

    pub(super) fn next_reply_seq(&self) -> u8 {
        match self.stage {
            Stage::Proxy => 0,
            _ => self.seq.wrapping_add(1),
        }
    }

    pub(super) fn is_denied(&self) -> bool {
        matches!(self.stage, Stage::Denied { .. })
    }
}

impl Session {
    /// The TLS handshake that `StartTls` asked for is through.
    pub fn on_tls_ready(&mut self) {
        if let Phase::Login(login) = &mut self.phase
            && matches!(login.stage, Stage::Tls)
        {
            login.stage = Stage::Login;
            login.encrypted = true;
        }
    }

    /// Looks at one packet of the log-in; gives the bytes consumed.
    #[inline(never)]
    pub(super) fn on_login(&mut self, cx: &mut Cx<'_>, input: &[u8], out: &mut Outputs) -> usize {
        if matches!(&self.phase, Phase::Login(login) if matches!(login.stage, Stage::Proxy)) {
            return self.proxy_header(cx, input, out);
        }
        let Some(header) = Header::parse(input) else {
            return 0;
        };
        if header.len == 0 && !self.awaits_answer() || header.len > PACKET_MAX {
            self.refuse_and_close(&Fault::BadHandshake, header.seq.wrapping_add(1), out);
            return input.len();
        }
        let Some(payload) = input.get(4..4 + header.len) else {
            self.want = 4 + header.len;
            return 0;
        };
        self.want = 4;
        let Phase::Login(mut login) = std::mem::replace(&mut self.phase, Phase::Closed) else {
            return 0;
        };
        if header.seq != login.seq {
            self.refuse_and_close(&Fault::OutOfOrder, header.seq.wrapping_add(1), out);
            return input.len();
        }
        login.seq = header.seq.wrapping_add(2);
        let seq = header.seq.wrapping_add(1);
        match std::mem::replace(&mut login.stage, Stage::Login) {
            Stage::Login => self.login_packet(cx, login, payload, seq, out),
            Stage::Answer(mut auth) => {
                let step = auth.answer(payload);
                self.auth_step(cx, login, auth, step, seq, out);
            }
            Stage::Proxy | Stage::Tls | Stage::Backend { .. } | Stage::Denied { .. } => {}
        }
        4 + header.len
    }

    fn awaits_answer(&self) -> bool {
        matches!(&self.phase, Phase::Login(login) if matches!(login.stage, Stage::Answer(_)))
    }

    fn login_packet(
        &mut self,
        cx: &mut Cx<'_>,
        mut login: Box<Login>,
        payload: &[u8],
        seq: u8,
        out: &mut Outputs,
    ) {
        if payload.len() >= 4 && LoginPacket::is_pre_41(payload) {
            // Without the 4.1 protocol the client does not know SQL states either.
            self.capabilities = Capabilities::NONE;
            return self.refuse_and_close(&Fault::OldClient, seq, out);
        }
        let tls = cx.snapshot.config.server.tls.mode;
        if !login.encrypted && tls != ServerTlsMode::Off && SslRequest::parse(payload).is_ok() {
            login.stage = Stage::Tls;
            login.seq = seq;
            self.phase = Phase::Login(login);
            out.push(Output::StartTls);
            return;
        }
        let Ok(packet) = LoginPacket::parse(payload) else {
            return self.refuse_and_close(&Fault::BadHandshake, seq, out);
        };
        if !login.encrypted && tls == ServerTlsMode::Required {
            return self.refuse_and_close(&Fault::TlsRequired, seq, out);
        }
        // Bit 0 is clear in the greeting of MariaDB, but a client's own bit tells what the client is.
        self.capabilities = packet.capabilities.intersection(self.capabilities)
            | packet
                .capabilities
                .intersection(Capabilities::LONG_PASSWORD);
        self.identity.max_packet = packet.max_packet;
        self.identity.charset = packet.charset;
        self.identity.attributes = packet.attributes.into();
        self.identity.user = packet.user.to_vec();
        login.schema = packet.schema.map(<[u8]>::to_vec);
        let mut auth = self.start_auth(cx, &mut login);
        let proof = Proof {
            plugin_auth: packet.capabilities.contains(Capabilities::PLUGIN_AUTH),
            plugin: packet.plugin,
            response: packet.auth,
        };
        let nonce = self.identity.nonce;
        let step = auth.login(proof, &nonce, &(cx.nonce)());
        self.auth_step(cx, login, auth, step, seq, out);
    }

    /// COM_CHANGE_USER: the session begins anew, with new connections.
    pub(super) fn change_user(
        &mut self,
        cx: &mut Cx<'_>,
        payload: &[u8],
        seq: u8,
        out: &mut Outputs,
    ) {
        let Ok(packet) = ChangeUser::parse(payload, self.capabilities) else {
            // As MySQL says it.
            return self.refuse_and_close(&Fault::UnknownCommand, seq, out);
        };
        for role in Role::BOTH {
            self.drop_link(role, out);
        }
        if self.server == Server::MariaDb {
            // There the log-in's IGNORE_SPACE lives in sql_mode, which begins anew without it.
            self.capabilities = self.capabilities.without(Capabilities::IGNORE_SPACE);
        }
        let mut login = Box::new(Login::new());
        login.encrypted = true;
        login.seq = seq.wrapping_add(1);
        self.identity.user = packet.user.to_vec();
        login.schema = Some(packet.schema.to_vec()).filter(|s| !s.is_empty());
        if let Some(charset) = packet.charset {
            // A log-in has one byte for it: those of more are set behind a log-in with the server's own, which stands for all that
            // the server does not know, too.
            let is_known = match self.server {
                Server::MySql => (0x100..=323).contains(&charset),
                Server::MariaDb => charset >= 576,
            };
            login.collation = is_known.then_some(charset);
            self.identity.charset = if charset > 0xff { 0 } else { charset };
        }
        if !packet.attributes.is_empty() {
            self.identity.attributes = packet.attributes.into();
        }
        self.forget_session();
        let mut auth = self.start_auth(cx, &mut login);
        let proof = Proof {
            plugin_auth: self.capabilities.contains(Capabilities::PLUGIN_AUTH),
            plugin: packet.plugin,
            response: packet.auth,
        };
        let nonce = self.identity.nonce;
        let step = auth.change_user(proof, &nonce, &(cx.nonce)());
        self.auth_step(cx, login, auth, step, seq, out);
    }

    fn start_auth(&self, cx: &Cx<'_>, login: &mut Login) -> ServerAuth {
        login.account = cx.snapshot.account(&self.identity.user).filter(|index| {
            let networks = &cx.snapshot.accounts[*index].networks;
            match self.identity.peer {
                Peer::Ip(ip) => networks.allows(ip),
                Peer::Local => true,
            }
        });
        let accepted = login
            .account
            .map(|index| cx.snapshot.accounts[index].passwords.clone());
        ServerAuth::new(cx.snapshot.offered_plugin(), accepted)
    }

    fn auth_step(
        &mut self,
        cx: &mut Cx<'_>,
        mut login: Box<Login>,
        auth: ServerAuth,
        step: ServerStep,
        seq: u8,
        out: &mut Outputs,
    ) {
        match step {
            ServerStep::Switch { plugin, nonce } => {
                let mut data = [0_u8; 21];
                data[..20].copy_from_slice(&nonce);
                out.client(|buffer| {
                    AuthSwitch {
                        plugin: plugin.name().as_bytes(),
                        data: &data,
                    }
                    .write(buffer, seq);
                });
                self.identity.nonce = nonce;
                login.stage = Stage::Answer(auth);
                self.phase = Phase::Login(login);
            }
            ServerStep::FastOk => {
                out.client(|buffer| {
                    AuthMore(&[3]).write(buffer, seq);
                });
                self.accepted(cx, login, seq.wrapping_add(1), out);
            }
            ServerStep::Verified => self.accepted(cx, login, seq, out),
            ServerStep::Denied(Denied {
                using_password,
                is_guess,
                ..
            }) => {
                let peer = self.identity.peer.to_string();
                let text = access_denied_text(&self.identity.user, &peer, using_password);
                if !is_guess {
                    return self.refuse_and_close(&Fault::AccessDenied(text), seq, out);
                }
                login.stage = Stage::Denied { seq, text };
                self.phase = Phase::Login(login);
                out.push(Output::Denied);
            }
        }
    }

    /// The answer to a log-in that failed is due.
    pub fn on_denial(&mut self, out: &mut Outputs) {
        let Phase::Login(login) = &mut self.phase else {
            return;
        };
        if let Stage::Denied { seq, text } = &mut login.stage {
            let (seq, text) = (*seq, std::mem::take(text));
            self.refuse_and_close(&Fault::AccessDenied(text), seq, out);
        }
    }

    /// As whom a client wanted to log in that has not got the password right, and what it will be told.
    #[must_use]
    pub fn denial(&self) -> Option<(&[u8], &str)> {
        match &self.phase {
            Phase::Login(login) => match &login.stage {
                Stage::Denied { text, .. } => Some((&self.identity.user, text)),
                _ => None,
            },
            Phase::Command | Phase::Closed => None,
        }
    }

    fn accepted(&mut self, cx: &mut Cx<'_>, mut login: Box<Login>, seq: u8, out: &mut Outputs) {
        // A verified client has an account: without one there was no password to prove.
        let Some(index) = login.account else {
            return self.refuse_and_close(&Fault::BadHandshake, seq, out);
        };
        let account = &cx.snapshot.accounts[index];
        if account.is_gone {
            // Since it was asked for its password.
            return self.refuse_and_close(&Fault::Dismissed, seq, out);
        }
        if !cx.lender.admit(index) {
            let fault = Fault::TooManyForAccount {
                user: String::from_utf8_lossy(&self.identity.user).into_owned(),
                limit: account.max_connections,
            };
            return self.refuse_and_close(&fault, seq, out);
        }
        self.account = index;
        self.shares = account.shares;
        self.tracked.follows = self.shares && Self::follows_gtids(account.causal);
        let schema = login.schema.take().or_else(|| account.schema.clone());
        // Whether this account may use this schema only the server knows (error 1044, 1049), and it knows better what to say of a
        // character set that is not for clients (1231).
        let asks_server = schema.is_some()
            || login.collation.is_some()
            || !Charset::may_be_spoken(self.identity.charset);
        let charset = Charset::from_collation_id(self.identity.charset);
        let facts = &cx.offer.facts;
        self.state = state::State::new(schema, charset, facts.ansi_quotes, facts.is_strict);
        if let Some(id) = login.collation {
            self.state.set_collation(id);
        }
        out.push(Output::LoggedIn(index));
        if asks_server {
            login.stage = Stage::Backend { seq };
            self.phase = Phase::Login(login);
            if self.acquire(cx, Role::Primary, out) {
                self.login_backend_ready(Role::Primary, out);
            }
        } else {
            self.logged_in(None, seq, out);
        }
    }

    fn logged_in(&mut self, server_ok: Option<&[u8]>, seq: u8, out: &mut Outputs) {
        let (capabilities, status) = (self.capabilities, self.status);
        // Servers tell of the schema that a log-in named as of one that was chosen later.
        let schema = self.state.schema().filter(|_| server_ok.is_none());
        let change = schema
            .filter(|_| self.is_told_of_schema())
            .map_or_else(Vec::new, StateChange::schema_entry);
        out.client(|buffer| {
            match server_ok {
                Some(payload) => {
                    let start = buffer.len();
                    let next = write_payload(buffer, seq, payload);
                    if !capabilities.contains(Capabilities::SESSION_TRACK) {
                        let packet = buffer.get_mut(start..).unwrap_or_default();
                        let len = keep_changes(packet, false, &mut |_| None);
                        buffer.truncate(start + len);
                    }
                    next
                }
                None => OkPacket {
                    affected: 0,
                    insert_id: 0,
                    status,
                    warnings: 0,
                    info: b"",
                    state: &change,
                }
                .write(buffer, seq, capabilities),
            };
        });
        self.phase = Phase::Command;
        self.note_logged_in(out);
        self.is_done = true;
        self.want = 4;
        self.attempt = super::Attempt::default();
    }

    /// A connection is there while the client waits for its log-in's answer: the server has let the account in, and into its
    /// schema when the connection is in it.
    pub(super) fn login_backend_ready(&mut self, role: Role, out: &mut Outputs) {
        let Some(seq) = self.awaits_backend() else {
            return;
        };
        let wanted = self.state.history();
        let ok = match self.link(role).known() {
            // The answer to this very log-in, or to one like it.
            Some(known)
                if known.history == *wanted
                    && known.ok_schema.as_deref() == self.state.schema() =>
            {
                Some(known.ok.clone())
            }
            _ => None,
        };
        if ok.is_some() || self.bring(role, out) {
            self.logged_in(ok.as_deref(), seq, out);
            self.give_back(out);
        }
    }

    /// A connection was brought into the schema that the client's log-in named, or not: the server's refusal is its answer.
    pub(super) fn login_synced(&mut self, refusal: Option<Fault>, out: &mut Outputs) {
        let Some(seq) = self.awaits_backend() else {
            return;
        };
        match refusal {
            None => self.logged_in(None, seq, out),
            Some(fault) => self.refuse_and_close(&fault, seq, out),
        }
    }

    /// A connection failed while the client waits for its log-in's answer. True when it was that.
    pub(super) fn login_backend_failed(
        &mut self,
        cx: &Cx<'_>,
        role: Role,
        failure: &Failure,
        out: &mut Outputs,
    ) -> bool {
        let Some(seq) = self.awaits_backend() else {
            return false;
        };
        let unreachable = matches!(failure, Failure::NoHost | Failure::Unreachable(_));
        if unreachable && role == Role::Primary && !self.group(cx.snapshot).replicas.is_empty() {
            // A client that only reads can be served without the primary.
            if let Failure::Unreachable(why) = failure {
                self.attempt.why = why.as_str().into();
            }
            self.open(Role::Replica, out);
        } else {
            // What is wrong with the primary is what the operator wants to know.
            let fault = match (role, failure) {
                (Role::Replica, Failure::NoHost | Failure::Unreachable(_)) => Fault::NoPrimary {
                    group: self.group(cx.snapshot).name.clone(),
                    why: self.attempt.why.to_string(),
                },
                _ => self.fault_of(cx, Role::Primary, failure),
            };
            self.refuse_and_close(&fault, seq, out);
        }
        true
    }

    pub(super) fn awaits_backend(&self) -> Option<u8> {
        match &self.phase {
            Phase::Login(login) => match login.stage {
                Stage::Backend { seq } => Some(seq),
                Stage::Proxy
                | Stage::Login
                | Stage::Tls
                | Stage::Answer(_)
                | Stage::Denied { .. } => None,
            },
            Phase::Command | Phase::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests;
