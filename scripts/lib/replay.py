"""Says the statements of a log to two servers and compares what they answer; see scripts/replay --help."""

import argparse
import collections
import json
import queue
import re
import sys
import threading
import time

import pymysql
from pymysql.constants import CLIENT

Statement = collections.namedtuple("Statement", "connection schema sql")
# A statement that is passed over, and why.
Skipped = collections.namedtuple("Skipped", "why")

READS = re.compile(rb"\s*(?:\(\s*)*(?:select|with|show|desc|describe|explain|table|values)\b", re.I)
# What a read may have in it that changes something, waits for somebody, or belongs to what was said before.
ACTS = re.compile(
    rb"\binto\s+(?:@|outfile|dumpfile)|\bfor\s+(?:update|share)\b|\block\s+in\s+share\s+mode\b|:=|\bget_lock\b|\brelease_"
    rb"|\blast_insert_id\b|\bfound_rows\b|\brow_count\b|\bnextval\b|\bnext\s+value\b|\bexplain\s+route\b|\bshow\s+last\s+route\b"
    rb"|\bshow\s+(?:count\s*\(\s*\*\s*\)\s+)?(?:warnings|errors)\b|\banalyze\b",
    re.I,
)
MODES = re.compile(rb"\s*(?:set|use)\b", re.I)
VOLATILE = re.compile(
    rb"\b(?:now|sysdate|curdate|curtime|current_\w+|localtime\w*|unix_timestamp|utc_\w+|rand|random_bytes|uuid\w*|connection_id"
    rb"|sleep|version|user|current_role)\b|@@|^\s*show\s+(?:global\s+|session\s+)?(?:status|variables|processlist|full\s+processlist"
    rb"|binary|master|slave|replica)|information_schema|performance_schema|\bexplain\b|\blimit\b(?!.*\border\s+by\b)",
    re.I | re.S,
)
ORDERED = re.compile(rb"\border\s+by\b", re.I)


def lines_of(path):
    with (sys.stdin.buffer if path == "-" else open(path, "rb")) as file:
        yield from file


def audit(lines):
    for line in lines:
        entry = json.loads(line)
        if entry.get("event") != "statement" or entry.get("kind") == "prepare":
            continue
        if "statement" not in entry:
            yield Skipped("without its text")
            continue
        if "statement_bytes" in entry:
            yield Skipped("cut")
            continue
        sql = bytes.fromhex(entry["statement_hex"]) if "statement_hex" in entry else entry["statement"].encode()
        yield Statement(entry["connection"], entry.get("schema", ""), sql)


def slow(lines):
    connection, schema, cut, text = None, "", False, []

    def entry():
        sql = b"".join(text).strip().rstrip(b";")
        if sql and not sql.lower().startswith(b"# administrator command"):
            yield Skipped("cut") if cut else Statement(connection, schema, sql)

    in_head = True
    for line in lines:
        if line.startswith(b"#") and not (in_head and text):
            if not in_head:
                yield from entry()
                text, in_head, cut = [], True, False
            if found := re.search(rb"\bId:\s*(\d+)", line):
                connection = int(found[1])
            if found := re.search(rb"\bThread_id:\s*(\d+)", line):
                connection = int(found[1])
            if found := re.search(rb"\bSchema: (\S*)", line):
                schema = found[1].decode(errors="replace")
            cut = cut or line.startswith(b"# Cut: Yes")
        elif in_head and (found := re.match(rb"use `?([^;`]+)`?;\s*$", line)):
            schema = found[1].decode(errors="replace")
        elif in_head and re.match(rb"SET timestamp=\d+", line):
            in_head = False
        elif not in_head:
            text.append(line)
    yield from entry()


