#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The console's page in a real browser: content, sorting, filtering, live update, 100,000 tasks.

    browser.py CROWD

Without a browser it is skipped, with status 77; tools/bootstrap browser installs one. Nothing here
depends on how fast the machine is: what the page does is counted (requests, changes of the
document, elements), not timed.
"""

import pathlib
import re
import sys

import chrome
from crowd import Crowd

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

PROGRAM = sys.argv[1]

# Counts what an update costs: changes of the document, and bytes that were asked for.
COUNTERS = """
    window.counted = {changes: 0, frames: 0};
    new MutationObserver((list) => { counted.changes += list.length; }).observe(document,
        {subtree: true, childList: true, attributes: true, characterData: true});
    (function frame() { counted.frames++; requestAnimationFrame(frame); })();
"""

ROWS = "[...document.querySelectorAll('#tasks tbody tr.row')]"


def ticks(browser):
    return int(browser.evaluate("document.documentElement.dataset.ticks || 0"))


def wait_for_ticks(browser, count):
    """Whole updates that begin after this."""
    first = ticks(browser)
    browser.wait_for(f"Number(document.documentElement.dataset.ticks) >= {first + count + 1}")


def column(browser, index):
    return browser.evaluate(f"{ROWS}.map((r) => r.children[{index}].textContent)")


def click(browser, selector):
    browser.evaluate(f"document.querySelector({selector!r}).click()")


def type_into(browser, selector, text):
    browser.evaluate(f"(() => {{ const e = document.querySelector({selector!r}); "
                     f"e.value = {text!r}; e.dispatchEvent(new Event('input')); }})()")


def shown_count(browser, text):
    browser.wait_for(f"document.getElementById('task-count').textContent === {text!r}")


def load(browser, crowd):
    browser.open(f"http://{crowd.address}/?period=150", COUNTERS)
    browser.wait_for("Number(document.documentElement.dataset.ticks || 0) >= 1")


# ---- the tests ----


def test_the_default_port_is_one_that_browsers_open(browser, _crowd):
    """They refuse some, whoever listens there; refused by the system means that this is none of them."""
    source = (ROOT / "src/console/console.c").read_text()
    address = re.search(r'DEFAULT_ADDRESS "([^"]+)"', source)[1]
    browser.open("about:blank")
    for place, refused in ((address, False), ("127.0.0.1:6669", True)):
        error = browser.call("Page.navigate", url=f"http://{place}/").get("errorText", "")
        assert (error == "net::ERR_UNSAFE_PORT") == refused, (place, error)
    browser.open("about:blank")


def test_content(browser, crowd):
    crowd.do("crowd 30")
    crowd.do("pool")
    crowd.wait_for_waiting(30)
    load(browser, crowd)
    shown_count(browser, "30")
    assert browser.evaluate("document.title") == "crowd – Blitz console"
    assert browser.evaluate("document.querySelectorAll('#workers tbody tr').length") == 2
    assert "fork-join, default" in browser.evaluate("document.querySelector('#pools').textContent")
    assert "median" in browser.evaluate(
        "document.querySelector('#poll-time .bars').getAttribute('aria-label')")
    assert "member 10" in column(browser, 1) and set(column(browser, 2)) == {"waiting"}
    where = column(browser, 6)[0]
    assert where.startswith("token_cancelled ‹ ") and "‹ named_member crowd.c:" in where, where
    # every table has headers that say what they are of
    assert browser.evaluate("document.querySelectorAll('th:not([scope])').length") == 0
    assert browser.evaluate("document.querySelectorAll('table').length") == 4
    # rates come with the second update
    browser.wait_for("document.querySelector('#workers tbody td:nth-child(3)').textContent"
                     ".endsWith('%')")
    assert browser.evaluate("document.getElementById('warnings').hidden")
    resources = browser.evaluate("document.querySelector('#resources tbody').textContent")
    assert "token" in resources and "and 22 more" in resources, resources


def test_sorting(browser, crowd):
    crowd.do("crowd 200")
    crowd.wait_for_waiting(200)
    load(browser, crowd)
    for key, index in (("name", 1), ("id", 0), ("polls", 4)):
        orders = []
        for _ in range(2):
            before = browser.evaluate("view.order + view.sort")
            click(browser, f"th[data-sort={key}] button")
            browser.wait_for(f"view.order + view.sort !== {before!r}")
            wait_for_ticks(browser, 1)
            values = column(browser, index)
            order = browser.evaluate(
                f"document.querySelector('th[data-sort={key}]').getAttribute('aria-sort')")
            if key != "name":
                values = [int(v) for v in values]
            assert values == sorted(values, reverse=order == "descending"), (key, order, values)
            orders.append(order)
        assert set(orders) == {"ascending", "descending"}, orders
    assert browser.evaluate("document.querySelectorAll('[aria-sort=none]').length") == 5


def test_branches_are_shown_as_a_tree(browser, crowd):
    crowd.do("patient")
    crowd.wait_for_waiting(2)
    load(browser, crowd)
    type_into(browser, "#find", "left philosopher")
    shown_count(browser, "1 of 2")
    where = column(browser, 6)[0]
    assert where.startswith("{ 0: mutex_lock ‹ timeout | 1: token_cancelled } ‹ select ‹ patient crowd.c:")
    crowd.do("dismiss")


def test_filtering(browser, crowd):
    crowd.do("crowd 50")
    crowd.do("deadlock")
    crowd.wait_for_waiting(52)
    load(browser, crowd)
    type_into(browser, "#find", "MEMBER 1")
    shown_count(browser, "1 of 52")
    assert column(browser, 1) == ["member 10"]
    type_into(browser, "#find", "mutex_lock")
    shown_count(browser, "2 of 52")
    click(browser, "#states input[value=running]")
    shown_count(browser, "0 of 52")
    click(browser, "#states input[value=waiting]")
    shown_count(browser, "2 of 52")
    type_into(browser, "#find", "")
    shown_count(browser, "52")
    browser.evaluate("(() => { const k = document.getElementById('kind'); k.value = 'mutex'; "
                     "k.dispatchEvent(new Event('change')); })()")
    browser.wait_for("document.getElementById('resource-count').textContent === '2'")
    assert "philosopher" in browser.evaluate(
        "document.querySelector('#resources tbody').textContent")
    crowd.do("unlock")


def test_live_update_keeps_the_choice_and_the_place(browser, crowd):
    crowd.do("crowd 300")
    crowd.wait_for_waiting(300)
    load(browser, crowd)
    browser.evaluate("document.getElementById('task-view').scrollTop = 2700")
    browser.wait_for(f"{ROWS}[0]?.children[0].textContent === '1124'")
    browser.evaluate(f"{ROWS}[3].click()")
    chosen = column(browser, 0)[3]
    browser.evaluate(f"window.kept = {ROWS}[3]")
    since = browser.evaluate(f"{ROWS}[3]?.children[3].textContent")
    browser.wait_for(f"{ROWS}[3]?.children[3].textContent !== {since!r}")  # it lives
    crowd.do("beat 5")
    shown_count(browser, "305")
    assert browser.evaluate("document.getElementById('task-view').scrollTop") == 2700
    assert browser.evaluate("kept.isConnected"), "rows are used again, not made again"
    assert browser.evaluate("document.querySelector('[aria-selected=true]').children[0]"
                            ".textContent") == chosen
    assert f"({chosen})" in browser.evaluate("document.querySelector('#details h3').textContent")
    click(browser, "th[data-sort=polls] button")
    browser.wait_for(f"{ROWS}[0]?.children[1].textContent === 'beat'")
    polls = browser.evaluate(f"{ROWS}[0]?.children[4].textContent")
    browser.wait_for(f"{ROWS}[0]?.children[4].textContent !== {polls!r}")
    click(browser, "#pause")
    wait = "document.getElementById('status').textContent === 'paused'"
    browser.evaluate("update()")
    browser.wait_for(wait)
    crowd.do("dismiss")
    crowd.wait_for("dismissal", "/api/tasks?fresh=1", lambda a: a["total"] == 5)
    shown_count(browser, "305")  # as it was
    click(browser, "#pause")
    shown_count(browser, "5")


def test_keys_choose_tasks(browser, crowd):
    crowd.do("crowd 100")
    crowd.wait_for_waiting(100)
    load(browser, crowd)
    selected = "(document.querySelector('[aria-selected=true]') || {children: [{}]})" \
        ".children[0].textContent"
    browser.evaluate("document.getElementById('task-view').focus()")
    browser.press("ArrowDown", 40)
    browser.wait_for(f"{selected} === '1024'")
    browser.press("ArrowDown", 40)
    browser.wait_for(f"{selected} === '1025'")
    browser.press("ArrowUp", 38)
    browser.wait_for(f"{selected} === '1024'")
    browser.press("End", 35)
    browser.wait_for(f"{selected} === '1123'")
    browser.press("Home", 36)
    browser.wait_for(f"{selected} === '1024'")
    assert browser.evaluate("document.activeElement.id") == "task-view"


def test_warnings_lead_to_their_tasks(browser, crowd):
    crowd.do("crowd 20")
    load(browser, crowd)
    assert browser.evaluate("document.getElementById('warnings').hidden")
    crowd.do("deadlock")
    browser.wait_for("!document.getElementById('warnings').hidden")
    text = browser.evaluate("document.getElementById('warning-list').textContent")
    assert "A deadlock: 2 tasks" in text and "left philosopher" in text, text
    click(browser, "#warning-list button")
    shown_count(browser, "1 of 22")
    browser.wait_for("!document.getElementById('details').hidden")
    details = browser.evaluate("document.getElementById('details').textContent")
    assert "left philosopher" in details and "held by" in details, details
    click(browser, "#details dd button")  # who has it waits for this one
    browser.wait_for("document.querySelector('#details h3').textContent.startsWith('right philosopher')")
    crowd.do("unlock")
    browser.wait_for("document.getElementById('warnings').hidden")


def test_a_hundred_thousand_tasks_do_not_freeze_it(browser, crowd):
    crowd.do("crowd 100000")
    crowd.wait_for_waiting(100000)
    load(browser, crowd)
    shown_count(browser, "100,000")
    for place in (0.5, 0.99, 0.1, 1.0, 0.3):
        top = int(browser.evaluate("(() => { const v = document.getElementById('task-view'); "
                                   f"v.scrollTop = {place} * (v.scrollHeight - v.clientHeight); "
                                   "return v.scrollTop; })()"))
        first = 1024 + top // 27
        browser.wait_for(f"{ROWS}.some((r) => r.children[0].textContent === '{first + 3}')")
        # What is on the screen is what the place stands for, and between two updates it draws.
        frames = browser.evaluate("counted.frames")
        browser.wait_for(f"counted.frames > {frames}")
    elements = browser.evaluate("document.querySelectorAll('*').length")
    assert elements < 2000, f"{elements} elements for what fits on a screen"
    before = browser.evaluate("counted.changes")
    first = ticks(browser)
    wait_for_ticks(browser, 2)
    changes = (browser.evaluate("counted.changes") - before) / (ticks(browser) - first)
    assert changes < 5000, f"{changes} changes of the document for an update"
    sizes = [e["encodedDataLength"] for e in browser.named("Network.loadingFinished")]
    assert sizes and max(sizes) < 200_000, f"{max(sizes)} bytes in one answer"
    type_into(browser, "#find", "member 99990")
    shown_count(browser, "1 of 100,000")
    click(browser, "th[data-sort=name] button")
    type_into(browser, "#find", "named_member")
    shown_count(browser, "10,000 of 100,000")


def test_the_end_of_the_program_is_noticed(browser, crowd):
    load(browser, crowd)
    browser.wait_for("document.getElementById('status').textContent === 'live'")
    crowd.stop()
    browser.wait_for("document.getElementById('status').className === 'lost'")
    browser.events[:] = [e for e in browser.events if e["method"] != "Log.entryAdded"]


def nothing_was_wrong(browser, crowd):
    """No error in the page, nothing that its policy refused, no request to anybody else."""
    assert not browser.named("Runtime.exceptionThrown"), browser.named("Runtime.exceptionThrown")
    assert not browser.named("Log.entryAdded"), browser.named("Log.entryAdded")
    for request in browser.named("Network.requestWillBeSent"):
        url = request["request"]["url"]
        assert url.startswith(f"http://{crowd.address}/"), url


def main():
    if not chrome.find():
        print("skipped: no browser; tools/bootstrap browser installs one")
        return 77
    browser = chrome.Browser()
    try:
        for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
            if len(sys.argv) > 2 and name not in sys.argv[2:]:
                continue
            crowd = Crowd(PROGRAM)
            try:
                test(browser, crowd)
                nothing_was_wrong(browser, crowd)
            finally:
                crowd.kill()
            print("ok", name, flush=True)
    finally:
        browser.close()
    return 0


sys.exit(main())
