//! A model server inside the test: scripted answers in order, each piece of which can be held behind a gate.
//!
//! ```ignore
//! let server = MockServer::start();
//! server.answer(Answer::sse().text("Hel").gate("middle").text("lo").finish("stop").done());
//! // ... send a request to server.url() ...
//! server.gate("middle").wait_reached();   // "Hel" was written, "lo" was not
//! server.gate("middle").open();
//! assert_eq!(server.request(0).json()["messages"][0]["role"], "user");
//! ```
//!
//! It listens on 127.0.0.1 at a free port, keeps connections alive, and ends with the value.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::answers::{Answer, End, Framing, Piece, Refusal};
use super::gates::{Flag, Gate, Gates, wait_until};

/// A request as it came.
#[derive(Clone)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub connection: usize,
    closed: Flag,
    answered: Flag,
}

impl Recorded {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the request's body is JSON")
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == &name.to_ascii_lowercase())
            .map(|(_, value)| value.as_str())
    }

    /// Whether the client closed the connection before the answer was all written.
    pub fn is_closed(&self) -> bool {
        self.closed.is_raised()
    }

    /// Waits until the client has closed the connection in the middle of the answer.
    #[track_caller]
    pub fn wait_closed(&self) {
        self.closed.wait("the client did not close the connection");
    }

    /// Waits until the answer is all written.
    #[track_caller]
    pub fn wait_answered(&self) {
        self.answered.wait("the answer was not written to its end");
    }
}

type Script = Box<dyn Fn(&Recorded) -> Answer + Send + Sync>;

#[derive(Default)]
struct Inner {
    queue: Mutex<VecDeque<Answer>>,
    fallback: Mutex<Option<Script>>,
    paths: Mutex<HashMap<String, Answer>>,
    requests: Mutex<Vec<Recorded>>,
    gates: Gates,
    stopping: AtomicBool,
    connections: AtomicUsize,
}

/// The server.
pub struct MockServer {
    inner: Arc<Inner>,
    address: SocketAddr,
}

impl MockServer {
    /// Starts it at a free port of 127.0.0.1.
    pub fn start() -> Self {
        Self::start_at(0)
    }

    /// Starts it at this port, for servers that must be told the address before.
    pub fn start_at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner::default());
        let shared = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let _ = shared.serve(stream, number);
                });
            }
        });
        Self { inner, address }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base address to give a client.
    pub fn url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Queues the answer of the next request that has none yet.
    pub fn answer(&self, answer: Answer) -> &Self {
        self.inner.queue.lock().unwrap().push_back(answer);
        self
    }

    /// Makes the answers of all requests that find the queue empty.
    pub fn answer_with(&self, script: impl Fn(&Recorded) -> Answer + Send + Sync + 'static) -> &Self {
        *self.inner.fallback.lock().unwrap() = Some(Box::new(script));
        self
    }

    /// Sets the answer of all requests to this path (`/v1/models`); they do not use the queue.
    pub fn on_path(&self, path: &str, answer: Answer) -> &Self {
        self.inner.paths.lock().unwrap().insert(path.to_owned(), answer);
        self
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.inner.requests.lock().unwrap().clone()
    }

    /// The request number `n`, from 0; waits for it.
    #[track_caller]
    pub fn request(&self, n: usize) -> Recorded {
        self.wait_requests(n + 1);
        self.inner.requests.lock().unwrap()[n].clone()
    }

    /// Waits until `count` requests have come.
    #[track_caller]
    pub fn wait_requests(&self, count: usize) {
        wait_until(&format!("{count} requests"), || {
            self.inner.requests.lock().unwrap().len() >= count
        });
    }

    /// The gate of this name.
    pub fn gate(&self, name: &str) -> Gate {
        self.inner.gates.get(name)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.inner.connections.load(Ordering::SeqCst)
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.inner.stopping.store(true, Ordering::SeqCst);
        self.inner.gates.open_all();
        let _ = TcpStream::connect(self.address);
    }
}

