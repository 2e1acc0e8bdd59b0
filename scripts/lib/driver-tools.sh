# shellcheck shell=bash
# The command-line tools of the driver matrix: command lines, slap, dump and restore, sysbench. Sourced by scripts/drivers, which sets
# HOST PORT USER PASSWORD SCHEMA, KIND (mariadb or mysql) and SCRATCH (a folder). Each function is one driver: it fails or succeeds.

# The password goes by the environment: on a command line everyone could read it.
mariadb_tool() { local tool=$1; shift; MYSQL_PWD=$PASSWORD "$tool" --no-defaults "${MARIADB_TLS[@]}" -h"$HOST" -P"$PORT" -u"$USER" "$@"; }
mysql_tool() { local tool=$1; shift; MYSQL_PWD=$PASSWORD mysql_program "$tool" --no-defaults "${MYSQL_TLS[@]}" -h"$HOST" -P"$PORT" -u"$USER" "$@"; }
MARIADB_TLS=() MYSQL_TLS=()
if [ -n "${DRIVERS_TLS_CA:-}" ]; then
  MARIADB_TLS=(--ssl-ca="$DRIVERS_TLS_CA" --ssl-verify-server-cert)
  MYSQL_TLS=(--ssl-ca="$DRIVERS_TLS_CA" --ssl-mode=VERIFY_IDENTITY)
fi
sql() { mariadb_tool mariadb -N -B --default-character-set=utf8mb4 "$SCHEMA" -e "$*"; }

# eventually WANT SQL: until the answer is that several times in a row, so that every replica has given it.
eventually() {
  local want=$1 right=0 end=$((SECONDS + 10)) got; shift
  while [ $right -lt 8 ]; do
    got=$(sql "$@" 2>&1) || true
    if [ "$got" = "$want" ]; then right=$((right + 1)); else right=0; sleep 0.05; fi
    [ $SECONDS -lt $end ] || { echo "still not '$want': $got"; return 1; }
  done
}

# ---- command lines ----

cli() { # TOOL ARGS: runs cli.sql and compares; goes on after errors, which are part of it
  "$@" --batch --force --default-character-set=utf8mb4 "$SCHEMA" <"$ATLAS_ROOT/tests/drivers/cli.sql" >"$SCRATCH/cli.out" 2>"$SCRATCH/cli.err" || true
  diff "$ATLAS_ROOT/tests/drivers/cli.expected" "$SCRATCH/cli.out" || { cat "$SCRATCH/cli.err"; return 1; }
  # Both products name the place of the error differently.
  if [ "$(grep -c '^ERROR' "$SCRATCH/cli.err")" != 1 ] || ! grep -q "^ERROR 1054 .*'no_such_column'" "$SCRATCH/cli.err"; then
    cat "$SCRATCH/cli.err"; return 1
  fi
}
driver_mariadb-cli() { cli mariadb_tool mariadb; }
driver_mysql-cli() { cli mysql_tool mysql --get-server-public-key; }

# At a terminal the client completes names: it asks for the columns of all tables when it connects.
driver_mariadb-terminal() {
  sql 'DROP TABLE IF EXISTS terminal_a; CREATE TABLE terminal_a(x INT, y INT)'
  printf 'status\nSELECT 40 + 2 AS answer;\nSHOW TABLES;\nexit\n' |
    MYSQL_PWD=$PASSWORD script -qec "mariadb --no-defaults -h$HOST -P$PORT -u$USER --auto-rehash $SCHEMA" /dev/null >"$SCRATCH/terminal.out" 2>&1 || true
  sql 'DROP TABLE terminal_a'
  if ! grep -q '| *42 |' "$SCRATCH/terminal.out" || ! grep -q 'Bye' "$SCRATCH/terminal.out" || grep -q ERROR "$SCRATCH/terminal.out"; then
    cat "$SCRATCH/terminal.out"; return 1
  fi
}

# What an operator types at the admin port of Atlas, with what the client asks by itself when it starts.
admin_cli() { # TOOL ARGS
  local out=$SCRATCH/admin.out
  printf 'status\nSELECT * FROM backends;\nuse other\nset names utf8mb4;\nshow pools;\nwarnings\n' |
    "$@" --table --comments "$SCHEMA" >"$out" 2>&1 || { cat "$out"; return 1; }
  if ! grep -Eq '^\| +backend_ndx \| address +\| state \| type \|$' "$out" || ! grep -Eq '^\| +1 \| .* \| up +\| rw +\|$' "$out" ||
    ! grep -q 'in_use' "$out" || grep -q ERROR "$out"; then
    cat "$out"; return 1
  fi
  ! "$@" -e 'NONSENSE' >"$out" 2>&1 && grep -q "^ERROR 1105 (07000).*use 'SELECT \* FROM help'" "$out" || { cat "$out"; return 1; }
}
driver_admin-mariadb-cli() { admin_cli mariadb_tool mariadb; }
driver_admin-mysql-cli() { admin_cli mysql_tool mysql --loose-commands; }

# ---- slap ----

slap() { # TOOL ARGS
  sql 'DROP TABLE IF EXISTS slap_t; CREATE TABLE slap_t(id INT AUTO_INCREMENT PRIMARY KEY, a INT, b TEXT)'
  sql "INSERT INTO slap_t(a, b) VALUES (1, 'x'), (2, 'y'), (3, 'z')"
  eventually 3 'SELECT COUNT(*) FROM slap_t'
  # --no-drop: the schema is there, and stays.
  "$@" --no-drop --create-schema="$SCHEMA" --delimiter=';' --concurrency=8 --iterations=2 --number-of-queries=416 \
    --query="SELECT a, b FROM slap_t WHERE id = 2;INSERT INTO slap_t(a, b) VALUES (4, 'more');UPDATE slap_t SET a = a + 1 WHERE id = 1;SELECT COUNT(*) FROM slap_t"
  # Each client sends 52 queries, 13 of them INSERT, in each of the two rounds.
  eventually 211 'SELECT COUNT(*) FROM slap_t'
  sql 'DROP TABLE slap_t'
}
driver_mariadb-slap() { slap mariadb_tool mariadb-slap; }
driver_mysqlslap() { slap mysql_tool mysqlslap --get-server-public-key; }

