//! Reports about prepared statements with many parameters and long values.

use super::common::{Ended, Kind, Param};
use super::prepared::number;
use super::stage::Stage;

#[test]
fn b111_executions_around_and_beyond_a_full_frame() {
    let stage = Stage::with(Kind::MariaDb, "CREATE TABLE bl(a INT, b LONGBLOB)", |c| c);
    let mut client = stage.client();
    let insert = client.prepare("INSERT INTO bl(a,b) VALUES(?,?)");
    let overhead = client
        .execute_payload(
            insert.id,
            0,
            &[Param::Int(1), Param::Bytes(vec![b'x'; 70_000])],
            true,
        )
        .len()
        - 70_000;
    // Payloads of 16 MiB - 2 to 16 MiB, and a long one.
    let mut n = 0;
    for payload in [16_777_214, 16_777_215, 16_777_216, 40 << 20] {
        // From 16 MiB on the length takes more bytes.
        let mut len = payload - overhead;
        if len > 0xff_ff_ff {
            len -= 5;
        }
        n += 1;
        client
            .execute(&insert, &[Param::Int(n), Param::Bytes(vec![b'x'; len])])
            .assert_ok();
        let stored = client.query(&format!(
            "SELECT LENGTH(b) FROM bl WHERE a={n} LOCK IN SHARE MODE"
        ));
        assert_eq!(stored.cell(), len.to_string());
    }
    // Beyond what the server takes.
    let reply = {
        let payload = client.execute_payload(
            insert.id,
            0,
            &[Param::Int(9), Param::Bytes(vec![b'x'; 65 << 20])],
            true,
        );
        client.try_command(&payload)
    };
    match &reply {
        Ok(reply) => assert_eq!(reply.error_code(), 1153),
        Err(ended) => assert!(
            matches!(ended, Ended::Closed { .. } | Ended::Reset),
            "{ended:?}"
        ),
    }
    assert_eq!(stage.client().query("SELECT 1").cell(), "1");
}

#[test]
fn b112_preparations_around_a_full_frame() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    for payload in [16_777_214, 16_777_215, 16_777_216] {
        let text = payload - 1 - "SELECT LENGTH('')".len();
        let statement = client.prepare(&format!("SELECT LENGTH('{}')", "a".repeat(text)));
        assert_eq!(
            number(&client.execute(&statement, &[])),
            i64::try_from(text).expect("small")
        );
        client.close_statement(&statement);
    }
}

#[test]
fn b113_as_many_parameters_as_there_can_be() {
    for stage in Stage::both() {
        let mut client = stage.client();
        for count in [65_528_usize, 65_529, 65_535] {
            let marks = vec!["?"; count - 1].join(",");
            let statement = client.prepare(&format!("SELECT ? IN ({marks})"));
            assert_eq!(usize::from(statement.params), count);
            let nulls = client.execute(&statement, &vec![Param::Null; count]);
            assert_eq!(nulls.assert_ok().binary_rows()[0][0], None);
            assert_eq!(
                number(&client.execute(&statement, &vec![Param::Int(7); count])),
                1
            );
            client.close_statement(&statement);
        }
        let marks = vec!["?"; 65_536].join(",");
        let payload = format!("\x16SELECT 1 IN ({marks})");
        assert_eq!(client.command(payload.as_bytes()).error_code(), 1390);
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b134_binary_rows_of_every_length() {
    for stage in Stage::both_with("CREATE TABLE big(id INT PRIMARY KEY, s LONGBLOB)") {
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let insert = direct.prepare("INSERT INTO big VALUES(?,?)");
        let lengths: Vec<usize> = (0..600)
            .step_by(7)
            .chain(248..260)
            .chain(65_533..=65_538)
            .collect();
        for (id, len) in lengths.iter().enumerate() {
            let bytes: Vec<u8> = (0..*len)
                .map(|at| [0x00, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, b'x'][at % 7])
                .collect();
            direct
                .execute(
                    &insert,
                    &[
                        Param::Int(i64::try_from(id).expect("small")),
                        Param::Bytes(bytes),
                    ],
                )
                .assert_ok();
        }
        stage.bed.wait_replicas();
        let sql = "SELECT NULL, s, NULL FROM big WHERE id=?";
        let (one, two) = (client.prepare(sql), direct.prepare(sql));
        for (id, len) in lengths.iter().enumerate() {
            let params = [Param::Int(i64::try_from(id).expect("small"))];
            let (reply, expected) = (client.execute(&one, &params), direct.execute(&two, &params));
            assert_eq!(reply.packets, expected.packets, "{len}");
        }
    }
}
