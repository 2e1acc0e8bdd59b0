# shellcheck shell=bash
# A small certificate authority for test servers and for Atlas before clients. Sourced, never run.
# Files: cacert.pem, server-cert.pem, server-key.pem, client-cert.pem, client-key.pem (the names that sysbench --mysql-ssl=on
# looks for in its working folder), and other-cacert.pem, an authority that signed nothing, for tests that must refuse.

TLS_DIR=$ATLAS_CACHE/tls

# ensure_tls: makes them when they are missing or end within a month.
ensure_tls() {
  have openssl || apt_install openssl
  with_lock tls make_tls
}

make_tls() {
  local d=$TLS_DIR n
  if [ -e "$d/.ok" ] && openssl x509 -checkend 2592000 -noout -in "$d/server-cert.pem" >/dev/null 2>&1; then return 0; fi
  rm -rf "$d"
  mkdir -p "$d"
  local ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
  for n in ca other-ca; do
    openssl req -x509 "${ec[@]}" -days 3650 -subj "/CN=Atlas test $n" -keyout "$d/$n-key.pem" -out "$d/${n}cert.pem" 2>/dev/null
  done
  for n in server client; do
    openssl req "${ec[@]}" -subj "/CN=Atlas test $n" -keyout "$d/$n-key.pem" -out "$d/$n.csr" 2>/dev/null
    openssl x509 -req -in "$d/$n.csr" -CA "$d/cacert.pem" -CAkey "$d/ca-key.pem" -CAcreateserial -days 3650 \
      -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n') -out "$d/$n-cert.pem" 2>/dev/null
    rm "$d/$n.csr"
  done
  # Servers may run as another user than the one who made the files.
  chmod a+r "$d"/*.pem
  touch "$d/.ok"
}
