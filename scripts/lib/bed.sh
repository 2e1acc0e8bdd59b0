# shellcheck shell=bash
# A bed: real servers of one kind in a state folder, one primary with two replicas, and a second primary that stands alone.
# Sourced by scripts/bed. What differs between the two kinds is in mariadb.sh and mysql.sh.
#
# DIR/KIND/NAME/   for each server: pid, port, command (to start it again), error.log, general.log
# DIR/KIND/run     a link to the folder with data and sockets, in memory where there is room

# shellcheck source=base.sh
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"
# shellcheck source=tls.sh
. "$ATLAS_ROOT/scripts/lib/tls.sh"
# shellcheck source=mariadb.sh
. "$ATLAS_ROOT/scripts/lib/mariadb.sh"
# shellcheck source=mysql.sh
. "$ATLAS_ROOT/scripts/lib/mysql.sh"

NODES=(primary replica1 replica2 second)
# mysqld refuses to be root unless told so.
AS_USER=()
[ "$(id -u)" != 0 ] || AS_USER=(--user=root)

check_kind() { [[ $1 = mariadb || $1 = mysql ]] || die "unknown kind '$1': mariadb or mysql"; }
check_node() { [[ " ${NODES[*]} " = *" $1 "* ]] || die "unknown server '$1': one of ${NODES[*]}"; }

# bed_blank KIND: prints a blank data folder with the accounts, made on first use. Named by all that it is made from.
bed_blank() {
  local kind=$1 key
  local -n options=${kind^^}_OPTIONS
  key=$({ "${kind}_version"; cat "$ATLAS_ROOT/scripts/lib/accounts-$kind.sql"; printf '%s\n' "${options[@]}"; } | sha256sum | cut -c1-12)
  with_lock "blank-$kind" bed_make_blank "$kind" "$ATLAS_CACHE/blank-$kind-$key"
  echo "$ATLAS_CACHE/blank-$kind-$key"
}
bed_make_blank() {
  local kind=$1 blank=$2 made
  [ ! -e "$blank/.ok" ] || return 0
  say "making a blank data folder for $kind"
  rm -rf "$ATLAS_CACHE/blank-$kind"-*
  # In memory where there is room: on a busy disk the same takes several times as long.
  made=$(memory_folder) || made=$(mktemp -d "$ATLAS_CACHE/making.XXXXXX")
  if ! "${kind}_blank" "$made/data" "$ATLAS_CACHE/blank-$kind.log"; then
    tail -n 20 "$ATLAS_CACHE/blank-$kind.log" >&2
    rm -rf "$made"
    die "cannot make a data folder for $kind"
  fi
  cp -a "$made/data" "$blank"
  rm -rf "$made"
  touch "$blank/.ok"
}

# memory_folder: prints a new folder in memory, or fails when four servers would not fit.
memory_folder() {
  local free
  free=$(free_mib /dev/shm)
  [ "${free:-0}" -ge 3072 ] && [ -w /dev/shm ] && mktemp -d /dev/shm/atlas-bed.XXXXXX
}

# sweep: removes data folders of beds whose state folder is gone or has been started anew.
sweep() {
  local run owner
  for run in /dev/shm/atlas-bed.* "${TMPDIR:-/tmp}"/atlas-bed.*; do
    [ -O "$run" ] && [ -s "$run/owner" ] || continue
    owner=$(cat "$run/owner")
    [ "$(readlink "$owner/run" 2>/dev/null)" != "$run" ] || continue
    ! pgrep_arg "$run/" || continue
    rm -rf "$run"
  done
}
# pgrep_arg TEXT: some process has a --datadir under TEXT.
pgrep_arg() {
  local f
  for f in /proc/[0-9]*/cmdline; do
    ! tr '\0' '\n' 2>/dev/null <"$f" | grep -qF -- "--datadir=$1" || return 0
  done
  return 1
}

# launch DIR KIND NAME: starts the server by its stored command. In a session of its own, so that an interrupt typed at a
# terminal reaches the script, which then ends the servers.
launch() {
  local node=$1/$2/$3 command
  mapfile -d '' -t command <"$node/command"
  # Of a killed server: mysqld takes the lock of the socket for a living one while nobody has collected the dead process.
  rm -f "$(datadir "$1" "$2" "$3").sock"*
  raise_open_files
  setsid "${command[@]}" </dev/null >>"$node/error.log" 2>&1 9>&- &
  echo $! >"$node/pid"
}
datadir() { echo "$(readlink "$1/$2/run")/$3"; } # DIR KIND NAME

