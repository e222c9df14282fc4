// The style sheet of the report.

#ifndef CLEAVE_TESTING_REPORT_STYLE_H_
#define CLEAVE_TESTING_REPORT_STYLE_H_

namespace cleave {

// Neither `<` nor `&` is in it: the page is XML, too.
inline constexpr char kReportStyle[] = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f6f7f9; --line: #d9dde3;
  --text: #1b2028; --muted: #565f6c; --link: #1557b0;
  --good: #17693a; --bad: #b3201c; --warn: #8a5300;
  --bad-panel: #fdeeed; --mark: #ffeaa8;
  --errors: #4a78c4; --grid: #d0d5dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --panel: #1d2128; --line: #363c46;
    --text: #e6e9ee; --muted: #a4adba; --link: #8ab8ff;
    --good: #6fd096; --bad: #ff938c; --warn: #f0b860;
    --bad-panel: #35201f; --mark: #5c4a12;
    --errors: #7aa5ea; --grid: #3a414c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 76rem;
  background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 0.25rem; }
h2 {
  font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 0.75rem;
  padding-bottom: 0.3rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere;
}
h3 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
h4 { font-size: 0.95rem; margin: 1.25rem 0 0.4rem; }
p { margin: 0.4rem 0; max-width: 48rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre, .mono {
  font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace;
  font-size: 0.85rem;
}
pre {
  margin: 0.4rem 0; padding: 0.75rem 0.9rem; line-height: 1.45;
  background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; overflow-x: auto; tab-size: 2;
}
nav ul, .files {
  display: flex; flex-wrap: wrap; gap: 0.35rem 1.25rem;
  list-style: none; margin: 0.75rem 0; padding: 0;
}
li { overflow-wrap: anywhere; min-width: 0; }
.muted { color: var(--muted); }
.numbers {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr));
  gap: 0.75rem; margin: 1.25rem 0;
}
.numbers div {
  padding: 0.6rem 0.9rem;
  background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px;
}
.numbers dt { color: var(--muted); font-size: 0.85rem; }
.numbers dd {
  margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums;
}
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
caption {
  text-align: left; color: var(--muted); font-size: 0.85rem;
  padding-bottom: 0.3rem;
}
th, td {
  padding: 0.3rem 0.9rem 0.3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line);
}
thead th { font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.verdicts td { white-space: nowrap; font-size: 0.85rem; }
article td:nth-child(2) { white-space: nowrap; }
article .scroll td:last-child { min-width: 18rem; }
.counterexample td:nth-child(2) { white-space: normal; }
.agrees { color: var(--good); }
.disagrees { color: var(--bad); font-weight: 700; }
.inconclusive, .not-independent, .loose { color: var(--warn); font-weight: 600; }
.not-checked { color: var(--muted); }
.bar {
  display: inline-block; width: 6rem; height: 0.6rem; border-radius: 3px;
  background: var(--line); overflow: hidden; vertical-align: baseline;
}
.bar span { display: block; height: 100%; background: var(--errors); }
article {
  margin: 1rem 0; padding: 1rem 1.1rem; border: 1px solid var(--line);
  border-radius: 8px;
  content-visibility: auto; contain-intrinsic-size: auto 24rem;
}
article header {
  display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; align-items: baseline;
  justify-content: space-between; margin-bottom: 0.5rem;
}
.counterexample {
  margin: 0.75rem 0; padding: 0.6rem 0.9rem; border-radius: 6px;
  border-left: 4px solid var(--bad); background: var(--bad-panel);
}
.counterexample h4 { margin-top: 0; }
.counterexample th, .counterexample td { border: 0; padding-block: 0.1rem; }
.counterexample td { overflow-wrap: anywhere; }
.notes { margin: 0; padding-left: 1.1rem; color: var(--muted); }
.plots { display: flex; flex-wrap: wrap; gap: 1rem 2rem; margin: 0.75rem 0; }
.plot { margin: 0; flex: 1 1 24rem; max-width: 38rem; min-width: 0; }
.plot svg { display: block; width: 100%; height: auto; }
.plot text { fill: var(--muted); font: 12px system-ui, sans-serif; }
.plot .grid { stroke: var(--grid); stroke-width: 1; }
.plot .errors { fill: var(--errors); }
.plot .witness { fill: none; stroke: var(--bad); stroke-width: 2; }
figcaption {
  font-size: 0.85rem; color: var(--muted); margin-bottom: 0.3rem;
  overflow-wrap: anywhere;
}
details { margin: 0.6rem 0; }
summary { cursor: pointer; color: var(--link); width: fit-content; }
mark { background: var(--mark); color: inherit; }
.uncovered { margin: 0.4rem 0; padding-left: 1.1rem; }
.uncovered pre { margin: 0.2rem 0 0.6rem; }
footer { margin-top: 4rem; color: var(--muted); font-size: 0.85rem; }
@media (max-width: 40rem) {
  body { padding: 1rem 0.75rem 3rem; }
  article { padding: 0.75rem; }
}
@media print { article { break-inside: avoid; } }
)css";

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_STYLE_H_
