# shellcheck shell=bash
# MySQL for the test bed. Debian 12 has no MySQL, Debian unstable has 9.7: its packages are unpacked into a folder of the
# checkout and run by the folder's own loader, so that nothing is installed and no root is needed. Sourced by bed.sh.
# The process name is that of the loader; servers are found by pid file, never by name.

MYSQL_ROOT=${ATLAS_MYSQL_ROOT:-$ATLAS_CACHE/mysql97}
MYSQL_PACKAGES=(mysql-server-core mysql-client-core)
# In the closure, but not wanted by any program that the bed runs (perl is there for mysqldumpslow).
MYSQL_UNUSED='^(perl|perl-base|perl-modules-.*|libperl.*|libgdbm.*|libdb5.*|libc-gconv-modules-extra|gcc-.*-base)$'

MYSQL_OPTIONS=(
  # Throw-away servers: small, and no waiting for the disk. Commits are still written (not synced), so that a killed server keeps them.
  --innodb-buffer-pool-size=64M --innodb-redo-log-capacity=32M --innodb-log-buffer-size=1M --innodb-flush-log-at-trx-commit=2
  --innodb-flush-method=nosync --innodb-use-native-aio=OFF --innodb-read-io-threads=1 --innodb-write-io-threads=1
  --innodb-purge-threads=1 --innodb-page-cleaners=1 --temptable-max-ram=8M --key-buffer-size=1M
  --performance-schema=OFF --mysqlx=OFF
  --skip-name-resolve --local-infile=ON
  # Debian's build stops when /var/lib/mysql-files is missing.
  --secure-file-priv=)

# mysql_exec PROGRAM ARGS: a program of the unpacked folder, in place of this shell.
mysql_exec() {
  local program=$1 d; shift
  # Where the client finds mysql_native_password.so, for MariaDB and for Atlas.
  export LIBMYSQL_PLUGIN_DIR=$MYSQL_ROOT/usr/lib/mysql/plugin
  for d in sbin bin; do
    if [ -x "$MYSQL_ROOT/usr/$d/$program" ]; then
      exec "$MYSQL_ROOT/lib64/ld-linux-x86-64.so.2" --library-path "$MYSQL_ROOT/usr/lib/x86_64-linux-gnu" \
        --argv0 "$MYSQL_ROOT/usr/$d/$program" "$MYSQL_ROOT/usr/$d/$program" "$@"
    fi
  done
  die "no $program in $MYSQL_ROOT; fetch it by: scripts/bed install mysql"
}
mysql_program() { ( mysql_exec "$@" ); }

mysql_install() {
  [ "$(uname -m)" = x86_64 ] || die "the MySQL bed is made for x86_64 only"
  mysql_present || { mkdir -p "$(dirname "$MYSQL_ROOT")"; ( flock 9; mysql_present || mysql_fetch ) 9>"$MYSQL_ROOT.lock"; }
}
mysql_present() { [ -e "$MYSQL_ROOT/.ok" ] && mysql_program mysqld --no-defaults --version >/dev/null 2>&1; }

