// SPDX-License-Identifier: Apache-2.0
// The page asks the program once a second and shows the answers. Of the tasks it asks only for
// those that are on the screen and a few around them: the program sorts and filters. Elements stay
// where they are and get new text, so that the choice, the focus and the place stay, too.
"use strict";

// "/?period=200" asks more often.
const PERIOD = Math.max(100, Number(new URLSearchParams(location.search).get("period")) || 1000);
const ROW = 27, AROUND = 20, MAX_WINDOW = 200, HISTORY = 60;
const ROWS_SHOWN = Math.ceil(430 / ROW) + 2; // as many as have room in the list (console.css)
const $ = (id) => document.getElementById(id);

const view = {
    runtime: 0, sort: "id", order: "asc", find: "", states: "", selected: null, kind: "",
    offset: 0, matched: 0, tasks: [], first: 0, paused: false, ticks: 0,
};
let overview = null, before = null, timer = null, asking = false, again = false;
const busy = new Map(); // of each worker, the last minute

// ---- numbers and elements ----

function duration(ns) {
    if (ns < 1e3) return ns + " ns";
    if (ns < 1e6) return (ns / 1e3).toFixed(ns < 1e4 ? 1 : 0) + " µs";
    if (ns < 1e9) return (ns / 1e6).toFixed(ns < 1e7 ? 1 : 0) + " ms";
    if (ns < 120e9) return (ns / 1e9).toFixed(1) + " s";
    if (ns < 7200e9) return Math.floor(ns / 60e9) + " min";
    return (ns / 3600e9).toFixed(1) + " h";
}

function number(n) {
    if (n >= 1e7) return (n / 1e6).toFixed(1) + " M";
    return Math.round(n).toLocaleString("en");
}

function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
}

// As many children as there are items: they are made by `create`, and filled in by `fill`.
function sync(parent, items, create, fill) {
    while (parent.children.length > items.length) parent.lastElementChild.remove();
    while (parent.children.length < items.length) parent.append(create());
    items.forEach((item, i) => fill(parent.children[i], item, i));
}

function cells(row, count, numeric) {
    for (let i = 0; i < count; i++) row.append(make("td", numeric.includes(i) ? "n" : ""));
    return row;
}

async function ask(path) {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) throw new Error(path + ": " + answer.status);
    return answer.json();
}

// ---- the overview ----

function runtimeOf(o) {
    return o && o.runtimes[view.runtime];
}

// By how much a number grew in a second.
function rate(now, then) {
    const seconds = (overview.time_ns - before.time_ns) / 1e9;
    return seconds > 0 ? Math.max(0, now - then) / seconds : 0;
}

function showHead() {
    const rt = runtimeOf(overview);
    setText($("title"), overview.title);
    document.title = overview.title + " – Blitz console";
    setText($("about"), `pid ${overview.pid}, Blitz ${overview.version}` +
        (rt.ended ? ", this runtime has ended" : `, I/O by ${rt.backend}`));
    $("choose").hidden = overview.runtimes.length < 2;
    sync($("runtime"), overview.runtimes, () => make("option"), (option, r) => {
        option.value = r.index;
        setText(option, r.ended ? `${r.index} (ended)` : `${r.index} ${r.name}`);
    });
    $("runtime").value = view.runtime;
}

function showFigures(rt, old) {
    const total = (key) => rt.workers.reduce((sum, w) => sum + w[key], 0);
    const figures = [
        [number(rt.live_tasks), "tasks"],
        [old ? number(rate(rt.spawned, old.spawned)) : "–", "spawned a second"],
        [old ? number(rate(rt.polls, old.polls)) : "–", "polls a second"],
        [number(rt.inject_depth + total("queue_depth")), "queued"],
        [`${rt.workers.length - rt.workers_parked} of ${rt.workers.length}`, "workers awake"],
        [duration(rt.poll_time.p99_ns), "poll time, 99 %"],
        [duration(rt.latency.p99_ns), "latency, 99 %"],
    ];
    sync($("figures"), figures, () => {
        const box = make("div");
        box.append(make("b"), make("span"));
        return box;
    }, (box, [value, name]) => {
        setText(box.firstChild, value);
        setText(box.lastChild, name);
    });
}

