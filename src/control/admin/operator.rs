//! Carries out what operators say: looks things up, or has them changed by those who own them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{accounts, change, checks, clients, explain, reports, save, strangers};
use crate::admin::{Answer, Command, Refusal, Report, Request, Table, help};
use crate::control::{Desk, stop};
use crate::worker::Shared;

pub(super) struct Operator {
    pub(super) shared: Arc<Shared>,
    pub(super) desk: Arc<Desk>,
    /// Tells that the process ended without waiting for its clients.
    forced: Arc<AtomicBool>,
}

impl Operator {
    pub(super) fn new(shared: Arc<Shared>, desk: Arc<Desk>, forced: Arc<AtomicBool>) -> Self {
        Self {
            shared,
            desk,
            forced,
        }
    }

    pub(super) fn carry_out(&self, request: &Request) -> Answer {
        let answer = Answer::from(self.run(request));
        if let Answer::Refused(refusal) = &answer
            && request.command.needs_operator()
        {
            log::info!("admin port: refused to {}: {refusal}", request.who);
        }
        answer
    }

    /// What a command leaves to be done when its answer has been sent, which the end of the process would overtake.
    pub(super) fn finish(&self, request: &Request) {
        if request.command == Command::Stop {
            self.forced.store(true, Ordering::Relaxed);
            stop::force(&self.shared);
        }
    }

    fn run(&self, request: &Request) -> Result<Table, Refusal> {
        let (shared, desk) = (&*self.shared, &*self.desk);
        let live = shared.live();
        let who = request.who.to_string();
        Ok(match &request.command {
            Command::Help => help(),
            Command::Version => {
                let mut table = Table::new(["version"]);
                table.push([env!("CARGO_PKG_VERSION").to_owned()]);
                table
            }
            Command::Backends => reports::backends(&live),
            Command::Clients => reports::clients(&live),
            Command::Accounts => reports::accounts(&live),
            Command::Show(report) => match report {
                Report::Backends => reports::backends_detail(&live),
                Report::Pools => reports::pools(&live),
                Report::Accounts => {
                    reports::wait_until_counted(shared);
                    accounts::accounts(shared, &live)
                }
                Report::Rules => reports::rules(&live),
                Report::Tables => reports::tables(&live),
                Report::Events => reports::events(desk.events()),
                Report::Sessions => clients::sessions(shared, &live),
                Report::ProcessList => clients::process_list(shared, &live),
                Report::Pins => clients::pins(shared, &live),
                Report::Routes => reports::routes(shared),
                Report::Digests => clients::digests(shared),
            },
            Command::CheckBackends => checks::check(&live),
            Command::CheckConnections => strangers::check(shared, &live),
            Command::ExplainRoute { user, sql } => {
                explain::explain(shared, &live, user.as_deref(), sql)?
            }
            Command::SetState(backend, state) => {
                change::set_state(desk, &live, &who, backend, *state)?
            }
            Command::AddBackend {
                group,
                is_primary,
                address,
                weight,
            } => {
                let group = change::group(&live, group.as_deref())?;
                if *is_primary {
                    change::add_primary(desk, &live, &who, &group, address)?
                } else {
                    change::add_replica(desk, &live, &who, &group, address, *weight)?
                }
            }
            Command::RemoveBackend { group, backend } => {
                change::remove(desk, &live, &who, group.as_deref(), backend)?
            }
            Command::SetWeight(backend, weight) => {
                change::set_weight(desk, &live, &who, backend, *weight)?
            }
            Command::SwitchPrimary { group, to } => {
                change::switch_primary(desk, &live, &who, group, to)?
            }
            Command::AddClient(client) => change::add_client(desk, &who, client)?,
            Command::RemoveClient(client) => change::remove_client(desk, &who, client)?,
            Command::AddAccount {
                group,
                name,
                password,
                is_encrypted,
            } => {
                let group = change::group_of_account(&live, group.as_deref())?;
                change::add_account(
                    desk,
                    &live,
                    &who,
                    (name, password),
                    *is_encrypted,
                    group.as_deref(),
                )?
            }
            Command::RemoveAccount(name) => change::remove_account(desk, &who, name)?,
            Command::ReloadConfig { is_forced } => change::reload(desk, &who, *is_forced)?,
            Command::SaveConfig => save::save(desk, &who)?,
            Command::Kill { id, query_only } => {
                clients::kill(shared, desk.events(), &who, *id, *query_only)?
            }
            Command::Drain => {
                desk.events()
                    .record(&who, "stop", "the process is to drain and end".to_owned());
                stop::begin(&self.shared);
                Table::status()
            }
            Command::Stop => {
                desk.events()
                    .record(&who, "stop", "the process is to end at once".to_owned());
                shared.condition.set_draining();
                Table::status()
            }
        })
    }
}
