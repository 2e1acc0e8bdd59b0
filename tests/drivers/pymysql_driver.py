"""Uses a server through PyMySQL. See README.md."""

import datetime
import decimal
import os
import sys
import threading
import time

import pymysql
from pymysql.constants import CLIENT

HOST, PORT, USER, PASSWORD, SCHEMA = sys.argv[1:6]
TLS = {"ssl": {"ca": os.environ["DRIVERS_TLS_CA"], "check_hostname": True}} if "DRIVERS_TLS_CA" in os.environ else {}
TEXT = "naïve 漢字 🐬 'quoted' \\ \"double\" `tick` -- no comment"


def connect(**more):
    return pymysql.connect(host=HOST, port=int(PORT), user=USER, password=PASSWORD, database=SCHEMA, charset="utf8mb4", **TLS, **more)


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def eventually(what, read, want):
    """Until it is so several times in a row, so that every replica has answered."""
    end = time.monotonic() + 10
    right = 0
    while right < 8:
        got = read()
        right = right + 1 if got == want else 0
        if time.monotonic() > end:
            raise AssertionError(f"{what}: still {got!r}, want {want!r}")
        if right == 0:
            time.sleep(0.01)


def one(cursor, sql, args=None):
    cursor.execute(sql, args)
    return cursor.fetchone()


def values(db):
    c = db.cursor()
    c.execute("DROP TABLE IF EXISTS py_values")
    c.execute("""CREATE TABLE py_values(id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, u BIGINT UNSIGNED, d DECIMAL(20,4),
        f DOUBLE, t VARCHAR(200) CHARACTER SET utf8mb4, b BLOB, w DATETIME(6), e DATE)""")
    row = (-(2**63), 2**64 - 1, decimal.Decimal("-1234567890.1234"), 1.5, TEXT, bytes(range(256)),
           datetime.datetime(2026, 11, 29, 23, 59, 58, 123456), datetime.date(2024, 2, 29))
    c.execute("INSERT INTO py_values(n, u, d, f, t, b, w, e) VALUES (%s, %s, %s, %s, %s, _binary %s, %s, %s)", row)
    same("affected rows", c.rowcount, 1)
    same("insert id", c.lastrowid, 1)
    same("LAST_INSERT_ID()", one(c, "SELECT LAST_INSERT_ID()"), (1,))
    c.execute("INSERT INTO py_values(t) VALUES (NULL), ('')")
    same("insert id of several rows", c.lastrowid, 2)
    same("read in the same transaction", one(c, "SELECT n, u, d, f, t, b, w, e FROM py_values WHERE id = 1"), row)
    same("NULL and empty", one(c, "SELECT t FROM py_values WHERE id = 2") + one(c, "SELECT t FROM py_values WHERE id = 3"), (None, ""))
    db.commit()
    c.executemany("INSERT INTO py_values(n) VALUES (%s)", [(i,) for i in range(1000)])
    same("executemany", c.rowcount, 1000)
    db.commit()

    db.autocommit(True)
    eventually("committed rows", lambda: one(c, "SELECT COUNT(*), MAX(n) FROM py_values WHERE id > 3"), (1000, 999))
    db.autocommit(False)


def transactions(db):
    c = db.cursor()
    c.execute("DELETE FROM py_values WHERE id > 500")
    same("seen inside", one(c, "SELECT COUNT(*) FROM py_values WHERE id > 500"), (0,))
    db.rollback()
    db.begin()
    c.execute("UPDATE py_values SET n = n + 1 WHERE id BETWEEN 10 AND 19")
    same("changed rows", c.rowcount, 10)
    c.execute("SAVEPOINT s")
    c.execute("UPDATE py_values SET n = 0 WHERE id = 10")
    c.execute("ROLLBACK TO SAVEPOINT s")
    same("after the savepoint", one(c, "SELECT n FROM py_values WHERE id = 10"), (7,))
    c.execute("SELECT n FROM py_values WHERE id = 10 FOR UPDATE")
    db.rollback()


