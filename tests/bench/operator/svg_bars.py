"""Bars in groups as SVG, readable on a light and on a dark page."""
from xml.sax.saxutils import escape

WIDTH, LEFT, TOP, PANEL_HEIGHT, BOTTOM = 760, 20, 70, 220, 30
COLOURS = ("#8a8f98", "#2f6fde", "#d9822b", "#6a9a3b")
TEXT = "#7a7f87"


def label(x, y, words, anchor="middle", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{TEXT}" '
            f'font-family="sans-serif">{escape(words)}</text>')


def bar(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" rx="2"/>'


def legend(names):
    step = (WIDTH - 2 * LEFT) / max(len(names), 1)
    for index, name in enumerate(names):
        yield bar(LEFT + index * step, 38, 12, 12, COLOURS[index])
        yield label(LEFT + index * step + 18, 48, name, "start")


def draw(title, groups, names, digits=0):
    """`groups`: by name of the group, a value for some of `names`. The values stand over their bars, rounded to
    `digits`."""
    most = max((value for group in groups.values() for value in group.values()), default=1)
    base, group_width = TOP + PANEL_HEIGHT, (WIDTH - 2 * LEFT) / max(len(groups), 1)
    bar_width = group_width * 0.8 / len(names)
    parts = [label(LEFT, 24, title, "start", 15), *legend(names)]
    for index, (group, values) in enumerate(groups.items()):
        left = LEFT + (index + 0.1) * group_width
        for place, name in enumerate(names):
            if name not in values:
                continue
            height = values[name] / most * (PANEL_HEIGHT - 20)
            x = left + place * bar_width
            parts.append(bar(x + 2, base - height, bar_width - 4, height, COLOURS[place]))
            parts.append(label(x + bar_width / 2, base - height - 5, f"{values[name]:.{digits}f}"))
        parts.append(label(left + 0.4 * group_width, base + 20, group))
    parts.append(f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - LEFT}" y2="{base}" stroke="{TEXT}"/>')
    height = base + BOTTOM
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, *parts, "</svg>"]) + "\n"