# The package manager of the host does the work (its mirror, its settings, its signature check) on a state folder of its own.
mysql_fetch() {
  say "fetching MySQL 9.7 from Debian unstable into $MYSQL_ROOT (about 65 MB)"
  local to=$MYSQL_ROOT mirror state p
  rm -rf "$to"
  state=$to/.apt
  mkdir -p "$state"/lists/partial "$state"/cache/archives/partial
  : >"$state/status"
  # --print-uris needs no downloaded lists and reads both formats of source files.
  mirror=${ATLAS_SID_MIRROR:-$(apt-get update --print-uris |
    sed -nE "s#^'(.*)/dists/(bookworm|trixie|forky|stable|testing|sid|unstable)/InRelease'.*#\1#p" | head -n1)}
  [ -n "$mirror" ] || die "apt has no Debian source; name a mirror in ATLAS_SID_MIRROR"
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$state/sources.list"
  local get=(apt-get -q -y -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status"
    -o Dir::Cache="$state/cache" -o Dir::Cache::archives="$state/cache/archives" -o Dir::Etc::SourceList="$state/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Languages=none
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=3 -o Debug::NoLocking=1)
  local log=$to/fetch.log
  "${get[@]}" update >"$log" 2>&1 || { tail -n 5 "$log" >&2; die "cannot read the package lists of Debian unstable"; }
  local closure=() wanted=()
  mapfile -t closure < <("${get[@]}" --print-uris install "${MYSQL_PACKAGES[@]}" 2>>"$log" |
    sed -n "s#^'[^']*' \([^_ ]*\)_.*#\1#p" | sort -u)
  for p in "${closure[@]}"; do [[ $p =~ $MYSQL_UNUSED ]] || wanted+=("$p"); done
  [ ${#wanted[@]} -gt 0 ] || { tail -n 5 "$log" >&2; die "Debian unstable offers no mysql-server-core now"; }
  ( cd "$state/cache/archives" && "${get[@]}" download "${wanted[@]}" ) >>"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; die "cannot download MySQL"; }
  # Merged /usr first, or /lib64/ld-linux-x86-64.so.2 and /usr/lib would become two trees.
  mkdir -p "$to"/usr/{bin,sbin,lib,lib64}
  for p in bin sbin lib lib64; do ln -s "usr/$p" "$to/$p"; done
  # Biggest first, two at a time: unpacking is bound by xz, and mysql-server-core is half of it.
  export -f mysql_unpack
  find "$state/cache/archives" -name '*.deb' -printf '%s %p\n' | sort -rn | cut -d' ' -f2- |
    xargs -d '\n' -P2 -I{} bash -euo pipefail -c 'mysql_unpack "$@"' unpack {} "$to"
  rm -rf "$state"
  mysql_program mysqld --no-defaults --version | sed 's/.*Ver \([^ ]*\).*/\1/' >"$to/.version" || true
  [ -s "$to/.version" ] || die "mysqld was unpacked into $to, but does not run"
  mv "$to/.version" "$to/.ok"
  say "have MySQL $(cat "$to/.ok")"
}
mysql_unpack() { # DEB FOLDER
  dpkg-deb --fsys-tarfile "$1" | tar -C "$2" -x --keep-directory-symlink --no-same-owner \
    --exclude='./usr/share/doc*' --exclude='./usr/share/man*' --exclude='./usr/share/locale*' --exclude='./usr/share/lintian*' \
    --exclude='./usr/bin/myisam*' --exclude='./usr/bin/ibd2sdi' --exclude='./usr/bin/innochecksum' --exclude='./usr/bin/mysql_*' \
    --exclude='./usr/bin/mysqlcheck' --exclude='./usr/bin/mysqlshow' --exclude='./usr/bin/mysqlimport' --exclude='./usr/bin/perror'
}

mysql_version() { cat "$MYSQL_ROOT/.ok"; }

# mysql_blank FOLDER LOG: a data folder with the accounts of accounts-mysql.sql and no GTID executed.
mysql_blank() {
  mysql_program mysqld --no-defaults --initialize-insecure "${AS_USER[@]}" --basedir="$MYSQL_ROOT/usr" --datadir="$1" --skip-log-bin \
    --init-file="$ATLAS_ROOT/scripts/lib/accounts-mysql.sql" "${MYSQL_OPTIONS[@]}" --log-error="$2" 2>>"$2"
  # Or all copies would share one server_uuid, and replication refuses that.
  rm -f "$1/auto.cnf"
}

# mysql_command: sets COMMAND to the program and what only MySQL needs.
mysql_command() {
  local role=$1 port=$2
  local program=$MYSQL_ROOT/usr/sbin/mysqld
  COMMAND=("$MYSQL_ROOT/lib64/ld-linux-x86-64.so.2" --library-path "$MYSQL_ROOT/usr/lib/x86_64-linux-gnu" --argv0 "$program" "$program"
    --no-defaults --basedir="$MYSQL_ROOT/usr" --server-id="$port" --gtid-mode=ON --enforce-gtid-consistency=ON --log-bin=bin
    --relay-log=relay --relay-log-recovery=ON "${MYSQL_OPTIONS[@]}")
  [ "$role" != replica ] || COMMAND+=(--read-only=ON --super-read-only=ON)
}

# mysql_sql PORT SQL: as root, rows without headings.
mysql_sql() {
  local port=$1; shift
  mysql_program mysql --no-defaults --connect-timeout=10 -h127.0.0.1 -P"$port" -uroot --get-server-public-key --ssl-mode=PREFERRED -N -B -e "$*"
}

mysql_replicate() { # PORT PRIMARY_PORT
  mysql_sql "$1" "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=$2, SOURCE_USER='repl', SOURCE_PASSWORD='repl-pw',
    SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_HEARTBEAT_PERIOD=1; START REPLICA"
}
mysql_position() { mysql_sql "$1" 'SELECT @@gtid_executed'; }
mysql_reached() { [ "$(mysql_sql "$1" "SELECT WAIT_FOR_EXECUTED_GTID_SET('$2', $3)")" = 0 ]; }
