//! The `atlas` program as a user runs it: output, exit codes, and every line of the table of routes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Where each statement must go, `route<TAB>statement`.
const ROUTES: &str = include_str!("cases/routes.tsv");

fn atlas(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_atlas"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("SHOP_PASSWORD")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that reads nothing closes its end: no failure of the test.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the input is written");
    output
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8 output");
    (
        output.status.code().expect("no signal"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A14, A48.
#[test]
fn every_line_of_the_table_of_routes() {
    let folder = tempfile::tempdir().unwrap();
    let cases: Vec<(&str, &str)> = ROUTES
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.is_empty())
        .map(|line| line.split_once('\t').expect("two fields"))
        .collect();
    assert!(cases.len() > 100, "{}", cases.len());
    let input: String = cases.iter().map(|(_, sql)| format!("{sql}\n")).collect();
    let (code, out, _) = texts(&atlas(folder.path(), &["route", "-"], &input));
    assert_eq!(code, 0);
    let answers: Vec<&str> = out.lines().collect();
    assert_eq!(answers.len(), cases.len());
    let mut wrong = Vec::new();
    for ((wanted, sql), answer) in cases.iter().zip(&answers) {
        let fields: Vec<&str> = answer.split('\t').collect();
        assert_eq!(fields.len(), 4, "{answer}");
        if fields[1] != *wanted {
            wrong.push(format!("{wanted}\t{sql}\n  said {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Inside a transaction nothing leaves the primary.
    let (_, out, _) = texts(&atlas(
        folder.path(),
        &["route", "--in-transaction", "-"],
        &input,
    ));
    assert!(
        out.lines()
            .all(|line| line.split('\t').nth(1) == Some("primary")),
        "{out}"
    );
}

#[test]
fn one_statement_is_told_in_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = texts(&atlas(
        folder.path(),
        &["route", "SELECT a FROM t FOR UPDATE"],
        "",
    ));
    assert_eq!(code, 0);
    assert_eq!(
        out,
        "class: read\nroute: primary\ngroup: main\nreason: locking-read\n"
    );
    assert_eq!(
        err,
        "atlas: no atlas.toml here: one group \"main\" with replicas is assumed\n"
    );
}

#[test]
fn route_uses_the_file_but_needs_no_password() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("atlas.toml"),
        "[[groups]]\nname = \"g\"\nprimary = \"h\"\nreplicas = [\"r\"]\n[[users]]\nname = \"u\"\npassword = \"env:SHOP_PASSWORD\"\nread_from = \"primary\"\n",
    )
    .unwrap();
    let (code, out, err) = texts(&atlas(folder.path(), &["route", "SELECT 1"], ""));
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "class: read\nroute: primary\ngroup: g\nreason: account-reads-primary\n"
    );
    let (code, out, err) = texts(&atlas(
        folder.path(),
        &["route", "--user", "x", "SELECT 1"],
        "",
    ));
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (1, "", "atlas: there is no account \"x\"\n")
    );
    let (code, _, err) = texts(&atlas(
        folder.path(),
        &["route", "-c", "other.toml", "SELECT 1"],
        "",
    ));
    assert_eq!(
        (code, err.as_str()),
        (1, "other.toml: No such file or directory (os error 2)\n")
    );
}

/// A23.
#[test]
fn check_tells_every_mistake() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.toml"), "[server]\nworkers = -1\n\n[[groups]]\nname = \"g\"\n\n[[users]]\nname = \"u\"\npassword = \"env:SHOP_PASSWORD\"\n").unwrap();
    let (code, out, err) = texts(&atlas(folder.path(), &["check", "-c", "x.toml"], ""));
    assert_eq!((code, err.as_str()), (1, ""));
    assert_eq!(
        out,
        "x.toml:1: note: monitor.user: not given: servers are checked with the account \"u\"\n\
         x.toml:2: server.workers: -1 is out of range: 0 to 1024\n\
         x.toml:4: groups[0].primary: missing: the address of the primary, such as \"10.0.0.1:3306\"\n\
         x.toml:9: users[0].password: the environment variable SHOP_PASSWORD is not set\n"
    );
    // Starting says the same, on stderr.
    let (code, _, err) = texts(&atlas(folder.path(), &["run", "-c", "x.toml"], ""));
    assert_eq!((code, err), (1, out));
    let (code, _, err) = texts(&atlas(folder.path(), &["check"], ""));
    assert_eq!(
        (code, err.as_str()),
        (1, "atlas.toml: No such file or directory (os error 2)\n")
    );
}

