#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens traces in the viewer of chrome://tracing, and says what it made of them.

    viewer.py CATAPULT TRACE...

Debian's Chromium comes without that viewer, so it is no test: CATAPULT is a checkout of the viewer's
repository (catapult-project/catapult; of it common/, third_party/ and tracing/ are used). Fails if the
viewer warns of anything, or leaves an arrow or the end of a slice out.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "console"))
import chrome  # noqa: E402

IMPORT = """(async () => {
    const model = new tr.Model(), options = new tr.importer.ImportOptions();
    options.showImportWarnings = false;
    await new tr.importer.Import(model, options).importTraces([%s]);
    const threads = model.getAllProcesses().flatMap(p => Object.values(p.threads));
    const slices = threads.flatMap(t => t.sliceGroup.slices);
    return {
        warnings: model.importWarnings.map(w => w.message),
        threads: threads.map(t => `${t.name}: ${t.sliceGroup.slices.length} slices`),
        cut: slices.filter(s => s.didNotFinish).length,
        spans: threads.flatMap(t => t.asyncSliceGroup.slices).map(s => [s.title, s.error || "whole"]),
        arrows: model.flowEvents.map(f => `${f.startSlice.category} to ${f.endSlice.category}`),
    };
})()"""


def check(browser, page, path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    browser.open(f"file://{page}")
    seen = browser.evaluate(IMPORT % json.dumps(text))
    arrows = {kind: seen["arrows"].count(kind) for kind in sorted(set(seen["arrows"]))}
    whole = all(state == "whole" for _, state in seen["spans"])
    print(f"{path}: {len(seen['warnings'])} warnings, arrows {arrows}, {len(seen['spans'])} spans")
    print("\n".join(["  " + line for line in seen["threads"] + seen["warnings"][:20]]))
    return (not seen["warnings"] and whole and seen["cut"] == 0 and
            sum(arrows.values()) == text.count('{"ph":"s"') and
            set(arrows) <= {"spawn to poll", "wake to poll"})


def main():
    catapult, *traces = sys.argv[1:]
    browser = chrome.Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            page = f"{folder}/viewer.html"
            subprocess.run([sys.executable, f"{catapult}/tracing/bin/trace2html", "--quiet", "--output",
                            page, traces[0]], check=True)
            return 0 if all([check(browser, page, path) for path in traces]) else 1
    finally:
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