def general(lines):
    start = re.compile(rb"^(?:\d{4}-\d\d-\d\dT\S+\s*|\d{6}\s+\d?\d:\d\d:\d\d\s*|\s+)(\d+) (Connect|Query|Execute|Init DB|Quit|Prepare|Close stmt|Statistics|Field List|Change user|Reset stmt|Ping|Reset connection)\t?(.*)", re.S)
    schemas, current, text = {}, None, []

    def entry():
        if current is not None and (sql := b"".join(text).strip()):
            yield Statement(current, schemas.get(current, ""), sql)

    for line in lines:
        found = start.match(line)
        if found is None:
            if current is not None:
                text.append(line)
            continue
        yield from entry()
        connection, command, rest = int(found[1]), found[2], found[3]
        current, text = None, []
        if command == b"Connect" and (on := re.search(rb" on (\S*)", rest)):
            schemas[connection] = on[1].decode(errors="replace")
        elif command == b"Init DB":
            schemas[connection] = rest.strip().decode(errors="replace")
        elif command in (b"Query", b"Execute"):
            current, text = connection, [rest]
            if use := re.match(rb"\s*use\s+`?([^;`\s]+)", rest, re.I):
                schemas[connection] = use[1].decode(errors="replace")
    yield from entry()


def read(path):
    """The statements of a log, whichever kind it is."""
    lines = lines_of(path)
    first = next(lines, b"")
    rest = (line for part in ([first], lines) for line in part)
    if first.startswith(b"{"):
        return audit(rest)
    if first.startswith(b"#") or b"SET timestamp" in first:
        return slow(rest)
    # A server's logs begin with lines on the server, and slow logs have times in comments.
    head = [first]
    for line in lines:
        head.append(line)
        if line.startswith(b"# Time:") or line.startswith(b"# User@Host:"):
            return slow(line for part in (head[-1:], lines) for line in part)
        if len(head) > 20:
            break
    return general(line for part in (head, lines) for line in part)


def may_be_said(sql, options):
    """Why a statement is passed over; nothing when it is not."""
    if any(pattern.search(sql) for pattern in options.ignore):
        return "ignored"
    if re.search(rb"(?<!['\"\w])\?(?!['\"])", strip(sql)):
        return "without its values"
    if options.writes or MODES.match(sql):
        return None
    stripped = strip(sql)
    if not READS.match(stripped):
        return "no read"
    return "a read that acts" if ACTS.search(stripped) else None


STRINGS = re.compile(rb"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|/\*(?![!M]).*?\*/|(?:--[ \t]|#)[^\n]*", re.S)


def strip(sql):
    """The statement without strings and comments."""
    return STRINGS.sub(lambda found: b"''" if found[0][:1] in b"'\"" else b" ", sql)


Answer = collections.namedtuple("Answer", "error affected columns rows count")


class Side:
    """A connection to one of the servers, made when it is needed and made again when it is lost."""

    def __init__(self, target):
        self.target, self.connection, self.schema = target, None, None

    def say(self, statement):
        begun = time.monotonic()
        try:
            answer = self.ask(statement)
        except pymysql.err.MySQLError as error:
            code = error.args[0] if error.args else 0
            if code in (0, 2003, 2006, 2013, 2014):
                self.close()
            answer = Answer(code or -1, 0, (), None, 0)
        return answer, time.monotonic() - begun

    def ask(self, statement):
        if self.connection is None:
            self.connection = pymysql.connect(
                **self.target, charset="utf8mb4", use_unicode=False, conv={}, autocommit=None, client_flag=CLIENT.MULTI_STATEMENTS, connect_timeout=10
            )
            self.schema = None
        if statement.schema and statement.schema != self.schema:
            self.connection.select_db(statement.schema)
            self.schema = statement.schema
        results, affected, columns, rows, count = 0, 0, [], collections.Counter(), 0
        ordered = ORDERED.search(statement.sql) is not None
        cursor = self.connection.cursor(pymysql.cursors.SSCursor)
        try:
            # Bytes go as they are; PyMySQL would encode a text.
            cursor.execute(statement.sql)
            while True:
                if cursor.description:
                    columns.append(tuple(column[0] for column in cursor.description))
                    for at, row in enumerate(cursor):
                        rows[(results, at if ordered else 0, row)] += 1
                        count += 1
                else:
                    affected += cursor.rowcount
                results += 1
                if not cursor.nextset():
                    return Answer(0, affected, tuple(columns), rows, count)
        finally:
            cursor.close()

    def close(self):
        if self.connection is not None:
            try:
                self.connection.close()
            except pymysql.err.Error:
                pass
            self.connection = None


