# SPDX-License-Identifier: MIT
"""Numbers as people read them, and tables in Markdown."""


def number(value):
    """Three figures that mean something; more only before the point."""
    if value is None:
        return '–'
    if abs(value) >= 100:
        return f'{value:,.0f}'
    if abs(value) >= 10:
        return f'{value:.1f}'
    return f'{value:.2f}'


def percent(share):
    return '–' if share is None else f'{100 * share:.0f} %'


def table(head, rows, left=1):
    """The first `left` columns are words, the others numbers."""
    lines = [head, ['---' if i < left else '---:' for i in range(len(head))], *rows]
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def cell(text):
    """A text that cannot break the table."""
    return ' '.join(text.replace('|', '/').split())
