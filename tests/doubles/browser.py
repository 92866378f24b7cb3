"""A headless Chromium from PATH, driven over its own protocol through a pipe, so that no package is needed for it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from doubles.suite import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str | None:
    """The browser on PATH, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a browser process. Requests, console messages and exceptions are kept as they come."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._numbers, self._buffer, self._session = itertools.count(1), b"", None
        self.requests: list[str] = []
        self.problems: list[str] = []
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"]
        # Chromium reads from descriptor 3 and writes to 4. Ours are moved out of the way first.
        shell = f'exec 3<&{to_child} 4>&{from_child}; exec "$0" "$@"'
        command = ["bash", "-c", shell, executable(), *flags, f"--user-data-dir={self._profile.name}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=(to_child, from_child), stdout=quiet, stderr=quiet)
        os.close(to_child)
        os.close(from_child)
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a file in a window of that width, a phone's below 600."""
        self.requests.clear()
        self.problems.clear()
        phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self._send("Emulation.setDeviceMetricsOverride", **size, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Page.navigate", url=page.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    @contextlib.contextmanager
    def without_scripts(self) -> Iterator[None]:
        """Pages that are opened meanwhile run none of their own scripts."""
        self._send("Emulation.setScriptExecutionDisabled", value=True)
        try:
            yield
        finally:
            self._send("Emulation.setScriptExecutionDisabled", value=False)

    def evaluate(self, script: str):
        """The value of a JavaScript expression."""
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = PATIENCE) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > end:
                raise AssertionError(f"never came true: {script}; {self.problems}")
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        text = {"text": " "} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            self._send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def _send(self, method: str, **parameters) -> dict:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _receive(self, seconds: float = PATIENCE) -> dict:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], seconds)[0]:
                raise AssertionError("the browser does not answer")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise AssertionError("the browser ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict) -> None:
        method, details = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(details["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(a.get("value") or a.get("description")) for a in details["args"]))
        elif method == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(details["entry"]["text"])
