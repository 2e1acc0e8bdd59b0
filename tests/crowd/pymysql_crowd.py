"""Many clients of PyMySQL that work at random, each in its thread. See README.md for what they do and how it is called."""

import json
import random
import sys
import threading
import time

import pymysql
from pymysql.constants import COMMAND

HOST, PORT, USER, PASSWORD, SCHEMA, CLIENTS, SECONDS, SEED = sys.argv[1:]
END = time.monotonic() + float(SECONDS)
ZONES = ("+01:00", "+05:30", "-03:00")
# A driver's thread needs little.
threading.stack_size(256 * 1024)


class Client:
    """A client, and what a connection of its own would know."""

    def __init__(self, number):
        self.name = f"py{SEED}-{number}"
        self.dice = random.Random(f"{SEED} {number}")
        self.count = self.acts = self.cuts = 0
        self.connect()

    def connect(self):
        self.db = pymysql.connect(host=HOST, port=int(PORT), user=USER, password=PASSWORD, database=SCHEMA, autocommit=True, connect_timeout=300)
        self.variable, self.zone, self.div = None, "SYSTEM", 4

    def tag(self):
        self.count += 1
        return f"{self.name}-{self.count}"

    def ask(self, sql, args=None):
        with self.db.cursor() as cursor:
            cursor.execute(sql, args)
            return cursor.fetchall()

    def same(self, what, got, want):
        if got != want:
            raise AssertionError(f"{self.name}: {what}: got {got!r}, not {want!r}")

    def see(self):
        tag = self.tag()
        row = self.ask("SELECT %s, @v, @@time_zone, @@div_precision_increment, @@autocommit, DATABASE()", (tag,))[0]
        self.same("state", row, (tag, self.variable, self.zone, self.div, 1, SCHEMA))

    def set(self):
        which = self.dice.randrange(3)
        if which == 0:
            self.variable = self.dice.randrange(1000)
            self.ask(f"SET @v = {self.variable}")
        elif which == 1:
            self.zone = self.dice.choice(ZONES)
            self.ask(f"SET time_zone = '{self.zone}'")
        else:
            self.div = self.dice.randrange(1, 10)
            self.ask(f"SET SESSION div_precision_increment = {self.div}")

    def insert(self):
        tag = self.tag()
        with self.db.cursor() as cursor:
            cursor.execute("INSERT INTO a(tag) VALUES (%s)", (tag,))
            given = cursor.lastrowid
        self.same("LAST_INSERT_ID()", self.ask("SELECT LAST_INSERT_ID()"), ((given,),))
        self.same("row", self.ask("SELECT tag FROM a WHERE id = %s /*master*/", (given,)), ((tag,),))

    def transaction(self):
        tag = self.tag()
        self.db.begin()
        self.ask("INSERT INTO b(tag) VALUES (%s)", (tag,))
        self.same("own row", self.ask("SELECT COUNT(*) FROM b WHERE tag = %s", (tag,)), ((1,),))
        keep = self.dice.randrange(2)
        (self.db.commit if keep else self.db.rollback)()
        self.same("row after it", self.ask("SELECT COUNT(*) FROM b WHERE tag = %s /*master*/", (tag,)), ((keep,),))

    def temporary(self):
        tag = self.tag()
        self.ask("CREATE TEMPORARY TABLE mine(tag VARCHAR(60))")
        self.ask("INSERT INTO mine VALUES (%s)", (tag,))
        self.same("temporary table", self.ask("SELECT tag FROM mine"), ((tag,),))
        self.ask("DROP TEMPORARY TABLE mine")

    def error(self):
        tag = self.tag()
        try:
            self.ask(f"SELECT `{tag}` FROM three")
        except pymysql.err.OperationalError as error:
            self.same("error", (error.args[0], tag in error.args[1]), (1054, True))
        else:
            raise AssertionError(f"{self.name}: no error")
        warnings = self.ask("SHOW WARNINGS")
        self.same("warnings", [(w[1], tag in w[2]) for w in warnings], [(1054, True)])

    def prepared(self):
        # By text: the library has no other.
        tag = self.tag()
        self.ask("SET @given = %s", (tag,))
        self.ask("PREPARE own FROM 'SELECT CONCAT(?, ''!'')'")
        self.same("prepared", self.ask("EXECUTE own USING @given"), ((f"{tag}!",),))
        self.ask("DEALLOCATE PREPARE own")

    def lock(self):
        which = self.dice.randrange(3)
        if which == 0:
            self.same("lock", self.ask("SELECT GET_LOCK(%s, 60)", (self.name,)), ((1,),))
            self.same("unlock", self.ask("SELECT RELEASE_LOCK(%s)", (self.name,)), ((1,),))
        elif which == 1:
            self.ask("LOCK TABLES three READ")
            self.same("locked table", self.ask("SELECT COUNT(*) FROM three"), ((3,),))
            self.ask("UNLOCK TABLES")
        else:
            self.db.begin()
            self.same("locking read", self.ask("SELECT n FROM three WHERE n = 2 LOCK IN SHARE MODE"), ((2,),))
            self.db.rollback()

    def follow(self):
        rows = self.dice.randrange(1, 4)
        self.same("rows", len(self.ask(f"SELECT n FROM three LIMIT {rows}")), rows)
        self.same("FOUND_ROWS()", self.ask("SELECT FOUND_ROWS()"), ((rows,),))
        self.ask("UPDATE b SET tag = 'x' WHERE tag = 'nobody'")
        self.same("ROW_COUNT()", self.ask("SELECT ROW_COUNT()"), ((0,),))

    def cut(self):
        """Ends anywhere, mostly without a word, and comes again."""
        tag, where = self.tag(), self.dice.randrange(5)
        if where == 0:
            self.db.close()
        elif where == 1:
            self.db._execute_command(COMMAND.COM_QUERY, "SELECT SLEEP(0.2) /*master*/")
        elif where == 2:
            self.db.begin()
            self.ask("INSERT INTO b(tag) VALUES (%s)", (tag,))
        elif where == 3:
            self.same("lock", self.ask("SELECT GET_LOCK(%s, 60)", (self.name,)), ((1,),))
        else:
            self.ask("CREATE TEMPORARY TABLE mine(tag VARCHAR(60))")
        if where:
            self.db._force_close()
        self.connect()
        if where == 2:
            # The server notices it a little later.
            end = time.monotonic() + 60
            while self.ask("SELECT COUNT(*) FROM b WHERE tag = %s /*master*/", (tag,)) != ((0,),):
                self.same("time left for a rollback", time.monotonic() < end, True)
                time.sleep(0.05)
        elif where == 3:
            self.same("lock of one that has gone", self.ask("SELECT GET_LOCK(%s, 60)", (self.name,)), ((1,),))
            self.same("unlock", self.ask("SELECT RELEASE_LOCK(%s)", (self.name,)), ((1,),))
        self.cuts += 1
        self.see()

    def run(self):
        acts = [self.see, self.see, self.set, self.set, self.insert, self.transaction, self.temporary, self.error, self.prepared, self.lock, self.follow, self.cut]
        while time.monotonic() < END and not faults:
            self.dice.choice(acts)()
            self.acts += 1
        if not faults:
            self.see()
            self.db.close()


faults = []
clients = []


def live(number):
    try:
        client = Client(number)
        clients.append(client)
        client.run()
    except Exception as fault:
        faults.append(f"{type(fault).__name__}: {fault}")


threads = [threading.Thread(target=live, args=(number,)) for number in range(int(CLIENTS))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for fault in faults[:10]:
    print(fault, file=sys.stderr)
print(json.dumps({"clients": len(clients), "acts": sum(c.acts for c in clients), "cuts": sum(c.cuts for c in clients)}))
sys.exit(1 if faults else 0)
