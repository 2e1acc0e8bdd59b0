//! Has the linker put the functions of the hot path side by side in the optimised program: `hot-code.txt` says why and which.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=hot-code.txt");
    println!("cargo:rerun-if-changed=build.rs");
    // Both linkers that Rust uses there take a script that adds to what they do by themselves.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|is| is == value);
    if !(is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu"))
    {
        return Ok(());
    }
    let mut script = String::from("SECTIONS\n{\n  .text.hot :\n  {\n");
    for line in fs::read_to_string("hot-code.txt")?.lines() {
        match line.rsplit_once("::") {
            _ if line.is_empty() || line.starts_with('#') => {}
            _ if line.starts_with('*') => writeln!(script, "    *(.text.{line})")?,
            Some((path, function)) => {
                let words = path.replace("::", "*");
                let length = function.len();
                // The name comes last: as it is, or with a hash behind it in the older of the two spellings of symbols.
                writeln!(script, "    *(.text.*{words}*{length}{function})")?;
                writeln!(script, "    *(.text.*{words}*{length}{function}17h*)")?;
            }
            None => return Err(format!("hot-code.txt: `{line}` has no path").into()),
        }
    }
    script.push_str("  }\n}\nINSERT BEFORE .text;\n");
    let file = Path::new(&env::var("OUT_DIR")?).join("hot-code.ld");
    fs::write(&file, script)?;
    println!("cargo:rustc-link-arg=-Wl,-T,{}", file.display());
    Ok(())
}
