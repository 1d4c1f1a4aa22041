# SPDX-License-Identifier: Apache-2.0
"""A chart of ratios as SVG: a row for each benchmark, a mark for each peer, a line for its spread.

The scale is logarithmic; left of the line at 1 Blitz is better. The colours are those of the reader's
scheme, light or dark.
"""
import html
import math

LEFT, RIGHT, ROW, BOTTOM = 280, 20, 22, 44 # the longest name, in a wide font, has its room
WIDTH = 950
SHAPES = 'circle', 'square', 'diamond', 'triangle', 'ring', 'box', 'cross', 'bar'
COLOURS = '#4269d0', '#e07b00', '#3a9a5c', '#c4456f', '#7b5cc4', '#12908e', '#8c6d46', '#7d7d7d'

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #222 }
  .faint { fill: #666 } .grid { stroke: #ddd } .one { stroke: #222; stroke-width: 1.5 }
  .good { fill: #2a7f3f10 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .faint { fill: #999 } .grid { stroke: #444 } .one { stroke: #ddd }
    .good { fill: #5ad17a14 } }
"""


def mark(shape, x, y, colour):
    """One mark of a peer, about nine pixels wide."""
    fill, line = f'fill="{colour}"', f'fill="none" stroke="{colour}" stroke-width="2"'
    path = {
        'diamond': f'M{x} {y - 5}l5 5l-5 5l-5 -5z', 'triangle': f'M{x} {y - 5}l5 9h-10z',
        'cross': f'M{x - 4} {y - 4}l8 8m0 -8l-8 8', 'bar': f'M{x} {y - 5}v10',
    }
    if shape in path:
        return f'<path d="{path[shape]}" {line if shape in ("cross", "bar") else fill}/>'
    if shape in ('square', 'box'):
        return (f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" '
                f'{fill if shape == "square" else line}/>')
    return f'<circle cx="{x}" cy="{y}" r="4.5" {fill if shape == "circle" else line}/>'


def ticks(low, high):
    """1, 2, 5, 10 ... between the limits."""
    found = []
    for power in range(-4, 4):
        found += [m * 10.0 ** power for m in (1, 2, 5)]
    return [t for t in found if low <= t <= high]


class Scale:
    def __init__(self, values):
        self.low = min(0.5, min(values)) / 1.15
        self.high = max(1.25, max(values)) * 1.15
        self.width = WIDTH - LEFT - RIGHT

    def __call__(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(LEFT + self.width * share, 1)


def look(i):
    """Shape and colour of the peer with that number; no two of the first 64 are alike."""
    return SHAPES[(i + i // 8) % 8], COLOURS[i % 8]


def legend(peers):
    """Its parts, and where it ends."""
    parts, x, y = [], LEFT, 42
    for i, peer in enumerate(peers):
        width = 28 + 7 * len(peer)
        if x + width > WIDTH:
            x, y = LEFT, y + 20
        shape, colour = look(i)
        parts.append(mark(shape, x + 5, y - 4, colour))
        parts.append(f'<text x="{x + 15}" y="{y}">{html.escape(peer)}</text>')
        x += width
    return parts, y + 16


def chart(title, rows):
    """rows: (label, [(peer, ratio, lowest, highest)]); every ratio above 0."""
    peers = list(dict.fromkeys(p for _, marks in rows for p, *_ in marks))
    scale = Scale([v for _, marks in rows for _, *values in marks for v in values])
    names, top = legend(peers)
    height = top + ROW * len(rows) + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'role="img" aria-label="{html.escape(title)}">', f'<style>{STYLE}</style>',
           f'<text x="{LEFT}" y="18" font-weight="600">{html.escape(title)}</text>',
           f'<rect class="good" x="{LEFT}" y="{top}" width="{scale(1) - LEFT:.1f}" '
           f'height="{height - top - BOTTOM}"/>']
    out += names
    for t in ticks(scale.low, scale.high):
        kind = 'one' if t == 1 else 'grid'
        out.append(f'<path class="{kind}" d="M{scale(t)} {top}V{height - BOTTOM}"/>')
        out.append(f'<text class="faint" x="{scale(t)}" y="{height - BOTTOM + 16}" '
                   f'text-anchor="middle">{t:g}</text>')
    for i, (label, marks) in enumerate(rows):
        y = top + ROW * i + ROW // 2
        out.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{html.escape(label)}</text>')
        for peer, value, low, high in marks:
            shape, colour = look(peers.index(peer))
            out.append(f'<path d="M{scale(low)} {y}H{scale(high)}" stroke="{colour}" '
                       'stroke-opacity=".45" stroke-width="2"/>')
            out.append(mark(shape, scale(value), y, colour))
    out.append(f'<text class="faint" x="{WIDTH - RIGHT}" y="{height - 6}" text-anchor="end">'
               'Blitz divided by the peer: left of 1 Blitz is better</text>')
    return '\n'.join(out + ['</svg>', ''])
