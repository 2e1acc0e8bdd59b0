//! `broadcast = "listed"`: reads without the shard key are asked of all shards only where a rule lists them.

use atlas::sql::{self, Dialect, Server};

use crate::Stage;
use crate::common::{Bed, Kind, Param};

const REFUSED: &str = "`broadcast = \"listed\"` allows to statements only";

#[test]
fn reads_that_a_rule_allows_are_asked_of_all_shards() {
    for bed in Bed::both() {
        let server = match bed.kind {
            Kind::MariaDb => Server::MariaDb,
            Kind::MySql => Server::MySql,
        };
        let mut form = Vec::new();
        let known = b"SELECT uid FROM ord WHERE amt = 5";
        let digest = sql::digest(known, &Dialect::new(server, 0), &mut form);
        let rules = format!(
            "[[rules]]\nname = \"refused first\"\nmatch = {{ regex = \"never\" }}\naction = \"reject\"\n\
             [[rules]]\nname = \"report\"\nmatch = {{ regex = \"(?i)^select amt from ord where code\" }}\naction = \"allow\"\n\
             [[rules]]\nname = \"one kind\"\nmatch = {{ digest = \"{digest:016x}\" }}\naction = \"allow\"\n\
             [[rules]]\nname = \"noted\"\nmatch = {{ regex = \"item\" }}\naction = \"log\"\n"
        );
        let stage = Stage::listed(&bed, &rules);
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let mut sorted = |sql: &str| {
            let mut rows = client.query(sql).assert_ok().rows();
            let mut wanted = direct.query(sql).assert_ok().rows();
            rows.sort();
            wanted.sort();
            assert_eq!(rows, wanted, "{sql}");
        };
        // More than once: what comes again is not read again.
        for _ in 0..3 {
            sorted("SELECT amt FROM ord WHERE code = 'A'");
            sorted("/* why */ select amt FROM ord WHERE code IN ('a', 'b')");
            sorted("select uid from ord where amt = 8");
            // One shard, which needs no leave.
            sorted("SELECT * FROM ord WHERE uid = 3");
        }
        for sql in [
            "SELECT amt FROM ord",
            "SELECT uid FROM ord WHERE amt > 5",
            "SELECT uid FROM ord WHERE amt = 5 AND n = 3",
            "SELECT sku FROM item",
            "SELECT amt FROM ord WHERE code = 'never'",
        ] {
            for _ in 0..3 {
                let error = client.query(sql).error().expect(sql);
                let said = if sql.contains("never") {
                    "refused first"
                } else {
                    REFUSED
                };
                assert!(
                    error.0 == 1105 && error.2.contains(said),
                    "{sql}: {error:?}"
                );
            }
        }
        let text = |param: &str| Param::Text(param.to_owned());
        let known = client.prepare("SELECT amt FROM ord WHERE code = ?");
        let rows = client.execute(&known, &[text("a")]);
        assert_eq!(rows.assert_ok().binary_rows().len(), 3);
        let other = client.prepare("SELECT code FROM ord WHERE code = ?");
        let error = client.execute(&other, &[text("a")]).error().unwrap();
        assert!(error.2.contains(REFUSED), "{error:?}");
        let mut route = |sql: &str| {
            let rows = client.query(&format!("EXPLAIN ROUTE {sql}")).rows();
            format!("{rows:?}")
        };
        let allowed = route("SELECT amt FROM ord WHERE code = 'A'");
        assert!(
            allowed.contains("several-shards") && allowed.contains("report: allow"),
            "{allowed}"
        );
        assert!(route("SELECT amt FROM ord").contains("listed"));
    }
}
