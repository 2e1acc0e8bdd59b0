//! Accounts and their passwords, which are encrypted anew.

use super::cnf::{Entry, Group};
use super::paper::{Paper, list, string};
use super::{Findings, Seal};
use crate::auth::legacy_password;
use crate::config::Secret;

pub(super) fn admin(paper: &mut Paper, main: &Group, findings: &mut Findings, seal: Seal<'_>) {
    let (name, password) = (main.get("admin-username"), main.get("admin-password"));
    let (Some(name), Some(password)) = (name, password) else {
        if let Some(entry) = name.or(password) {
            findings.warning(
                entry.line,
                &entry.key,
                "an account of the admin port needs a name and a password: left out",
            );
        }
        return;
    };
    findings.warning(
        password.line,
        &password.key,
        "stood in clear: it is encrypted now, and better replaced",
    );
    let Some(sealed) = sealed(
        &Secret::from(password.value.as_str()),
        password,
        findings,
        seal,
    ) else {
        return;
    };
    paper.section("[admin]");
    let account = format!(
        "{{ name = {}, password = {}, role = \"operator\" }}",
        string(&name.value),
        string(&sealed)
    );
    paper.key("users", &list(&[account]));
}

fn sealed(secret: &Secret, of: &Entry, findings: &mut Findings, seal: Seal<'_>) -> Option<String> {
    seal(secret)
        .map_err(|why| findings.error(of.line, &of.key, why))
        .ok()
}

pub(super) fn users(
    paper: &mut Paper,
    main: &Group,
    has_shards: bool,
    findings: &mut Findings,
    seal: Seal<'_>,
) {
    let Some(entry) = main.get("pwds").or_else(|| main.get("proxy-password")) else {
        findings.error(
            main.line,
            "pwds",
            "missing: there is no account that could log in",
        );
        return;
    };
    let mut names: Vec<&str> = Vec::new();
    let mut has_legacy = false;
    for item in entry.items() {
        // Cipher text has no colon; names may.
        let Some((name, value)) = item.rsplit_once(':') else {
            findings.error(
                entry.line,
                &entry.key,
                "an item without a colon: incorrect password settings",
            );
            continue;
        };
        if names.contains(&name) {
            findings.error(
                entry.line,
                &entry.key,
                format!("account {name} is there twice: the first one counts"),
            );
            continue;
        }
        names.push(name);
        paper.section("[[users]]");
        paper.key("name", &string(name));
        if has_shards {
            paper.comment("Where tables without a rule are.");
            paper.key("group", &string("main"));
        }
        match legacy_password(value) {
            Some(secret) => {
                has_legacy = true;
                if let Some(sealed) = sealed(&secret, entry, findings, seal) {
                    paper.key("password", &string(&sealed));
                }
            }
            None => {
                findings.error(entry.line, &entry.key, format!("the password of account {name} cannot be decrypted: `atlas encrypt` makes a new value"));
                paper.comment("password =");
            }
        }
    }
    if names.is_empty() {
        findings.error(
            entry.line,
            &entry.key,
            "there is no account that could log in",
        );
    }
    if has_legacy {
        findings.warning(entry.line, &entry.key, "everybody could decrypt the passwords of the original: they are encrypted anew, and better replaced");
    }
}