def state(db):
    c = db.cursor()
    db.autocommit(True)
    c.execute("SET @answer = 42, @word = 'x'")
    same("user variables", one(c, "SELECT @answer, @word"), (42, "x"))
    c.execute("CREATE TEMPORARY TABLE py_temporary(a INT)")
    c.execute("INSERT INTO py_temporary VALUES (1), (2)")
    same("temporary table", one(c, "SELECT SUM(a) FROM py_temporary"), (3,))
    c.execute("SET SESSION time_zone = '+03:00', group_concat_max_len = 12345")
    same("session variables", one(c, "SELECT @@time_zone, @@group_concat_max_len"), ("+03:00", 12345))
    c.execute("SET autocommit = 0")
    same("autocommit", one(c, "SELECT @@autocommit"), (0,))
    c.execute("SET autocommit = 1")
    same("GET_LOCK", one(c, "SELECT GET_LOCK('py_lock', 5)"), (1,))
    same("RELEASE_LOCK", one(c, "SELECT RELEASE_LOCK('py_lock')"), (1,))
    c.execute("SELECT SQL_CALC_FOUND_ROWS a FROM py_temporary LIMIT 1")
    c.fetchall()
    same("FOUND_ROWS()", one(c, "SELECT FOUND_ROWS()"), (2,))
    c.execute("SELECT CAST('12x' AS SIGNED)")
    c.fetchall()
    c.execute("SHOW WARNINGS")
    same("SHOW WARNINGS", [w[1] for w in c.fetchall()], [1292])
    c.execute("PREPARE py_statement FROM 'SELECT ? + ?'")
    c.execute("SET @a = 1, @b = 2")
    same("PREPARE and EXECUTE", int(one(c, "EXECUTE py_statement USING @a, @b")[0]), 3)
    c.execute("DEALLOCATE PREPARE py_statement")
    db.autocommit(False)


def several_results():
    db = connect(client_flag=CLIENT.MULTI_STATEMENTS)
    c = db.cursor()
    c.execute("SELECT 1; SET @x = 5; SELECT @x, 2")
    got = [tuple(c.fetchall())]
    while c.nextset():
        got.append(tuple(c.fetchall()))
    same("several results", got, [((1,),), (), ((5, 2),)])
    c.execute("DROP PROCEDURE IF EXISTS py_twice")
    c.execute("CREATE PROCEDURE py_twice(IN n INT) BEGIN SELECT n; SELECT n * 2; END")
    c.callproc("py_twice", (21,))
    got = [tuple(c.fetchall())]
    while c.nextset():
        got.append(tuple(c.fetchall()))
    same("procedure", got, [((21,),), ((42,),), ()])
    c.execute("DROP PROCEDURE py_twice")
    db.close()


def errors(db):
    c = db.cursor()
    for sql, code in [("SELEC 1", 1064), ("SELECT no_such", 1054), ("SELECT * FROM py_no_such", 1146),
                      ("INSERT INTO py_values(id) VALUES (1)", 1062)]:
        try:
            c.execute(sql)
            raise AssertionError(f"{sql} succeeds")
        except pymysql.MySQLError as error:
            same(sql, error.args[0], code)
    same("goes on after errors", one(c, "SELECT 1"), (1,))
    db.rollback()
    for user, password, code in [(USER, PASSWORD + "x", 1045), ("py_nobody", "x", 1045)]:
        try:
            pymysql.connect(host=HOST, port=int(PORT), user=user, password=password)
            raise AssertionError(f"{user} logs in with a wrong password")
        except pymysql.MySQLError as error:
            same("wrong log-in", error.args[0], code)


def sizes(db):
    c = db.cursor()
    limit = one(c, "SELECT @@max_allowed_packet")[0]
    for size in [250, 251, 65535, 65536, 2**20, 2**24 - 1, 2**24, 17 * 2**20]:
        if size + 100 < limit:
            same(f"{size} bytes to the server", one(c, "SELECT LENGTH(%s)", ("a" * size,)), (size,))
            same(f"{size} bytes to the client", len(one(c, f"SELECT REPEAT('b', {size})")[0]), size)
    stream = db.cursor(pymysql.cursors.SSCursor)
    stream.execute("SELECT a.id, b.id FROM py_values a JOIN py_values b WHERE a.id <= 40 AND b.id <= 1000")
    same("rows of a stream", sum(1 for _ in stream), 40 * 1000)
    stream.close()
    db.rollback()


def many_at_once():
    faults = []

    def work(number):
        try:
            db = connect(autocommit=True)
            c = db.cursor()
            for i in range(50):
                same("own answer", one(c, "SELECT %s, %s", (number, i)), (number, i))
            db.close()
        except Exception as fault:  # noqa: BLE001 - told below
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def main():
    db = connect()
    same("schema", one(db.cursor(), "SELECT DATABASE()"), (SCHEMA,))
    db.ping(reconnect=False)
    values(db)
    transactions(db)
    state(db)
    several_results()
    errors(db)
    sizes(db)
    many_at_once()
    db.select_db(SCHEMA)
    c = db.cursor()
    c.execute("DROP TABLE py_values")
    db.close()


main()