def difference(first, second):
    """What two answers differ in, in words; nothing when in nothing."""
    if first.error != second.error:
        return f"errors {first.error} and {second.error}"
    if first.columns != second.columns:
        return f"columns {first.columns} and {second.columns}"
    if first.affected != second.affected:
        return f"rows changed {first.affected} and {second.affected}"
    if first.rows != second.rows:
        here, there = first.rows - second.rows, second.rows - first.rows
        shown = [f"{side} only: {next(iter(rows))[2]!r}" for side, rows in (("first", here), ("second", there)) if rows]
        return f"rows ({first.count} and {second.count}): " + "; ".join(text[:300] for text in shown)
    return None


class Total:
    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.times = ([], [])
        self.errors = [0, 0]
        self.differences = []

    def skip(self, why):
        with self.lock:
            self.counts[f"passed over: {why}"] += 1

    def note(self, statement, answers, options):
        (first, first_took), (second, second_took) = answers
        differs = difference(first, second)
        with self.lock:
            self.counts["statements"] += 1
            for side, (answer, took) in enumerate(answers):
                self.times[side].append(took)
                self.errors[side] += answer.error != 0
            if differs is None:
                return
            if VOLATILE.search(statement.sql) and first.error == second.error:
                self.counts["differ by themselves"] += 1
                return
            self.counts["differ"] += 1
            if len(self.differences) < options.show:
                self.differences.append((statement, differs))


def replay(statements, options, total):
    """Says the statements of each connection of the log over connections of their own, so many at a time."""
    by_connection, count = collections.OrderedDict(), 0
    for statement in statements:
        if isinstance(statement, Skipped):
            total.skip(statement.why)
            continue
        if why := may_be_said(statement.sql, options):
            total.skip(why)
            continue
        if count == options.limit:
            break
        count += 1
        by_connection.setdefault(statement.connection, []).append(statement)
    waiting = queue.SimpleQueue()
    for said in by_connection.values():
        waiting.put(said)
    total.counts["connections"] = len(by_connection)
    faults = []

    def work():
        try:
            while True:
                said = waiting.get_nowait()
                sides = [Side(options.first), Side(options.second)]
                for statement in said:
                    total.note(statement, [side.say(statement) for side in sides], options)
                for side in sides:
                    side.close()
        except queue.Empty:
            pass
        except Exception as fault:  # A fault of this program is told, not taken for the end.
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(options.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def quantile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] * 1000 if times else 0.0


def report(total):
    for statement, differs in total.differences:
        sql = statement.sql.decode(errors="replace")
        print(f"differs: connection {statement.connection}: {differs}\n    {sql[:1000]}")
    for name in sorted(total.counts):
        print(f"{name}: {total.counts[name]}")
    for name, times, errors in zip(("first", "second"), total.times, total.errors):
        p50, p95, p99 = (quantile(times, part) for part in (0.5, 0.95, 0.99))
        longest = max(times, default=0.0) * 1000
        print(f"{name}: errors {errors}, ms p50 {p50:.3f} p95 {p95:.3f} p99 {p99:.3f} longest {longest:.3f}")


def target(text):
    found = re.fullmatch(r"([^:@]+)(?::(.*))?@(?:(/.+)|\[?([^/\]]+?)\]?:(\d+))", text)
    if found is None:
        raise argparse.ArgumentTypeError("write USER:PASSWORD@HOST:PORT or USER:PASSWORD@/path/of.sock")
    user, password, path, host, port = found.groups()
    where = {"unix_socket": path} if path else {"host": host, "port": int(port)}
    return {"user": user, "password": password or "", **where}


def main():
    parser = argparse.ArgumentParser(prog="scripts/replay")
    parser.add_argument("log")
    parser.add_argument("first", type=target)
    parser.add_argument("second", type=target)
    parser.add_argument("--writes", action="store_true")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--limit", type=int, default=-1)
    parser.add_argument("--show", type=int, default=20)
    parser.add_argument("--ignore", type=lambda text: re.compile(text.encode(), re.I), action="append", default=[])
    options = parser.parse_args()
    total = Total()
    try:
        replay(read(options.log), options, total)
    except (OSError, ValueError) as error:
        print(f"scripts/replay: {error}", file=sys.stderr)
        return 2
    if not total.counts["statements"]:
        report(total)
        print("scripts/replay: the log has no statement that could be said", file=sys.stderr)
        return 2
    report(total)
    return 1 if total.counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
