//! What a statement costs in system calls, counted by strace on the workers of the built binary before real servers: two waits, two
//! reads and two writes, as many as a plain relay needs. Checks of servers run on threads of their own and are not counted.

mod common;

/// Nothing else runs beside these: a busy machine makes no more calls, but strace makes it slow.
mod alone {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use crate::common::*;

    const STATEMENTS: u32 = 2000;
    /// Six, and room for what happens now and then: a timer of the log-in, the events of strace's coming and going.
    const CALLS_MAX: f64 = 6.1;

    #[test]
    fn six_calls_before_mariadb() {
        six_calls(&Bed::mariadb(), Transport::Tcp);
    }

    #[test]
    fn six_calls_before_mysql() {
        six_calls(&Bed::mysql(), Transport::Tcp);
    }

    #[test]
    fn six_calls_over_unix_sockets() {
        six_calls(&Bed::mariadb(), Transport::Unix);
    }

    /// Other names are put into what is sent and into what is answered, and still it leaves in one piece.
    #[test]
    fn six_calls_of_a_sharded_table_before_mariadb() {
        six_calls_of_a_sharded_table(&Bed::mariadb());
    }

    #[test]
    fn six_calls_of_a_sharded_table_before_mysql() {
        six_calls_of_a_sharded_table(&Bed::mysql());
    }

    fn six_calls_of_a_sharded_table(bed: &Bed) {
        let schema = bed.schema();
        let mut root = bed.root(Node::Primary);
        for number in 0..4 {
            root.ok(&format!(
                "CREATE TABLE {schema}.t_{number} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL)"
            ));
        }
        root.ok(&format!(
            "INSERT INTO {schema}.t_1 VALUES (1, 0, REPEAT('x', 120))"
        ));
        bed.wait_replicas();
        let atlas = Atlas::start(config_for(bed).append(&format!(
            "[[tables]]\nname = \"{schema}.t\"\nkey = \"id\"\nranges = [{{ groups = [\"main\"], tables = 4 }}]"
        )));
        let mut client = Wire::connect(atlas.address(), &Login::plain().schema(&schema));
        four_kinds(&atlas, &mut client);
    }

