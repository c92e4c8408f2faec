//! A call that is dropped leaves nothing running.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctxfold_gemini_client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::support::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    /// The server has the request, and as much of an answer as it gives is sent.
    Begun,
    /// The client closed the connection.
    Closed,
}

/// Sends `begin` for an answer and then listens for the end of the connection.
async fn hanging(begin: &'static str) -> (String, mpsc::UnboundedReceiver<Told>) {
    let (tell, told) = mpsc::unbounded_channel();
    let url = raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_request(&mut stream).await;
            stream.write_all(begin.as_bytes()).await.unwrap();
            tell.send(Told::Begun).unwrap();
            // A connection that is reset was closed as well.
            let rest = stream.read(&mut [0; 64]).await.unwrap_or(0);
            assert_eq!(rest, 0, "the client sent more");
            tell.send(Told::Closed).unwrap();
        }
    })
    .await;
    (url, told)
}

/// Waits until no more tasks are alive than there were.
async fn tasks_back_to(before: usize) {
    let alive = || Handle::current().metrics().num_alive_tasks();
    for _ in 0..100_000 {
        if alive() <= before {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} tasks are alive, {before} were", alive());
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection_and_leaves_no_task() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let half = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
                data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"half\"}]}}]}\n\n";
    for begin in ["", "HTTP/1.1 200", head, half] {
        let (url, mut told) = hanging(begin).await;
        let client = client(&url);
        let before = Handle::current().metrics().num_alive_tasks();
        let mut ignore = |_| {};
        let question = question();
        let call = client.generate_stream(&question, &mut ignore);
        tokio::select! {
            biased;
            Some(Told::Begun) = told.recv() => {}
            result = call => panic!("{begin:?} gave {result:?}"),
        }
        assert_eq!(told.recv().await, Some(Told::Closed), "{begin:?}");
        tasks_back_to(before).await;
        drop(client);
    }
}

/// The waits between attempts are part of the future too.
#[tokio::test]
async fn a_call_that_is_dropped_while_it_waits_makes_no_other_attempt() {
    let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let url = raw(move |mut stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            read_request(&mut stream).await;
            stream.write_all(busy.as_bytes()).await.unwrap();
        }
    })
    .await;
    let client = client(&url);
    let before = Handle::current().metrics().num_alive_tasks();
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut progress = |now: ctxfold_gemini_client::Progress| tell.send(now.phase).unwrap();
    let question = question();
    let call = client.generate_stream(&question, &mut progress);
    let waits = async {
        while let Some(phase) = told.recv().await {
            if matches!(phase, ctxfold_gemini_client::Phase::Waiting(_)) {
                break;
            }
        }
    };
    tokio::select! {
        biased;
        () = waits => {}
        result = call => panic!("{result:?}"),
    }
    tasks_back_to(before).await;
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

/// A call gives its turn on, whether it was asking or still waited.
#[tokio::test]
async fn a_dropped_call_gives_its_turn_on() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut first = true;
    let url = raw(move |mut stream| {
        let hang = std::mem::take(&mut first);
        let tell = tell.clone();
        async move {
            read_request(&mut stream).await;
            tell.send(()).unwrap();
            if hang {
                std::future::pending::<()>().await;
            }
            let body = whole("ok").to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .unwrap();
        }
    })
    .await;
    let client = client(&url);
    let call = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move { client.generate(&question()).await })
    };
    let asking = call(&client);
    told.recv().await.unwrap();
    let waiting = call(&client);
    let patient = call(&client);
    tokio::task::yield_now().await;
    waiting.abort();
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(patient.await.unwrap().unwrap().text, "ok");
}

/// The connection that is kept for the next call goes with the last client.
#[tokio::test]
async fn a_dropped_client_leaves_no_task() {
    let server = always(answer("ok")).await;
    let before = Handle::current().metrics().num_alive_tasks();
    let client = client(&server.uri());
    client.generate(&question()).await.unwrap();
    drop(client);
    tasks_back_to(before).await;
}
