"""Runs tests of MariaDB's regression suite one by one, directly and through Atlas, and compares. Called by scripts/mtr, which has
started both and whose help tells what the options mean and what the result is.

Before each test the server is made as it was at the start: schemas, accounts and global variables. This goes by the server's own
socket, never through Atlas."""

import argparse
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

# What was there at the start, and stays.
SYSTEM = {"mysql", "information_schema", "performance_schema", "sys", "mtr"}
# Global variables that cannot be set, or whose change means nothing to the next test.
MOVING = re.compile(r"gtid|timestamp|last_|rand_|log_bin|innodb_buffer_pool_load|error_count|warning_count|in_transaction|identity|insert_id")
# Tests that need a server that was started otherwise, or for themselves.
UNFIT = re.compile(
    r"include/(have_debug|restart|shutdown|wait_until_disc|not_embedded_restart|have_perfschema|big_test|master-slave|have_ssl|kill_)"
    r"|--shutdown|shutdown_server|restart_mysqld"
)
# Tests of accounts: which accounts there are is Atlas's own business.
ACCOUNTS = re.compile(
    r"mysql\.(user|global_priv|db|tables_priv|columns_priv|procs_priv|proc|servers|plugin|event)\b|\bgrant\b|create\s+user|drop\s+user"
    r"|set\s+password|create\s+role|install\s+(plugin|soname)|--connect\s*\([^)]*,\s*(?!root)[a-z_0-9]+\s*,",
    re.I,
)
OWN_OPTIONS = (".opt", "-master.opt", ".cnf", "-slave.opt", ".combinations", "-master.sh")
CREATE_TEST = "CREATE DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci"
# The exit code that asks for new servers and another start.
NEW_SERVERS = 3


class Unusable(Exception):
    """The server or Atlas is no longer what the next test needs."""


class Suite:
    def __init__(self, root, name):
        self.name = name
        self.root = root
        folder = f"{root}/{name}" if name == "main" else f"{root}/suite/{name}"
        self.tests = f"{folder}/t" if os.path.isdir(f"{folder}/t") else folder
        self.results = f"{folder}/r" if os.path.isdir(f"{folder}/r") else folder
        if not os.path.isdir(self.tests):
            sys.exit(f"mtr: there is no suite {name} in {root}")

    def fitting(self):
        for path in sorted(glob.glob(f"{self.tests}/*.test")):
            test = os.path.basename(path)[: -len(".test")]
            if any(os.path.exists(f"{self.tests}/{test}{end}") for end in OWN_OPTIONS) or not os.path.exists(f"{self.results}/{test}.result"):
                continue
            with open(path, errors="replace") as file:
                text = file.read()
            if not UNFIT.search(text) and not ACCOUNTS.search(text):
                yield f"{self.name}.{test}"

    def named(self, names):
        for name in names:
            test = name if "." in name else f"{self.name}.{name}"
            if not os.path.exists(f"{self.tests}/{test.split('.', 1)[1]}.test"):
                sys.exit(f"mtr: there is no test {test}")
            yield test


