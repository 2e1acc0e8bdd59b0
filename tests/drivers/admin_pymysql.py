"""Uses the admin port of Atlas through PyMySQL, as a script of an operator does. See README.md."""

import sys

import pymysql

HOST, PORT, USER, PASSWORD, SCHEMA = sys.argv[1:6]


def connect(**more):
    return pymysql.connect(host=HOST, port=int(PORT), user=USER, password=PASSWORD, charset="utf8mb4", **more)


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def rows(db, sql):
    with db.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


db = connect(database=SCHEMA, init_command="SET sql_mode = 'STRICT_ALL_TABLES'")
db.ping(reconnect=False)
backends = rows(db, "SELECT * FROM backends")
same("servers", [(row[0], row[2], row[3]) for row in backends], [(1, "up", "rw"), (2, "up", "ro"), (3, "up", "ro")])
with db.cursor(pymysql.cursors.DictCursor) as cursor:
    cursor.execute("SELECT * FROM backends;")
    same("columns", list(cursor.fetchone()), ["backend_ndx", "address", "state", "type"])
same("schema", rows(db, "SELECT DATABASE()"), ((SCHEMA,),))
try:
    rows(db, "DELETE FROM backends")
    raise AssertionError("no such command is done")
except pymysql.MySQLError as error:
    same("no such command", error.args[0], 1105)
db.commit()
db.rollback()
db.autocommit(True)
db.select_db("other")
db.close()
