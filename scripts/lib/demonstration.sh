# shellcheck shell=bash
# The table of scripts/quickstart: what was sent, and where it ran by the servers' own words. Sourced by scripts/quickstart, which
# gives `through`: runs statements of its standard input in one connection through Atlas.
#
# Each statement carries a comment of its own, /* qs-1 */ and so on, and is then looked for in the general logs of all servers.

ROWS=0
WRONG=0
COLUMNS_FORMAT='%-70s %-10s %s\n'

# find_appliers KIND FOLDER: the connection ids of replication itself, which logs what it applies like any client. Sets APPLIERS, a pattern
# for each server.
declare -A APPLIERS
find_appliers() {
  local n
  for n in primary replica1 replica2; do
    APPLIERS[$n]=$("$1_sql" "$(cat "$2/$n/port")" 'SHOW PROCESSLIST' | awk -F'\t' '$2 == "system user" { print $1 }' | paste -sd'|')
  done
}

# mark_logs FOLDER: remembers where the logs end now.
declare -A LOG_END
mark_logs() { local n; for n in primary replica1 replica2; do LOG_END[$n]=$(stat -c %s "$1/$n/general.log"); done; }

# ran_on FOLDER TAG: the servers whose logs have it since the mark, each with the number of times when it is not one.
ran_on() {
  local n count out=''
  for n in primary replica1 replica2; do
    count=$(tail -c +$((LOG_END[$n] + 1)) "$1/$n/general.log" | grep -F "/* $2 */" |
      grep -cvP "^[^\t]*\t+ *(${APPLIERS[$n]:-none}) " || true)
    [ "$count" != 0 ] || continue
    out+="${out:+, }$n"
    [ "$count" = 1 ] || out+=" x$count"
  done
  echo "${out:-nowhere}"
}

# session FOLDER TITLE EXPECTED:STATEMENT...: sends the statements in one connection, then prints a row for each. EXPECTED is primary,
# replica (one of the two), or - for what prepares the others and may run anywhere. A SELECT must give one row with @@server_id in its
# first column: it is shown, and must be the server in whose log the statement stands.
session() {
  local folder=$1 title=$2 item statement expected where tag server answers=() input='' first=$((ROWS + 1)) i=0 mark
  shift 2
  for item in "$@"; do
    ROWS=$((ROWS + 1))
    statement=${item#*:}
    input+="$statement /* qs-$ROWS */;"$'\n'
  done
  mark_logs "$folder"
  mapfile -t answers < <(through <<<"$input" 2>"$folder/client.err" | cut -f1)
  echo "$title"
  sed 's/^/  /' "$folder/client.err"
  ROWS=$((first - 1))
  for item in "$@"; do
    ROWS=$((ROWS + 1)) tag=qs-$ROWS expected=${item%%:*} statement=${item#*:} server=''
    if [[ $statement =~ ^(/\*[^/]*\*/ |\()?SELECT ]]; then server=${answers[i]:-nothing}; i=$((i + 1)); fi
    [ "$expected" != - ] || continue
    where=$(ran_on "$folder" "$tag")
    mark=''
    case $expected:$where in
      primary:primary | replica:replica[12]) ;;
      *) mark="  <- expected: $expected"; WRONG=$((WRONG + 1)) ;;
    esac
    if [ -n "$server" ] && [ "$server" != "$(cat "$folder/$where/port" 2>/dev/null)" ]; then
      mark+="  <- answered: $server"; WRONG=$((WRONG + 1))
    fi
    # shellcheck disable=SC2059 # the format is above
    printf "  $COLUMNS_FORMAT" "$statement" "$where" "$server$mark"
  done
}

# spread FOLDER TITLE PATTERN COUNT: one read each from as many connections; how the servers shared them must match the pattern, and
# every read must be answered.
spread() {
  local folder=$1 title=$2 pattern=$3 count=$4 i where answers
  ROWS=$((ROWS + 1))
  mark_logs "$folder"
  answers=$(for i in $(seq "$count"); do echo "SELECT name FROM items WHERE id = 1 /* qs-$ROWS */" | through 2>&1; done | grep -cx apple || true)
  where=$(ran_on "$folder" "qs-$ROWS")
  echo "$title"
  if [ "$answers" = "$count" ] && [[ $where =~ $pattern ]]; then echo "  $answers answers: $where"
  else echo "  $answers answers: $where  <- expected: $count, and $pattern"; WRONG=$((WRONG + 1)); fi
}

# demonstrate KIND FOLDER: the whole table; fails when a statement ran elsewhere than it should.
demonstrate() {
  local folder=$2
  find_appliers "$1" "$folder"
  # shellcheck disable=SC2059
  printf "$COLUMNS_FORMAT" "statement, as the application sent it" "ran on" "@@server_id answered"
  session "$folder" "reads" \
    "replica:SELECT @@server_id, name FROM items WHERE id = 1" \
    "replica:SELECT @@server_id, COUNT(*) FROM items" \
    "replica:(SELECT @@server_id, name FROM items) UNION (SELECT 1, 'x') LIMIT 1"
  session "$folder" "writes and definitions" \
    "primary:INSERT INTO items(name, price) VALUES ('cherry', 6)" \
    "primary:UPDATE items SET price = price + 1 WHERE id = 2" \
    "primary:DELETE FROM items WHERE name = 'cherry'" \
    "primary:CREATE TABLE orders(id INT PRIMARY KEY, item INT)"
  session "$folder" "one transaction" \
    "primary:START TRANSACTION" \
    "primary:SELECT @@server_id, price FROM items WHERE id = 1" \
    "primary:INSERT INTO orders VALUES (1, 1)" \
    "primary:COMMIT"
  session "$folder" "reads that need the primary" \
    "primary:SELECT @@server_id, price FROM items WHERE id = 1 FOR UPDATE" \
    "primary:/*primary*/ SELECT @@server_id, price FROM items WHERE id = 1" \
    "primary:INSERT INTO items(name, price) VALUES ('fig', 7)" \
    "primary:SELECT @@server_id, LAST_INSERT_ID()" \
    "primary:SELECT @@server_id, GET_LOCK('stock', 1)" \
    "primary:DELETE FROM items WHERE name = 'fig'"
  session "$folder" "autocommit switched off" \
    "-:SET autocommit = 0" \
    "primary:SELECT @@server_id, name FROM items WHERE id = 1" \
    "primary:ROLLBACK"
  spread "$folder" "20 connections, one read each" '^replica1 x[0-9]+, replica2 x[0-9]+$' 20
  "$ATLAS_ROOT/scripts/bed" signal "$(dirname "$folder")" "$1" replica1 KILL
  spread "$folder" "the same after kill -9 of replica1" '^replica2 x20$' 20
  "$ATLAS_ROOT/scripts/bed" revive "$(dirname "$folder")" "$1" replica1
  echo
  if [ $WRONG = 0 ]; then echo "All $ROWS statements ran where they should, by the servers' general logs and @@server_id (which is the port here)."
  else echo "$WRONG of the statements did not run where they should."; return 1; fi
}
