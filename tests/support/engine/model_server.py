"""Small model server on loopback for all three wire formats; a script gives its answers and faults.

    with model_server(says("hello"), refuses(429, retry_after="2"), cuts("half", after=1)) as server:
        client = open_client(f"openai:test@{server.openai_url}", ...)

The server runs in its own threads: a test may block, and an engine in another process may call it.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE_CHARACTERS = 24
ROUTES = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/v1/responses": "responses"}
"""Wire format by the end of a path: a gateway adds a prefix, Azure adds a deployment."""
CHAT = "/chat/completions"
STOP_WORDS = {
    "anthropic": {"end": "end_turn", "truncated": "max_tokens"},
    "openai": {"end": "stop", "truncated": "length"},
    "responses": {"truncated": "max_output_tokens"},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one request: a whole reply, a broken reply or a refusal."""

    text: str = ""
    reasoning: str = ""
    stop: str = "end"
    """`end`, `truncated`, or a word of the wire format."""
    input_tokens: int = 100
    output_tokens: int = 10
    cached_tokens: int = 40
    """Part of the input tokens."""
    written_tokens: int | None = None
    """Part of the input tokens, written to the cache; with `None` the server sends no such count."""
    thought_tokens: int = 0
    """Counted only in the total, as Gemini does."""
    status: int = 200
    message: str = ""
    kind: str = ""
    """Error name in the wire format."""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Drop the connection after this number of pieces."""
    hang_after: int | None = None
    """Send nothing more after this number of pieces; -1: before the first byte."""
    error_after: int | None = None
    """Send an error of this `kind` inside the stream after this number of pieces."""
    odd: Mapping[str, Any] = field(default_factory=dict)
    """Values that replace the values of these keys, at any depth of the stream's JSON."""
    lingers: bool = False
    """Send nothing after the stop reason: no counts and no end of the stream."""
    unfinished: bool = False
    """End the HTTP response correctly, but without the end marker of the protocol."""
    raw: bytes | None = None
    """Send these bytes as the body."""
    content_type: str = "text/event-stream"
    endless: bytes = b""
    """Send these bytes for ever, after `raw`."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Request that the server received."""

    route: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    query: str = ""

    @property
    def turns(self) -> list[str]:
        """Texts of the messages, without a separate system message."""
        turns = self.body.get("messages") or self.body.get("input") or []
        return [flat(turn.get("content")) for turn in turns]

    @property
    def prompt(self) -> str:
        """All text of the request."""
        parts = [flat(self.body.get("system") or self.body.get("instructions")), *self.turns]
        return "\n\n".join(part for part in parts if part)


def says(text: str, *, reasoning: str = "", stop: str = "end", **counts: int) -> Answer:
    """Return a whole reply."""
    return Answer(text=text, reasoning=reasoning, stop=stop, **counts)


