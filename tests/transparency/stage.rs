//! The stage: servers, Atlas in front of them, a schema for the direct run and one of the same content and the same length of name for
//! the run through Atlas.

use ::atlas::wire::Capabilities;

use crate::common::{Atlas, Bed, Config, Kind, Login, Mask, Node, Schema, Wire, config_for};
use crate::delivery::{Delivery, Outcome, Runner};
use crate::differences::{self, Differences};
use crate::places;
use crate::script::{Place, Script};

pub(crate) struct Stage {
    pub(crate) bed: Bed,
    pub(crate) atlas: Atlas,
    direct: Schema,
    through: Schema,
}

impl Stage {
    /// With the statements of `setup` run in both schemas, and on the replicas too.
    pub(crate) fn new(kind: Kind, setup: &[&str]) -> Self {
        Self::with_config(kind, setup, |_, config| config)
    }

    pub(crate) fn with_config(
        kind: Kind,
        setup: &[&str],
        change: impl FnOnce(&Bed, Config) -> Config,
    ) -> Self {
        let bed = Bed::of(kind);
        let (direct, through) = (bed.schema(), bed.schema());
        let mut root = bed.root(Node::Primary);
        for schema in [&direct, &through] {
            root.ok(&format!("USE {schema}"));
            for sql in setup {
                root.ok(&sql.replace("{s}", schema.name()));
            }
        }
        bed.wait_replicas();
        let mut config = config_for(&bed);
        if kind == Kind::MariaDb {
            // The server's own, so that log-ins have the same packets.
            config = config.server("auth_plugin = \"mysql_native_password\"");
        }
        let atlas = Atlas::start(change(&bed, config));
        Self {
            bed,
            atlas,
            direct,
            through,
        }
    }

    /// Runs the script on the primary and through Atlas, compares all packets, and looks up where the statements ran.
    pub(crate) fn compare(
        &self,
        what: &str,
        login: &Login,
        script: &Script,
        differences: &mut Differences,
    ) {
        let what = format!("{:?}, {what}", self.bed.kind);
        let direct = self.run_direct(login, script);
        let marks = self.bed.marks();
        let through = self.run_through(login, script, Delivery::Whole);
        self.diff(&what, script, &direct, &through, differences);
        let schema = self.through.name();
        places::check(&what, schema, script, &direct, &marks, differences);
    }

    /// Runs the script on the primary once, and through Atlas cut in every way that there is: at every byte of each command, at every
    /// byte of the whole, byte by byte. The script must leave no trace.
    pub(crate) fn compare_cut(
        &self,
        login: &Login,
        script: &Script,
        differences: &mut Differences,
    ) {
        let direct = self.run_direct(login, script);
        let greeting = Wire::greet(self.atlas.address()).expect("a greeting");
        let (longest, whole) = self.lengths(script, login.effective(greeting.offered));
        let mut deliveries = vec![Delivery::Whole, Delivery::Bytes];
        deliveries.extend((1..longest).map(Delivery::CutAt));
        if script.is_pipelinable() {
            deliveries.push(Delivery::Pipelined);
            deliveries.extend((1..whole).map(Delivery::PipelinedCutAt));
        }
        for delivery in deliveries {
            let through = self.run_through(login, script, delivery);
            let what = format!("{:?}, {delivery:?}", self.bed.kind);
            self.diff(&what, script, &direct, &through, differences);
        }
    }

    pub(crate) fn run_direct(&self, login: &Login, script: &Script) -> Vec<Outcome> {
        let runner = Runner {
            bed: &self.bed,
            schema: &self.direct,
            syncs: false,
        };
        let primary = self.bed.address(Node::Primary);
        runner.run(primary, login, script, Delivery::Whole)
    }

    pub(crate) fn run_through(
        &self,
        login: &Login,
        script: &Script,
        delivery: Delivery,
    ) -> Vec<Outcome> {
        let runner = Runner {
            bed: &self.bed,
            schema: &self.through,
            syncs: true,
        };
        runner.run(self.atlas.address(), login, script, delivery)
    }

    /// The longest command and all together, in bytes on the wire.
    fn lengths(&self, script: &Script, caps: Capabilities) -> (usize, usize) {
        let schema = self.through.name();
        let lengths = script.steps.iter().enumerate().filter_map(|(i, step)| {
            let payload = step.act.payload(&Place {
                schema,
                tag: &step.tag(schema, i),
                connection: 0,
                ids: &[],
                caps,
            })?;
            let tail = step.act.is_file().then(|| step.act.tail(2).len());
            Some(payload.len() + 4 + tail.unwrap_or(0))
        });
        let lengths: Vec<usize> = lengths.collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        (longest, lengths.iter().sum())
    }

    pub(crate) fn diff(
        &self,
        what: &str,
        script: &Script,
        direct: &[Outcome],
        through: &[Outcome],
        differences: &mut Differences,
    ) {
        let names = Mask::Bytes(self.through.name().into(), self.direct.name().into());
        differences::compare(what, script, direct, through, &names, differences);
    }
}
