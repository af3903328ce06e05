//! Servers that answer every request with the same bytes from memory, and do nothing else.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
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

use crate::program;

/// Runs hyper on the same runtime as ours, with chunked responses as ours, until the process ends.
pub fn hyper(address: SocketAddr, body: Bytes) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let body = body.clone();
            let service = service_fn(move |_: Request<_>| {
                let mut response = Response::new(SingleChunkBody(body.clone()));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::task::spawn_local(connection);
        }
    })
}

/// Runs nginx in one process, with a file that stays in the page cache. It replaces this process.
pub fn nginx(address: SocketAddr, folder: &Path) -> io::Result<()> {
    let root = folder.display();
    let settings = format!(
        "daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log stderr crit;
         events {{ worker_connections 1024; }}
         http {{
             access_log off; keepalive_requests 100000000; tcp_nodelay on; open_file_cache max=8;
             client_body_temp_path {root}; proxy_temp_path {root}; fastcgi_temp_path {root};
             uwsgi_temp_path {root}; scgi_temp_path {root};
             server {{
                 listen {address};
                 location / {{ root {root}; default_type application/json; try_files /body =404; }}
             }}
         }}"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, settings)?;
    let nginx =
        program::find("nginx").ok_or_else(|| io::Error::other(program::absent("nginx", "nginx-light")))?;
    Err(Command::new(nginx).arg("-p").arg(folder).arg("-c").arg(&file).exec())
}

/// A body in one chunk.
struct SingleChunkBody(Bytes);

impl Body for SingleChunkBody {
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

/// Runs may_minihttp with one worker. It has no chunked encoding and sends a Content-Length.
#[cfg(feature = "peers")]
pub fn may(address: SocketAddr, body: String) -> io::Result<()> {
    use may_minihttp::{HttpServer, HttpService};

    #[derive(Clone)]
    struct FixedResponse(&'static str);

    impl HttpService for FixedResponse {
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
    // It requires text that lives as long as the process, which this text does.
    let server = HttpServer(FixedResponse(String::leak(body))).start(address)?;
    server.join().map_err(|_| io::Error::other("may_minihttp failed"))
}
