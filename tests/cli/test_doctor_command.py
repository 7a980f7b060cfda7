"""`prism doctor`, as a user types it; nothing outside of the machine is asked."""

import gzip
import json
import os
import socket
import threading
import time

import pytest
from ollama_server import as_json, drip, models, packed_as, serving

from prism_mesa.api import installation
from prism_mesa.api.caches import OLD_DAYS


@pytest.fixture(autouse=True)
def caches(monkeypatch, tmp_path):
    """A cache of its own, with what is old, what is not, and what is not ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    folder = tmp_path / "cache" / "prism-mesa"
    names = ("kernels-0123456789abcdef", "kernels-fedcba9876543210", "kernels-of-mine", "embeddings")
    for name in names:
        (folder / name).mkdir(parents=True)
    (tmp_path / "temporary" / "prism-replay-abcdefgh.temporary").mkdir(parents=True)
    (tmp_path / "temporary" / "prism-replay-baseline").mkdir()
    files = [folder / name / "kernel.nbc" for name in names]
    files += [
        folder / "embeddings" / f"wordllama-{'0' * 32}.npy",
        tmp_path / "temporary/prism-replay-abcdefgh.temporary/a",
    ]
    files.append(tmp_path / "temporary/prism-replay-baseline/a")
    for file in files:
        file.write_bytes(bytes(1000))
    old = time.time() - (OLD_DAYS + 1) * 86_400
    for file in (files[0], files[2], files[4], files[5], files[6], *(one.parent for one in files)):
        os.utime(file, (old, old))
    (folder / "kernels-aaaaaaaaaaaaaaaa").symlink_to(tmp_path)
    return folder


@pytest.fixture
def nobody():
    """The address of a server that is not there."""
    with serving() as server:
        return server.url


def test_what_is_missing_is_followed_by_what_to_do_and_the_exit_code_is_0(prism, nobody):
    code, out, err = prism("doctor", "--ollama", nobody)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    place = next(i for i, line in enumerate(lines) if line.startswith("Ollama "))
    assert f"missing: {nobody} does not answer (" in lines[place]
    assert lines[place + 1].strip().startswith("-> start it with ollama serve")
    assert any(line.startswith("prism ") and "Python 3." in line for line in lines)
    assert lines[-1].strip() == f"-> prism doctor --clean frees 3 kB unused for {OLD_DAYS} days"


def test_ollama_is_found_with_its_models(prism):
    with serving() as server:
        code, out, err = prism("doctor", "--ollama", server.url, "--json")
        server.gets["/api/tags"] = models("mistral:latest")
        _, other, _ = prism("doctor", "--ollama", server.url)
        server.gets["/api/tags"] = as_json(200, [])
        _, wrong, _ = prism("doctor", "--ollama", server.url)
    told = json.loads(out)
    found = {one["what"]: one for one in told["findings"]}
    assert (code, err, told["broken"], told["removed"]) == (0, "", 0, [])
    decide = "decision models (reasoner.answer=decision): none (ollama pull d1-omni:600m)"
    assert found["Ollama"]["told"] == f"answers at {server.url}; models: llama3.2:latest; {decide}"
    assert {"prism", "packages", "kernels", "embedded LLM", "page", "threads", "results"} <= set(found)
    assert "models: mistral:latest" in other
    assert "-> ollama pull llama3.2" in other
    assert f"{server.url} does not answer" in wrong


@pytest.mark.parametrize("raw", [b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000])
def test_what_answers_and_is_no_ollama_is_a_line_and_never_a_traceback(raw):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as asked:
                asked.recv(4096)
                asked.sendall(raw)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"127.0.0.1:{server.getsockname()[1]}"
        found = next(installation._llms(url))
        thread.join()
    assert found.told.startswith(f"http://{url} does not answer (")


@pytest.mark.parametrize("packed", [True, False])
def test_ollama_is_asked_for_no_longer_than_a_moment_and_for_no_more_than_an_answer(packed, monkeypatch):
    monkeypatch.setattr(installation, "_TIMEOUT_S", 2.0 if packed else 0.2)
    with serving(tags=packed_as("gzip", gzip.compress(bytes(2**25))) if packed else drip) as server:
        started = time.monotonic()
        told = next(installation._llms(server.url)).told
    assert time.monotonic() - started < 10
    assert ("16 MB" if packed else "within 0.2 s") in told


def test_clean_removes_what_is_old_and_ours_and_nothing_else(prism, nobody, caches, tmp_path):
    code, out, _ = prism("doctor", "--clean", "--ollama", nobody)
    assert code == 0
    removed = {line.split()[-1] for line in out.splitlines() if line.startswith("removed ")}
    assert removed == {
        str(caches / "kernels-0123456789abcdef"),
        str(caches / "embeddings" / f"wordllama-{'0' * 32}.npy"),
        str(tmp_path / "temporary" / "prism-replay-abcdefgh.temporary"),
    }
    assert not any(os.path.lexists(path) for path in removed)
    left = {path.name for path in caches.iterdir()}
    assert {"kernels-fedcba9876543210", "kernels-of-mine", "kernels-aaaaaaaaaaaaaaaa", "embeddings"} <= left
    assert (caches / "embeddings" / "kernel.nbc").is_file()
    assert (tmp_path / "temporary" / "prism-replay-baseline" / "a").is_file()  # somebody's folder, by a name like ours
    assert out.splitlines()[-1].split() == ["freed", "3", "kB"]


def test_something_broken_that_every_run_needs_ends_the_command_as_failed(prism, nobody, monkeypatch):
    monkeypatch.setattr(installation, "requires", lambda package: ["numpy>=2", "no-such-package-of-a-test>=1"])
    code, out, err = prism("doctor", "--ollama", nobody)
    assert code == 1
    assert "packages          broken: no-such-package-of-a-test not installed" in out
    assert "-> uv sync in a clone of PRISM, else pip install no-such-package-of-a-test" in out
    assert err == "prism: broken, and needed by every run: packages\n"
