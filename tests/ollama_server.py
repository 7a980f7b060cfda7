"""A small server that speaks Ollama's protocol, and breaks it on request. It holds no test."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.gets[self.path](self)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/show":
            self.server.gets.get(self.path, as_json(404, {"error": "not found"}))(self)
            return
        self.body = body
        self.server.sent.append(body)
        self.server.connections.add(self.client_address)
        with self.server.lock:
            reply = self.server.replies.pop(0) if self.server.replies else self.server.always
        reply(self)

    def send(self, status, body, announced=None):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(announced or len(body)))
        self.end_headers()
        self.wfile.write(body)


def raw(status, body, announced=None):
    def reply(handler):
        handler.send(status, body, announced)
        handler.close_connection = announced is not None

    return reply


def as_json(status, value):
    return raw(status, json.dumps(value).encode())


def chat_answer(content, **extra):
    message = {"role": "assistant", "content": content}
    counts = {"prompt_eval_count": 900, "eval_count": 8}
    return as_json(200, {"model": "llama3.2", "message": message, "done": True, **counts, **extra})


def drop(handler):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def late(handler):
    handler.server.released.wait(5)
    drop(handler)


def drip(handler):
    """Send a byte now and then, so that no single read ever times out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    try:
        while not handler.server.released.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()
    except OSError:
        pass
    handler.close_connection = True


def packed_as(encoding, body):
    """Answer with a body in an encoding."""

    def reply(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Encoding", encoding)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def headed(status, **headers):
    """Refuse with headers."""

    def reply(handler):
        body = json.dumps({"error": "slow down"}).encode()
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def models(*names):
    return as_json(200, {"models": [{"model": name, "digest": f"digest of {name}"} for name in names]})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


@contextmanager
def serving(*replies, tags=None, always=None):
    """Serve the replies one after the other, then `always`, which can be changed while it serves."""
    server = Server(("127.0.0.1", 0), Handler)
    server.replies, server.sent, server.connections = list(replies), [], set()
    server.always, server.lock = always, threading.Lock()
    server.gets = {
        "/api/tags": tags or models("llama3.2:latest"),
        "/api/version": as_json(200, {"version": "0.99"}),
        "/api/ps": as_json(200, {"models": []}),
    }
    server.released = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