#[test]
fn check_accepts_what_init_prints() {
    let folder = tempfile::tempdir().unwrap();
    let (code, example, _) = texts(&atlas(folder.path(), &["init"], ""));
    assert_eq!(code, 0);
    let check = |text: &str| {
        fs::write(folder.path().join("atlas.toml"), text).unwrap();
        let (code, out, _) = texts(&atlas(folder.path(), &["check"], ""));
        assert_eq!(code, 0, "{out}");
        assert!(out.ends_with("atlas.toml: ok\n"), "{out}");
        out
    };
    check(&example);
    // Nor does it hold a key that is wrong or without effect once the comment sign is taken away.
    let uncommented: String = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest)
                if rest.starts_with('[')
                    || rest
                        .split_once(" = ")
                        .is_some_and(|(key, _)| !key.contains(' ')) =>
            {
                format!("{rest}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect::<String>()
        .replace("env:MONITOR_PASSWORD", "x");
    assert!(uncommented.contains("\nworkers = 0"), "{uncommented}");
    let out = check(&uncommented);
    assert!(!out.contains("not acted on"), "{out}");
    // All keys that have an effect are in it.
    for key in atlas::config::KEYS
        .iter()
        .filter(|key| key.acted == atlas::config::Acted::Yes)
    {
        let name = key.path.trim_end_matches(".*").rsplit('.').next().unwrap();
        assert!(uncommented.contains(&format!("{name} = ")), "{}", key.path);
    }
}

/// A18: what `encrypt` prints is a password of the configuration, with the key that it makes.
#[test]
fn encrypt_and_check() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let encrypt = |input: &str| texts(&atlas(folder.path(), &["encrypt"], input));
    let (code, first, err) = encrypt("pass word\n");
    assert_eq!(
        (code, err.as_str()),
        (
            0,
            "atlas: made the key file atlas.key: Atlas needs it to start, and without it the value cannot be read again\n"
        )
    );
    assert!(
        first.starts_with("enc:v1:") && first.ends_with('\n'),
        "{first}"
    );
    assert_eq!(fs::metadata(at("atlas.key")).unwrap().mode() & 0o777, 0o600);
    let (code, second, err) = encrypt("pass word");
    assert_eq!((code, err.as_str()), (0, ""));
    let write = |name: &str, first: &str| {
        let text = format!(
            "[[groups]]\nname = \"g\"\nprimary = \"h\"\n[[users]]\nname = \"u\"\npassword = [\"{}\", \"{}\"]\n[monitor]\nuser = \"m\"\npassword = \"{}\"\n",
            first.trim(),
            second.trim(),
            first.trim()
        );
        fs::write(at(name), text).unwrap();
    };
    write("atlas.toml", &first);
    let check = |name: &str| texts(&atlas(folder.path(), &["check", "-c", name], ""));
    assert_eq!(
        check("atlas.toml"),
        (0, "atlas.toml: ok\n".to_owned(), String::new())
    );
    write("damaged.toml", &first.trim()[..20]);
    assert_eq!(
        check("damaged.toml"),
        (
            1,
            "damaged.toml:6: users[0].password[0]: cannot be decrypted: damaged: characters were changed, added or lost\n\
             damaged.toml:9: monitor.password: cannot be decrypted: damaged: characters were changed, added or lost\n".to_owned(),
            String::new()
        )
    );
    fs::set_permissions(at("atlas.key"), fs::Permissions::from_mode(0o604)).unwrap();
    let (code, out, _) = check("atlas.toml");
    assert!(
        code == 1 && out.contains(": chmod 600 atlas.key\n"),
        "{out}"
    );
    let (code, out, err) = encrypt("x");
    assert!(
        code == 1 && out.is_empty() && err.contains("chmod 600"),
        "{err}"
    );
    // A configuration says where the key is.
    fs::write(at("other.toml"), "[server]\nkey_file = \"other.key\"\n").unwrap();
    let (code, _, err) = texts(&atlas(folder.path(), &["encrypt", "-c", "other.toml"], "x"));
    assert!(code == 0 && err.contains("other.key"), "{err}");
    assert!(at("other.key").exists());
    for (input, wanted) in [
        ("", "no password on standard input"),
        ("\n", "no password on standard input"),
        ("a\nb\n", "a password is one line"),
        ("a\0b", "a password cannot contain a NUL byte"),
    ] {
        let (code, out, err) = encrypt(input);
        assert_eq!(
            (code, out.as_str(), err),
            (1, "", format!("atlas: {wanted}\n"))
        );
    }
}

