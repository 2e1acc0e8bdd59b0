# shellcheck shell=bash
# The client libraries that scripts/drivers runs against a server. Sourced by scripts/bed and scripts/drivers.

CLIENTS_DIR=$ATLAS_CACHE/clients

clients_install() { with_lock clients clients_make; }

clients_make() {
  local want=$ATLAS_ROOT/tests/drivers key
  key=$(cat "$want/requirements.txt" "$want/package.json" | sha256sum | cut -c1-12)
  [ "$(cat "$CLIENTS_DIR/.ok" 2>/dev/null)" != "$key" ] || return 0
  python3 -c 'import venv, ensurepip' 2>/dev/null || apt_install python3 python3-venv
  have node && have npm || apt_install nodejs npm
  say "installing client libraries into $CLIENTS_DIR"
  rm -rf "$CLIENTS_DIR"
  mkdir -p "$CLIENTS_DIR"
  local log=$ATLAS_CACHE/clients.log
  {
    python3 -m venv "$CLIENTS_DIR/python" &&
      "$CLIENTS_DIR/python/bin/python" -m pip install -q --disable-pip-version-check -r "$want/requirements.txt" &&
      cp "$want/package.json" "$CLIENTS_DIR/" &&
      npm --prefix "$CLIENTS_DIR" install --no-audit --no-fund --loglevel=error
  } >"$log" 2>&1 || { tail -n 10 "$log" >&2; die "cannot install the client libraries: $log"; }
  echo "$key" >"$CLIENTS_DIR/.ok"
}