    /// What clients and servers are connected by.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Transport {
        Tcp,
        Unix,
    }

    fn six_calls(bed: &Bed, transport: Transport) {
        let schema = bed.schema();
        let mut root = bed.root(Node::Primary);
        root.ok(&format!(
            "CREATE TABLE {schema}.t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL)"
        ));
        root.ok(&format!(
            "INSERT INTO {schema}.t VALUES (1, 0, REPEAT('x', 120))"
        ));
        bed.wait_replicas();
        let login = Login::plain().schema(&schema);
        let (atlas, mut client) = match transport {
            Transport::Tcp => {
                let atlas = Atlas::start(config_for(bed));
                let client = Wire::connect(atlas.address(), &login);
                (atlas, client)
            }
            Transport::Unix => {
                let atlas = Atlas::start(config_for(bed).unix_sockets(bed));
                let client = Wire::try_connect_unix(&atlas.dir().join("atlas.sock"), &login);
                (atlas, client.expect("log in"))
            }
        };
        four_kinds(&atlas, &mut client);
    }

    /// Reads and writes, as text and prepared.
    fn four_kinds(atlas: &Atlas, client: &mut Wire) {
        let (read, write) = (
            "SELECT c FROM t WHERE id = 1",
            "UPDATE t SET k = k + 1 WHERE id = 1",
        );
        count(atlas, "text read", || query(client, read));
        count(atlas, "text write", || query(client, write));
        let read = client.prepare("SELECT c FROM t WHERE id = ?");
        let write = client.prepare("UPDATE t SET k = k + 1 WHERE id = ?");
        count(atlas, "prepared read", || execute(client, &read));
        count(atlas, "prepared write", || execute(client, &write));
    }

    fn query(client: &mut Wire, sql: &str) {
        client.ok(sql);
    }

    fn execute(client: &mut Wire, statement: &Statement) {
        let reply = client.execute(statement, &[Param::Int(1)]);
        assert_eq!(reply.error(), None);
    }

    /// Runs statements one after the other and holds the calls of Atlas' workers against the limit.
    fn count(atlas: &Atlas, name: &str, mut statement: impl FnMut()) {
        // Connections are opened, state is brought to them, buffers come to be.
        for _ in 0..20 {
            statement();
        }
        let strace = Strace::attach(&workers(atlas), &atlas.dir().join("strace"));
        for _ in 0..STATEMENTS {
            statement();
        }
        let calls = strace.finish();
        let total: u32 = calls.values().sum();
        let transfers: u32 = ["recvfrom", "sendto", "read", "write", "readv", "writev"]
            .iter()
            .filter_map(|call| calls.get(*call))
            .sum();
        let mean = f64::from(total) / f64::from(STATEMENTS);
        eprintln!("{name}: {mean:.3} calls a statement {calls:?}");
        assert!(
            transfers >= 4 * STATEMENTS,
            "{name}: strace saw less than two reads and two writes a statement: {calls:?}"
        );
        assert!(
            mean <= CALLS_MAX,
            "{name}: {mean:.3} calls a statement: {calls:?}"
        );
    }

    /// The threads that carry clients' bytes.
    fn workers(atlas: &Atlas) -> Vec<String> {
        let tasks = format!("/proc/{}/task", atlas.pid());
        let workers: Vec<String> = fs::read_dir(&tasks)
            .expect("threads")
            .map(|entry| entry.expect("a thread").path())
            .filter(|task| {
                fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("worker-"))
            })
            .filter_map(|task| Some(task.file_name()?.to_str()?.to_owned()))
            .collect();
        assert!(!workers.is_empty(), "no threads named worker-N in {tasks}");
        workers
    }

    /// A strace that counts; ended with the value.
    struct Strace {
        child: Child,
        summary: std::path::PathBuf,
        messages: std::path::PathBuf,
    }

    impl Strace {
        fn attach(threads: &[String], prefix: &Path) -> Self {
            let (summary, messages) = (prefix.with_extension("out"), prefix.with_extension("err"));
            // strace writes no summary when it counted nothing; an old one must not stand in for it.
            let _ = fs::remove_file(&summary);
            let stderr = fs::File::create(&messages).expect("create");
            let child = Command::new("strace")
                .args(["-c", "-U", "calls,name", "-o"])
                .arg(&summary)
                .args(threads.iter().flat_map(|thread| ["-p", thread]))
                .stdin(Stdio::null())
                .stderr(stderr)
                .spawn()
                .expect("strace, which scripts/test installs");
            let mut strace = Self {
                child,
                summary,
                messages,
            };
            eventually("strace is attached to the workers", || {
                assert!(!strace.has_ended(), "strace: {}", strace.messages());
                strace.messages().matches(" attached").count() == threads.len()
            });
            strace
        }

        fn messages(&self) -> String {
            fs::read_to_string(&self.messages).unwrap_or_default()
        }

        fn has_ended(&mut self) -> bool {
            self.child.try_wait().expect("wait").is_some()
        }

        /// Detaches; the number of calls by name.
        fn finish(mut self) -> BTreeMap<String, u32> {
            let status = Command::new("sh")
                .args(["-c", "kill -s INT \"$0\"", &self.child.id().to_string()])
                .status()
                .expect("sh");
            assert!(status.success());
            let _ = self.child.wait().expect("wait");
            let summary = fs::read_to_string(&self.summary)
                .unwrap_or_else(|error| panic!("strace: {error}: {}", self.messages()));
            summary
                .lines()
                .filter_map(|line| {
                    let (calls, name) = line.trim().split_once(char::is_whitespace)?;
                    let calls = calls.parse().ok()?;
                    Some((name.trim().to_owned(), calls))
                })
                .filter(|(name, _)| name != "total")
                .collect()
        }
    }

    impl Drop for Strace {
        fn drop(&mut self) {
            // Its own child, by its handle; it may have ended already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
