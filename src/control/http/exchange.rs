//! One request and its answer as bytes: as much of HTTP/1.1 as a port needs on which every connection carries one request
//! without a body. Pure.

/// Bytes of a request's head: what is longer is refused.
const HEAD_MAX: usize = 8 * 1024;

/// How far a request is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its head is not all there.
    More,
    /// It is.
    Request(Head),
    /// It cannot be answered but with this status.
    Wrong(Status),
}

/// What matters of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The path, as sent, without what stands behind a `?`.
    pub(super) path: String,
    /// Whether the answer's body is wanted: GET, not HEAD.
    pub(super) has_body: bool,
}

/// The status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    HeadTooLarge,
    Unavailable,
    VersionNotSupported,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
            Self::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) media_type: &'static str,
    pub(super) body: String,
}

impl Answer {
    /// A line of plain text.
    pub(super) fn text(status: Status, line: &str) -> Self {
        Self {
            status,
            media_type: "text/plain; charset=utf-8",
            body: format!("{line}\n"),
        }
    }

    /// What is sent. Nothing of it may be stored, run or put into a frame by a browser.
    pub(super) fn to_bytes(&self, has_body: bool) -> Vec<u8> {
        let allow = match self.status {
            Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let mut bytes = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Cache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status.line(),
            self.media_type,
            self.body.len(),
        )
        .into_bytes();
        if has_body {
            bytes.extend_from_slice(self.body.as_bytes());
        }
        bytes
    }
}

/// The answer to what is no request that can be served.
pub(super) fn refusal(status: Status) -> Answer {
    Answer::text(status, status.line())
}

/// Looks at what has arrived.
pub(super) fn parse(bytes: &[u8]) -> Progress {
    // Empty lines before a request are passed over (RFC 9112, 2.2).
    let skipped = bytes
        .iter()
        .take_while(|b| matches!(b, b'\r' | b'\n'))
        .count();
    let bytes = bytes.get(skipped..).unwrap_or_default();
    let is_whole = memchr::memmem::find(bytes, b"\r\n\r\n").is_some()
        || memchr::memmem::find(bytes, b"\n\n").is_some();
    if !is_whole {
        return if bytes.len() + skipped > HEAD_MAX {
            Progress::Wrong(Status::HeadTooLarge)
        } else {
            Progress::More
        };
    }
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line).ok().map(request_line) {
        Some(Ok(head)) => Progress::Request(head),
        Some(Err(status)) => Progress::Wrong(status),
        None => Progress::Wrong(Status::BadRequest),
    }
}

fn request_line(line: &str) -> Result<Head, Status> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Status::BadRequest);
    };
    match version.strip_prefix("HTTP/") {
        Some("1.1" | "1.0") => {}
        Some(_) => return Err(Status::VersionNotSupported),
        None => return Err(Status::BadRequest),
    }
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err(Status::MethodNotAllowed),
    };
    let target = match target.strip_prefix("http://") {
        // As a proxy is asked: what stands before the first slash is this server.
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => target,
    };
    let path = target.split('?').next().unwrap_or_default();
    if path.starts_with('/') {
        Ok(Head {
            path: path.to_owned(),
            has_body,
        })
    } else {
        Err(Status::BadRequest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, has_body: bool) -> Progress {
        Progress::Request(Head {
            path: path.to_owned(),
            has_body,
        })
    }

    #[test]
    fn requests() {
        for (text, wanted) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
                request("/metrics", true),
            ),
            ("GET / HTTP/1.0\r\n\r\n", request("/", true)),
            ("GET / HTTP/1.1\n\n", request("/", true)),
            ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", request("/", true)),
            (
                "HEAD /readyz?x=1 HTTP/1.1\r\n\r\n",
                request("/readyz", false),
            ),
            ("GET http://a:1/b?c HTTP/1.1\r\n\r\n", request("/b", true)),
            ("GET http://a HTTP/1.1\r\n\r\n", request("/", true)),
            ("GET / HTTP/1.1\r\nHost: a\r\n", Progress::More),
            ("GET / HTTP/1.1", Progress::More),
            ("", Progress::More),
            (
                "POST / HTTP/1.1\r\n\r\n",
                Progress::Wrong(Status::MethodNotAllowed),
            ),
            (
                "GET / HTTP/2.0\r\n\r\n",
                Progress::Wrong(Status::VersionNotSupported),
            ),
            ("GET /\r\n\r\n", Progress::Wrong(Status::BadRequest)),
            (
                "GET  / HTTP/1.1\r\n\r\n",
                Progress::Wrong(Status::BadRequest),
            ),
            (
                "GET * HTTP/1.1\r\n\r\n",
                Progress::Wrong(Status::BadRequest),
            ),
            ("what\r\n\r\n", Progress::Wrong(Status::BadRequest)),
        ] {
            assert_eq!(parse(text.as_bytes()), wanted, "{text}");
        }
        assert_eq!(
            parse(b"GET /\xff HTTP/1.1\r\n\r\n"),
            Progress::Wrong(Status::BadRequest)
        );
    }

    #[test]
    fn a_head_has_an_end() {
        let long = vec![b'a'; HEAD_MAX];
        assert_eq!(parse(&long), Progress::More);
        assert_eq!(
            parse(&[&long[..], b"a"].concat()),
            Progress::Wrong(Status::HeadTooLarge)
        );
        assert_eq!(
            parse(&vec![b'\n'; HEAD_MAX + 1]),
            Progress::Wrong(Status::HeadTooLarge)
        );
    }

    #[test]
    fn answers() {
        let answer = Answer::text(Status::Ok, "ok");
        let text = String::from_utf8(answer.to_bytes(true)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "ok\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"), "{head}");
        let without = String::from_utf8(answer.to_bytes(false)).unwrap();
        assert_eq!(without, format!("{head}\r\n\r\n"));
        let told = String::from_utf8(refusal(Status::MethodNotAllowed).to_bytes(true)).unwrap();
        assert!(told.contains("\r\nAllow: GET, HEAD\r\n"), "{told}");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        /// However the bytes arrive, the request is the same.
        #[test]
        fn a_request_in_pieces(cut in 0_usize..36) {
            let text = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
            let part = &text[..cut.min(text.len() - 1)];
            proptest::prop_assert_eq!(parse(part), Progress::More);
        }
    }
}