# await DIR KIND NAME: until that server, and no other, answers a query on its port. 2 when the port was taken.
await() {
  local node=$1/$2/$3 port data end=$((SECONDS + 120))
  port=$(cat "$node/port")
  data=$(datadir "$1" "$2" "$3")
  # A ping is answered even when the log-in is refused, and another server may hold the port: ask who it is.
  until [ "$("$2_sql" "$port" 'SELECT @@datadir' 2>/dev/null)" = "$data/" ]; do
    if ! is_ours "$(cat "$node/pid")" "--datadir=$data"; then
      ! grep -qiE 'address already in use|another (mysqld )?server running on port' "$node/error.log" || return 2
      tail -n 10 "$node/error.log" >&2
      die "$2 $3 ended while starting: $node/error.log"
    fi
    [ $SECONDS -lt $end ] || die "$2 $3 does not answer on port $port: $node/error.log"
    sleep 0.05
  done
}

# lay DIR KIND BASEPORT BLANK: data folders and commands of the four servers.
lay() {
  local dir=$1 kind=$2 port=$3 blank=$4 run name data node role
  rm -rf "${dir:?}/$kind"
  mkdir -p "$dir/$kind"
  run=$(memory_folder) || run=$(mktemp -d "${TMPDIR:-/tmp}/atlas-bed.XXXXXX")
  ln -s "$run" "$dir/$kind/run"
  echo "$dir/$kind" >"$run/owner"
  for name in "${NODES[@]}"; do
    node=$dir/$kind/$name
    data=$run/$name
    role=${name%[12]}
    mkdir "$node"
    if [[ $run = /dev/shm/* ]]; then cp -a "$blank" "$data"
    else cp -a "$blank" "$node/data"; ln -s "$node/data" "$data"; fi
    rm -f "$data/.ok"
    # A starting server clears its folder for temporary tables: one that others have too would lose theirs.
    mkdir "$data.tmp"
    chown --reference="$data/" "$data.tmp"
    echo "$port" >"$node/port"
    # The path of a socket is limited to 107 bytes: it lies beside the data, not in the state folder.
    "${kind}_command" "$role" "$port"
    COMMAND+=("${AS_USER[@]}" --datadir="$data" --port="$port" --bind-address=127.0.0.1 --socket="$run/$name.sock"
      --pid-file="$run/$name.pid" --tmpdir="$data.tmp" --report-host=127.0.0.1 --report-port="$port" --sync-binlog=0
      --log-bin-trust-function-creators=ON --max-connections=2000 --max-connect-errors=1000000000 --back-log=2000
      --open-files-limit=16384 --table-open-cache=1024 --max-allowed-packet=64M
      --general-log=ON --general-log-file="$node/general.log" --log-output=FILE --log-error="$node/error.log"
      --ssl-ca="$TLS_DIR/cacert.pem" --ssl-cert="$TLS_DIR/server-cert.pem" --ssl-key="$TLS_DIR/server-key.pem")
    printf '%s\0' "${COMMAND[@]}" >"$node/command"
    : >"$node/general.log"
    : >"$node/error.log"
    port=$((port + 1))
  done
}

# bed_start DIR KIND [BASEPORT]
bed_start() {
  local dir=$1 kind=$2 given=${3:-} base blank name try code
  "${kind}_install"
  ensure_tls
  blank=$(bed_blank "$kind")
  bed_stop_kind "$dir" "$kind"
  sweep
  local t0 t1
  t0=$(now_ms)
  trap 'bed_stop_kind "$dir" "$kind"' EXIT
  for try in 1 2 3 4 5; do
    base=${given:-$(free_ports ${#NODES[@]})}
    lay "$dir" "$kind" "$base" "$blank"
    for name in "${NODES[@]}"; do launch "$dir" "$kind" "$name"; done
    code=0
    for name in "${NODES[@]}"; do await "$dir" "$kind" "$name" || { code=$?; break; }; done
    [ $code != 0 ] || break
    # Someone took a port between the look and the start.
    [ -z "$given" ] && [ "$try" != 5 ] || die "ports $base to $((base + ${#NODES[@]} - 1)) are not free"
    bed_stop_kind "$dir" "$kind"
  done
  t1=$(now_ms)
  for name in 1 2; do "${kind}_replicate" $((base + name)) "$base"; done
  "${kind}_sql" "$base" 'CREATE DATABASE IF NOT EXISTS bed'
  bed_wait "$dir" "$kind"
  trap - EXIT
  say "$kind: four servers in $((t1 - t0)) ms, replicating after $(($(now_ms) - t1)) ms more: primary $base, replicas $((base + 1)) $((base + 2)), second primary $((base + 3))"
}

# bed_wait DIR KIND: until both replicas hold what the primary has committed.
bed_wait() {
  local dir=$1 kind=$2 position name port
  position=$("${kind}_position" "$(cat "$dir/$kind/primary/port")")
  for name in replica1 replica2; do
    port=$(cat "$dir/$kind/$name/port")
    "${kind}_reached" "$port" "$position" 60 || die "$kind $name on port $port does not follow its primary: $dir/$kind/$name/error.log"
  done
}

bed_kinds() { # DIR: the kinds that it holds
  local kind
  for kind in mariadb mysql; do [ ! -L "$1/$kind/run" ] || echo "$kind"; done
}

# bed_stop_kind DIR KIND: ends its servers at once (their data is thrown away), keeps their logs.
bed_stop_kind() {
  local dir=$1 kind=$2 name run
  run=$(readlink "$dir/$kind/run" 2>/dev/null) || return 0
  for name in "${NODES[@]}"; do end_ours "$dir/$kind/$name/pid" "--datadir=$run/$name"; rm -rf "$dir/$kind/$name/data"; done
  [[ $run != */atlas-bed.* ]] || rm -rf "$run"
  rm -f "$dir/$kind/run"
}

