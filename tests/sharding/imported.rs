//! The original's configuration, imported: a million keys lie where the original put them.

use atlas::auth::Secret;
use atlas::config::KeyType;
use atlas::import::import_cnf;
use atlas::shard::{Key, Placement, Scalar, Table};

const OLD: &str = "\
[mysql-proxy]
proxy-address = 0.0.0.0:1234
proxy-backend-addresses = 10.0.0.1:3306
pwds = u:/iZxz+0GRoA=
tables = shop.sub.id.7, shop.one.id.100
[shardrule-0]
table = shop.orders
type = hash
shard-key = id
groups = 2,0,1
[shardrule-1]
table = shop.log
type = range
shard-key = id
groups = 0:0-999,1:1000-499999,2:500000-*
[group-0]
proxy-backend-addresses = 10.0.1.1:3306
[group-1]
proxy-backend-addresses = 10.0.2.1:3306
[group-2]
proxy-backend-addresses = 10.0.3.1:3306
";

/// Whole numbers of all sizes, the same in every run.
fn keys() -> impl Iterator<Item = i64> {
    let mut state = 7_u64;
    (0..1_000_000_u32).map(move |number| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match number % 4 {
            0 => i64::from(number),
            1 => i64::try_from(state >> 33).unwrap(),
            2 => i64::try_from(state >> 1).unwrap(),
            _ => i64::try_from(state >> 40).unwrap() * 1000,
        }
    })
}

/// `atoi` of the C library on a machine with 64 bits: `strtol`, of which the low 32 bits are kept; the original took them for unsigned.
fn atoi(text: &str) -> u32 {
    let digits = text.trim_start_matches('-');
    let held = digits.parse::<i128>().unwrap_or(1 << 64);
    let held = if text.starts_with('-') { -held } else { held };
    let held = i64::try_from(held).unwrap_or(if held < 0 { i64::MIN } else { i64::MAX });
    let low = u64::from_le_bytes(held.to_le_bytes()) & 0xffff_ffff;
    u32::try_from(low).unwrap()
}

fn place<'p>(table: &'p Table, scalar: &Scalar) -> (&'p str, usize) {
    let key = Key::stored(scalar, KeyType::Int).expect("a key");
    let shard = table.shard_of(&key).expect("a place for each key");
    let shard = &table.shards[shard];
    (&shard.name, shard.group)
}

#[test]
fn keys_lie_where_the_original_put_them() {
    let imported = import_cnf(OLD, "old.cnf", None, &mut |_: &Secret| {
        Ok("secret".to_owned())
    });
    let config = atlas::config::load(&imported.toml, "new", &|_| None)
        .unwrap_or_else(|problems| panic!("{problems:?}\n{}", imported.toml));
    let places: Vec<usize> = (0..config.groups.len()).collect();
    let group = |name: &str| {
        let mut names = config.groups.iter().map(|group| group.name.as_str());
        names.position(|of| of == name).expect("a group")
    };
    let main = group("main");
    let groups = [group("group-0"), group("group-1"), group("group-2")];
    let placement = Placement::new(&config, &places).expect("tables");
    let table = |name: &str| {
        let number = placement.table(b"shop", name.as_bytes()).expect("a table");
        &placement.tables[number]
    };
    let (sub, one, orders, log) = (table("sub"), table("one"), table("orders"), table("log"));
    // The order of the groups in the rule counts, not their numbers.
    let by_hash = [groups[2], groups[0], groups[1]];
    for key in keys() {
        let scalar = Scalar::Int(key.into());
        let text = key.to_string();
        assert_eq!(
            place(sub, &scalar),
            (format!("sub_{}", atoi(&text) % 7).as_str(), main)
        );
        assert_eq!(
            place(one, &scalar),
            (format!("one_{}", atoi(&text) % 100).as_str(), main)
        );
        let remainder = usize::try_from(key % 3).unwrap();
        assert_eq!(
            place(orders, &scalar),
            ("orders", by_hash[remainder]),
            "{key}"
        );
        let range = match key {
            0..=999 => groups[0],
            1000..=499_999 => groups[1],
            _ => groups[2],
        };
        assert_eq!(place(log, &scalar), ("log", range), "{key}");
    }
    // Of the sub-tables also negative keys, those beyond 32 bits, and numbers written as texts.
    for text in [
        "-1",
        "-7",
        "2147483648",
        "4294967296",
        "-9223372036854775808",
        "18446744073709551615",
    ] {
        let wanted = format!("sub_{}", atoi(text) % 7);
        let number = Scalar::Int(text.parse().unwrap());
        assert_eq!(place(sub, &number).0, wanted, "{text}");
        let written = Scalar::Text(text.as_bytes().to_vec());
        assert_eq!(place(sub, &written).0, wanted, "'{text}'");
    }
}
