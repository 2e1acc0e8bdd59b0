# shellcheck shell=bash
# What all scripts share: places, messages, packages of the host, free ports, processes that are ours.
# Sourced, never run. Nothing in here knows a database; see mariadb.sh, mysql.sh and bed.sh for those.
set -euo pipefail

ATLAS_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# Everything that the scripts make lies here (ignored by git): fetched servers, blank data folders, certificates, clients.
ATLAS_CACHE=${ATLAS_BED_CACHE:-$ATLAS_ROOT/.bed}
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
now_ms() { local n; n=$(date +%s%N); echo $((n / 1000000)); }

# with_lock NAME COMMAND ARGS: one at a time on this checkout, so that two scripts started together do not make the same thing twice.
# The command runs in a subshell: it leaves files behind, not variables.
with_lock() {
  local name=$1; shift
  mkdir -p "$ATLAS_CACHE"
  (
    flock 9
    "$@"
  ) 9>"$ATLAS_CACHE/$name.lock"
}

# as_root COMMAND ARGS: for apt only.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else return 1
  fi
}

# apt_install PACKAGE...: installs what dpkg does not have; asks for nothing.
apt_install() { with_lock apt apt_install_missing "$@"; }
apt_install_missing() {
  local p missing=()
  for p in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  have apt-get || die "needs the Debian packages ${missing[*]}, and this machine has no apt-get"
  say "installing ${missing[*]}"
  local log=$ATLAS_CACHE/apt.log
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # A fresh machine has no package lists, or those of the day its image was made: with them come servers whose faults have been mended
  # since, such as MariaDB 10.11.14, which an execution without types brings down. A mirror that does not answer may not be needed.
  as_root "${get[@]}" update >"$log" 2>&1 || true
  as_root "${get[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    die "cannot install ${missing[*]}; as root: apt-get install ${missing[*]}   (all of it: $log)"
  }
}

# need_rust: the one thing that the scripts leave to you.
need_rust() {
  have cargo || [ ! -x "${HOME:-}/.cargo/bin/cargo" ] || PATH=$HOME/.cargo/bin:$PATH
  have cargo || die "cargo is not installed. Atlas needs a stable Rust toolchain, $(rust_version) or newer: https://rustup.rs"
  # aws-lc is built from C source.
  have cc || apt_install gcc libc6-dev
}
rust_version() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$ATLAS_ROOT/Cargo.toml" | head -n1; }

# atlas_program: builds Atlas for use and prints where the program is.
atlas_program() {
  local program
  program=$(cd "$ATLAS_ROOT" && cargo build --release --bin atlas --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n1)
  [ -x "$program" ] || die "the build gave no program"
  echo "$program"
}

# raise_open_files: servers and load tools want thousands of descriptors; the soft limit is often 1024.
raise_open_files() { ulimit -n "$(ulimit -Hn)" 2>/dev/null || true; }

# free_ports COUNT: prints a port P such that P .. P+COUNT-1 are free now. Below the range that the kernel gives to outgoing
# connections, so that none of them takes a port between this look and the start of the server.
free_ports() {
  local count=$1 try base p used
  for try in $(seq 200); do
    base=$((20000 + (RANDOM * 32768 + RANDOM + try) % 12000))
    used=$(awk '{ sub(/.*:/, "", $2); print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null || true)
    for ((p = base; p < base + count; p++)); do
      ! grep -qix "$(printf '%04X' "$p")" <<<"$used" || continue 2
    done
    echo "$base"
    return 0
  done
  die "no $count free ports in a row"
}

# is_ours PID TEXT: the process lives and its command line has TEXT; a recycled pid does not.
is_ours() { [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] && tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" | grep -qxF -- "$2"; }

# is_gone PID: it holds no file any more. Its command line vanishes earlier, its listening sockets last until its last thread has
# ended; and it stays as a zombie where nobody collects it.
is_gone() {
  local state tasks
  state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 0
  tasks=("/proc/$1/task"/*)
  [ -z "$state" ] || [[ $state = [ZX] && ${#tasks[@]} -le 1 ]]
}

# end_ours PIDFILE TEXT [SIGNAL]: ends that process if it is ours, and waits until it is gone.
end_ours() {
  local pid i
  pid=$(cat "$1" 2>/dev/null || true)
  is_ours "$pid" "$2" || return 0
  kill "-${3:-KILL}" "$pid" 2>/dev/null || true
  for i in $(seq 600); do
    ! is_gone "$pid" || return 0
    [ "$i" != 400 ] || ! is_ours "$pid" "$2" || kill -KILL "$pid" 2>/dev/null || true
    sleep 0.05
  done
  die "process $pid does not end"
}

# folder PATH: makes it and prints its whole name.
folder() { mkdir -p "$1" && (cd "$1" && pwd -P); }

# free_mib FOLDER: what is free on its file system.
free_mib() { df -Pm "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }

# own_folder PREFIX: a state folder for this run of a script, .bed/PREFIX-PID. Those of runs that were killed are ended first.
own_folder() {
  local prefix=$1 old pid
  mkdir -p "$ATLAS_CACHE"
  for old in "$ATLAS_CACHE/$prefix"-*; do
    pid=${old##*-}
    [ -d "$old" ] && ! is_script_alive "$pid" "$prefix" || continue
    "$ATLAS_ROOT/scripts/bed" stop "$old" || true
    rm -rf "$old"
  done
  mkdir "$ATLAS_CACHE/$prefix-$$"
  echo "$ATLAS_CACHE/$prefix-$$"
}
is_script_alive() { tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" | grep -qE "(^|/)$2\$"; }
