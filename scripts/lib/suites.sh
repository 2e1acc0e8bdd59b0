# shellcheck shell=bash
# Test suites that drivers ship in their source packages, with what they need to run. Sourced by scripts/driver-suites.
#
# Of PyMySQL 0.10.1 is the last whose package holds its suite, of mysql2 (npm) 1.0.0-rc.9; that suite runs with the mysql2 of
# tests/drivers/package.json. Since then both publish without.

SUITES_DIR=$ATLAS_CACHE/suites
SUITES_PYTHON=$SUITES_DIR/python/bin/python
# Packages whose sources hold tests; the same releases are installed.
SUITES_SOURCES=(PyMySQL==0.10.1 mysqlclient==2.3.2 aiomysql==0.3.2 mariadb==1.1.14 mysql-connector-python==26.10.0)
# mysqlclient and mariadb are built against the C library of this machine; aiomysql's suite wants sqlalchemy before 2.
SUITES_TOOLS=(pytest==9.2.0 pytest-timeout==2.4.0 cryptography==50.0.2 PyNaCl==1.6.2 PyMySQL==1.2.4 uvloop==0.23.0 sqlalchemy==1.4.54)
SUITES_MYSQL2=mysql2@1.0.0-rc.9
# What that suite loads beside the driver.
SUITES_MODULES=(bn.js@4.11.4 readable-stream@2.1.4 utest@0.0.8 sqlstring@2.3.3 portfinder@1.0.38 assert-diff@3.0.4)

suites_install() {
  # The same client libraries are not fetched twice.
  clients_install
  with_lock suites suites_make
}

suites_make() {
  local key log
  key=$(cat "$ATLAS_ROOT/scripts/lib/suites.sh" "$ATLAS_ROOT/tests/drivers/package.json" | sha256sum | cut -c1-12)
  [ "$(cat "$SUITES_DIR/.ok" 2>/dev/null)" != "$key" ] || return 0
  have mariadb_config || apt_install libmariadb-dev gcc python3-dev pkg-config
  say "fetching the drivers' test suites into $SUITES_DIR"
  rm -rf "$SUITES_DIR"
  mkdir -p "$SUITES_DIR/fetched"
  log=$ATLAS_CACHE/suites.log
  suites_fetch >"$log" 2>&1 || { tail -n 10 "$log" >&2; die "cannot install the test suites: $log"; }
  rm -rf "$SUITES_DIR/fetched"
  echo "$key" >"$SUITES_DIR/.ok"
}

# Each function of this file that others do not call runs within a condition, where the shell goes on after failures.
suites_fetch() {
  local to=$SUITES_DIR package
  python3 -m venv "$to/python" &&
    "$SUITES_PYTHON" -m pip install -q --disable-pip-version-check "${SUITES_TOOLS[@]}" --no-binary mysqlclient,mariadb "${SUITES_SOURCES[@]:1}" || return 1
  for package in "${SUITES_SOURCES[@]}"; do
    "$SUITES_PYTHON" -m pip download -q --disable-pip-version-check --no-deps --no-binary "${package%%=*}" -d "$to/fetched" "$package" || return 1
  done
  ( cd "$to/fetched" && npm pack --silent "$SUITES_MYSQL2" && for package in *.tar.gz; do tar -xzf "$package"; done ) || return 1
  mkdir -p "$to/pymysql" "$to/aiomysql" "$to/mysqlclient" "$to/mariadb" "$to/mysql2" &&
    mv "$to"/fetched/[Pp]y[Mm]y[Ss][Qq][Ll]-*/pymysql "$to/pymysql/" &&
    mv "$to"/fetched/aiomysql-*/tests "$to"/fetched/aiomysql-*/pyproject.toml "$to/aiomysql/" &&
    mv "$to"/fetched/mysqlclient-*/tests "$to/mysqlclient/" &&
    mv "$to"/fetched/mariadb-*/testing "$to/mariadb/" &&
    mv "$to"/fetched/mysql_connector_python-*/ "$to/connector" &&
    # The suite names the driver by its place: ../index.js.
    cp -r "$CLIENTS_DIR/node_modules" "$to/mysql2/" &&
    cp -r "$CLIENTS_DIR/node_modules/mysql2/." "$to/mysql2/" &&
    tar -xzf "$to"/fetched/mysql2-*.tgz -C "$to/mysql2" --strip-components=1 package/test &&
    npm --prefix "$to/mysql2" install --no-save --no-audit --no-fund --loglevel=error "${SUITES_MODULES[@]}"
}

# suites_configuration KIND SERVER_PORT ATLAS_PORT: what stands before the one server. The accounts beside root are made by the suites.
suites_configuration() {
  local plugin=caching_sha2_password
  # What the server's own accounts have, which a test compares.
  [ "$1" = mysql ] || plugin=mysql_native_password
  cat <<TOML
[server]
listen = ["127.0.0.1:$3"]
auth_plugin = "$plugin"
tls = { mode = "optional", cert = "$TLS_DIR/server-cert.pem", key = "$TLS_DIR/server-key.pem" }

# Few, so that they are shared.
[pool]
min_idle = 1
max_connections = 8

[monitor]
user = "app"
password = "app-pw"

[[groups]]
name = "main"
primary = "127.0.0.1:$2"
# Tests look at the server's TLS.
tls = { mode = "required" }

[[users]]
name = "root"
password = ""
sharing = "$SHARING"
TOML
  suites_account eduser 'MySup8%rPassw@ord'
  suites_account foo 'heyPassw-!µ20§rd'
  suites_account changeuser1 changeuser1pass
  suites_account changeuser2 changeuser2pass
}
suites_account() { printf '\n[[users]]\nname = "%s"\npassword = "%s"\nsharing = "%s"\n' "$1" "$2" "$SHARING"; }