/// A17, A18, A32: what is imported can be checked at once, and tells what it could not take over.
#[test]
fn import_and_check() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let old = "# gbk: \u{fffd}\n[mysql-proxy]\nproxy-address = 0.0.0.0:1234\nproxy-backend-addresses = 10.0.0.1:3306\n\
               proxy-read-only-backend-addresses = 10.0.0.2:3306@2\npwds = user1:+jKsgB3YAG8=\n";
    // Comments may be in any encoding.
    let bytes: Vec<u8> = old
        .chars()
        .map(|c| u8::try_from(c).unwrap_or(0xd6))
        .collect();
    fs::write(folder.path().join("old.cnf"), bytes).unwrap();
    let (code, toml, err) = texts(&atlas(folder.path(), &["import-cnf", "old.cnf"], ""));
    assert_eq!(
        (code, err.as_str()),
        (
            0,
            "atlas: made the key file atlas.key: keep it where the new configuration will be\n\
             old.cnf:6: warning: pwds: everybody could decrypt the passwords of the original: they are encrypted anew, and better replaced\n"
        )
    );
    assert!(
        toml.contains("password = \"enc:v1:") && !toml.contains("+jKsgB3YAG8="),
        "{toml}"
    );
    let key = folder.path().join("atlas.key");
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    fs::write(folder.path().join("atlas.toml"), toml).unwrap();
    let (code, out, _) = texts(&atlas(folder.path(), &["check"], ""));
    assert!(code == 0 && out.ends_with("atlas.toml: ok\n"), "{out}");
    // Another place for the key, and something that needs a hand.
    fs::write(
        folder.path().join("old.cnf"),
        old.replace("+jKsgB3YAG8=", "nonsense"),
    )
    .unwrap();
    let (code, toml, err) = texts(&atlas(
        folder.path(),
        &["import-cnf", "--key-file", "other.key", "old.cnf"],
        "",
    ));
    assert_eq!(
        (code, err.as_str()),
        (
            1,
            "old.cnf:6: pwds: the password of account user1 cannot be decrypted: `atlas encrypt` makes a new value\n"
        )
    );
    assert!(toml.contains("key_file = \"other.key\"\n"), "{toml}");
    assert!(!folder.path().join("other.key").exists());
    let (code, out, err) = texts(&atlas(folder.path(), &["import-cnf", "none.cnf"], ""));
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        err,
        "atlas: none.cnf: No such file or directory (os error 2)\n"
    );
}

#[test]
fn usage() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = texts(&atlas(folder.path(), &["--help"], ""));
    assert!(
        code == 0 && out.starts_with("Atlas, a proxy") && out.contains("atlas check"),
        "{out}"
    );
    let (code, out, _) = texts(&atlas(folder.path(), &["--version"], ""));
    assert_eq!(
        (code, out),
        (0, format!("atlas {}\n", env!("CARGO_PKG_VERSION")))
    );
    for (arguments, wanted) in [
        (&["start"][..], "there is no command `start`"),
        (
            &["encrypt", "x"][..],
            "encrypt reads the password from standard input",
        ),
        (
            &["import-cnf"][..],
            "import-cnf needs the old configuration's file",
        ),
        (&["route"][..], "route needs a statement"),
        (&["check", "--what"][..], "invalid option '--what'"),
    ] {
        let (code, out, err) = texts(&atlas(folder.path(), arguments, ""));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(
            err.starts_with(&format!("atlas: {wanted}")) && err.ends_with("Try `atlas --help`.\n"),
            "{err}"
        );
    }
}
