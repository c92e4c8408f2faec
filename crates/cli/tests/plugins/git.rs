//! A git server on loopback: HTTP in front of git's own `http-backend`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Serves a folder as a repository until the process ends.
pub(crate) struct GitServer {
    folder: PathBuf,
    port: u16,
}

impl GitServer {
    /// Makes the folder a repository with one commit and serves it.
    pub(crate) fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            folder: folder.to_owned(),
            port: listener.local_addr().unwrap().port(),
        };
        server.git(&["init", "--quiet", "--initial-branch=main"]);
        server.commit("the first version");
        let root = folder.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &root);
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/.git", self.port)
    }

    /// Commits all that is in the folder.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    fn git(&self, arguments: &[&str]) {
        let ran = Command::new("git")
            .args(["-c", "user.name=dev", "-c", "user.email=dev@example.com"])
            .args(["-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}

/// One request, by the rules of CGI.
fn answer(stream: TcpStream, root: &Path) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or("GET"), words.next().unwrap_or("/"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut backend = Command::new("git");
    backend
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap() <= 2 {
            break;
        }
        let (name, value) = header.split_once(':').unwrap();
        let value = value.trim();
        match name.to_lowercase().as_str() {
            "content-length" => {
                length = value.parse().unwrap();
                backend.env("CONTENT_LENGTH", value);
            }
            "content-type" => drop(backend.env("CONTENT_TYPE", value)),
            "content-encoding" => drop(backend.env("HTTP_CONTENT_ENCODING", value)),
            "git-protocol" => drop(backend.env("GIT_PROTOCOL", value)),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut child = backend.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&body).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let end = output
        .windows(4)
        .position(|part| part == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8_lossy(&output[..end]);
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let mut stream = reader.into_inner();
    // The client may have gone; that is its own affair.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nConnection: close\r\n{head}\r\n\r\n"
    );
    let _ = stream.write_all(&output[end + 4..]);
}
