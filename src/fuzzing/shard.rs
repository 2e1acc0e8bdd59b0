//! The fuzz target of the analysis of statements about sharded tables.

use std::sync::OnceLock;

use super::sql::dialect;
use crate::shard::{Asked, Numbers, Placement, Plan, Scalar};

const MAP: &str = r#"
    groups = [
        { name = "a", primary = "h0" },
        { name = "b", primary = "h1", schemas = { s = "s_b" } },
    ]
    users = [{ name = "u", password = "x", group = "a" }]
    tables = [
        { name = "s.ord", key = "uid", ranges = [{ groups = ["a", "b"] }] },
        { name = "s.log", key = "id", ranges = [{ groups = ["a", "b"], tables = 2 }] },
        { name = "s.txt", key = "k", key_type = "string", hash = "crc32", ranges = [{ groups = ["a", "b"] }] },
        { name = "s.day", key = "d", key_type = "date", ranges = [{ to = "2024-01-01", groups = ["a"] }, { from = "2024-01-01", groups = ["b"] }] },
    ]
    sharding.global_tables = ["s.zone"]
"#;

fn placement() -> &'static Placement {
    static PLACEMENT: OnceLock<Placement> = OnceLock::new();
    PLACEMENT.get_or_init(|| {
        let config = crate::config::load(MAP, "map", &|_| None).expect("a map without mistakes");
        Placement::new(&config, &[0, 1]).expect("a map with tables")
    })
}

/// A byte of the dialect, then a statement's text. What is sent to shards must be the client's own text but for names.
pub fn shard_statement(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let d = dialect(choice);
    let placement = placement();
    let schema = Some(&b"s"[..]);
    if placement.is_mentioned(text, &d, schema) {
        assert!(
            placement.words().occur_in(text),
            "a name that is overlooked"
        );
    }
    let Ok(Some(shape)) = placement.read(text, &d, schema) else {
        return;
    };
    for params in [&[][..], &[Scalar::Int(3), Scalar::Null, Scalar::Float(0.5)]] {
        let asked = Asked {
            is_listed: false,
            is_lax: false,
            columns: None,
            text,
            d: &d,
            home: 0,
            here: 0,
            params,
            numbers: Numbers::None,
        };
        let legs = match placement.plan(&shape, asked) {
            Plan::One(leg) => vec![leg],
            Plan::Scatter { legs, .. } => legs,
            Plan::Parts(_)
            | Plan::Across(_)
            | Plan::Everywhere(_)
            | Plan::Each(_)
            | Plan::Columns(_)
            | Plan::Ids { .. }
            | Plan::Refuse(_) => continue,
        };
        for leg in legs {
            assert!(leg.group < 2, "a group that is not there");
            if let Some(sent) = leg.text {
                assert!(keeps(text, &sent), "a text that lost something");
            }
        }
    }
}

/// Whether `sent` is `text` with other bytes in some places: what was left out of `text` is names, and all else is in `sent` in order.
fn keeps(text: &[u8], sent: &[u8]) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'`' | b'"') || b >= 0x80;
    let mut rest = sent.iter().copied().filter(|b| !is_name(*b));
    let mut kept = text.iter().copied().filter(|b| !is_name(*b));
    // ` AS ` brings blanks.
    kept.all(|wanted| rest.by_ref().any(|b| b == wanted))
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds() {
        let worker = std::thread::Builder::new().stack_size(crate::shard::STACK);
        let seeds = || crate::fuzzing::replay("shard_statement", super::shard_statement);
        worker.spawn(seeds).unwrap().join().unwrap();
    }
}
