"""What was measured, as JSON, as a table and as a plot."""

import json
import os
import xml.sax.saxutils


def best_peer(result):
    """(name, microseconds), or None."""
    return min(result["peers"].items(), key=lambda item: item[1], default=None)


def _number(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def write_json(path, report):
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    os.replace(part, path)


def table(results, peers):
    """Microseconds; `x best` is how many times faster than the best peer."""
    head = [
        "name", "shape", "kernels", "cleave", "limit", "of limit", *peers,
        "x best", "best"
    ]
    rows = [head]
    for result in results:
        best = best_peer(result)
        ratio = result.get("ratios", {}).get(best[0]) if best else None
        own, limit = result["cleave_us"], result["limit_us"]
        kernels = str(result.get("kernels", "-"))
        if result.get("reference"):
            kernels += f" ({len(result['reference'])} slow)"
        rows.append([
            result["name"], result["shape"], kernels,
            "failed" if "cleave" in result["failed"] else _number(own),
            _number(limit),
            f"{limit / own:.2f}" if own and limit else "-",
            *(_number(result["peers"].get(peer)) for peer in peers),
            f"{ratio:.2f}" if ratio else "-", best[0] if best else "-"
        ])
    return _aligned(rows, left=(0, 1, len(head) - 1))


def _aligned(rows, left):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(
        cell.ljust(width) if c in left else cell.rjust(width)
        for c, (cell, width) in enumerate(zip(row, widths))).rstrip()
                     for row in rows)


# Nanoseconds for all threads of a loop to meet at its end.
_BARRIER_NS = 5000


def predicted_ns(result, cores):
    """The time of a call on so many cores, if its loops' tasks take as long as
    here, each as long as the others, and memory is as fast for each core: a
    bound by tasks and barriers. Of a report with one thread."""
    loops = result["loops"]
    apart = result["call_ns"] - sum(loop["ns"] for loop in loops)
    return max(apart, 0) + sum(
        loop["ns"] * -(-loop["tasks"] // cores) / loop["tasks"] + _BARRIER_NS
        for loop in loops)


def prediction(results, cores):
    """What tasks and barriers allow on so many cores, and the memory that must
    move meanwhile."""
    rows = [[
        "name", "shape", "loops", "fewest tasks", "1 core us",
        f"{cores} cores us", "speedup", "GB/s"
    ]]
    for result in results:
        if not result.get("call_ns"):
            continue
        one, many = result["call_ns"], predicted_ns(result, cores)
        tasks = [loop["tasks"] for loop in result["loops"]]
        rows.append([
            result["name"], result["shape"], str(len(tasks)),
            str(min(tasks, default="-")), _number(one / 1e3),
            _number(many / 1e3), f"{one / many:.1f}",
            _number(result["bytes"] / many)
        ])
    return _aligned(rows, left=(0, 1))


_COLORS = {
    "cleave": "#1f5fa8",
    "numpy": "#c9b458",
    "torch": "#d9826b",
    "torch.compile": "#b5533c",
    "jax": "#7fae7a",
}
_LABELS, _PLOT, _BAR, _GAP, _TOP = 190, 620, 9, 12, 64
# Bars longer than this many times the best peer are cut off.
_LONGEST = 3.0


def plot(report):
    """A bar for each contestant, the best peer's time being 1; a line where
    copying the same bytes is."""
    lines = []
    y = _TOP

    def rect(x, y, width, color):
        lines.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
                     f'height="{_BAR}" fill="{color}"/>')

    def text(x, y, words, anchor="start", size=11, color="#222"):
        lines.append(f'<text x="{x:.1f}" y="{y}" font-size="{size}" '
                     f'text-anchor="{anchor}" fill="{color}">'
                     f"{xml.sax.saxutils.escape(words)}</text>")

    unit = _PLOT / _LONGEST
    for result in report["results"]:
        times = dict(result["peers"])
        if result["cleave_us"]:
            times = {"cleave": result["cleave_us"], **times}
        if not times:
            continue
        best = best_peer(result)
        one = best[1] if best else result["cleave_us"]
        top = y
        text(_LABELS - 8, y + _BAR, result["name"], "end")
        for name, microseconds in times.items():
            ratio = microseconds / one
            width = min(ratio, _LONGEST) * unit
            rect(_LABELS, y, width, _COLORS.get(name, "#999"))
            label = f"{_number(microseconds)} us"
            if ratio > _LONGEST:
                label += f" ({ratio:.1f}x)"
            inside = width > _PLOT - 60
            text(_LABELS + width + (-4 if inside else 4), y + _BAR - 1, label,
                 "end" if inside else "start", 8,
                 "#fff" if inside else "#555")
            y += _BAR + 1
        limit = result["limit_us"]
        if limit and limit / one < _LONGEST:
            x = _LABELS + limit / one * unit
            lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}" '
                         f'y2="{y}" stroke="#000" stroke-width="1.5"/>')
        y += _GAP
    width, height = _LABELS + _PLOT + 70, y + 10
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    body, lines[:] = list(lines), []
    text(12, 20, "Time, best peer = 1 (shorter is better); the black line is "
         "memcpy of the same bytes", size=12)
    text(12, 35, report["machine"].get("summary", ""), size=10, color="#555")
    x = 12
    for name in ["cleave", *report["machine"]["peers"]]:
        rect(x, 42, 12, _COLORS.get(name, "#999"))
        text(x + 16, 50, name, size=10)
        x += 30 + 7 * len(name)
    for tick in range(int(_LONGEST) + 1):
        at = _LABELS + tick * unit
        lines.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP - 4}" '
                     f'y2="{height - 8}" stroke="#ddd"/>')
    return "\n".join(head + lines + body + ["</svg>", ""])
