# SPDX-License-Identifier: MIT
"""Bars as SVG, in colours that follow the reader's light or dark page and need nothing from
elsewhere. Values that differ by more than SPAN are drawn on a logarithmic scale, and say so."""
import math
from xml.sax.saxutils import escape

from . import tables

SPAN = 50
WIDTH, NAMES, NUMBERS, LINE, TOP = 760, 200, 90, 22, 48

STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.note { fill: #59636e; font-size: 12px }
.bar { fill: #9aa4b2 }
.ours { fill: #1f6feb }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.note { fill: #9198a1 }
.bar { fill: #6e7681 }
.ours { fill: #4493f8 }
}"""


def lengths(values):
    """The share of the full width of each, and whether they are logarithms."""
    least, most = min(values), max(values)
    if most <= 0:
        return [0] * len(values), False
    if least <= 0 or most / least <= SPAN:
        return [max(value, 0) / most for value in values], False
    floor = math.floor(math.log10(least)) - 0.2
    return [(math.log10(v) - floor) / (math.log10(most) - floor) for v in values], True


def bars(title, unit, rows):
    """Rows are (title, value, name); names that begin with holdfast are ours."""
    shares, logarithmic = lengths([value for _, value, _ in rows])
    room, height = WIDTH - NAMES - NUMBERS, TOP + LINE * len(rows) + 8
    note = unit + (', logarithmic' if logarithmic else '')
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" role="img">', f'<title>{escape(title)}</title>',
           f'<style>{STYLE}</style>', f'<text class="title" x="8" y="18">{escape(title)}</text>',
           f'<text class="note" x="8" y="36">{escape(note)}</text>']
    for i, ((name, value, key), share) in enumerate(zip(rows, shares)):
        y, length = TOP + i * LINE, max(share * room, 1)
        kind = 'bar ours' if key.startswith('holdfast') else 'bar'
        out += [f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
                f'<rect class="{kind}" x="{NAMES}" y="{y + 2}" width="{length:.1f}" height="16" '
                'rx="2"/>',
                f'<text x="{NAMES + length + 6:.1f}" y="{y + 14}">{tables.number(value)}</text>']
    return '\n'.join([*out, '</svg>', ''])
