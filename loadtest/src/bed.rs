//! The test bed on the loopback: a temporary folder, the server and the targets in front of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::database::{Database, Threads};
use crate::error::{Error, Result};
use crate::group;
use crate::guard;
use crate::machine;
use crate::options::Options;
use crate::programs::this_program;
use crate::record::{JsonLines, Record};
use crate::sys::{self, Placement};
use crate::targets::{self, Site, Target};
use crate::usage::{Meter, Parties};

/// Everything that runs during a measurement; ended when this is dropped, proxies first.
pub(crate) struct Bed {
    pub(crate) targets: Vec<Target>,
    pub(crate) database: Database,
    pub(crate) folder: PathBuf,
    pub(crate) json: JsonLines,
    /// How many clients a target can take, by the limit of descriptors.
    pub(crate) clients_max: u64,
    core: usize,
    is_pinned: bool,
}

impl Bed {
    /// Starts the server and all targets and waits until each answers.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(crate) fn start(options: &Options, threads: Threads) -> Result<Self> {
        let descriptors = sys::raise_descriptors(targets::DESCRIPTORS);
        let json = JsonLines::create(&options.json)?;
        let folder = guard::temporary_folder()?;
        let port = targets::free_port()?;
        eprintln!("starting the server and the targets");
        let database = Database::start(&folder, port, Placement::default(), threads, options.rows)?;
        let core = options.is_pinned.then_some(options.core);
        if let Some(core) = core {
            machine::pin_session(database.sid(), options.server_core.unwrap_or(core));
        }
        let listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let place = || {
            Ok(Placement {
                core,
                ..Placement::default()
            })
        };
        let site = Site {
            folder: &folder,
            listen,
            server: SocketAddr::new(listen, port),
            core: options.core,
            descriptors,
            is_here: true,
            place: &place,
        };
        let mut bed = Self {
            targets: targets::start(options, &site)?,
            database,
            folder,
            json,
            clients_max: targets::clients_max(descriptors),
            core: options.core,
            is_pinned: options.is_pinned,
        };
        bed.targets.iter_mut().try_for_each(Target::wait_until_up)?;
        Ok(bed)
    }

    /// Where clients run.
    pub(crate) fn client_place(&self) -> Placement {
        Placement {
            core: self.is_pinned.then_some(self.core),
            ..Placement::default()
        }
    }

    /// Whose CPU time counts when a target is measured.
    pub(crate) fn parties(&self, target: &Target) -> Parties<'static> {
        Parties {
            proxy: target.sid(),
            server: self.database.sid(),
            core: self.core,
            others: &|| Duration::ZERO,
        }
    }

    /// Runs a measuring client in that mode against one target: what it told, and the CPU time of everybody for one of its `units`.
    ///
    /// # Errors
    /// When it fails, or does not tell how many units there were.
    pub(crate) fn client(
        &self,
        target: &Target,
        mode: &str,
        words: &[String],
        secs: u64,
        units: &str,
    ) -> Result<Record> {
        let mut command = this_program();
        command.args([
            "client",
            mode,
            &format!("{}={}", target.name, target.address),
            &format!("--secs={secs}"),
        ]);
        command.args(words);
        let meter = Meter::start(self.parties(target));
        let output = group::run(
            command,
            self.client_place(),
            Duration::from_secs(secs + 60),
            &self.folder,
            "client",
        )?;
        let usage = meter.stop();
        let result = Record::from_line(&output);
        let units = result
            .get(units)
            .ok_or_else(|| Error::Failed(format!("the client said: {output}")))?;
        Ok(result.with(&usage.per(units)))
    }

    /// The targets in the order of a round: each round begins with another one, so that drift hits all alike.
    pub(crate) fn order(&self, round: usize) -> Vec<usize> {
        let n = self.targets.len();
        (0..n).map(|i| (i + round) % n).collect()
    }
}

/// The samples of one table: target by target, in the order of the targets.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<(String, Vec<Record>)>);

impl Samples {
    pub(crate) fn of(targets: &[Target]) -> Self {
        Self(
            targets
                .iter()
                .map(|t| (t.name.clone(), Vec::new()))
                .collect(),
        )
    }

    pub(crate) fn add(&mut self, name: &str, record: Record) {
        if let Some((_, records)) = self.0.iter_mut().find(|(n, _)| n == name) {
            records.push(record);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[Record])> {
        self.0
            .iter()
            .map(|(name, records)| (name.as_str(), records.as_slice()))
    }

    /// All values of one figure of one target.
    pub(crate) fn values(&self, target: &str, figure: &str) -> Vec<f64> {
        let records = self
            .0
            .iter()
            .find(|(n, _)| n == target)
            .map_or(&[][..], |(_, r)| r);
        values(records, figure)
    }
}

/// All values of one figure.
pub(crate) fn values(records: &[Record], figure: &str) -> Vec<f64> {
    records.iter().filter_map(|r| r.get(figure)).collect()
}
