"""HTTP/1.1: responses in pieces, bad responses, and connections that are closed or reused."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from conftest import TIMEOUT_S, run
from pitlane import AsyncPitlane, OutcomeUnknown, Pitlane, Retry, Unreachable
from pitlane.http import message
from pitlane.http.message import RequestEncoder, ResponseDecoder, TransportError, basic_authorization
from pitlane.settings import Settings

NO_RETRY = Retry(attempts=1)

COMPLETE = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    "empty": (b"HTTP/1.1 201 Created\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n", b""),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
        b"hello",
    ),
    "trailer": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", b"hello"),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"hi"),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_response_arrives_in_pieces_of_any_size(name):
    data, content = COMPLETE[name]
    for size in range(1, len(data) + 1):
        decoder, found = ResponseDecoder(), None
        for at in range(0, len(data), size):
            assert found is None
            found = decoder.feed(data[at : at + size])
        assert found is not None and found.content == content and found.is_success
        assert decoder.can_reuse


def test_a_long_response_is_joined_once():
    decoder, piece = ResponseDecoder(), b"x" * 65_536
    assert decoder.feed(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (400 * len(piece))) is None
    for _ in range(399):
        assert decoder.feed(piece) is None
    response = decoder.feed(piece)
    assert response is not None and response.content == piece * 400


def test_a_response_without_a_length_ends_with_the_connection():
    decoder = ResponseDecoder()
    assert decoder.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None and decoder.feed(b"lo") is None
    assert decoder.feed_end().content == b"hello" and not decoder.can_reuse


def test_the_service_decides_whether_a_connection_is_reused():
    for head, can_reuse in {
        b"HTTP/1.1 200 OK\r\nContent-Length: 0": True,
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0": False,
        b"HTTP/1.0 200 OK\r\nContent-Length: 0": False,
    }.items():
        decoder = ResponseDecoder()
        assert decoder.feed(head + b"\r\n\r\n") is not None
        assert decoder.can_reuse is can_reuse
    # Data after a response belongs to no request.
    decoder = ResponseDecoder()
    assert decoder.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP") is not None
    assert not decoder.can_reuse


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\rContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50000000\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * (message.HEAD_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * message.HEAD_BYTES_MAX,
    ],
)
def test_a_bad_response_is_an_error(data):
    with pytest.raises(TransportError):
        ResponseDecoder().feed(data)


def test_a_response_that_is_cut_off_is_an_error():
    for data, _ in COMPLETE.values():
        for end in range(len(data)):
            decoder = ResponseDecoder()
            if decoder.feed(data[:end]) is None:
                with pytest.raises(TransportError):
                    decoder.feed_end()


def test_a_request_names_the_host_and_the_length_of_its_body():
    encoder = RequestEncoder("http://[::1]:9090/prefix/", "Bearer abc")
    assert encoder.encode("POST", "/rest/x?a=b", {"Prefer": "p"}, b"{}") == (
        b"POST /prefix/rest/x?a=b HTTP/1.1\r\nHost: [::1]:9090\r\n"
        b"Accept: application/json, application/problem+json\r\nAuthorization: Bearer abc\r\nPrefer: p\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert encoder.encode("GET", "/a", {}, None).endswith(b"Bearer abc\r\n\r\n")
    assert encoder.encode("PUT", "/a", {}, None).endswith(b"Content-Length: 0\r\n\r\n")
    assert basic_authorization("Aladdin", "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_settings_that_cannot_work_are_refused():
    for wrong in ("127.0.0.1:9090", "ftp://127.0.0.1", "http://", "http://ann:secret@127.0.0.1:9090"):
        with pytest.raises(ValueError):
            Settings(wrong)
    with pytest.raises(ValueError, match="printable"):
        Pitlane(token="a\r\nHost: b")
    with pytest.raises(ValueError, match="colon"):
        Pitlane(login=("a:b", "c"))
    with pytest.raises(ValueError, match="at least 1"):
        Pitlane(orders_per_s=0)


class Peer:
    """A server with scripted answers: one list for each connection, one answer for each request.

    After its last answer, and instead of None, the server closes the connection.
    """

    def __init__(self, *connections):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = []
        self._thread = threading.Thread(target=self._serve, args=(connections,), daemon=True)
        self._thread.start()

    def _serve(self, connections):
        for answers in connections:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                # The test has ended.
                return
            with connected:
                connected.settimeout(TIMEOUT_S)
                for answer in answers:
                    data = connected.recv(65_536)
                    self.requests.append(data.partition(b" HTTP")[0])
                    if answer is None:
                        break
                    connected.sendall(answer)

    def close(self):
        # Only closing it would not wake the thread.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


@pytest.fixture()
def peer():
    made = []

    def make(*connections):
        made.append(Peer(*connections))
        return made[-1]

    yield make
    for one in made:
        one.close()


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


async def accounts(client, times):
    return [await client.accounts() for _ in range(times)]


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
def test_a_connection_that_the_service_closed_is_replaced(peer, mode):
    """Three requests over two connections; no request is lost or sent twice."""
    served = peer([ANSWER, ANSWER.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")], [ANSWER])
    if mode == "threads":
        with Pitlane(served.url, retry=NO_RETRY) as client:
            assert [client.accounts() for _ in range(3)] == [[]] * 3
    else:

        async def three():
            async with AsyncPitlane(served.url, retry=NO_RETRY) as client:
                return await accounts(client, 3)

        assert run(three()) == [[]] * 3
    assert served.requests == [b"GET /rest/account"] * 3


@pytest.mark.parametrize("mode", ["threads", "asyncio"])
def test_a_request_without_a_response_is_repeated_only_if_that_is_safe(peer, mode):
    served = peer([None], [ANSWER, None])

    async def work():
        async with AsyncPitlane(served.url, retry=Retry(attempts=2, wait_s_first=0)) as client:
            found = await client.accounts()
            with pytest.raises(OutcomeUnknown):
                await client.close_position(1)
            return found

    if mode == "asyncio":
        assert run(work()) == []
    else:
        with Pitlane(served.url, retry=Retry(attempts=2, wait_s_first=0)) as client:
            assert client.accounts() == []
            with pytest.raises(OutcomeUnknown):
                client.close_position(1)
    assert served.requests == [b"GET /rest/account"] * 2 + [b"DELETE /rest/position/1"]


def test_a_cancelled_call_does_not_leave_its_response_to_the_next(shared):
    async def work():
        async with AsyncPitlane(shared.url) as client:
            for turns in range(12):
                call = asyncio.ensure_future(client.securities())
                for _ in range(turns):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
                assert [row.name for row in await client.accounts()] == ["NEWYORK", "GLOBAL", "RESERVE"]

    run(work())


def test_more_calls_than_connections_wait_for_one(shared, monkeypatch):
    monkeypatch.setattr("pitlane.http.asynchronous.CONNECTIONS_MAX", 2)
    monkeypatch.setattr("pitlane.http.synchronous.CONNECTIONS_MAX", 2)

    async def work():
        async with AsyncPitlane(shared.url) as client:
            calls = [asyncio.ensure_future(client.accounts()) for _ in range(40)]
            for call in calls[::5]:
                call.cancel()
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(rows, list) and len(rows) == 3 for rows in found) == 32
            assert len(client._http._open) <= 2

    run(work())
    with Pitlane(shared.url) as client:
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(client.accounts()))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [3] * 20 and client._http._count <= 2


def test_a_call_that_gets_no_connection_in_time_was_not_sent(peer, monkeypatch):
    monkeypatch.setattr("pitlane.http.asynchronous.CONNECTIONS_MAX", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        async def work():
            async with AsyncPitlane(url, retry=NO_RETRY, timeout_s=0.05) as client:
                return await asyncio.gather(*(client.close_position(1) for _ in range(2)), return_exceptions=True)

        kinds = {type(error) for error in run(work())}
    assert OutcomeUnknown in kinds and kinds <= {OutcomeUnknown, Unreachable}


@pytest.mark.parametrize("login", [("ann", "correct horse battery"), None])
def test_tls_and_logins_work_with_both_clients(new_service, login):
    service = new_service()
    token = service.token("bot", "trade") if login is None else None
    if login is not None:
        service.user("ann", "trade", "correct horse battery")
    service.start()
    arguments = {"verify": service.certificate, "login": login, "token": token, "retry": NO_RETRY}

    async def name():
        async with AsyncPitlane(service.secure_url, **arguments) as client:
            first = await client.identity()
            assert await client.identity() == first
            return first.name

    with Pitlane(service.secure_url, **arguments) as client:
        assert client.identity().name == run(name()) == ("bot" if login is None else "ann")
    with Pitlane(service.secure_url, retry=NO_RETRY) as stranger, pytest.raises(Unreachable, match="certificate"):
        stranger.identity()
