//! What drivers rely on that no protocol document says, found by running their own test suites (`scripts/driver-suites`).

mod common;

use std::time::{Duration, Instant};

use atlas::auth::native_scramble;
use common::{Atlas, Bed, Kind, Login, Wire, config_for};

/// MariaDB's client library answers the switch within COM_CHANGE_USER with the nonce of the log-in, whatever it is sent.
#[test]
fn a_change_of_user_by_the_native_plugin_keeps_the_nonce() {
    for bed in Bed::both() {
        for plugin in ["caching_sha2_password", "mysql_native_password"] {
            let config = config_for(&bed).server(&format!("auth_plugin = \"{plugin}\""));
            let atlas = Atlas::start(config);
            let login = Login::plain().plugin("mysql_native_password");
            let mut wire = Wire::connect(atlas.address(), &login);
            let scramble = native_scramble(b"app-pw", &wire.nonce());
            let mut command = b"\x11app\0\x14".to_vec();
            command.extend_from_slice(&scramble);
            command.extend_from_slice(b"\0\x2d\0mysql_native_password\0\0");
            wire.send(&command);
            let switch = wire.try_packet().expect("a packet");
            assert_eq!(switch.first(), 0xfe, "{switch:?}");
            wire.send_as(2, &scramble);
            let end = wire.try_packet().expect("a packet");
            assert_eq!(end.first(), 0, "{end:?}");
            let user = wire.query("SELECT CURRENT_USER()").cell();
            assert_eq!(user, "app@%");
        }
    }
}

/// PyMySQL, aiomysql and MariaDB's connector count on it.
#[test]
fn a_session_ends_after_the_wait_timeout_that_it_has_set() {
    for bed in Bed::both() {
        let atlas = Atlas::start(config_for(&bed));
        let mut stays = Wire::connect(atlas.address(), &Login::plain());
        let mut wire = Wire::connect(atlas.address(), &Login::plain());
        wire.ok("SET SESSION wait_timeout = 1");
        assert_eq!(wire.query("SELECT @@wait_timeout").cell(), "1");
        // The time of a statement does not count.
        let started = Instant::now();
        assert_eq!(wire.query("SELECT SLEEP(1.6)").cell(), "0");
        assert!(started.elapsed() >= Duration::from_millis(1600));
        wire.set_timeout(Duration::from_secs(20));
        let told = wire.read_to_close();
        match bed.kind {
            Kind::MariaDb => assert!(told.is_empty(), "{told:?}"),
            Kind::MySql => {
                // 4031 in a packet with the number 0.
                assert_eq!(told.get(3..7), Some(&b"\0\xff\xbf\x0f"[..]), "{told:?}");
            }
        }
        // Its connection serves the next one, as it was.
        stays.ok("DO 1");
        let wait = stays.query("SELECT @@wait_timeout").cell();
        assert_ne!(wait, "1");
        // One that is reset, or takes it back, is as every other.
        let mut reset = Wire::connect(atlas.address(), &Login::plain());
        reset.ok("SET wait_timeout = 1");
        reset.command(b"\x1f").assert_ok();
        stays.ok("SET wait_timeout = 1, @@wait_timeout = 28000");
        std::thread::sleep(Duration::from_millis(2200));
        assert_eq!(reset.query("SELECT 7").cell(), "7");
        assert_eq!(stays.query("SELECT @@wait_timeout").cell(), "28000");
    }
}
