"""A headless Chromium, told what to do through the DevTools protocol.

Rules: a profile of its own and no network but loopback; clicks and keys are real
ones. What a page complains of, and where it asks, is written down.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from base64 import b64decode
from contextlib import contextmanager

from websockets.sync.client import connect

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-default-browser-check", "--mute-audio", "--remote-debugging-port=0"),
)
KEYS = {
    "ArrowLeft": 37,
    "ArrowRight": 39,
    "Home": 36,
    "End": 35,
    " ": 32,
    "]": 221,
    "[": 219,
    "Enter": 13,
    "Tab": 9,
}


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page. ``complaints`` are errors of scripts and of the policy, ``asked`` the addresses."""

    def __init__(self, socket):
        self._socket = socket
        self._number = 0
        self.complaints = []
        self.asked = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=20))
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message):
        params = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"])
        elif message["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"])
        elif message["method"] == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def size(self, width, height, scale=1, *, mobile=False):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=mobile,
        )
        # Two frames later the page has seen it.
        self.get("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, url):
        """Go to ``url``, as if it were typed into a new tab."""
        self.send("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.send("Page.navigate", url=url)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def get(self, script):
        """The value of ``script``, awaited."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector):
        return self.get(f"document.querySelector({selector!r}).textContent")

    def wait(self, script, seconds=10):
        until = time.monotonic() + seconds
        while not self.get(script):
            assert time.monotonic() < until, (script, self.complaints)
            time.sleep(0.02)

    def click(self, selector):
        """A click of the mouse in the middle of an element."""
        at = self.get(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def key(self, name, text=None):
        code = {"key": name, "windowsVirtualKeyCode": KEYS[name]}
        if len(name) == 1:
            code["text"] = name
        self.send("Input.dispatchKeyEvent", type="keyDown", **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", **code)

    def write(self, selector, text):
        """Put ``text`` into a field, as if it were pasted over what stood there."""
        self.get(f"(e => {{ e.focus(); e.select(); }})(document.querySelector({selector!r}))")
        self.send("Input.insertText", text=text)

    def screenshot(self, width, height):
        """A PNG of what is shown in the upper left."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return b64decode(self.send("Page.captureScreenshot", format="png", clip=clip)["data"])


@contextmanager
def browser(folder, *flags):
    """A browser with the profile ``folder``."""
    process = subprocess.Popen(
        [chromium(), *FLAGS, *flags, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with connect(_page(folder, process), max_size=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _page(folder, process):
    """The address of the one page of a browser that has just been started."""
    until = time.monotonic() + 30
    port = folder / "DevToolsActivePort"
    while not (port.is_file() and port.read_text().strip()):
        assert process.poll() is None, f"chromium ended with {process.returncode}"
        assert time.monotonic() < until, "chromium does not answer"
        time.sleep(0.02)
    address = f"http://127.0.0.1:{port.read_text().splitlines()[0]}/json/list"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        with opener.open(address, timeout=10) as answer:
            pages = [each for each in json.load(answer) if each["type"] == "page"]
        if pages:
            return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.02)
