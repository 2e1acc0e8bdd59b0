//! The log-in of a model server: greeting, TLS request, password, verdict; and the ways in which it can go wrong.

use atlas::auth::{verify_caching_sha2, verify_native};
use atlas::wire::{AuthMore, AuthSwitch, Capabilities, Greeting, Login, OkPacket, SslRequest};

use crate::answer::Answer;
use crate::memory::{Defaults, Flavour, Memory, charset_of};
use crate::server::{Estate, Reaction};

/// The account that Atlas uses on the servers.
pub const USER: &str = "app";
pub const PASSWORD: &str = "app-pw";

/// How a log-in goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// An error instead of the greeting.
    AtOnce(u16),
    /// An error instead of OK.
    AtTheEnd(u16),
    /// The connection ends instead.
    Silent,
    /// Bytes that are no packet of a log-in.
    Garbage,
}

/// See the module's words.
#[derive(Debug)]
pub struct Greeter {
    pub defaults: Defaults,
    pub capabilities: Capabilities,
    pub native: bool,
    pub asks_to_switch: bool,
    pub refusal: Option<Refusal>,
    pub nonce: [u8; 20],
    login: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    capabilities: Capabilities,
    charset: u16,
    schema: Option<String>,
}

/// Where a log-in stands after a packet.
#[derive(Debug)]
pub enum Verdict {
    GoesOn(Reaction),
    In(Box<Memory>, Capabilities, Reaction),
}

impl Greeter {
    pub fn new(defaults: Defaults, capabilities: Capabilities, nonce: [u8; 20]) -> Self {
        Self {
            defaults,
            capabilities,
            native: defaults.flavour == Flavour::MariaDb,
            asks_to_switch: false,
            refusal: None,
            nonce,
            login: None,
        }
    }

    fn plugin(&self) -> &'static [u8] {
        if self.native {
            b"mysql_native_password"
        } else {
            b"caching_sha2_password"
        }
    }

    pub fn version(flavour: Flavour) -> &'static [u8] {
        match flavour {
            Flavour::MySql => b"9.7.4",
            Flavour::MariaDb => b"5.5.5-10.11.19-MariaDB-log",
        }
    }

    /// The first packet.
    pub fn greet(&self, thread_id: u32) -> Reaction {
        let mut answer = Answer::new(0, Capabilities::NONE);
        match self.refusal {
            Some(Refusal::AtOnce(code)) => {
                answer.error(code, "refused at once");
                return Reaction {
                    bytes: answer.bytes,
                    close: true,
                };
            }
            Some(Refusal::Garbage) => {
                return Reaction {
                    bytes: b"HTTP/1.1 400 Bad Request\r\n\r\n and so on and so forth".to_vec(),
                    close: true,
                };
            }
            Some(Refusal::AtTheEnd(_) | Refusal::Silent) | None => {}
        }
        let greeting = Greeting {
            version: Self::version(self.defaults.flavour),
            thread_id,
            nonce: self.nonce,
            capabilities: self.capabilities,
            charset: 45,
            status: Memory::new(self.defaults, "utf8mb4", None).status(),
            plugin: self.plugin(),
        };
        greeting.write(&mut answer.bytes, 0);
        Reaction {
            bytes: answer.bytes,
            close: false,
        }
    }

    pub fn packet(&mut self, estate: &Estate, payload: &[u8], next_seq: u8) -> Verdict {
        let goes_on = |bytes: Vec<u8>, close: bool| Verdict::GoesOn(Reaction { bytes, close });
        if self.login.is_none() && payload.len() == 32 {
            SslRequest::parse(payload).expect("a request for TLS");
            return goes_on(Vec::new(), false);
        }
        let mut answer = Answer::new(next_seq, Capabilities::PROTOCOL_41);
        let proof = if self.login.is_none() {
            let login = Login::parse(payload).expect("a log-in that can be read");
            assert_eq!(login.user, USER.as_bytes());
            assert!(
                // Bit 0 tells whose client it is, not what it can do.
                (self.capabilities | Capabilities::LONG_PASSWORD).contains(login.capabilities),
                "Atlas claims what the server does not have: {:?}",
                login.capabilities.without(self.capabilities)
            );
            self.login = Some(Pending {
                capabilities: login.capabilities,
                charset: login.charset,
                schema: login
                    .schema
                    .map(|name| String::from_utf8_lossy(name).into_owned()),
            });
            if self.asks_to_switch {
                self.native = !self.native;
                for byte in &mut self.nonce {
                    *byte = byte.wrapping_add(1).max(1);
                }
                let data = [&self.nonce[..], b"\0"].concat();
                AuthSwitch {
                    plugin: self.plugin(),
                    data: &data,
                }
                .write(&mut answer.bytes, next_seq);
                return goes_on(answer.bytes, false);
            }
            login.auth
        } else {
            payload
        };
        let verifies = if self.native {
            verify_native(PASSWORD.as_bytes(), &self.nonce, proof)
        } else {
            verify_caching_sha2(PASSWORD.as_bytes(), &self.nonce, proof)
        };
        assert!(verifies, "Atlas did not prove the password");
        if !self.native {
            answer.seq = AuthMore(&[3]).write(&mut answer.bytes, answer.seq);
        }
        match self.refusal {
            Some(Refusal::AtTheEnd(code)) => {
                answer.error(code, "refused at the end");
                return goes_on(answer.bytes, true);
            }
            Some(Refusal::Silent) => return goes_on(Vec::new(), true),
            Some(Refusal::AtOnce(_) | Refusal::Garbage) | None => {}
        }
        let pending = self.login.take().expect("seen above");
        if let Some(schema) = &pending.schema
            && !estate.databases.names.contains(schema)
        {
            answer.error(1049, &format!("Unknown database '{schema}'"));
            return goes_on(answer.bytes, true);
        }
        let mut memory = Memory::new(self.defaults, charset_of(pending.charset), pending.schema);
        memory.multi_statements = pending
            .capabilities
            .contains(Capabilities::MULTI_STATEMENTS);
        let mut ok = Answer::new(answer.seq, pending.capabilities);
        ok.ok(&OkPacket {
            status: memory.status(),
            ..OkPacket::default()
        });
        answer.bytes.extend(ok.bytes);
        Verdict::In(
            Box::new(memory),
            pending.capabilities,
            Reaction {
                bytes: answer.bytes,
                close: false,
            },
        )
    }
}
