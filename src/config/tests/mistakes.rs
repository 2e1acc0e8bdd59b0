//! Every kind of mistake, with the words about it.

use super::*;

/// Lines to put into a file that is otherwise right, and what must be said about them, in order. The lines of the first
/// start at line 1; a file is completed with whichever of the two needed sections it lacks.
#[rustfmt::skip]
const MISTAKES: &[(&str, &[&str])] = &[
    // Not TOML: all places, nothing else.
    ("a = \nb = 08\nc = 'x", &[
        "1: string values must be quoted, expected literal string",
        "2: unexpected leading zero, expected nothing",
        "3: invalid literal string, expected `'`",
    ]),
    ("[server]\nworkers = 1\nworkers = 2", &["3: duplicate key"]),
    // Unknown names.
    ("[sever]\nlisten = []", &["1: sever: unknown key; did you mean `server`?"]),
    ("[server]\nlisen = []", &["2: server.lisen: unknown key; did you mean `listen`?"]),
    ("[server]\nmax-connections = 1", &["2: server.max-connections: unknown key; did you mean `max_connections`?"]),
    ("[server]\nmin_idle = 1", &["2: server.min_idle: unknown key; there is `pool.min_idle`"]),
    ("[server.tls]\nzzz = 1", &["2: server.tls.zzz: unknown key; `server.tls` has mode, cert, key, ca"]),
    ("listen = []", &["1: listen: unknown key; there is `server.listen`"]),
    ("[server]\n\"a\\nb\" = 1", &["2: server.a\\nb: unknown key; `server` has listen, admin_listen, http_listen, workers, pin_workers, server_version, auth_plugin, max_connections, drain_delay, drain_timeout, upgrade_socket, proxy_protocol_from, client_networks, key_file, tls"]),
    // Wrong types.
    ("server = 1", &["1: server: expected a table in { } or under its own [header], found a whole number"]),
    ("[server]\nlisten = 1", &["2: server.listen: expected a string in quotes, found a whole number"]),
    ("[server]\nlisten = [1, true]", &[
        "2: server.listen[0]: expected a string in quotes, found a whole number",
        "2: server.listen[1]: expected a string in quotes, found a boolean",
    ]),
    ("[server]\nworkers = \"2\"", &["2: server.workers: expected a whole number, found a string"]),
    ("[server]\nworkers = 1.5", &["2: server.workers: expected a whole number, found a number"]),
    ("[server]\nclient_networks = \"10.0.0.0/8\"", &["2: server.client_networks: expected a list in [ ], found a string"]),
    ("[server]\ndrain_timeout = 30", &["2: server.drain_timeout: expected a duration in quotes with its unit, such as \"10s\" or \"500ms\", found a whole number"]),
    ("[groups]\nname = \"a\"", &["1: groups: expected a list of tables: write [[groups]] in place of [groups]"]),
    ("users = 1", &["1: users: expected a list in [ ], found a whole number"]),
    // Server.
    ("[server]\nlisten = []", &["2: server.listen: empty: at least one address is needed, such as [\"0.0.0.0:1234\"]"]),
    ("[server]\nlisten = [\n  \"0.0.0.0:1234\",\n  \"localhost\",\n  \"0.0.0.0:1234\",\n]", &[
        "4: server.listen[1]: `localhost` is not an address to listen on: write IP:PORT such as \"0.0.0.0:1234\" or \"[::]:1234\", or \"unix:/path/to.sock\"",
        "5: server.listen[2]: listed twice",
    ]),
    ("[server]\nadmin_listen = \"2345\"", &["2: server.admin_listen: `2345` is not IP:PORT, such as \"127.0.0.1:2345\""]),
    ("[server]\nlisten = [\"10.0.0.1:1\", \"[::]:2\"]\nadmin_listen = \"10.0.0.1:2\"\nhttp_listen = \"0.0.0.0:1\"", &[
        "3: server.admin_listen: `10.0.0.1:2` is taken by `listen`",
        "4: server.http_listen: `0.0.0.0:1` is taken by `listen`",
    ]),
    ("[server]\nadmin_listen = \"[::ffff:10.0.0.1]:1\"\nhttp_listen = \"10.0.0.1:1\"", &["3: server.http_listen: `10.0.0.1:1` is taken by `admin_listen`"]),
    ("[server]\nlisten = \"unix:/a\\u0000b\"", &["2: server.listen: `unix:/a\\u{0}b`: a path cannot contain a NUL byte"]),
    ("[server]\nworkers = -1", &["2: server.workers: -1 is out of range: 0 to 1024"]),
    ("[server]\nworkers = 99999999999999999999", &["2: server.workers: 99999999999999999999 is out of range: 0 to 1024"]),
    ("[server]\npin_workers = [0, 1, -1]", &["2: server.pin_workers[2]: -1 is out of range: 0 to 1023"]),
    ("[server]\npin_workers = []", &["2: server.pin_workers: empty: list the cores, or write true or false"]),
    ("[server]\npin_workers = \"yes\"", &["2: server.pin_workers: expected true or false, found a string"]),
    ("[server]\nserver_version = \"8.0\"", &["2: server.server_version: `8.0` is not a server version: three numbers are needed, such as \"8.0.36\" or \"8.0.36-myproxy\", or \"auto\""]),
    ("[server]\nserver_version = \"\"", &["2: server.server_version: `` is not a server version: three numbers are needed, such as \"8.0.36\" or \"8.0.36-myproxy\", or \"auto\""]),
    ("[server]\nserver_version = \"8.0.36\\u0000\"", &["2: server.server_version: the version may have printable ASCII characters only"]),
    ("[server]\nlisten = \"a\\nb\"", &["2: server.listen: `a\\nb` is not an address to listen on: write IP:PORT such as \"0.0.0.0:1234\" or \"[::]:1234\", or \"unix:/path/to.sock\""]),
    ("[server]\nauth_plugin = \"sha256_password\"", &["2: server.auth_plugin: `sha256_password` is not one of \"caching_sha2_password\", \"mysql_native_password\""]),
    ("[server]\nmax_connections = 0", &["2: server.max_connections: 0 is out of range: 1 to 1000000"]),
    ("[server]\ndrain_timeout = \"30\"", &["2: server.drain_timeout: `30` is not a duration: write a whole number with ms, s, m, h or d, such as \"500ms\" or \"10s\""]),
    ("[server]\ndrain_timeout = \"2d\"", &["2: server.drain_timeout: 2d is out of range: 0s to 1d"]),
    ("[server]\nclient_networks = [\"10.0.0.1/8\", \"x\"]", &[
        "2: server.client_networks[0]: `10.0.0.1/8` has bits set behind its prefix: write \"10.0.0.0/8\"",
        "2: server.client_networks[1]: `x` is not a network: write \"10.0.0.0/8\", \"2001:db8::/32\", a single address, or leading octets such as \"192.168.1\"",
    ]),
    ("[server]\ntls = { mode = \"require\" }", &["2: server.tls.mode: `require` is not one of \"off\", \"optional\", \"required\"; did you mean \"required\"?"]),
    ("[server]\n\n[server.tls]\nmode = \"required\"\nkey = \"k.pem\"", &["3: server.tls.cert: missing: a PEM file, because the mode of TLS is not \"off\""]),
    ("[server]\ntls.mode = \"optional\"", &[
        "2: server.tls.cert: missing: a PEM file, because the mode of TLS is not \"off\"",
        "2: server.tls.key: missing: a PEM file, because the mode of TLS is not \"off\"",
    ]),
    // Monitor and pool.
    ("[monitor]\npassword = \"x\"", &["1: note: monitor.user: not given: servers are checked with the account \"shop\"", "2: monitor.password: has no effect without `user`"]),
    ("[monitor]\nuser = \"m\"", &["1: monitor.password: missing: the password of the account; \"\" when it has none"]),
    ("[pool]\nmin_idle = 20\nmax_connections = 10\nconnect_timeout = \"0s\"", &[
        "2: pool.min_idle: `min_idle` (20) is more than `max_connections` (10)",
        "4: pool.connect_timeout: 0s is out of range: 1ms to 1d",
    ]),
    ("[monitor]\nuser = \"m\"\npassword = \"x\"\nheartbeat = \"heartbeat\"", &["4: monitor.heartbeat: `heartbeat` is not a table: write schema.table"]),
    ("[pool]\nbreaker = { failure_ratio = 50 }", &["2: pool.breaker.failure_ratio: out of range: 0.01 to 1"]),
    // Groups.
    ("[[groups]]\nname = \"a\"", &["1: groups[0].primary: missing: the address of the primary, such as \"10.0.0.1:3306\""]),
    ("[[groups]]\nprimary = \"a\"", &["1: groups[0].name: missing: a name such as \"main\""]),
    ("[[groups]]\nname = \"a b\"\nprimary = \"h:1\"", &["2: groups[0].name: a group's name has 1 to 64 letters, digits, `_`, `-` or `.`"]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\n[[groups]]\nname = \"a\"\nprimary = \"h:2\"\n[[users]]\nname = \"u\"\npassword = \"\"\ngroup = \"a\"", &["4: groups[1]: group \"a\" is defined twice"]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:99999\"", &["3: groups[0].primary: `h:99999` is not a server address: write HOST:PORT such as \"10.0.0.1:3306\", \"[::1]:3306\" or \"db1.example:3306\", or \"unix:/path/to.sock\""]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\nreplicas = [\n  { address = \"h:2\", weight = 0 },\n  { weight = 1 },\n  \"h:2\",\n  \"10.0.0.3:3306@2\",\n  { address = \"h:4\", wieght = 2 },\n  5,\n]", &[
        "5: groups[0].replicas[0].weight: 0 is out of range: 1 to 1000",
        "6: groups[0].replicas[1].address: missing: the address of the replica, such as \"10.0.0.2:3306\"",
        "7: groups[0].replicas[2]: replica h:2 is listed twice: give it a weight instead",
        "8: groups[0].replicas[3]: `10.0.0.3:3306@2` is not a server address: write { address = \"10.0.0.3:3306\", weight = 2 }",
        "9: groups[0].replicas[4].wieght: unknown key; did you mean `weight`?",
        "10: groups[0].replicas[5]: expected a table in { } or under its own [header], found a whole number",
    ]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\nno_replica = \"fail\"\nmax_lag = \"x\"", &[
        "4: groups[0].no_replica: `fail` is not one of \"primary\", \"error\"",
        "5: groups[0].max_lag: `x` is not a duration: write a whole number with ms, s, m, h or d, such as \"500ms\" or \"10s\"",
    ]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\ntls = { mode = \"verify_ca\", key = \"k\" }", &[
        "4: groups[0].tls.cert: missing: the certificate of the private key",
        "4: groups[0].tls.mode: `verify_ca` is not one of \"off\", \"preferred\", \"required\", \"verify-ca\", \"verify-identity\"; did you mean \"verify-ca\"?",
    ]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\ntls = { mode = \"verify-ca\", cert = \"c\" }", &[
        "4: groups[0].tls.ca: missing: a PEM file with the authorities of the servers' certificates, because the mode verifies them",
        "4: groups[0].tls.key: missing: the private key of the certificate",
    ]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\nschemas = { shop = \"\", x = 1 }", &[
        "4: groups[0].schemas.shop: `` is not a name: 1 to 64 characters are needed",
        "4: groups[0].schemas.x: expected a string in quotes, found a whole number",
    ]),
    ("[[groups]]\nname = \"main\"\nprimary = \"h:1\"\nschemas = { a = \"b\" }\n[sharding]\nglobal_tables = [\"a.b\", \"c\", \"!d.e\", \"!f\"]", &[
        "1: groups[0]: `schemas` is for groups that hold shards only, and account \"shop\" has its unsharded tables here, whose statements are not rewritten",
        "6: sharding.global_tables[0]: a name behind `!` is left out of what `auto` finds, and `auto` is not in the list",
        "6: sharding.global_tables[1]: `c` is not a table: write schema.table",
        "6: sharding.global_tables[3]: `f` is not a table: write schema.table",
    ]),
    // Users.
    ("[[users]]\nname = \"u\"", &["1: users[0].password: missing: the password of the account, such as \"env:SHOP_PASSWORD\"; \"\" when it has none"]),
    ("[[users]]\npassword = \"x\"", &["1: users[0].name: missing: the name of the account"]),
    ("[[users]]\nname = \"\"\npassword = \"x\"", &["2: users[0].name: an account needs a name"]),
    ("[[users]]\nname = \"u\"\npassword = \"x\"\n[[users]]\nname = \"u\"\npassword = \"y\"", &["4: users[1]: account \"u\" is defined twice"]),
    ("[[users]]\nname = \"u\"\npassword = \"env:NOPE\"", &["3: users[0].password: the environment variable NOPE is not set"]),
    ("[[users]]\nname = \"u\"\npassword = [\"env:SHOP_PASSWORD\", \"env:\", \"enc:v1:abc\", \"a\\u0000b\", 1]", &[
        "3: users[0].password[1]: the environment variable  is not set",
        "3: users[0].password[2]: cannot be decrypted: there is no key",
        "3: users[0].password[3]: a password cannot contain a NUL byte",
        "3: users[0].password[4]: expected a string in quotes, found a whole number",
    ]),
    ("[[users]]\nname = \"u\"\npassword = []", &["3: users[0].password: empty: write one password, or a list of them; \"\" for an account without one"]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\ngroup = \"mian\"", &["4: users[0].group: there is no group \"mian\"; the groups are \"main\"; did you mean \"main\"?"]),
    ("[[groups]]\nname = \"a\"\nprimary = \"h:1\"\n[[groups]]\nname = \"b\"\nprimary = \"h:2\"\n[[users]]\nname = \"u\"\npassword = \"\"", &["7: users[0].group: missing: there are several groups: name one of \"a\", \"b\""]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\nread_from = \"replicas\"\nsharing = \"no\"\ncausal = \"window\"\nnetworks = [\"?\"]", &[
        "4: users[0].read_from: `replicas` is not one of \"replica\", \"primary\", \"replica-only\"; did you mean \"replica\"?",
        "5: users[0].sharing: `no` is not one of \"transaction\", \"session\"",
        "6: users[0].causal: say for how long, such as \"window:500ms\"",
        "7: users[0].networks[0]: `?` is not a network: write \"10.0.0.0/8\", \"2001:db8::/32\", a single address, or leading octets such as \"192.168.1\"",
    ]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\ncausal = \"window:0s\"", &["4: users[0].causal: the window is 1ms to 1d"]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\ncausal = \"session:2h\"", &["4: users[0].causal: a replica is waited for 1ms to 1h"]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\nbackend = { read_password = \"x\" }", &["4: users[0].backend.read_password: has no effect without `read_user`"]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\nlimits = { rate = -1 }\nlabels = { \"a-b\" = \"x\" }", &[
        "4: users[0].limits.rate: -1 is out of range: 0 to 100000000",
        "5: users[0].labels.a-b: a label's name has letters, digits and `_`, and does not start with a digit",
    ]),
    ("[[users]]\nname = \"u\"\npassword = \"\"\nlabels = { route = \"x\", __a = \"x\", b = \"a\\nb\" }", &[
        "4: users[0].labels.route: metrics have a label of this name already: take another",
        "4: users[0].labels.__a: metrics have a label of this name already: take another",
        "4: users[0].labels.b: a label has 128 bytes at most, and no control characters",
    ]),
    ("[log]\ntext_max = \"2MiB\"\nslow = { file = \"a.log\" }\naudit = { file = \"a.log\", text = \"half\", statements = \"writes\" }", &[
        "1: log: the slow log and the audit log are the same file",
        "2: log.text_max: `2MiB` is not between 128B and 1MiB",
        "4: log.audit.statements: `writes` is not one of \"all\", \"write\", \"errors\", \"none\"; did you mean \"write\"?",
        "4: log.audit.text: `half` is not one of \"full\", \"masked\", \"none\"",
    ]),
    // Later sections are checked all the same.
    ("[[tables]]\nname = \"orders\"\nranges = [\n  { from = 5, to = 5, groups = [\"main\"] },\n  { from = \"a\", groups = [] },\n  { to = 6, groups = [\"nope\"] },\n]", &[
        "1: tables[0].key: missing: the column that decides the shard",
        "2: tables[0].name: `orders` is not a table: write schema.table",
        "4: tables[0].ranges[0]: the range is empty: `from` must be below `to`",
        "5: tables[0].ranges[1].from: the ends of an int key are \"min\", \"max\", or whole numbers without quotes",
        "6: tables[0].ranges[2].groups[0]: there is no group \"nope\"; the groups are \"main\"",
    ]),
    ("[[tables]]\nname = \"a.b\"\nkey = \"k\"\nranges = [\n  { to = 5, groups = [\"main\"] },\n  { from = 4, to = 8, groups = [\"main\"] },\n  { from = 9, groups = [\"main\"] },\n]", &[
        "1: tables[0]: the keys from 8 to 9 are in no range: one range ends where the next begins",
        "6: tables[0].ranges[1]: the range overlaps another one: a range ends before its `to`",
    ]),
    ("[[tables]]\nname = \"a.b\"\nkey = \"k\"\nkey_type = \"date\"\nranges = [\n  { to = \"2024-02-30\", groups = [\"main\"] },\n]\n[[tables]]\nname = \"A.B\"\nkey = \"k\"\nkey_type = \"string\"\nranges = [\n  { from = \"\u{e9}\", groups = [\"main\"] },\n  { tables = 2, groups = [\"main\"] },\n]", &[
        "6: tables[0].ranges[0].to: `2024-02-30` is not a date: write YYYY-MM-DD",
        "8: tables[1]: table \"A.B\" is defined twice",
        "8: tables[1].hash: missing: a text has no modulus: use `crc32`",
        "13: tables[1].ranges[0].from: text keys are placed by printable ASCII: so are the ends of ranges",
    ]),
    ("[[tables]]\nname = \"a.b\"\nkey = \"k\"\nkey_type = \"date\"\nhash = \"atlas32\"\nranges = [{ groups = [\"main\"], tables = 10000 }, { from = \"x\", groups = [] }]", &[
        "5: tables[0].hash: a date is no number: use `crc32`",
        "6: tables[0].ranges[1].from: `x` is not a date: write YYYY-MM-DD",
    ]),
    ("[sharding]\nmerge_memory = \"64MB\"", &["2: sharding.merge_memory: `64MB` is not a size: write a whole number with B, KiB, MiB or GiB, such as \"64MiB\""]),
    ("[[rules]]\nmatch = { kind = \"reads\" }\naction = \"deny\"", &[
        "1: rules[0].name: missing: a name, which refused clients are told",
        "2: rules[0].match.kind: `reads` is not one of \"\", \"read\", \"write\"; did you mean \"read\"?",
        "3: rules[0].action: `deny` is not one of \"reject\", \"route\", \"timeout\", \"limit\", \"mirror\", \"log\", \"allow\"",
    ]),
    // B261, B265: the rule's number is told.
    ("[[rules]]\nname = \"a\"\naction = \"allow\"\n[[rules]]\nname = \"b\"\naction = \"reject\"\nmatch = { digest = \"0xZZ\" }\n[[rules]]\nname = \"b\"\naction = \"reject\"\nmatch = { digest = \"\" }\n[[rules]]\nname = \"c\"\naction = \"reject\"\nmatch = { regex = '(a)\\9' }\nreplace = \"\"", &[
        "7: rules[1].match.digest: `0xZZ` is not a digest: write it as SHOW DIGESTS does, up to 16 hexadecimal digits",
        "8: rules[2]: rule \"b\" is defined twice",
        "11: rules[2].match.digest: empty, and the rule has no other condition: it would be about every statement; leave `match` out if that is meant",
        "15: rules[3].match.regex: `(a)\\9` cannot be used as a regular expression: backreferences are not supported",
        "16: rules[3].replace: unknown key; `rules` has name, match, action, message, to, rate, concurrency, timeout, sample, writes",
    ]),
    ("[[rules]]\nname = \"a\"\naction = \"route\"\n[[rules]]\nname = \"b\"\naction = \"limit\"\nto = \"primary\"\n[[rules]]\nname = \"c\"\naction = \"mirror\"\nrate = 5\nwrites = true\nconcurrency = 2\n[[rules]]\nname = \"d\"\naction = \"timeout\"\n[[rules]]\nname = \"e\"\naction = \"timeout\"\ntimeout = \"0s\"", &[
        "1: rules[0].to: missing: `primary` or `replica`",
        "4: rules[1].rate: missing: statements a second, or `concurrency`, statements at a time",
        "7: rules[1].to: has no effect with `limit`",
        "8: rules[2].to: missing: the group that copies go to",
        "11: rules[2].rate: has no effect with `mirror`",
        "13: rules[2].concurrency: with `writes` copies run one after the other, in the order in which the statements did: leave it out",
        "14: rules[3].timeout: missing: how long the statement may run, such as \"2s\"; \"0s\" for as long as it likes",
    ]),
    ("[[groups]]\nname = \"main\"\nprimary = \"m\"\n[[groups]]\nname = \"next\"\nprimary = \"n\"\nschemas = { a = \"b\" }\n[[users]]\nname = \"u\"\npassword = \"x\"\ngroup = \"main\"\n[[rules]]\nname = \"a\"\naction = \"mirror\"\nto = \"nowhere\"\nsample = 0\n[[rules]]\nname = \"b\"\naction = \"mirror\"\nto = \"main\"\nconcurrency = 65\n[[rules]]\nname = \"c\"\naction = \"mirror\"\nto = \"next\"\n[[rules]]\nname = \"d\"\naction = \"log\"\nsample = 5\nwrites = true", &[
        "15: rules[0].to: `nowhere` is not one of the groups: \"main\", \"next\"",
        "16: rules[0].sample: 0 is out of range: 1 to 100",
        "20: rules[1].to: the statements run in group \"main\" already: copies go to another one",
        "21: rules[1].concurrency: 65 is out of range: 0 to 64",
        "25: rules[2].to: group \"next\" has other names for schemas (`schemas`), and copies are not rewritten",
        "29: rules[3].sample: has no effect with `log`",
        "30: rules[3].writes: has no effect with `log`",
    ]),
    ("[safety]\nrequire_where = 1", &["2: safety.require_where: expected true or false, found a whole number"]),
    ("[log]\nlevel = \"warning\"", &["2: log.level: `warning` is not one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\""]),
    ("[admin]\nusers = [{ name = \"a\", role = \"root\" }]", &[
        "2: admin.users[0].password: missing: the password of the account",
        "2: admin.users[0].role: `root` is not one of \"operator\", \"viewer\"",
    ]),
];

#[test]
fn every_mistake_is_told_with_its_line() {
    for (lines, wanted) in MISTAKES {
        let mut text = format!("{lines}\n");
        for (section, rest) in [
            (
                "groups",
                "[[groups]]\nname = \"main\"\nprimary = \"10.0.0.1:3306\"\n",
            ),
            ("users", "[[users]]\nname = \"shop\"\npassword = \"x\"\n"),
            ("monitor", "[monitor]\nuser = \"m\"\npassword = \"x\"\n"),
        ] {
            if !lines.contains(&format!("[{section}]")) && !lines.starts_with(section) {
                text.push_str(rest);
            }
        }
        let problems = load(&text, "f", &env).expect_err(lines);
        let mut told: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
        let mut wanted: Vec<String> = wanted.iter().map(|text| format!("f:{text}")).collect();
        // Findings at one place come in no particular order.
        told.sort();
        wanted.sort();
        assert_eq!(told, wanted, "{text}");
    }
}