class Server:
    """The server as its administrator sees it: by its socket."""

    def __init__(self, vardir):
        self.socket = f"{vardir}/socket"
        self.data = f"{vardir}/mysqld.1/data"
        self.globals = None
        self.tables = None

    def sql(self, text, wait=60):
        command = ["mariadb", "--no-defaults", "-uroot", "-S", self.socket, "-N", "--force", "--comments"]
        try:
            done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=wait)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.decode(errors="replace")

    def reset(self, kill_sleepers):
        seen = self.sql(
            f"""SELECT IF(command = 'Sleep', 'sleeper', 'busy'), id FROM information_schema.processlist
                WHERE id <> CONNECTION_ID() AND user NOT IN ('system user', 'event_scheduler', 'mtr_monitor');
                SELECT 'schema', schema_name FROM information_schema.schemata;
                SELECT 'table', table_name FROM information_schema.tables WHERE table_schema = 'mysql';
                SELECT 'account', CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.global_priv WHERE user NOT IN ('root', 'mariadb.sys', 'mysql', 'mtr_monitor')
                OR user = 'root' AND host NOT IN ('localhost', '127.0.0.1', '::1', '%', @@hostname);
                SELECT 'globals'; SHOW GLOBAL VARIABLES; SELECT 'globals end'"""
        )
        if "globals end" not in seen:
            raise Unusable("the server does not let its administrator in")
        before, variables = seen.split("globals\n", 1)
        found = [line.split("\t", 1) for line in before.splitlines() if "\t" in line]
        of = lambda kind: [value.replace("\\\\", "\\") for (key, value) in found if key == kind]
        if self.tables is None:
            self.tables = set(of("table"))
        elif self.tables != set(of("table")):
            raise Unusable(f"tables of the schema mysql came or went: {', '.join(sorted(self.tables ^ set(of('table'))))}")
        settings = list(self.changed_globals(dict(line.split("\t", 1) for line in variables.splitlines() if "\t" in line)))
        # Connections that began under other settings keep them.
        todo = [f"KILL {id}" for id in of("busy") + (of("sleeper") if kill_sleepers or settings else [])]
        todo += ["SET SESSION foreign_key_checks=0, lock_wait_timeout=5, sql_mode=''", "UNLOCK TABLES"]
        todo += [f"DROP DATABASE `{schema.replace('`', '``')}`" for schema in of("schema") if schema not in SYSTEM]
        todo += ["SELECT 'left', schema_name FROM information_schema.schemata"]
        todo += [CREATE_TEST]
        # A test that fails leaves what ANALYZE has found, and schemas go without it.
        todo += [f"DELETE FROM mysql.{name}" for name in ("table_stats", "column_stats", "index_stats")]
        todo += [f"DROP USER {account}" for account in of("account")]
        todo += settings
        left = self.sql(";\n".join(todo))
        schemas = {line.split("\t")[1] for line in left.splitlines() if line.startswith("left\t")}
        if schemas != SYSTEM and not kill_sleepers:
            # A connection that sleeps holds a lock.
            self.reset(True)
        elif schemas != SYSTEM:
            self.remove_files(schemas - SYSTEM)

    def remove_files(self, schemas):
        """Drops schemas into whose folders a test has written files of its own, by which they cannot be dropped."""
        for schema in schemas:
            shutil.rmtree(f"{self.data}/{schema}", ignore_errors=True)
            self.sql(f"DROP DATABASE `{schema}`")
        left = set(self.sql("SHOW DATABASES").split()) - SYSTEM
        if left:
            raise Unusable(f"schemas stay: {', '.join(sorted(left))}")
        self.sql(CREATE_TEST)

    def changed_globals(self, now):
        if self.globals is None:
            self.globals = now
        for name, value in now.items():
            first = self.globals.get(name)
            if first is not None and first != value and not MOVING.match(name):
                literal = first if re.fullmatch(r"-?\d+(\.\d+)?", first) else "'" + first.replace("\\", "\\\\").replace("'", "''") + "'"
                yield f"SET GLOBAL {name} = {literal}"


