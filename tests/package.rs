//! The Debian package: built from the program under test, installed, upgraded, removed and purged in a folder of its own.

use std::path::Path;
use std::process::Command;

#[test]
fn the_package_installs_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/package");
    let output = Command::new(script)
        .args(["--check", "--binary", env!("CARGO_BIN_EXE_atlas")])
        .arg("--output")
        .arg(folder.path())
        .output()
        .expect("scripts/package");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("checked"), "{said}");
    let package = String::from_utf8_lossy(&output.stdout);
    assert!(Path::new(package.trim_end()).exists(), "{package}");
}