# bed_env DIR: what tests and people need to know, as shell variables.
bed_env() {
  local dir=$1 kind name run prefix
  [ -n "$(bed_kinds "$dir")" ] || die "no bed runs in $dir"
  put() { printf 'export %s=%q\n' "$1" "$2"; }
  put ATLAS_BED_DIR "$dir"
  put ATLAS_BED_TLS "$TLS_DIR"
  put ATLAS_BED_TLS_CA "$TLS_DIR/cacert.pem"
  for kind in $(bed_kinds "$dir"); do
    run=$(readlink "$dir/$kind/run")
    for name in "${NODES[@]}"; do
      prefix=ATLAS_BED_${kind^^}_${name^^}
      put "$prefix" "127.0.0.1:$(cat "$dir/$kind/$name/port")"
      put "${prefix}_LOG" "$dir/$kind/$name/general.log"
      put "${prefix}_SOCKET" "$run/$name.sock"
    done
  done
}

# bed_signal DIR KIND NAME SIGNAL: KILL and TERM wait for the end, STOP until no thread runs; CONT does not wait.
bed_signal() {
  local node=$1/$2/$3 data
  data=$(datadir "$1" "$2" "$3")
  case $4 in
    KILL | TERM) end_ours "$node/pid" "--datadir=$data" "$4" ;;
    STOP | CONT)
      is_ours "$(cat "$node/pid")" "--datadir=$data" || die "$2 $3 does not run"
      kill "-$4" "$(cat "$node/pid")"
      [ "$4" = CONT ] || await_stopped "$(cat "$node/pid")" ;;
    *) die "unknown signal '$4': KILL, TERM, STOP or CONT" ;;
  esac
}

# await_stopped PID: a thread that is at work stops a little after the signal was sent, and could still answer.
await_stopped() {
  local i
  for ((i = 0; i < 400; i++)); do
    [ -n "$(grep -L '^State:[[:space:]]*[Tt]' /proc/"$1"/task/*/status 2>/dev/null)" ] || return 0
    sleep 0.025
  done
  die "process $1 does not stop"
}

# bed_revive DIR KIND NAME: starts an ended server again, on its port and data.
bed_revive() {
  ! is_ours "$(cat "$1/$2/$3/pid")" "--datadir=$(datadir "$1" "$2" "$3")" || die "$2 $3 runs"
  launch "$@"
  await "$@" || die "$2 $3 does not start: its port is taken"
}

bed_status() {
  local kind name state
  for kind in $(bed_kinds "$1"); do
    for name in "${NODES[@]}"; do
      state=ended
      ! is_ours "$(cat "$1/$kind/$name/pid")" "--datadir=$(datadir "$1" "$kind" "$name")" || state=runs
      printf '%-8s %-9s 127.0.0.1:%s %s pid %s\n' "$kind" "$name" "$(cat "$1/$kind/$name/port")" "$state" "$(cat "$1/$kind/$name/pid")"
    done
  done
}
