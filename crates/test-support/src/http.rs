//! A small HTTP/1.1 server on loopback: one thread a connection, one handler for every request.
//!
//! The mocks beside this module decide what to answer; here are only sockets and framing. Written
//! by hand because the mocks need byte-exact control over streamed events, and because a full HTTP
//! stack would be linked into every test binary.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::wait::Gate;

/// The largest request that a mock takes, in bytes.
const MAX_BODY: usize = 512 * 1024 * 1024;

/// One request, read whole.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `GET`, `POST`, and so on.
    pub(crate) method: String,
    /// The path without the query.
    pub(crate) path: String,
    /// What follows the question mark, or nothing.
    pub(crate) query: String,
    /// Header names in lower case, with their values.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as sent.
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The first header of that lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What a handler answers.
#[derive(Debug)]
pub(crate) struct Response {
    status: u16,
    content_type: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<Part>,
}

/// A piece of a response body, written and flushed by itself.
#[derive(Debug)]
pub(crate) enum Part {
    /// Bytes to send.
    Bytes(Vec<u8>),
    /// Send nothing more until the gate opens.
    Wait(Gate),
    /// Close the connection here, in the middle of the body.
    Cut,
}

impl Response {
    /// A JSON document.
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            headers: Vec::new(),
            body: vec![Part::Bytes(value.to_string().into_bytes())],
        }
    }

    /// A stream of server-sent events, each part flushed by itself.
    pub(crate) fn events(parts: Vec<Part>) -> Self {
        Self {
            status: 200,
            content_type: "text/event-stream",
            headers: Vec::new(),
            body: parts,
        }
    }

    /// The same response with one more header.
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Puts other parts in place of the body.
    pub(crate) fn body_instead(&mut self, parts: Vec<Part>) {
        self.body = parts;
    }

    /// Sends the head, then holds the body back until the gate opens.
    pub(crate) fn wait_first(&mut self, gate: Gate) {
        self.body.insert(0, Part::Wait(gate));
    }

    /// Bytes of one server-sent event.
    pub(crate) fn event(name: Option<&str>, data: &Value) -> Part {
        let head = name
            .map(|name| format!("event: {name}\n"))
            .unwrap_or_default();
        Part::Bytes(format!("{head}data: {data}\n\n").into_bytes())
    }
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// A running server. It stops, and drops its connections, when this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Server {
    /// Starts a server on a free loopback port.
    pub(crate) fn start(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port can be bound");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let stopping = Arc::new(AtomicBool::new(false));
        let open = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<Handler> = Arc::new(handler);
        let (stop, connections) = (Arc::clone(&stopping), Arc::clone(&open));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                if let Ok(copy) = stream.try_clone() {
                    connections
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(copy);
                }
                let handler = Arc::clone(&handler);
                // A client that goes away in the middle is its own test's business.
                thread::spawn(move || drop(serve(&stream, &*handler)));
            }
        });
        Self {
            address,
            stopping,
            open,
        }
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        for stream in self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            // Already closed connections answer with an error that means nothing here.
            drop(stream.shutdown(Shutdown::Both));
        }
        // Wakes the accepting thread, so that it sees the flag.
        drop(TcpStream::connect_timeout(
            &self.address,
            Duration::from_secs(1),
        ));
    }
}

/// Serves one connection until the peer or a response closes it.
fn serve(stream: &TcpStream, handler: &Handler) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader, stream)? {
        let close = request
            .header("connection")
            .is_some_and(|v| v.eq_ignore_ascii_case("close"));
        let streamed = write_response(stream, &request.method, handler(&request))?;
        if close || streamed {
            break;
        }
    }
    stream.shutdown(Shutdown::Both)
}

/// Reads a request, or `None` where the peer closed the connection between requests.
fn read_request(reader: &mut impl BufRead, mut out: &TcpStream) -> io::Result<Option<Request>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    let mut slots = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut slots);
    parsed
        .parse(&head)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let target = parsed.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = parsed
        .headers
        .iter()
        .map(|h| {
            (
                h.name.to_ascii_lowercase(),
                String::from_utf8_lossy(h.value).into_owned(),
            )
        })
        .collect();
    let mut request = Request {
        method: parsed.method.unwrap_or("GET").to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: Vec::new(),
    };
    if request.header("expect").is_some() {
        out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.body = read_body(reader, &request)?;
    Ok(Some(request))
}

fn read_body(reader: &mut impl BufRead, request: &Request) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if request
        .header("transfer-encoding")
        .is_some_and(|v| v.contains("chunked"))
    {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim().split(';').next().unwrap_or(""), 16)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            read_exactly(reader, size, &mut body)?;
            let mut end = String::new();
            reader.read_line(&mut end)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length") {
        let length = length
            .parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        read_exactly(reader, length, &mut body)?;
    }
    // None of the clients compresses what it sends to a server of ours.
    match request.header("content-encoding") {
        Some(encoding) if encoding != "identity" => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("encoding {encoding}"),
        )),
        _ => Ok(body),
    }
}

fn read_exactly(reader: &mut impl Read, size: usize, into: &mut Vec<u8>) -> io::Result<()> {
    if into.len() + size > MAX_BODY {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the request is too large",
        ));
    }
    let read = reader.take(size as u64).read_to_end(into)?;
    if read == size {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes a response; true where only closing the connection ends its body.
fn write_response(mut out: &TcpStream, method: &str, response: Response) -> io::Result<bool> {
    let Response {
        status,
        content_type,
        headers,
        body,
    } = response;
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status)).into_bytes();
    write!(head, "content-type: {content_type}\r\n")?;
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n")?;
    }
    let length = |part: &Part| match part {
        Part::Bytes(bytes) => bytes.len(),
        Part::Wait(_) => 0,
        // A promise that the connection breaks.
        Part::Cut => 1,
    };
    let whole: usize = body.iter().map(length).sum();
    let streamed = content_type == "text/event-stream";
    if streamed {
        write!(head, "connection: close\r\n\r\n")?;
    } else {
        write!(head, "content-length: {whole}\r\n\r\n")?;
    }
    out.write_all(&head)?;
    if method == "HEAD" {
        return Ok(streamed);
    }
    for part in body {
        match part {
            Part::Bytes(bytes) => out.write_all(&bytes)?,
            Part::Wait(gate) => gate.wait(),
            Part::Cut => return Ok(true),
        }
    }
    Ok(streamed)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}

/// Posts a JSON document to a loopback server and reads the JSON answer, whatever its status.
///
/// # Errors
///
/// When the address is not `http://HOST:PORT/PATH`, the connection fails, or the answer is not
/// JSON.
pub fn post_json(url: &str, body: &Value) -> io::Result<Value> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| invalid("the address is not http"))?;
    let (host, path) = rest
        .split_once('/')
        .ok_or_else(|| invalid("the address has no path"))?;
    let mut stream = TcpStream::connect(host)?;
    let body = body.to_string();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len(),
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let start = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer has no head"))?;
    serde_json::from_slice(&answer[start + 4..]).map_err(io::Error::from)
}