def refuses(status: int, *, message: str = "", kind: str = "", **headers: str) -> Answer:
    """Return an HTTP error; headers as `retry_after="2"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, message=message or f"fault {status}", kind=kind, headers=named)


def cuts(text: str, *, after: int) -> Answer:
    """Return a stream whose connection drops after `after` pieces."""
    return Answer(text=text, cut_after=after)


def hangs(text: str, *, after: int) -> Answer:
    """Return a stream that sends nothing after `after` pieces; -1: nothing at all."""
    return Answer(text=text, hang_after=after)


def garbage() -> Answer:
    """Return a stream that is neither JSON nor UTF-8, under an event name that both SDKs read."""
    return Answer(raw=b"event: message_start\ndata: \xff\xfe not json at all\n\n")


class ModelServer:
    """Running server; `requests` holds all received requests. The last answer of the script is not repeated."""

    def __init__(
        self,
        script: tuple[Answer, ...],
        answer: Callable[[Seen], Answer] | None,
        tls: ssl.SSLContext | None,
        about_model: Answer | None,
    ) -> None:
        self.requests: list[Seen] = []
        self.about_model = about_model
        self.closing = threading.Event()
        self.connections: set[socket.socket] = set()
        self._script = script
        self._answer = answer
        self._lock = threading.Lock()
        self.http = Quiet(("127.0.0.1", 0), type("Bound", (Handler,), {"model": self}))
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            # Each connection's thread does its own handshake: a failed handshake must not block the server.
            self.http.socket = tls.wrap_socket(
                self.http.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self.http.server_address[1]

    @property
    def anthropic_url(self) -> str:
        """Address for a client of Anthropic's protocol."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """Address for a client of OpenAI's protocol."""
        return f"{self.anthropic_url}/v1"

    def next_answer(self, seen: Seen) -> Answer:
        """Record the request and return its answer."""
        with self._lock:
            self.requests.append(seen)
            if self._answer:
                return self._answer(seen)
            if len(self.requests) > len(self._script):
                return refuses(400, message=f"the script ended before request {len(self.requests)}")
            return self._script[len(self.requests) - 1]


@contextmanager
def model_server(
    *script: Answer,
    answer: Callable[[Seen], Answer] | None = None,
    tls: ssl.SSLContext | None = None,
    about_model: Answer | None = None,
) -> Iterator[ModelServer]:
    """Run a server for the block; it answers with the script in order, or with a function of the request.

    `about_model` is the answer to `GET /v1/models/NAME`; without it the server has no such route.
    """
    server = ModelServer(script, answer, tls, about_model)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.http.shutdown()
        thread.join()
        for connection in list(server.connections):
            shut(connection)
        server.http.server_close()


class Quiet(ThreadingHTTPServer):
    """HTTP server that ignores clients which do not trust its certificate."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ssl.SSLError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise a body waits 40 ms for the client to acknowledge the headers
    model: ModelServer

    def setup(self) -> None:
        super().setup()
        self.model.connections.add(self.connection)

    def finish(self) -> None:
        self.model.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        """Write no log to the test's standard error."""

    def do_GET(self) -> None:
        wire = "anthropic" if self.headers.get("anthropic-version") else "openai"
        answer = self.model.about_model if self.path.startswith("/v1/models/") else None
        if answer is not None and answer.hang_after == -1:
            self.hang()
        else:
            self.send_refusal(wire, answer or refuses(404, message=f"no such route: {self.path}"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        route, _, query = self.path.partition("?")
        wire = ROUTES.get(route, "openai" if route.endswith(CHAT) else None)
        if wire is None:
            self.send_refusal("openai", refuses(404, message=f"no such route: {route}"))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.model.next_answer(Seen(route, headers, body, query))
        try:
            if answer.status != 200:
                self.send_refusal(wire, answer)
            elif answer.hang_after == -1:
                self.hang()
            else:
                self.send_stream(wire, answer, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send_refusal(self, wire: str, answer: Answer) -> None:
        kind = answer.kind or "fault"
        error: dict[str, Any] = {"type": kind, "message": answer.message}
        body = {"type": "error", "error": error} if wire == "anthropic" else {"error": error | {"code": kind}}
        raw = json.dumps(body).encode() if answer.raw is None else answer.raw
        self.send_response(answer.status)
        for name, value in ({"content-type": "application/json"} | answer.headers).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def send_stream(self, wire: str, answer: Answer, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", answer.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if answer.raw is not None:
            self.write(answer.raw or answer.endless)
        else:
            frames = frames_of(wire, answer, body)
            if answer.odd:
                frames = ((is_piece, with_odd_values(frame, answer.odd)) for is_piece, frame in frames)
            pieces = 0
            for is_piece, frame in frames:
                if is_piece:
                    if pieces == answer.cut_after:
                        self.cut()
                        return
                    if pieces == answer.hang_after:
                        self.hang()
                        return
                    if pieces == answer.error_after:
                        self.write(stream_error(wire, answer))
                        break
                    pieces += 1
                self.write(frame)
            if answer.lingers:
                self.hang()
                return
        while answer.endless and not self.model.closing.is_set():
            self.write(answer.endless)
        self.wfile.write(b"0\r\n\r\n")

    def write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def hang(self) -> None:
        """Send nothing until the test ends."""
        self.model.closing.wait()
        self.close_connection = True

    def cut(self) -> None:
        self.close_connection = True
        shut(self.connection)


def shut(connection: socket.socket) -> None:
    """Close a connection at once, even if the other side closed it before."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def split(words: str) -> list[str]:
    """Split text into the pieces of a stream."""
    return [words[start : start + PIECE_CHARACTERS] for start in range(0, len(words), PIECE_CHARACTERS)]


def stream_error(wire: str, answer: Answer) -> bytes:
    """Return an error event that follows the HTTP status."""
    error = {"type": answer.kind, "message": answer.message or answer.kind}
    if wire == "anthropic":
        return named("error", {"error": error})
    if wire == "responses":
        return named(
            "error",
            {"code": answer.kind, "message": error["message"], "param": None, "sequence_number": 9},
        )
    return b"data: " + json.dumps({"error": error | {"code": None}}).encode() + b"\n\n"


def named(event: str, data: dict[str, Any]) -> bytes:
    """Encode one event of a server-sent stream."""
    return f"event: {event}\ndata: {json.dumps({'type': event} | data)}\n\n".encode()


def with_odd_values(frame: bytes, odd: Mapping[str, Any]) -> bytes:
    """Return the frame with the odd values in its JSON."""

    def replace(values: dict[str, Any]) -> dict[str, Any]:
        return {key: odd.get(key, value) for key, value in values.items()}

    head, data, text = frame.decode().partition("data: ")
    if text.startswith("[DONE]"):
        return frame
    return f"{head}{data}{json.dumps(json.loads(text, object_hook=replace))}\n\n".encode()


def frames_of(wire: str, answer: Answer, body: dict[str, Any]) -> Iterator[tuple[bool, bytes]]:
    """Return the frames of a stream; the flag of each frame says if it is a piece."""
    match wire:
        case "anthropic":
            return anthropic_frames(answer)
        case "responses":
            return responses_frames(answer)
        case _:
            return openai_frames(answer, body)


def anthropic_frames(answer: Answer) -> Iterator[tuple[bool, bytes]]:
    """Yield the frames of Anthropic's protocol; the flag says if a frame is a piece."""
    usage = {
        "input_tokens": answer.input_tokens - answer.cached_tokens,
        "cache_read_input_tokens": answer.cached_tokens,
        "output_tokens": 1,
    }
    if answer.written_tokens is not None:
        usage["cache_creation_input_tokens"] = answer.written_tokens
        usage["input_tokens"] -= answer.written_tokens
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "test", "content": []}
    yield (
        False,
        named(
            "message_start", {"message": start | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
        ),
    )
    yield False, named("ping", {})
    blocks = [
        ({"type": "thinking", "thinking": "", "signature": ""}, "thinking", answer.reasoning),
        ({"type": "text", "text": ""}, "text", answer.text),
    ]
    for index, (block, field_name, words) in enumerate(blocks):
        yield False, named("content_block_start", {"index": index, "content_block": block})
        for piece in split(words):
            delta = {"type": f"{field_name}_delta", field_name: piece}
            yield True, named("content_block_delta", {"index": index, "delta": delta})
        if field_name == "thinking" and answer.reasoning:
            delta = {"type": "signature_delta", "signature": "signed"}
            yield False, named("content_block_delta", {"index": index, "delta": delta})
        yield False, named("content_block_stop", {"index": index})
    if answer.unfinished:
        return
    stop = STOP_WORDS["anthropic"].get(answer.stop, answer.stop)
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield True, named("message_delta", {"delta": delta, "usage": {"output_tokens": answer.output_tokens}})
    if answer.lingers:
        return
    yield False, named("message_stop", {})


def openai_frames(answer: Answer, body: dict[str, Any]) -> Iterator[tuple[bool, bytes]]:
    """Yield the frames of OpenAI's chat protocol; the flag says if a frame is a piece."""

    def chunk(**fields: Any) -> bytes:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "test"}
        return b"data: " + json.dumps(head | fields).encode() + b"\n\n"

    def choice(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    yield False, choice({"role": "assistant"})
    for field_name, words in (("reasoning_content", answer.reasoning), ("content", answer.text)):
        for piece in split(words):
            yield True, choice({field_name: piece})
    if answer.unfinished:
        return
    yield True, choice({}, STOP_WORDS["openai"].get(answer.stop, answer.stop))
    if answer.lingers:
        return
    if (body.get("stream_options") or {}).get("include_usage"):
        usage = {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens + answer.thought_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens}
            | ({} if answer.written_tokens is None else {"cache_write_tokens": answer.written_tokens}),
        }
        yield False, chunk(choices=[], usage=usage)
    yield False, b"data: [DONE]\n\n"


def responses_frames(answer: Answer) -> Iterator[tuple[bool, bytes]]:
    """Yield the frames of OpenAI's Responses API; the flag says if a frame is a piece. Reasoning is a summary."""
    count = iter(range(1_000_000))

    def frame(event: str, **fields: Any) -> bytes:
        return named(event, {"sequence_number": next(count)} | fields)

    def response(status: str, **fields: Any) -> dict[str, Any]:
        head = {"id": "resp_1", "object": "response", "created_at": 0, "model": "test", "output": []}
        fixed = {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
        return head | fixed | {"status": status, "error": None, "incomplete_details": None} | fields

    yield False, frame("response.created", response=response("in_progress"))
    for index, paragraph in enumerate(answer.reasoning.split("\n\n") if answer.reasoning else ()):
        part = {"item_id": "rs_1", "output_index": 0, "summary_index": index}
        empty = {"type": "summary_text", "text": ""}
        yield False, frame("response.reasoning_summary_part.added", **part, part=empty)
        for piece in split(paragraph):
            yield True, frame("response.reasoning_summary_text.delta", **part, delta=piece)
    part = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    text = {"type": "output_text", "text": "", "annotations": []}
    yield False, frame("response.content_part.added", **part, part=text)
    for piece in split(answer.text):
        yield True, frame("response.output_text.delta", **part, delta=piece, logprobs=[])
    if answer.unfinished:
        return
    details = {"cached_tokens": answer.cached_tokens}
    if answer.written_tokens is not None:
        details["cache_write_tokens"] = answer.written_tokens
    usage = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": details,
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    if answer.stop == "end":
        yield True, frame("response.completed", response=response("completed", usage=usage))
        return
    why = {"reason": STOP_WORDS["responses"].get(answer.stop, answer.stop)}
    ended = response("incomplete", usage=usage, incomplete_details=why)
    yield True, frame("response.incomplete", response=ended)


def flat(content: object) -> str:
    """Return the text of a content field of any wire format."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""