impl Inner {
    /// Serves the requests of one connection.
    fn serve(&self, mut stream: TcpStream, number: usize) -> std::io::Result<()> {
        let mut buffer = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buffer, number)? {
            self.requests.lock().unwrap().push(request.clone());
            let answer = self.pick(&request);
            let outcome = self.play(&mut stream, &answer, &request);
            match outcome {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    request.closed.raise();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn pick(&self, request: &Recorded) -> Answer {
        let path = request.path.split('?').next().unwrap_or_default();
        if let Some(answer) = self.paths.lock().unwrap().get(path) {
            return answer.clone();
        }
        if let Some(answer) = self.queue.lock().unwrap().pop_front() {
            return answer;
        }
        match &*self.fallback.lock().unwrap() {
            Some(script) => script(request),
            None => Answer::error(500, "the mock server has no more answers"),
        }
    }

    /// Writes one answer; whether the connection goes on.
    fn play(&self, stream: &mut TcpStream, answer: &Answer, request: &Recorded) -> std::io::Result<bool> {
        match answer.refusal {
            Some(Refusal::Hang) => return self.hang(stream, request),
            Some(Refusal::Reset) => return reset(stream),
            None => {}
        }
        stream.write_all(head(answer).as_bytes())?;
        for piece in &answer.pieces {
            match piece {
                Piece::Write(bytes) if bytes.is_empty() => {}
                Piece::Write(bytes) if answer.framing == Framing::Chunked => {
                    let mut write = format!("{:x}\r\n", bytes.len()).into_bytes();
                    write.extend_from_slice(bytes);
                    write.extend_from_slice(b"\r\n");
                    stream.write_all(&write)?;
                }
                Piece::Write(bytes) => stream.write_all(bytes)?,
                Piece::Gate(name) => {
                    if !self.gates.get(name).pass(|| self.is_over(stream)) {
                        request.closed.raise();
                        return Ok(false);
                    }
                }
                Piece::Sleep(ms) => std::thread::sleep(Duration::from_millis(*ms)),
            }
        }
        match answer.end {
            End::Clean | End::Close => {
                if answer.framing == Framing::Chunked {
                    stream.write_all(b"0\r\n\r\n")?;
                }
                request.answered.raise();
                let goes_on = answer.end == End::Clean && answer.framing != Framing::Eof;
                if !goes_on {
                    close(stream)?;
                }
                Ok(goes_on)
            }
            End::Cut => {
                request.answered.raise();
                close(stream)?;
                Ok(false)
            }
            End::Reset => {
                // What was sent must arrive before the reset throws it away.
                std::thread::sleep(Duration::from_millis(30));
                request.answered.raise();
                reset(stream)
            }
            End::Hang => self.hang(stream, request),
        }
    }

    /// Does nothing until the client goes away.
    fn hang(&self, stream: &TcpStream, request: &Recorded) -> std::io::Result<bool> {
        while !self.is_over(stream) {
            std::thread::sleep(Duration::from_millis(2));
        }
        request.closed.raise();
        Ok(false)
    }

    fn is_over(&self, stream: &TcpStream) -> bool {
        self.stopping.load(Ordering::SeqCst) || is_closed(stream)
    }
}

/// Whether the other side has closed the connection.
fn is_closed(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let state = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    match state {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Closes the writing half and lets the client close first, so that no reset overtakes the last bytes.
fn close(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut rest = [0; 4096];
    while matches!(stream.read(&mut rest), Ok(count) if count > 0) {}
    Ok(())
}

fn reset(stream: &TcpStream) -> std::io::Result<bool> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
    Ok(false)
}

fn head(answer: &Answer) -> String {
    let mut head = format!("HTTP/1.1 {} Mock\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match answer.framing {
        Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
        Framing::Length => head.push_str(&format!("Content-Length: {}\r\n", answer.body_bytes().len())),
        Framing::FalseLength(length) => head.push_str(&format!("Content-Length: {length}\r\n")),
        Framing::Eof => {}
    }
    if answer.end != End::Clean || answer.framing == Framing::Eof {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    head
}

/// Reads the next request; `None` at the end of the connection.
fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> std::io::Result<Option<Recorded>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if !more(stream, buffer)? {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let path = first.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let header = |name: &str| {
        headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    let body = if header("transfer-encoding") == Some("chunked") {
        read_chunked(stream, buffer)?
    } else {
        let length = header("content-length")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0);
        while buffer.len() < length && more(stream, buffer)? {}
        buffer.drain(..length.min(buffer.len())).collect()
    };
    Ok(Some(Recorded {
        method,
        path,
        headers,
        body,
        connection,
        closed: Flag::default(),
        answered: Flag::default(),
    }))
}

fn read_chunked(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(2).position(|window| window == b"\r\n") {
                break at;
            }
            if !more(stream, buffer)? {
                return Ok(body);
            }
        };
        let size = String::from_utf8_lossy(&buffer[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        buffer.drain(..end + 2);
        while buffer.len() < size + 2 {
            if !more(stream, buffer)? {
                return Ok(body);
            }
        }
        body.extend(buffer.drain(..size));
        buffer.drain(..2);
        if size == 0 {
            return Ok(body);
        }
    }
}

fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut bytes = [0; 16 * 1024];
    let count = stream.read(&mut bytes)?;
    buffer.extend_from_slice(&bytes[..count]);
    Ok(count > 0)
}
