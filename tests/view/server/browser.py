"""A headless Chromium, driven by the DevTools protocol: what a person does on a page, and what it then shows."""

import base64
import json
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--disable-default-apps", "--mute-audio", "--force-prefers-reduced-motion", "--disable-dev-shm-usage"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1",
)


class Browser:
    """One tab of a Chromium that reaches only this machine.

    Attributes:
        errors: What the console was told that is an error, and requests that failed or were answered with one.
        elsewhere: Requests to other machines.
    """

    def __init__(self, folder: Path, width: int = 1280, height: int = 800) -> None:
        self.errors, self.elsewhere, self._open = [], [], ExitStack()
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "--remote-debugging-port=0", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = folder / "DevToolsActivePort"
        try:
            until(lambda: port_file.exists() and port_file.read_text().count("\n"), "Chromium to listen", 60)
            port, path = port_file.read_text().split("\n")[:2]
            opened = connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None)
            self._socket = self._open.enter_context(opened)
            self._n, self._session = 0, None
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.ask(f"{domain}.enable")
            self.size(width, height)
        except BaseException:
            self._open.close()
            self._process.kill()
            self._process.wait(10)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()
        self._process.terminate()
        self._process.wait(10)

    def ask(self, method, **params):
        """Send a command, and return its result; events that come before it are heard."""
        self._n += 1
        sent = {"id": self._n, "method": method, "params": params}
        self._socket.send(json.dumps(sent | ({"sessionId": self._session} if self._session else {})))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == self._n:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._hear(message.get("method"), message.get("params", {}))

    def _hear(self, event, params):
        if event == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(value.get("value", value.get("description"))) for value in params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} ({params['entry'].get('url', '')})")
        elif event == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("http://localhost:", "http://127.0.0.1:", "data:", "blob:", "about:")):
                self.elsewhere.append(url)

    def size(self, width, height):
        """Give the window another size."""
        mobile = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def open(self, url):
        """Go to an address."""
        self.ask("Page.navigate", url=url)

    def run(self, script):
        """Return the value of a JavaScript expression; a promise is awaited."""
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"].get("description", script))
        return done["result"].get("value")

    def text(self):
        """Return what the page says."""
        return self.run("document.body ? document.body.innerText : ''")

    def wait_text(self, text, seconds=60):
        """Wait until the page says something."""
        until(lambda: text in self.text(), f"the page to say {text!r}", seconds, lambda: self.text()[-600:])

    def wait(self, script, seconds=60):
        """Wait until a JavaScript expression is true, and return its value."""
        return until(lambda: self.run(script), script, seconds, lambda: self.text()[-600:])

    def click(self, script):
        """Click the element that a JavaScript expression finds, once it stays in its place and nothing covers it.

        Press and release are one step: a page that is drawn anew between them would swallow the click.
        """
        place = f"(() => {{ const one = {script}; if (!one) return null; one.scrollIntoView({{block: 'center'}});"
        place += "const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        at, before = self.wait(place), None
        while at != before:  # what stands above may still grow
            time.sleep(0.3)
            at, before = self.wait(place), at
        clicked = f"(() => {{ const one = {script}, place = {place};"
        clicked += "if (!one || !one.contains(document.elementFromPoint(...place))) return false;"
        clicked += "one.focus(); one.click(); return true; })()"
        self.wait(clicked)

    def click_text(self, text, among="button, a, [role=tab]"):
        """Click what says something, or is labelled so."""
        element = f"[...document.querySelectorAll({json.dumps(among)})].find(one => one.offsetParent !== null && "
        element += f"[one.textContent.trim(), one.getAttribute('aria-label')].includes({json.dumps(text)}))"
        self.click(element)

    def picture(self, file):
        """Keep what the window shows as PNG."""
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


def until(what, named, seconds=60.0, seen=lambda: ""):
    """Wait until a function returns something true, and return it."""
    end = time.monotonic() + seconds
    while not (value := what()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {named}. {seen()}")
        time.sleep(0.05)
    return value