class Runner:
    def __init__(self, args, suite):
        self.args = args
        self.suite = suite
        self.server = Server(args.vardir)
        self.runs = 0

    def check_atlas(self):
        try:
            socket.create_connection(("127.0.0.1", self.args.atlas_port), timeout=5).close()
        except OSError as error:
            raise Unusable(f"Atlas does not answer: {error}") from None

    def environment(self, port):
        var = self.args.vardir
        env = dict(os.environ)
        to = f"--no-defaults -uroot -h127.0.0.1 -P{port} --protocol=tcp"
        tools = {
            "MYSQL": "mariadb", "MYSQL_DUMP": "mariadb-dump", "MYSQL_ADMIN": "mariadb-admin", "MYSQLADMIN": "mariadb-admin", "MYSQL_CHECK": "mariadb-check",
            "MYSQL_IMPORT": "mariadb-import", "MYSQL_SHOW": "mariadb-show", "MYSQL_SLAP": "mariadb-slap", "MYSQL_TEST": "mariadb-test",
        }
        env.update({name: f"{program} {to}" for name, program in tools.items()})
        env["MYSQL_TEST"] += f" --silent --tmpdir={var}/tmp"
        env.update(
            MYSQL_TEST_DIR=self.suite.root, MYSQLTEST_VARDIR=var, MYSQLTEST_REAL_VARDIR=var, MYSQL_TMP_DIR=f"{var}/tmp", MYSQL_TEST_ROOT="1",
            MYSQL_BINDIR="/usr", MYSQL_SHAREDIR="/usr/share/mysql", CHARSETSDIR="/usr/share/mysql/charsets", MYSQL_CHARSETSDIR="/usr/share/mysql/charsets",
            DEFAULT_MASTER_PORT=str(port), MASTER_MYPORT=str(port), MASTER_MYPORT1=str(port), MASTER_MYSOCK=self.server.socket,
            USE_RUNNING_SERVER="1", MYSQLD_DATADIR=self.server.data, LC_ALL="C", UMASK="0660", UMASK_DIR="0770",
        )
        return env

    def run(self, test, way, protocol):
        """Runs one test: its verdict, what was wrong, and all that it said."""
        args, var = self.args, self.args.vardir
        port = args.direct_port if way == "direct" else args.atlas_port
        name = test.split(".", 1)[1]
        shutil.rmtree(f"{var}/tmp", ignore_errors=True)
        os.makedirs(f"{var}/tmp", exist_ok=True)
        os.makedirs(f"{var}/log", exist_ok=True)
        # Behind Atlas, connections that sleep are those that it keeps for the next client.
        self.server.reset(way == "direct")
        self.runs += 1
        command = [
            "mariadb-test", "--no-defaults", "--silent", "--host=127.0.0.1", f"--port={port}", "--protocol=tcp", "--user=root", "--password=",
            "--database=test", f"--basedir={self.suite.root}", f"--tmpdir={var}/tmp", f"--logdir={var}/log",
            "--character-sets-dir=/usr/share/mysql/charsets", f"--timer-file={var}/log/timer",
            f"--test-file={self.suite.tests}/{name}.test", f"--result-file={self.suite.results}/{name}.result",
        ]
        if protocol == "ps":
            command.append("--ps-protocol")
        env = self.environment(port) | {"MYSQLTEST_FILE": f"{self.suite.tests}/{name}.test"}
        # A session of its own, so that programs that it has started can be ended with it.
        process = subprocess.Popen(
            command, cwd=self.suite.root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            said = process.communicate(timeout=args.timeout)[0]
            verdict = {0: "pass", 62: "skip"}.get(process.returncode, "fail")
        except subprocess.TimeoutExpired:
            verdict = "timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if verdict == "timeout":
            said = process.communicate()[0]
        said = said.decode(errors="replace")
        wrong = ""
        if verdict == "fail":
            line = re.search(r"^(mysqltest: .*|[-+](?![-+]).*)$", said, re.M)
            wrong = (line.group(1) if line else said.strip().rsplit("\n", 1)[-1])[:200].replace("\t", " ")
        return verdict, wrong, said


class Results:
    """results.tsv: what was run, and with what result."""

    def __init__(self, state):
        self.path = f"{state}/results.tsv"
        self.outputs = f"{state}/outputs"
        self.rows = {}
        os.makedirs(self.outputs, exist_ok=True)
        if os.path.exists(self.path):
            self.rows = self.read(self.path)

    @staticmethod
    def read(path):
        """The last verdict of each (test, way, protocol)."""
        rows = {}
        with open(path) as file:
            for line in file:
                fields = line.rstrip("\n").split("\t")
                if len(fields) >= 4:
                    rows[tuple(fields[:3])] = fields[3]
        return rows

    def forget_failed(self):
        self.rows = {key: verdict for key, verdict in self.rows.items() if verdict in ("pass", "skip")}
        with open(self.path, "w") as file:
            file.writelines("\t".join([*key, verdict]) + "\t0\t\n" for key, verdict in self.rows.items())

    def add(self, key, verdict, seconds, wrong, said):
        self.rows[key] = verdict
        with open(self.path, "a") as file:
            file.write("\t".join([*key, verdict, f"{seconds:.1f}", wrong]) + "\n")
        output = f"{self.outputs}/{'.'.join(key).replace('/', '-')}"
        if verdict in ("pass", "skip"):
            if os.path.exists(output):
                os.remove(output)
        else:
            with open(output, "w") as file:
                file.write(said)


def one_test(runner, results, test, protocol):
    """Directly, and through Atlas when that passed. A test that fails through Atlas gets a second attempt, and so is not taken for
    broken when it depends on how fast things go; it counts as flaky then."""
    for way in ("direct", "atlas"):
        key = (test, way, protocol)
        if key not in results.rows:
            start = time.monotonic()
            verdict, wrong, said = runner.run(test, way, protocol)
            if way == "atlas" and verdict in ("fail", "skip"):
                again = runner.run(test, way, protocol)
                verdict, wrong, said = ("flaky", wrong, said) if again[0] == "pass" else again
            results.add(key, verdict, time.monotonic() - start, wrong, said)
            if way == "atlas" and verdict != "pass":
                print(f"{verdict:8}{protocol:6}{test}  {wrong}", flush=True)
                runner.check_atlas()
        if results.rows[key] != "pass":
            return


def compare(results, protocols, known):
    """Prints the counts, and what is not as tests/mtr/differences.tsv says. Whether all is."""
    as_known = True
    for protocol in protocols:
        of = lambda way: {test: verdict for (test, how, what), verdict in results.rows.items() if how == way and what == protocol}
        direct, atlas = of("direct"), of("atlas")
        passed = [test for test, verdict in direct.items() if verdict == "pass" and test in atlas]
        good = [test for test in passed if atlas[test] in ("pass", "flaky")]
        print(f"{protocol}: {len(direct)} tests, {len(passed)} pass directly, {len(good)} of these through Atlas")
        for test in passed:
            excused = known.get((test, protocol))
            if atlas[test] == "flaky":
                print(f"  {test}: at the second attempt")
            elif test not in good:
                print(f"  {test}: {atlas[test]}{f' (known: {excused})' if excused else ''}")
                as_known = as_known and excused is not None
            elif excused:
                print(f"  {test}: passes this time, and is listed in tests/mtr/differences.tsv")
    return as_known


def read_known(path):
    known = {}
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                test, protocols, reason = line.rstrip("\n").split("\t")
                for protocol in ("text", "ps") if protocols == "both" else (protocols,):
                    known[test, protocol] = reason
    return known


def main():
    parser = argparse.ArgumentParser()
    for option in ("--root", "--state", "--vardir", "--known"):
        parser.add_argument(option, required=True)
    parser.add_argument("--direct-port", type=int, required=True)
    parser.add_argument("--atlas-port", type=int, required=True)
    parser.add_argument("--suite", default="main")
    parser.add_argument("--protocol", choices=("text", "ps", "both"), default="both")
    parser.add_argument("--list")
    parser.add_argument("--direct")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("tests", nargs="*")
    args = parser.parse_args()

    suite = Suite(args.root, args.suite)
    names = list(args.tests)
    if args.list:
        with open(args.list) as file:
            names += [line.split("\t")[0].strip() for line in file if line.strip() and not line.startswith("#")]
    tests = list(suite.named(names) if names else suite.fitting())
    protocols = ("text", "ps") if args.protocol == "both" else (args.protocol,)
    results = Results(args.state)
    if args.again:
        results.forget_failed()
    if args.direct:
        for key, verdict in Results.read(args.direct).items():
            if key[1] == "direct":
                results.rows.setdefault(key, verdict)
    runner = Runner(args, suite)
    wanted = set(tests)
    try:
        for protocol in protocols:
            for test in tests:
                one_test(runner, results, test, protocol)
    except Unusable as problem:
        print(f"mtr: {problem}", file=sys.stderr)
        # Not when new ones are no better.
        sys.exit(NEW_SERVERS if runner.runs > 0 else 1)
    results.rows = {key: verdict for key, verdict in results.rows.items() if key[0] in wanted}
    sys.exit(0 if compare(results, protocols, read_known(args.known)) else 1)


if __name__ == "__main__":
    main()
