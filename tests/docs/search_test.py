#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The search of the documentation site, in a browser, as somebody uses it who opens the files.

Skipped (77) without a browser; tools/bootstrap browser installs one.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/console"))
import chrome  # noqa: E402

FOUND = "[...document.querySelectorAll('#found a')]"
ESCAPE, DOWN = ("Escape", 27), ("ArrowDown", 40)


def ask(browser, question):
    """From anywhere on the page: the addresses of what is found."""
    browser.evaluate("document.activeElement.blur()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    assert browser.evaluate("document.activeElement.id") == "question"
    browser.call("Input.insertText", text=question)
    browser.wait_for("window.blitzIndex")
    return browser.wait_for(f"{FOUND}.map((a) => a.href)")


def press_enter(browser):
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r",
                 windowsVirtualKeyCode=13)


def places(browser):
    """Where the page has been, in other documents and in its own."""
    frames = [event["frame"] for event in browser.named("Page.frameNavigated")]
    return ([frame["url"] + frame.get("urlFragment", "") for frame in frames] +
            [event["url"] for event in browser.named("Page.navigatedWithinDocument")])


def goes_to(browser, address):
    while address not in places(browser):
        browser.events.append(browser.message())


def test_a_name_is_found_first(browser, site):
    browser.open(f"file://{site}/index.html")
    assert not browser.evaluate("!!window.blitzIndex"), "the index is fetched before it is needed"
    found = ask(browser, "blz_mutex_lock")
    assert found[0].endswith("#blz_mutex_lock") and found[0].startswith(f"file://{site}/"), found
    press_enter(browser)
    goes_to(browser, found[0])


def test_every_word_must_occur(browser, site):
    browser.open(f"file://{site}/index.html")
    both = ask(browser, "blocking lane")
    assert 0 < len(both) <= 12, both
    browser.press(*ESCAPE)
    assert browser.wait_for(f"{FOUND}.length === 0")
    assert ask(browser, "blocking nosuchword") == []


def test_the_keys_choose(browser, site):
    page = next(pathlib.Path(site).glob("guide/*.html"))  # from a folder: addresses are relative
    browser.open(f"file://{page}")
    found = ask(browser, "cancellation")
    assert len(found) > 2, found
    browser.press(*DOWN)
    browser.press(*DOWN)
    assert browser.evaluate("document.querySelector('#found a.chosen').href") == found[1]
    press_enter(browser)
    goes_to(browser, found[1])


def test_all_that_is_found_is_there(browser, site):
    browser.open(f"file://{site}/index.html")
    for question in ("timer", "echo", "steal"):
        for address in ask(browser, question):
            path = address[len("file://"):].split("#")[0]
            assert pathlib.Path(path).is_file(), address
        browser.press(*ESCAPE)


def main():
    if not chrome.find():
        print("skipped: no browser; tools/bootstrap browser installs one")
        return 77
    with tempfile.TemporaryDirectory() as site:
        subprocess.run([sys.executable, "-B", ROOT / "tools/docs/build.py", "site", site], check=True,
                       stdout=subprocess.DEVNULL)
        browser = chrome.Browser()
        try:
            for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
                test(browser, site)
                assert not browser.named("Runtime.exceptionThrown"), (name, browser.events)
                print("ok", name, flush=True)
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
