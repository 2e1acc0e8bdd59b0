# shellcheck shell=bash
# MariaDB for the test bed: packages, the blank data folder, the command line of one server, replication. Sourced by bed.sh.
# The functions mariadb_* are one half of the interface that bed.sh uses; mysql.sh has the other half.

MARIADB_OPTIONS=(
  # Throw-away servers: small, and no waiting for the disk. Commits are still written (not synced), so that a killed server keeps them.
  --innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-log-buffer-size=2M --innodb-flush-log-at-trx-commit=2
  --innodb-use-native-aio=0 --aria-pagecache-buffer-size=8M --key-buffer-size=1M --performance-schema=OFF
  # What Debian's own configuration sets; the built-in default is latin1.
  --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci
  --skip-name-resolve --local-infile=ON)

# auth_ed25519.so is in the package mariadb-server, whose installation starts a service on port 3306. Only the file is wanted.
mariadb_plugin_dir() {
  if [ -e /usr/lib/mysql/plugin/auth_ed25519.so ]; then echo /usr/lib/mysql/plugin
  else echo "$ATLAS_CACHE/mariadb-plugin"; fi
}

mariadb_install_client() { have mariadb || apt_install mariadb-client-core; }
mariadb_install() {
  have mariadbd && have mariadb-install-db || apt_install mariadb-server-core
  mariadb_install_client
  with_lock mariadb-plugin mariadb_fetch_plugin
}

mariadb_fetch_plugin() {
  local to v
  to=$(mariadb_plugin_dir)
  [ ! -e "$to/auth_ed25519.so" ] || return 0
  v=$(dpkg-query -W -f '${Version}' mariadb-server-core)
  rm -rf "$to.new"
  mkdir -p "$to.new"
  ( cd "$to.new" && { apt-get -q download "mariadb-server=$v" || apt-get -q download mariadb-server; } >/dev/null 2>&1 ) ||
    die "cannot download the package mariadb-server $v, which holds auth_ed25519.so"
  dpkg-deb --fsys-tarfile "$to.new"/mariadb-server_*.deb |
    tar -C "$to.new" -x --strip-components=5 ./usr/lib/mysql/plugin/auth_ed25519.so
  rm "$to.new"/*.deb
  mv "$to.new" "$to"
}

mariadb_version() { mariadbd --no-defaults --version | sed 's/.*Ver \([^ ]*\).*/\1/'; }

# mariadb_blank FOLDER LOG: a data folder with the accounts of accounts-mariadb.sql.
mariadb_blank() {
  mariadb-install-db --no-defaults "${AS_USER[@]}" --auth-root-authentication-method=normal --skip-test-db --datadir="$1" \
    --plugin-dir="$(mariadb_plugin_dir)" --extra-file="$ATLAS_ROOT/scripts/lib/accounts-mariadb.sql" \
    "${MARIADB_OPTIONS[@]}" >"$2" 2>&1
}

# mariadb_command: sets COMMAND to the program and what only MariaDB needs.
mariadb_command() {
  local role=$1 port=$2
  COMMAND=("$(command -v mariadbd)" --no-defaults --plugin-dir="$(mariadb_plugin_dir)"
    --server-id="$port" --gtid-domain-id=1 --gtid-strict-mode=ON --log-bin=bin --binlog-format=ROW --log-slave-updates
    --relay-log=relay --relay-log-recovery=ON "${MARIADB_OPTIONS[@]}")
  [ "$role" != replica ] || COMMAND+=(--read-only=ON)
}

# mariadb_sql PORT SQL: as root, rows without headings.
mariadb_sql() {
  local port=$1; shift
  mariadb --no-defaults --protocol=tcp --skip-ssl --connect-timeout=10 -h127.0.0.1 -P"$port" -uroot -N -B -e "$*"
}

mariadb_replicate() { # PORT PRIMARY_PORT
  mariadb_sql "$1" "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$2, MASTER_USER='repl', MASTER_PASSWORD='repl-pw',
    MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1; START SLAVE"
}
mariadb_position() { mariadb_sql "$1" 'SELECT @@gtid_binlog_pos'; }
mariadb_reached() { [ "$(mariadb_sql "$1" "SELECT MASTER_GTID_WAIT('$2', $3)")" = 0 ]; }
