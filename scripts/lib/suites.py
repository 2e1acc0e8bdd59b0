"""Runs test suites of drivers directly against a server and through Atlas, and compares. Called by scripts/driver-suites, which has
installed the suites and started a server and Atlas, and whose help tells what the options mean.

Each suite is a function that runs all its tests, or those named, against one port and gives the verdict of each."""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

HOST = "127.0.0.1"
# For one test; and for a whole suite, should that not be enough to end it.
TEST_SECONDS = 60
SUITE_SECONDS = 1200
# What the suites make, and what else the server has at the start.
SYSTEM = {"mysql", "information_schema", "performance_schema", "sys", "bed"}


class Place:
    """One server as a suite sees it: directly or through Atlas."""

    def __init__(self, args, way):
        self.args = args
        self.port = args.direct_port if way == "direct" else args.atlas_port
        self.work = f"{args.state}/{args.kind}-{way}"
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)

    def copy(self, suite):
        """A copy of the suite's folder: some write into it."""
        to = f"{self.work}/{suite}"
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(f"{self.args.suites}/{suite}", to, symlinks=True)
        return to

    def run(self, name, command, folder, env=None, seconds=SUITE_SECONDS):
        """The exit code and all that was said, which stays in a file too."""
        try:
            done = subprocess.run(
                command, cwd=folder, env=os.environ | (env or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds
            )
            code, said = done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            code, said = 124, (late.stdout or b"").decode(errors="replace") + "\ntook too long\n"
        with open(f"{self.work}/{name}.out", "a") as file:
            file.write(said)
        return code, said

    def pytest(self, suite, folder, what, names, env):
        report = f"{self.work}/{suite}.xml"
        if os.path.exists(report):
            os.remove(report)
        command = [self.args.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}", f"--junitxml={report}", "-o", "junit_family=xunit1"]
        _, said = self.run(suite, [*command, *(names or what)], folder, env)
        if not os.path.exists(report):
            print(said[-2000:])
            sys.exit(f"suites: {suite} did not run")
        verdicts = {}
        for case in xml.parse(report).getroot().iter("testcase"):
            name = test_id(case)
            bad = next((child for child in case if child.tag in ("failure", "error")), None)
            if bad is not None:
                verdicts[name] = ("fail", first_line(bad.get("message") or bad.text or ""))
            elif name not in verdicts:
                verdicts[name] = ("skip", "") if case.find("skipped") is not None else ("pass", "")
        return verdicts


def test_id(case):
    """How pytest wants a test to be named."""
    path = case.get("file") or ""
    module = path[: -len(".py")].replace("/", ".")
    within = (case.get("classname") or "")[len(module) :].strip(".")
    return "::".join([path, *within.split("."), case.get("name")] if within else [path, case.get("name")])


def first_line(text):
    return text.strip().split("\n", 1)[0].replace("\t", " ")[:200]


def pymysql(place, names):
    folder = place.copy("pymysql")
    account = f'"host": "{HOST}", "port": {place.port}, "user": "root", "passwd": ""'
    with open(f"{folder}/pymysql/tests/databases.json", "w") as file:
        file.write(f'[{{{account}, "db": "test1", "use_unicode": true, "local_infile": true}}, {{{account}, "db": "test2"}}]')
    return place.pytest("pymysql", folder, ["pymysql/tests"], names, {"PYTHONPATH": folder})


def aiomysql(place, names):
    folder = place.copy("aiomysql")
    env = {"MYSQL_ROOT_PASSWORD": "", "PYTHONPATH": folder}
    return place.pytest("aiomysql", folder, [f"--mysql-address=server={HOST}:{place.port}", "tests"], [f"--mysql-address=server={HOST}:{place.port}", *names] if names else None, env)


def mysqlclient(place, names):
    folder = place.copy("mysqlclient")
    with open(f"{folder}/tests/suite.cnf", "w") as file:
        file.write(f"[MySQLdb-tests]\nhost={HOST}\nport={place.port}\nuser=root\ndatabase=test\ndefault-character-set=utf8mb4\nlocal-infile\n")
    return place.pytest("mysqlclient", folder, ["tests"], names, {"TESTDB": "suite.cnf"})


def mariadb(place, names):
    folder = place.copy("mariadb")
    env = {"TEST_DB_HOST": HOST, "TEST_DB_PORT": str(place.port), "TEST_DB_DATABASE": "testp", "PYTHONPATH": f"{folder}/testing"}
    return place.pytest("mariadb", folder, ["testing/test/integration"], names, env)


def connector(place, names):
    """MySQL's own: with a runner of its own, whose tests depend on what it sets up."""
    folder = place.copy("connector")
    command = [place.args.python, "unittests.py", "--use-external-server", "--skip-install", "--verbosity=2", f"--host={HOST}", f"--port={place.port}", "--user=root", "--password="]
    chosen = sorted({name.split(" ")[0] for name in names or []})
    _, said = place.run("connector", command + ([f"--test-regex=({'|'.join(chosen)})$"] if chosen else []), folder)
    verdicts = {}
    for name, end in re.findall(r"^(test\w+ \([\w.]+\))(?:\n[^\n]*)?? \.\.\. (?:.*?)(ok|FAIL|ERROR|skipped|expected failure)\b", said, re.M | re.S):
        verdicts[name] = ({"ok": "pass", "FAIL": "fail", "ERROR": "fail"}.get(end, "skip"), "")
    return verdicts


def mysql2(place, names):
    """One program for each test, which ends well or not."""
    folder = place.copy("mysql2")
    env = {"MYSQL_HOST": HOST, "MYSQL_PORT": str(place.port), "MYSQL_USER": "root", "MYSQL_DATABASE": "test"}
    verdicts = {}
    for path in sorted(glob.glob(f"{folder}/test/**/test-*.js", recursive=True)):
        name = os.path.relpath(path, folder)
        if not names or name in names:
            code, said = place.run("mysql2", ["node", name], folder, env, TEST_SECONDS)
            verdicts[name] = ("fail", first_line(next((line for line in said.splitlines() if "Error" in line), said))) if code else ("pass", "")
    return verdicts


SUITES = {suite.__name__: suite for suite in (pymysql, mysql2, mysqlclient, aiomysql, mariadb, connector)}
SCHEMAS = ("test", "test1", "test2", "testp")


def clean(args):
    """By the server's own address: no schemas but those that it had and those that suites want."""
    to = ["mariadb", "--no-defaults", "--protocol=tcp", f"-h{HOST}", f"-P{args.direct_port}", "-uroot", "-N", "-B"]
    sql = lambda text: subprocess.run([*to, "--force", "-e", text], capture_output=True, text=True, timeout=60).stdout
    there = set(sql("SHOW DATABASES").split()) - SYSTEM
    sql("; ".join([f"DROP DATABASE `{name}`" for name in there] + [f"CREATE DATABASE {name} CHARACTER SET utf8mb4" for name in SCHEMAS]))


def read_known(path):
    known = {}
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                suite, test, kinds, reason = line.rstrip("\n").split("\t")
                for kind in ("mariadb", "mysql") if kinds == "both" else (kinds,):
                    known[suite, test, kind] = reason
    return known


def compare(args, name, known):
    """Runs one suite on either way and prints what differs. How many differences are not known."""
    suite = SUITES[name]
    places = {}
    verdicts = {}
    for way in ("direct", "atlas"):
        clean(args)
        places[way] = Place(args, way)
        verdicts[way] = suite(places[way], None)
    direct, atlas = verdicts["direct"], verdicts["atlas"]
    passed = sorted(test for test, (verdict, _) in direct.items() if verdict == "pass")
    wrong = [test for test in passed if atlas.get(test, ("missing", ""))[0] != "pass"]
    # A test that depends on how fast things go is not taken for broken.
    again = {}
    if wrong and len(wrong) <= args.again:
        clean(args)
        again = suite(places["atlas"], wrong)
    bad = [test for test in wrong if again.get(test, ("fail", ""))[0] != "pass"]
    count = lambda verdict: sum(1 for what, _ in direct.values() if what == verdict)
    print(f"{args.kind} {name}: {len(direct)} tests; directly {len(passed)} pass, {count('fail')} fail, {count('skip')} are skipped; of those that pass, {len(passed) - len(bad)} pass through Atlas", flush=True)
    unknown = 0
    shown = 40
    for test in wrong:
        verdict, why = atlas.get(test, ("missing", ""))
        reason = known.get((name, test, args.kind))
        if test not in bad:
            print(f"  at the second attempt: {test}  {why}")
        elif reason:
            print(f"  known: {test}: {reason}")
        else:
            unknown += 1
            if unknown <= shown:
                print(f"  {verdict}: {test}  {why}")
    if unknown > shown:
        print(f"  and {unknown - shown} more: {places['atlas'].work}/{name}.out")
    for listed, test, kind in known:
        if listed == name and kind == args.kind and test not in bad:
            print(f"  passes or does not run this time, and is listed: {test}")
    sys.stdout.flush()
    return unknown


def main():
    parser = argparse.ArgumentParser()
    for option in ("--kind", "--suites", "--state", "--known", "--python"):
        parser.add_argument(option, required=True)
    parser.add_argument("--direct-port", type=int, required=True)
    parser.add_argument("--atlas-port", type=int, required=True)
    parser.add_argument("--again", type=int, default=40)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for name in args.names:
        if name not in SUITES:
            sys.exit(f"suites: there is no suite {name}: one of {', '.join(SUITES)}")
    known = read_known(args.known)
    sys.exit(1 if sum(compare(args, name, known) for name in args.names or SUITES) else 0)


if __name__ == "__main__":
    main()
