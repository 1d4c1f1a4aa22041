# SPDX-License-Identifier: Apache-2.0
"""A browser without a window, driven through a pair of pipes (its DevTools protocol).

Debian's chromium-headless-shell, or chromium. The pipes carry JSON, each message ended by a NUL.
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 100  # seconds, for what must come
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


# A promise of the page's, which is awaited here for as long as for any answer.
WAIT = """new Promise((done) => {
    let over = false;
    const look = () => {
        const value = over ? null : (%s);
        if (!value)
            return;
        over = true;
        observer.disconnect();
        done(value);
    };
    const observer = new MutationObserver(look);
    const frame = () => { look(); if (!over) requestAnimationFrame(frame); };
    observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
    frame();
})"""


def find():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, width=1280, height=900):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.inp, theirs_out = os.pipe()
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--no-proxy-server", "--disable-background-networking",
                   "--remote-debugging-pipe", f"--window-size={width},{height}",
                   f"--user-data-dir={self.folder.name}", "about:blank"]
        # It wants the pipes as descriptors 3 and 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}', *command],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None

    def message(self):
        give_up = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            left = give_up - time.monotonic()
            assert left > 0 and select.select([self.inp], [], [], left)[0], "the browser hangs"
            piece = os.read(self.inp, 1 << 20)
            assert piece, "the browser has ended"
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        order = {"id": self.number, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        data = json.dumps(order).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            message = self.message()
            if message.get("id") == self.number:
                assert "error" not in message, (method, message)
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def open(self, url, script=""):
        """A page, loaded, in place of the last; `script` runs before its own."""
        if self.session:
            self.session = None
            self.call("Target.closeTarget", targetId=self.target)
        self.events.clear()
        self.target = target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        self.call("Page.navigate", url=url)
        while not self.named("Page.loadEventFired"):
            self.events.append(self.message())

    def evaluate(self, expression):
        """Its value, as JSON has it; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, expression):
        """Until it is true: its value. The page looks when it has changed, and at each frame."""
        return self.evaluate(WAIT % expression)

    def press(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def named(self, method):
        return [e["params"] for e in self.events
                if e["method"] == method and e.get("sessionId") == self.session]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.inp)
        os.close(self.out)
        self.folder.cleanup()
