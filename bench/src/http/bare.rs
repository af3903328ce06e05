//! Servers that answer every request with the same bytes from memory, and do nothing else.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

/// hyper on the runtime that ours has, chunked as ours, for as long as the process lives.
pub fn hyper(address: SocketAddr, body: Bytes) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let body = body.clone();
            let service = service_fn(move |_: Request<_>| {
                let mut response = Response::new(Whole(body.clone()));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::task::spawn_local(connection);
        }
    })
}

/// A body in one chunk.
struct Whole(Bytes);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = std::mem::take(&mut self.0);
        Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

/// may_minihttp with one worker. It knows no chunks and says how long the body is.
#[cfg(feature = "peers")]
pub fn may(address: SocketAddr, body: String) -> io::Result<()> {
    use may_minihttp::{HttpServer, HttpService};

    #[derive(Clone)]
    struct Same(&'static str);

    impl HttpService for Same {
        fn call(
            &mut self,
            _: may_minihttp::Request,
            response: &mut may_minihttp::Response,
        ) -> io::Result<()> {
            response.header("Content-Type: application/json").body(self.0);
            Ok(())
        }
    }

    may::config().set_workers(1);
    // It wants text that lives as long as the process, which this does.
    let server = HttpServer(Same(String::leak(body))).start(address)?;
    server.join().map_err(|_| io::Error::other("may_minihttp failed"))
}
