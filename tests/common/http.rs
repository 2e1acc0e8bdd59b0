//! A client of the HTTP port that takes one answer: status and body.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The address of the port, from the log that names it.
pub fn http_of(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("listening on http://")?;
    rest.lines().next()?.parse().ok()
}

/// Everything that comes back for these bytes, up to the close.
pub fn http_exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).expect("connect");
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    socket.write_all(request).expect("send");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer");
    String::from_utf8(answer).expect("UTF-8")
}

/// Status and body of a page.
pub fn http_get(address: SocketAddr, path: &str) -> (u16, String) {
    let answer = http_exchange(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes(),
    );
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let length = format!("\r\nContent-Length: {}\r\n", body.len());
    assert!(head.contains(&length), "{answer}");
    (status.expect("a status"), body.to_owned())
}