function makeWorker() {
    const row = cells(make("tr"), 11, [4, 5, 6, 7, 8, 9, 10]);
    const meter = make("span", "meter"), spark = document.createElementNS(
        "http://www.w3.org/2000/svg", "svg");
    meter.append(make("i"));
    row.children[2].append(meter, make("span"));
    spark.setAttribute("class", "spark");
    spark.setAttribute("viewBox", `0 0 ${HISTORY - 1} 20`);
    spark.setAttribute("preserveAspectRatio", "none");
    spark.setAttribute("role", "img");
    spark.append(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
    row.children[3].append(spark);
    return row;
}

function remember(worker, share) {
    const key = view.runtime + "/" + worker;
    const past = busy.get(key) || [];
    past.push(share);
    if (past.length > HISTORY) past.shift();
    busy.set(key, past);
    return past;
}

function fillWorker(row, w, old) {
    const cell = row.children;
    const share = old ? Math.min(1, rate(w.busy_ns, old.busy_ns) / 1e9) : 0;
    const past = remember(w.index, share);
    const text = old ? Math.round(share * 100) + " %" : "–";
    setText(cell[0], String(w.index));
    setText(cell[1], w.parked ? "parked" : "awake");
    cell[1].className = w.parked ? "dim" : "state-running";
    cell[2].firstChild.firstChild.style.width = (share * 100).toFixed(1) + "%";
    setText(cell[2].lastChild, text);
    cell[3].firstChild.setAttribute("aria-label", `busy, last minute; now ${text}`);
    cell[3].firstChild.firstChild.setAttribute("points", past.map(
        (s, i) => `${HISTORY - past.length + i},${(19 - s * 18).toFixed(1)}`).join(" "));
    setText(cell[4], number(w.queue_depth));
    ["polls", "stolen", "parks", "io_completions", "timers_fired"].forEach((key, i) =>
        setText(cell[5 + i], old ? number(rate(w[key], old[key])) : "–"));
    setText(cell[10], number(w.stuck));
}

// One bar for each power of two.
function showHistogram(element, h, what) {
    const bars = new Map();
    let low = Infinity, high = 0;
    for (const [floor, count] of h.buckets) {
        const power = floor < 1 ? 0 : Math.floor(Math.log2(floor));
        bars.set(power, (bars.get(power) || 0) + count);
        low = Math.min(low, power);
        high = Math.max(high, power);
    }
    const powers = [];
    for (let p = Math.min(low, 6); p <= Math.max(high, 24); p++) powers.push(p);
    const most = Math.max(1, ...bars.values());
    if (!element.firstChild) {
        element.append(make("div", "bars"), make("div", "scale"), make("div", "dim"));
        element.firstChild.setAttribute("role", "img");
    }
    const summary = h.samples ? `median ${duration(h.p50_ns)}, 90 % ${duration(h.p90_ns)}, ` +
        `99 % ${duration(h.p99_ns)}, longest ${duration(h.max_ns)}` : "nothing has been timed yet";
    element.firstChild.setAttribute("aria-label", `${what}: ${summary}`);
    sync(element.children[0], powers, () => make("i"), (bar, p) => {
        const count = bars.get(p) || 0;
        // The square root, so that the rare long ones can be seen.
        bar.style.height = (Math.sqrt(count / most) * 100).toFixed(1) + "%";
        bar.title = `${duration(2 ** p)} to ${duration(2 ** (p + 1))}: ${number(count)}`;
    });
    sync(element.children[1], [0, 1, 2, 3].map((i) =>
        powers[Math.round(i * (powers.length - 1) / 3)]), () => make("span"),
        (span, p) => setText(span, duration(2 ** p)));
    setText(element.children[2], `${summary} (${number(h.samples)} samples)`);
}

function showPools(rt, old) {
    const rows = [["blocking", rt.blocking.threads, rt.blocking.idle, rt.blocking.queued,
        old ? number(rate(rt.blocking.jobs, old.blocking.jobs)) : "–"]];
    overview.pools.forEach((p, i) => {
        const then = before && before.pools[i];
        rows.push(["fork-join, " + p.name, p.threads, p.sleeping + p.looking, p.queued,
            then ? number(rate(p.injected + p.published, then.injected + then.published)) : "–"]);
    });
    sync($("pools").tBodies[0], rows, () => cells(make("tr"), 5, [1, 2, 3, 4]), (row, values) =>
        values.forEach((v, i) => setText(row.children[i], String(v))));
}

function showOverview() {
    const rt = runtimeOf(overview), old = runtimeOf(before);
    const comparable = old && !old.ended ? old : null;
    showHead();
    if (rt.ended) return;
    showFigures(rt, comparable);
    sync($("workers").tBodies[0], rt.workers, makeWorker, (row, w, i) =>
        fillWorker(row, w, comparable && comparable.workers[i]));
    showHistogram($("poll-time"), rt.poll_time, "Poll time");
    showHistogram($("latency"), rt.latency, "Scheduling latency");
    showPools(rt, comparable);
}

// ---- warnings ----

function taskLink(id, text) {
    const button = make("button", "", text);
    button.type = "button";
    button.addEventListener("click", () => choose(id));
    return button;
}

function showWarnings(answer) {
    const list = $("warning-list"), text = JSON.stringify(answer.warnings.map((w) => w.key));
    $("warnings").hidden = answer.warnings.length === 0;
    if (list.dataset.key !== text) { // the buttons stay, so that the focus does
        list.dataset.key = text;
        list.replaceChildren(...answer.warnings.map((w) => {
            const item = make("li");
            item.append(make("span"), ...w.tasks.map((t) => taskLink(t.id, `${t.name} ${t.id}`)));
            return item;
        }));
    }
    answer.warnings.forEach((w, i) => setText(list.children[i].firstChild, w.text + " "));
}

// ---- tasks ----

// The tree of futures, the innermost first: what it waits for can be seen even where the rest has
// no room. { 0: read ‹ client c.c:3 | 1: sleep } ‹ select
function where(task) {
    const stack = task.stack;
    let i = 0;
    function subtree() {
        const frame = stack[i++], parts = [];
        let grouped = false;
        while (i < stack.length && stack[i].depth > frame.depth) {
            const branch = stack[i].branch, text = subtree();
            grouped = branch !== undefined;
            parts.push(grouped ? `${branch}: ${text}` : text);
        }
        const own = frame.at ? `${frame.fn} ${frame.at}` : frame.fn, inner = parts.join(" | ");
        return parts.length === 0 ? own : grouped ? `{ ${inner} } ‹ ${own}` : `${inner} ‹ ${own}`;
    }
    return stack.length ? subtree() : "";
}

function makeTaskRow() {
    const row = cells(make("tr", "row"), 7, [0, 3, 4, 5]);
    row.children[6].className = "where";
    row.addEventListener("click", () => { if (row.task) select(row.task); });
    return row;
}

function fillTaskRow(row, task, index) {
    const cell = row.children;
    row.task = task;
    row.setAttribute("aria-rowindex", String(index + 2));
    row.setAttribute("aria-selected", String(task.id === view.selected));
    setText(cell[0], String(task.id));
    setText(cell[1], task.name);
    setText(cell[2], task.cancelled ? task.state + ", cancelled" : task.state);
    cell[2].className = task.cancelled ? "cancelled" : "state-" + task.state;
    setText(cell[3], duration(task.since_ns));
    setText(cell[4], number(task.polls));
    setText(cell[5], duration(task.busy_ns));
    const text = where(task);
    setText(cell[6], text);
    cell[6].title = text;
}

// The rows that can be seen, between two that are as high as those that cannot.
function layOut() {
    const box = $("task-view"), body = $("tasks").tBodies[0];
    if (body.children.length === 0)
        for (let i = 0; i < 2; i++) {
            const space = make("tr", "space");
            space.setAttribute("aria-hidden", "true");
            space.append(make("td"));
            space.firstChild.colSpan = 7;
            body.append(space);
        }
    const first = Math.max(0, Math.min(Math.floor(box.scrollTop / ROW),
        view.matched - ROWS_SHOWN));
    const tasks = [];
    for (let i = first; i < Math.min(first + ROWS_SHOWN, view.matched); i++)
        if (view.tasks[i - view.offset]) tasks.push([i, view.tasks[i - view.offset]]);
    const begin = tasks.length ? tasks[0][0] : first;
    while (body.children.length - 2 > tasks.length) body.children[1].remove();
    while (body.children.length - 2 < tasks.length) body.lastElementChild.before(makeTaskRow());
    tasks.forEach(([index, task], i) => fillTaskRow(body.children[1 + i], task, index));
    body.firstElementChild.firstChild.style.height = begin * ROW + "px";
    body.lastElementChild.firstChild.style.height =
        Math.max(0, view.matched - begin - tasks.length) * ROW + "px";
    $("tasks").setAttribute("aria-rowcount", String(view.matched + 1));
    return first;
}

function taskQuery() {
    const first = Math.floor($("task-view").scrollTop / ROW);
    const query = new URLSearchParams({
        rt: view.runtime, sort: view.sort, order: view.order,
        offset: Math.max(0, first - AROUND), limit: Math.min(MAX_WINDOW, ROWS_SHOWN + 2 * AROUND),
    });
    if (view.find) query.set("q", view.find);
    if (view.states) query.set("state", view.states);
    return query;
}

function showTasks(answer) {
    view.offset = answer.offset;
    view.matched = answer.matched;
    view.tasks = answer.tasks;
    setText($("task-count"), answer.matched === answer.total ? number(answer.total) :
        `${number(answer.matched)} of ${number(answer.total)}`);
    layOut();
    const chosen = view.tasks.find((t) => t.id === view.selected);
    if (chosen) showDetails(chosen);
}

function showDetails(task) {
    const box = $("details");
    box.hidden = false;
    if (!box.firstChild)
        box.append(make("h3"), make("dl"), make("ol"), make("dl"));
    setText(box.children[0], `${task.name} (${task.id})`);
    const facts = [["State", task.cancelled ? task.state + ", cancelled" : task.state],
        ["For", duration(task.since_ns)], ["Polls", number(task.polls)],
        ["Busy", duration(task.busy_ns)], ["Spawned at", task.spawned]];
    if (task.worker !== undefined) facts.push(["Worker", String(task.worker)]);
    fillFacts(box.children[1], facts);
    sync(box.children[2], task.stack, () => make("li"), (item, f) => {
        item.style.paddingLeft = f.depth * 0.9 + "em";
        const branch = f.branch === undefined ? "" : `${f.branch}: `;
        setText(item, branch + (f.at ? `${f.fn}  ${f.at}` : f.fn));
    });
    const waits = box.children[3];
    sync(waits, task.waits.flatMap((w) => [null, w]),
        () => make(waits.children.length % 2 ? "dd" : "dt"),
        (cell, w) => w ? fillWait(cell, w) : setText(cell, "Waits for"));
}

function fillWait(cell, wait) {
    const holder = String(wait.holder ?? "");
    if (!cell.firstChild || cell.dataset.holder !== holder) {
        cell.dataset.holder = holder;
        cell.replaceChildren(make("span"), ...(holder ? [taskLink(wait.holder, holder)] : []));
    }
    setText(cell.firstChild, `${wait.kind} ${wait.fd ?? wait.object}` +
        (wait.due_in_ns !== undefined ? `, due in ${duration(Math.max(0, wait.due_in_ns))}` : "") +
        (holder ? ", held by " : ""));
}

function fillFacts(list, facts) {
    sync(list, facts.flat(), () => make(list.children.length % 2 ? "dd" : "dt"),
        (element, text) => setText(element, text));
}

function select(task) {
    view.selected = task.id;
    layOut();
    showDetails(task);
}

// A task that may be anywhere: found by its number.
async function choose(id) {
    $("find").value = view.find = String(id);
    view.selected = id;
    $("task-view").scrollTop = 0;
    await update();
    $("task-view").focus();
}

function moveBy(rows) {
    const box = $("task-view");
    const at = view.tasks.findIndex((t) => t.id === view.selected);
    const index = at < 0 ? Math.floor(box.scrollTop / ROW) : view.offset + at + rows;
    const next = Math.max(0, Math.min(view.matched - 1, index));
    const head = $("tasks").tHead.offsetHeight;
    if (next * ROW < box.scrollTop) box.scrollTop = next * ROW;
    const bottom = (next + 1) * ROW + head - box.clientHeight;
    if (bottom > box.scrollTop) box.scrollTop = bottom;
    const task = view.tasks[next - view.offset];
    if (task) select(task);
    else view.wanted = next;
}

// ---- what they wait for ----

function showResources(answer) {
    const kinds = ["", ...answer.kinds.map((k) => k.kind)];
    setText($("resource-count"), number(answer.matched));
    sync($("kind"), kinds, () => make("option"), (option, kind, i) => {
        option.value = kind;
        setText(option, kind ? `${kind} (${number(answer.kinds[i - 1].resources)})` : "all");
    });
    $("kind").value = view.kind;
    sync($("resources").tBodies[0], answer.resources, () => cells(make("tr"), 6, [2, 3]),
        (row, r) => {
            const cell = row.children;
            setText(cell[0], r.kind);
            setText(cell[1], r.label);
            setText(cell[2], number(r.waiting));
            setText(cell[3], duration(r.longest_ns));
            setLinks(cell[4], r.holder ? [r.holder] : []);
            setLinks(cell[5], r.waiters, r.waiting > r.waiters.length ?
                `and ${number(r.waiting - r.waiters.length)} more` : "");
        });
}

function setLinks(cell, tasks, rest = "") {
    const key = JSON.stringify([tasks.map((t) => t.id), rest]);
    if (cell.dataset.key === key) return;
    cell.dataset.key = key;
    cell.replaceChildren(...tasks.map((t) => taskLink(t.id, `${t.name} ${t.id}`)), rest);
}

// ---- asking ----

async function update() {
    if (asking) {
        again = true; // with what is wanted now
        return;
    }
    asking = true;
    try {
        do {
            again = false;
            const rt = view.runtime, kind = encodeURIComponent(view.kind);
            const [o, tasks] = await Promise.all([ask("/api/overview"),
                ask("/api/tasks?" + taskQuery())]);
            const [resources, warnings] = await Promise.all([
                ask(`/api/resources?rt=${rt}&kind=${kind}&limit=50`),
                ask(`/api/warnings?rt=${rt}`)]);
            if (rt !== view.runtime) continue;
            if (!overview || o.time_ns - overview.time_ns > 5e8) {
                before = overview;
                overview = o;
                showOverview();
            }
            showTasks(tasks);
            showResources(resources);
            showWarnings(warnings);
            setText($("status"), view.paused ? "paused" : "live");
            $("status").className = "";
        } while (again);
    } catch (error) {
        setText($("status"), "no answer from the program");
        $("status").className = "lost";
    } finally {
        asking = false;
        view.ticks++;
        document.documentElement.dataset.ticks = view.ticks;
    }
}

// Nobody looks: nothing is asked.
async function tick() {
    clearTimeout(timer);
    if (!view.paused && !document.hidden) await update();
    clearTimeout(timer);
    timer = setTimeout(tick, PERIOD);
}

// While it is scrolled, what is not there is asked for, one request at a time.
let scrolling = false;
async function onScroll() {
    const first = layOut();
    const there = view.tasks.length && first >= view.offset &&
        Math.min(first + ROWS_SHOWN, view.matched) <= view.offset + view.tasks.length;
    if (there || scrolling) return;
    scrolling = true;
    try {
        showTasks(await ask("/api/tasks?" + taskQuery()));
        if (view.wanted !== undefined && view.tasks[view.wanted - view.offset])
            select(view.tasks[view.wanted - view.offset]);
        view.wanted = undefined;
    } catch (error) {
        // the next tick says so
    }
    scrolling = false;
    if (layOut() !== first) onScroll();
}

function sortBy(key) {
    const numeric = ["since", "polls", "busy"].includes(key);
    view.order = view.sort === key ? (view.order === "asc" ? "desc" : "asc") :
        (numeric ? "desc" : "asc");
    view.sort = key;
    showSort();
    $("task-view").scrollTop = 0;
    update();
}

function showSort() {
    for (const th of $("tasks").tHead.querySelectorAll("th[data-sort]"))
        th.setAttribute("aria-sort", th.dataset.sort !== view.sort ? "none" :
            view.order === "asc" ? "ascending" : "descending");
}

function start() {
    const keys = { ArrowDown: 1, ArrowUp: -1, PageDown: 14, PageUp: -14, Home: -1e9, End: 1e9 };
    for (const th of $("tasks").tHead.querySelectorAll("th[data-sort]"))
        th.firstElementChild.addEventListener("click", () => sortBy(th.dataset.sort));
    showSort();
    $("task-view").addEventListener("scroll", onScroll, { passive: true });
    $("task-view").addEventListener("keydown", (event) => {
        if (event.target !== $("task-view") || !(event.key in keys)) return;
        event.preventDefault();
        moveBy(keys[event.key]);
    });
    $("find").addEventListener("input", () => {
        view.find = $("find").value.trim();
        $("task-view").scrollTop = 0;
        update();
    });
    $("states").addEventListener("change", () => {
        view.states = [...$("states").querySelectorAll("input:checked")].map((i) => i.value).join();
        $("task-view").scrollTop = 0;
        update();
    });
    $("kind").addEventListener("change", () => { view.kind = $("kind").value; update(); });
    $("runtime").addEventListener("change", () => {
        view.runtime = Number($("runtime").value);
        overview = before = null;
        update();
    });
    $("pause").addEventListener("click", () => {
        view.paused = !view.paused;
        $("pause").setAttribute("aria-pressed", String(view.paused));
        setText($("pause"), view.paused ? "Go on" : "Pause");
        tick();
    });
    document.addEventListener("visibilitychange", tick);
    window.addEventListener("resize", layOut);
    tick();
}

start();