# ---- dump and restore ----

# dump_and_restore RESTORE DUMP ARGS: what was restored must dump as what was dumped.
dump_and_restore() {
  local restore=$1; shift
  local copy=${SCHEMA}_restored
  sql "DROP DATABASE IF EXISTS $copy; CREATE DATABASE $copy"
  sql "DROP TABLE IF EXISTS dump_a; DROP VIEW IF EXISTS dump_v; DROP PROCEDURE IF EXISTS dump_p"
  sql "CREATE TABLE dump_a(id INT PRIMARY KEY AUTO_INCREMENT, t TEXT CHARACTER SET utf8mb4, b BLOB, d DATETIME(6), j JSON, x BIT(5), e ENUM('a','b'), n DECIMAL(30,10)) COMMENT 'it''s'"
  sql "INSERT INTO dump_a(t, b, d, j, x, e, n) VALUES ('naïve 漢字 🐬 \\\\ '' \"', x'00ff0a0d1a27225c', '2026-11-29 01:02:03.456789', '{\"a\": [1, null]}', b'10101', 'b', 12345678901234567890.0123456789), (NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
  local i
  # 2 + 2046 rows, by doubling.
  for i in $(seq 10); do sql 'INSERT INTO dump_a(t, b, d, j, x, e, n) SELECT t, b, d, j, x, e, n FROM dump_a'; done
  sql 'CREATE VIEW dump_v AS SELECT id, t FROM dump_a'
  sql 'CREATE TRIGGER dump_t BEFORE INSERT ON dump_a FOR EACH ROW SET NEW.n = NEW.n'
  sql 'CREATE PROCEDURE dump_p() SELECT COUNT(*) FROM dump_a'
  eventually 2048 'SELECT COUNT(*) FROM dump_v'
  "$@" "$SCHEMA" dump_a dump_v --routines --triggers --hex-blob --skip-dump-date >"$SCRATCH/dump.sql"
  grep -q 'CREATE PROCEDURE\|PROCEDURE `dump_p`' "$SCRATCH/dump.sql" || { echo "no procedure in the dump"; return 1; }
  "$restore" "$copy" <"$SCRATCH/dump.sql"
  eventually 2048 "SELECT COUNT(*) FROM $copy.dump_v"
  "$@" "$copy" dump_a dump_v --routines --triggers --hex-blob --skip-dump-date >"$SCRATCH/again.sql"
  sql "DROP DATABASE $copy; DROP VIEW dump_v; DROP PROCEDURE dump_p; DROP TABLE dump_a"
  # Only the schema's name may differ.
  diff <(sed "s/$copy/$SCHEMA/g" "$SCRATCH/again.sql") "$SCRATCH/dump.sql" | head -n 20
  return "${PIPESTATUS[0]}"
}
restore_mariadb() { mariadb_tool mariadb --default-character-set=utf8mb4 "$@"; }
restore_mysql() { mysql_tool mysql --get-server-public-key --default-character-set=utf8mb4 "$@"; }
# With LOCK TABLES, then in one transaction.
driver_mariadb-dump() {
  dump_and_restore restore_mariadb mariadb_tool mariadb-dump
  dump_and_restore restore_mariadb mariadb_tool mariadb-dump --single-transaction --skip-extended-insert
}
driver_mysqldump() {
  dump_and_restore restore_mysql mysql_tool mysqldump --get-server-public-key --set-gtid-purged=OFF
  dump_and_restore restore_mysql mysql_tool mysqldump --get-server-public-key --set-gtid-purged=OFF --single-transaction --skip-extended-insert
}

# ---- sysbench ----

run_sysbench() { # TEST ARGS
  sysbench "$@" --db-driver=mysql --mysql-host="$HOST" --mysql-port="$PORT" --mysql-user="$USER" --mysql-password="$PASSWORD" \
    --mysql-db="$SCHEMA" --tables=2 --table-size=1000
}
sysbench_test() { # TEST PS_MODE
  run_sysbench "$1" cleanup >/dev/null
  run_sysbench "$1" prepare >/dev/null
  eventually $'1000\n1000' 'SELECT COUNT(*) FROM sbtest1; SELECT COUNT(*) FROM sbtest2'
  run_sysbench "$1" --db-ps-mode="$2" --threads=8 --time=3 run >"$SCRATCH/sysbench.out" 2>&1 || { cat "$SCRATCH/sysbench.out"; return 1; }
  run_sysbench "$1" cleanup >/dev/null
  # It counts what it ignores (deadlocks) as errors, and a reconnect would be a lost connection.
  if ! grep -Eq '^ +reconnects: +0 ' "$SCRATCH/sysbench.out" || ! grep -Eq '^ +transactions: +[1-9]' "$SCRATCH/sysbench.out"; then
    cat "$SCRATCH/sysbench.out"; return 1
  fi
}
driver_sysbench-read-write() { sysbench_test oltp_read_write auto; }
driver_sysbench-read-write-text() { sysbench_test oltp_read_write disable; }
driver_sysbench-point-select() { sysbench_test oltp_point_select auto; }
driver_sysbench-point-select-text() { sysbench_test oltp_point_select disable; }
