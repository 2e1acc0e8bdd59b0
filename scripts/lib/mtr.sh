# shellcheck shell=bash
# MariaDB as its own regression suite wants it, with Atlas in front. Sourced by scripts/mtr and, for the installation, scripts/bed.
#
# DIR/run      a link to the folder with data, socket and scratch files, in memory where there is room
# DIR/server.* DIR/atlas.*   pid, port and log of each, and the configurations

MTR_ROOT=/usr/share/mysql/mysql-test
# Accounts that tests make, all without a password, beside root's.
MTR_ACCOUNTS=(mysqltest mysqltest_1 mysqltest_2 mysqltest_3 unkuser user_1)

mtr_install() {
  mariadb_install
  have mariadb-test && [ -d "$MTR_ROOT" ] || apt_install mariadb-test
  have python3 || apt_install python3
}

# What include/default_mysqld.cnf of the suite says, and what its runner adds; and less waiting for the disk.
mtr_options() { # RUN
  cat <<TEXT
[mysqld]
plugin-maturity=unknown
local-infile
character-set-server=latin1
collation-server=latin1_swedish_ci
character-sets-dir=/usr/share/mysql/charsets
connect-timeout=60
secure-file-priv=$1
debug-no-sync
log-bin-trust-function-creators=1
key_buffer_size=1M
sort_buffer_size=256K
max_heap_table_size=1M
aria-pagecache-buffer-size=8M
innodb_buffer_pool_size=64M
innodb_use_native_aio=0
performance_schema=ON
default-storage-engine=myisam
use_stat_tables=preferably
histogram_type=json_hb
log_bin=mysqld-bin
server_id=1
binlog-format=mixed
binlog-direct-non-transactional-updates
ssl-ca=$MTR_ROOT/std_data/cacert.pem
ssl-cert=$MTR_ROOT/std_data/server-cert.pem
ssl-key=$MTR_ROOT/std_data/server-key.pem
TEXT
}

mtr_sql() { mariadb --no-defaults -uroot -S "$1/run/socket" -e "$2"; } # DIR SQL

# mtr_start DIR ATLAS SHARING: a new server with new data, and Atlas before it.
mtr_start() {
  local dir=$1 run i
  run=$(memory_folder) || run=$(mktemp -d "${TMPDIR:-/tmp}/atlas-bed.XXXXXX")
  ln -sfn "$run" "$dir/run"
  echo "$dir" >"$run/owner"
  mkdir -p "$run/tmp" "$run/log" "$run/mysqld.1"
  # Within secure-file-priv, where the tests look for it.
  cp -r "$MTR_ROOT/std_data" "$run/std_data"
  mtr_options "$run" >"$dir/server.cnf"
  mariadb-install-db --no-defaults "${AS_USER[@]}" --datadir="$run/mysqld.1/data" --auth-root-authentication-method=normal \
    --skip-test-db >"$dir/install.log" 2>&1 || { tail -n 20 "$dir/install.log" >&2; die "cannot make a data folder"; }
  free_ports 1 >"$dir/server.port"
  setsid mariadbd --defaults-file="$dir/server.cnf" "${AS_USER[@]}" --datadir="$run/mysqld.1/data" --tmpdir="$run/tmp" \
    --socket="$run/socket" --port="$(cat "$dir/server.port")" --bind-address=127.0.0.1 </dev/null >"$dir/server.log" 2>&1 &
  echo $! >"$dir/server.pid"
  disown # ended by mtr_stop: no news
  for ((i = 0; ; i++)); do
    ! mtr_sql "$dir" 'SELECT 1' >/dev/null 2>&1 || break
    if [ $i -ge 300 ] || ! is_ours "$(cat "$dir/server.pid")" "--defaults-file=$dir/server.cnf"; then
      tail -n 20 "$dir/server.log" >&2
      die "the server does not start"
    fi
    sleep 0.1
  done
  # The suite's databases; its tests call add_suppression, which here has nothing to silence.
  mtr_sql "$dir" "CREATE DATABASE test; CREATE DATABASE mtr; CREATE OR REPLACE USER root@'127.0.0.1';
    GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
    CREATE USER mtr_monitor@'127.0.0.1';
    CREATE PROCEDURE mtr.add_suppression(pattern VARCHAR(255)) BEGIN END"
  mtr_start_atlas "$@"
}

mtr_start_atlas() {
  local dir=$1 atlas=$2 sharing=$3 i
  free_ports 1 >"$dir/atlas.port"
  cat >"$dir/atlas.toml" <<TOML
[server]
listen = ["127.0.0.1:$(cat "$dir/atlas.port")"]

# Tests count the server's sessions and wait for their end.
[pool]
min_idle = 0
idle_timeout = "1s"

# Checks are statements, and tests look at the server's counters of these.
[monitor]
user = "mtr_monitor"
password = ""
interval = "1h"

[[groups]]
name = "main"
primary = "127.0.0.1:$(cat "$dir/server.port")"

[[users]]
name = "root"
password = ""
sharing = "$sharing"
$(for name in "${MTR_ACCOUNTS[@]}"; do printf '\n[[users]]\nname = "%s"\npassword = ""\nsharing = "%s"\n' "$name" "$sharing"; done)
TOML
  "$atlas" check -c "$dir/atlas.toml" >"$dir/atlas.check" 2>&1 || { cat "$dir/atlas.check" >&2; die "Atlas refuses its configuration"; }
  setsid "$atlas" run -c "$dir/atlas.toml" </dev/null >"$dir/atlas.log" 2>&1 &
  echo $! >"$dir/atlas.pid"
  disown
  for ((i = 0; ; i++)); do
    ! mariadb --no-defaults --protocol=tcp -h127.0.0.1 -P"$(cat "$dir/atlas.port")" -uroot -e 'SELECT 1' >/dev/null 2>&1 || break
    if [ $i -ge 100 ] || ! is_ours "$(cat "$dir/atlas.pid")" "$dir/atlas.toml"; then
      tail -n 20 "$dir/atlas.log" >&2
      die "Atlas does not answer"
    fi
    sleep 0.1
  done
}

mtr_stop() { # DIR
  local run
  end_ours "$1/atlas.pid" "$1/atlas.toml" KILL
  end_ours "$1/server.pid" "--defaults-file=$1/server.cnf" KILL
  run=$(readlink "$1/run" || true)
  [[ $run != */atlas-bed.* ]] || rm -rf "$run"
  rm -f "$1/run"
}
