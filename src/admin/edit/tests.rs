//! Changes in the text of a configuration, and that everything else stays as it was.

use super::*;

const TEXT: &str = r#"# Ours. Ask before you change it.
[server]
listen = ["0.0.0.0:1234"]   # for clients
client_networks = ["10.0.0.0/8", "192.168.1"]

[[groups]]
name = "main"   # the only one
primary = "10.0.0.1:3306"   # since May
replicas = [
    { address = "10.0.0.2:3306", weight = 2 },   # big
    # slow disk
    "10.0.0.3",
]

[[users]]
name = "shop"
password = "x"   # clear!

# End.
"#;

fn at(text: &str) -> HostAddress {
    host_address(text).unwrap()
}

/// The lines that a change takes away and adds.
fn changed(text: &str, edited: Edited) -> (Vec<String>, Vec<String>) {
    let edited = edited.unwrap();
    let key = "groups = 1";
    assert!(!edited.contains(key));
    crate::config::load(&edited, "f", &|_| None)
        .unwrap_or_else(|problems| panic!("{problems:?}\n{edited}"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(text), lines(&edited));
    let gone = before
        .iter()
        .filter(|line| !after.contains(line))
        .cloned()
        .collect();
    let new = after
        .iter()
        .filter(|line| !before.contains(line))
        .cloned()
        .collect();
    (gone, new)
}

fn only_added(text: &str, edited: Edited) -> String {
    let (gone, new) = changed(text, edited);
    assert_eq!(gone, Vec::<String>::new());
    new.join("\n")
}

#[test]
fn replicas() {
    assert_eq!(
        only_added(TEXT, add_replica(TEXT, "main", &at("10.0.0.4"), 1)),
        "    { address = \"10.0.0.4:3306\" },"
    );
    assert_eq!(
        only_added(TEXT, add_replica(TEXT, "main", &at("10.0.0.4"), 7)),
        "    { address = \"10.0.0.4:3306\", weight = 7 },"
    );
    let (gone, new) = changed(TEXT, remove_replica(TEXT, "main", &at("10.0.0.2")));
    assert_eq!((gone.len(), new.len()), (1, 0), "{gone:?} {new:?}");
    let (gone, new) = changed(TEXT, remove_replica(TEXT, "main", &at("10.0.0.3")));
    assert_eq!(gone, ["    # slow disk", "    \"10.0.0.3\","]);
    assert_eq!(new, Vec::<String>::new());
    // The comment behind the last entry stays there.
    let last = remove_replica(TEXT, "main", &at("10.0.0.3")).unwrap();
    assert_eq!(
        only_added(&last, add_replica(&last, "main", &at("10.0.0.4"), 1)),
        "    { address = \"10.0.0.4:3306\" },"
    );
    let (gone, new) = changed(TEXT, set_weight(TEXT, "main", &at("10.0.0.2:3306"), 5));
    assert_eq!(
        gone,
        ["    { address = \"10.0.0.2:3306\", weight = 2 },   # big"]
    );
    assert_eq!(
        new,
        ["    { address = \"10.0.0.2:3306\", weight = 5 },   # big"]
    );
    let (gone, new) = changed(TEXT, set_weight(TEXT, "main", &at("10.0.0.3"), 5));
    assert_eq!(gone, ["    \"10.0.0.3\","]);
    assert_eq!(new, ["    { address = \"10.0.0.3:3306\", weight = 5 },"]);
    assert_eq!(
        remove_replica(TEXT, "main", &at("10.0.0.9")),
        Err("group main has no replica 10.0.0.9:3306".to_owned())
    );
    assert_eq!(
        add_replica(TEXT, "x", &at("10.0.0.9"), 1),
        Err("there is no group x".to_owned())
    );
}

#[test]
fn primaries() {
    let (gone, new) = changed(TEXT, switch_primary(TEXT, "main", &at("10.0.0.2:3306")));
    assert_eq!(
        gone,
        [
            "primary = \"10.0.0.1:3306\"   # since May",
            "    { address = \"10.0.0.2:3306\", weight = 2 },   # big"
        ]
    );
    assert_eq!(
        new,
        [
            "primary = \"10.0.0.2:3306\"   # since May",
            "    { address = \"10.0.0.1:3306\", weight = 2 },   # big"
        ]
    );
    let (gone, new) = changed(TEXT, switch_primary(TEXT, "main", &at("10.0.0.3")));
    assert_eq!(
        gone,
        [
            "primary = \"10.0.0.1:3306\"   # since May",
            "    \"10.0.0.3\","
        ]
    );
    assert_eq!(
        new,
        [
            "primary = \"10.0.0.3:3306\"   # since May",
            "    \"10.0.0.1:3306\","
        ]
    );
    assert!(switch_primary(TEXT, "main", &at("10.0.0.9")).is_err());
    let (gone, new) = changed(TEXT, set_primary(TEXT, "main", &at("10.0.0.9")));
    assert_eq!(
        (gone.len(), new),
        (
            1,
            vec!["primary = \"10.0.0.9:3306\"   # since May".to_owned()]
        )
    );
}

#[test]
fn networks() {
    let (gone, new) = changed(TEXT, add_network(TEXT, "172.16.0.0/12"));
    assert_eq!(gone, ["client_networks = [\"10.0.0.0/8\", \"192.168.1\"]"]);
    assert_eq!(
        new,
        ["client_networks = [\"10.0.0.0/8\", \"192.168.1\", \"172.16.0.0/12\"]"]
    );
    assert_eq!(
        add_network(TEXT, "192.168.1.0/24"),
        Err("this client is exist".to_owned())
    );
    assert!(add_network(TEXT, "x").unwrap_err().contains("`x`"));
    let (_, new) = changed(TEXT, remove_network(TEXT, "192.168.1.0/24"));
    assert_eq!(new, ["client_networks = [\"10.0.0.0/8\"]"]);
    assert_eq!(
        remove_network(TEXT, "10.0.0.0/9"),
        Err("this client is NOT exist".to_owned())
    );
    assert_eq!(
        remove_network(TEXT, "x"),
        Err("this client is NOT exist".to_owned())
    );
    let bare = "groups = [{ name = \"g\", primary = \"h\" }]\nusers = [{ name = \"u\", password = \"p\" }]\n";
    assert_eq!(
        only_added(bare, add_network(bare, "10.1.1.1")),
        "\n[server]\nclient_networks = [\"10.1.1.1\"]"
    );
}

#[test]
fn accounts() {
    let new = only_added(
        TEXT,
        add_account(TEXT, "a\"b", "enc:v1:x", None).map(|text| text.replace("enc:v1:x", "clear")),
    );
    assert!(
        new.contains("[[users]]") || new.contains("name = 'a\"b'"),
        "{new}"
    );
    assert_eq!(
        add_account(TEXT, "shop", "y", None),
        Err("this user is exist".to_owned())
    );
    assert_eq!(
        remove_account(TEXT, "nobody"),
        Err("this user is NOT exist".to_owned())
    );
    let two = add_account(TEXT, "second", "y", None).unwrap();
    let (gone, new) = changed(&two, remove_account(&two, "second"));
    assert_eq!(
        (gone, new),
        (
            vec![
                "name = \"second\"".to_owned(),
                "password = \"y\"".to_owned()
            ],
            vec![]
        )
    );
    assert!(remove_account(&two, "shop").unwrap().contains("# Ours."));
}

/// Lists in TOML's other ways.
#[test]
fn other_ways_of_writing() {
    let inline = "groups = [{ name = \"g\", primary = \"h\", replicas = [\"r\"] }]\nusers = [{ name = \"u\", password = \"p\" }]\n";
    assert_eq!(
        add_replica(inline, "g", &at("s"), 2)
            .unwrap()
            .lines()
            .next()
            .unwrap(),
        "groups = [{ name = \"g\", primary = \"h\", replicas = [\"r\", { address = \"s:3306\", weight = 2 }] }]"
    );
    assert!(add_account(inline, "v", "p", Some("g")).unwrap().contains(
        "{ name = \"u\", password = \"p\" }, { name = \"v\", password = \"p\", group = \"g\" }]"
    ));
    assert!(remove_account(inline, "u").unwrap().contains("users = []"));
    let nested = "[[groups]]\nname = \"g\"\nprimary = \"h\"\n[[groups.replicas]]\naddress = \"r\" # one\n[[users]]\nname = \"u\"\npassword = \"p\"\n";
    let edited = add_replica(nested, "g", &at("s"), 2).unwrap();
    assert!(edited.contains("address = \"r\" # one\n"), "{edited}");
    let config = crate::config::load(&edited, "f", &|_| None).unwrap();
    assert_eq!(config.groups[0].replicas.len(), 2);
    assert!(
        set_weight(nested, "g", &at("r"), 3)
            .unwrap()
            .contains("weight = 3")
    );
    assert!(
        switch_primary(nested, "g", &at("r"))
            .unwrap()
            .contains("address = \"h\" # one")
    );
    assert!(
        !remove_replica(nested, "g", &at("r"))
            .unwrap()
            .contains("\"r\"")
    );
    let none =
        "[[groups]]\nname = \"g\"\nprimary = \"h\"\n[[users]]\nname = \"u\"\npassword = \"p\"\n";
    assert_eq!(
        only_added(none, add_replica(none, "g", &at("s"), 1)),
        "replicas = [{ address = \"s:3306\" }]"
    );
}
