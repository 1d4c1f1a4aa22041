// SPDX-License-Identifier: Apache-2.0
// The search: an index that is fetched when the field is first used, and nothing else. Every word of
// a question must occur; a name that is the question comes first, then names that begin with it,
// then headings, then texts; of equal ones the guide.
"use strict";

// Entries are [address, title, page, text in lower case]; gives the best of them.
function search(index, question, limit) {
    const words = question.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];

    if (words.length === 0)
        return found;
    for (const entry of index) {
        const score = rank(entry, words);
        if (score > 0)
            found.push([score, entry]);
    }
    found.sort((a, b) => b[0] - a[0] || a[1][1].length - b[1][1].length);
    return found.slice(0, limit).map((f) => f[1]);
}

function rank(entry, words) {
    const title = entry[1].toLowerCase(), names = title.split(/[\s,]+/);
    let score = entry[0].startsWith("guide/") ? 2 : entry[0].includes("#") ? 0 : 1;

    for (const word of words) {
        if (names.includes(word))
            score += 100;
        else if (names.some((name) => name.startsWith(word)))
            score += 60;
        else if (title.includes(word))
            score += 30;
        else if (entry[3].includes(word))
            score += 5;
        else
            return 0;
    }
    return score;
}

function attach() {
    const field = document.getElementById("question"), list = document.getElementById("found");
    const top = document.documentElement.dataset.top;
    let chosen = -1, index = null;

    function load() {
        if (index !== null || document.getElementById("index"))
            return;
        const script = document.createElement("script");
        script.id = "index";
        script.src = top + "search-index.js";
        script.onload = () => { index = window.blitzIndex; show(); };
        document.head.append(script);
    }
    function show() {
        list.replaceChildren();
        chosen = -1;
        for (const [address, title, page] of search(index || [], field.value, 12)) {
            const item = document.createElement("li"), link = document.createElement("a");
            const where = document.createElement("small");
            link.href = top + address;
            link.textContent = title;
            where.textContent = page;
            link.append(where);
            item.append(link);
            list.append(item);
        }
    }
    function choose(step) {
        const links = list.querySelectorAll("a");
        if (links.length === 0)
            return;
        chosen = (chosen + step + links.length) % links.length;
        links.forEach((link, i) => link.classList.toggle("chosen", i === chosen));
        links[chosen].scrollIntoView({ block: "nearest" });
    }
    field.addEventListener("focus", load);
    field.addEventListener("input", show);
    field.addEventListener("keydown", (event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            choose(event.key === "ArrowDown" ? 1 : -1);
        } else if (event.key === "Escape") {
            field.value = "";
            show();
        }
    });
    field.form.addEventListener("submit", (event) => {
        event.preventDefault();
        const links = list.querySelectorAll("a");
        if (links.length > 0)
            location.href = links[Math.max(chosen, 0)].href;
        list.replaceChildren();
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== field) {
            event.preventDefault();
            field.focus();
        }
    });
    document.addEventListener("click", (event) => {
        if (!field.form.contains(event.target))
            list.replaceChildren();
    });
}

if (typeof document !== "undefined")
    attach();
else
    module.exports = { search };
