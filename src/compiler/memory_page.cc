#include "compiler/memory_page.h"

#include <string_view>

namespace hloom::compiler {
namespace {

constexpr std::string_view kHead = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Memory</title>
<style>
:root { --ink: #1c2430; --soft: #5b6676; --line: #d9dee6; --paper: #fff; --back: #f4f6f9; --good: #14795a; --bad: #b3402a; --mark: #c2185b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --soft: #9aa5b5; --line: #38414f; --paper: #1b212b; --back: #12161d; --good: #4fc79c; --bad: #ff8a70; --mark: #ff6fa5; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 24px; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); }
main { max-width: 1240px; margin: auto; }
h1 { font-size: 20px; margin: 0 0 12px; } h2 { font-size: 15px; margin: 26px 0 8px; }
.cards { display: flex; flex-wrap: wrap; gap: 10px; }
.card, .box { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.card b { display: block; font-size: 18px; font-variant-numeric: tabular-nums; } .card span, .soft { color: var(--soft); }
.box { padding: 8px; overflow-x: auto; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
rect.block { stroke: var(--paper); stroke-width: .5; } rect.block:hover, rect.on { stroke: var(--ink); stroke-width: 1.5; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 500; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.v { overflow-wrap: anywhere; font-family: ui-monospace, monospace; font-size: 12px; }
.good { color: var(--good); } .bad { color: var(--bad); }
#tip { position: fixed; display: none; max-width: 460px; padding: 8px 10px; background: var(--paper); border: 1px solid var(--soft); border-radius: 6px; font-size: 12px; pointer-events: none; overflow-wrap: anywhere; }
</style>
<main>
<h1 id="name"></h1>
<div class="cards" id="cards"></div>
<h2>The arena over the schedule <span class="soft">— across: steps in order, loops once; up: bytes; a box: a block of memory while it is in use</span></h2>
<div class="box"><svg id="map"></svg></div>
<h2 id="peak"></h2>
<div class="box"><table id="owners"></table></div>
<h2 id="updated"></h2>
<div class="box"><table id="updates"></table></div>
</main>
<div id="tip"></div>
<script type="application/json" id="plan">)page";

constexpr std::string_view kTail = R"page(</script>
<script>
const plan = JSON.parse(document.getElementById("plan").textContent), $ = id => document.getElementById(id);
const size = b => b < 1024 ? b + " B" : b < 1048576 ? (b / 1024).toFixed(1) + " KiB" : b < 1073741824 ? (b / 1048576).toFixed(2) + " MiB" : (b / 1073741824).toFixed(2) + " GiB";
const add = (to, tag, text, name) => { const e = to.appendChild(document.createElement(tag)); if (text !== undefined) e.textContent = text; if (name) e.className = name; return e; };
document.title = "Memory of " + plan.module;
$("name").textContent = "Memory of " + plan.module;
for (const [what, bytes] of [["parameters", plan.parameter_bytes], ["results", plan.result_bytes], ["constants", plan.constant_bytes], ["arena", plan.arena_bytes], ["scratch of a worker", plan.scratch_bytes],
    ["most of it in use", plan.peak.arena_bytes], ["lost to gaps", plan.gap_bytes], ["least for this schedule", plan.lower_bound_bytes]]) {
  const card = add($("cards"), "div", undefined, "card"); add(card, "b", size(bytes)); add(card, "span", what); card.title = bytes + " bytes";
}
const tip = $("tip"), W = 1200, H = 420, L = 70, B = 24, end = Math.max(1, plan.end), top_ = Math.max(1, plan.arena_bytes);
const x = t => L + (W - L - 8) * t / end, y = b => 8 + (H - B - 8) * (1 - b / top_);
const svg = $("map"), shape = (tag, a) => { const e = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const k in a) e.setAttribute(k, a[k]); svg.appendChild(e); return e; };
svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
for (let k = 0; k <= 4; ++k) {
  shape("line", {x1: L, x2: W - 8, y1: y(top_ * k / 4), y2: y(top_ * k / 4), stroke: "var(--line)"});
  shape("text", {x: L - 6, y: y(top_ * k / 4) + 4, "text-anchor": "end"}).textContent = size(Math.round(top_ * k / 4));
}
const text = b => `${b.values.slice(0, 8).join(", ")}${b.values.length > 8 ? " and " + (b.values.length - 8) + " more" : ""}\n${b.bytes} bytes at ${b.offset}${b.source ? "\n" + b.source : ""}`;
plan.arena.forEach((b, n) => {
  for (const [from, to] of b.live) {
    const r = shape("rect", {x: x(from), y: y(b.offset + b.bytes), width: Math.max(.6, x(to) - x(from)), height: Math.max(.6, y(b.offset) - y(b.offset + b.bytes)),
      fill: `hsl(${(n * 137.5) % 360} 45% 55% / .8)`, class: "block", "data-block": n});
    r.addEventListener("mousemove", e => { tip.style.display = "block"; tip.style.whiteSpace = "pre-line"; tip.textContent = text(b);
      tip.style.left = Math.min(e.clientX + 14, innerWidth - 470) + "px"; tip.style.top = e.clientY + 14 + "px"; });
    r.addEventListener("mouseleave", () => tip.style.display = "none");
  }
});
const line = plan.timeline.flatMap(s => [[x(s.point), y(s.arena_bytes)]]).map(p => p.join(",")).join(" ");
shape("polyline", {points: line, fill: "none", stroke: "var(--ink)", "stroke-width": 1.2, "pointer-events": "none"});
const at = plan.timeline.find(s => s.at === plan.peak.at);
if (at) { shape("line", {x1: x(at.point), x2: x(at.point), y1: 8, y2: H - B, stroke: "var(--mark)", "stroke-dasharray": "4 3", "pointer-events": "none"});
  shape("text", {x: x(at.point), y: H - 8, "text-anchor": "middle"}).textContent = "peak: " + at.at; }
$("peak").textContent = plan.peak.at ? `The peak: ${size(plan.peak.arena_bytes)}, while ${plan.peak.at} works` : "The arena is empty";
const row = (table, cells, tag = "td") => { const r = add(table, "tr"); for (const [t, c] of cells) add(r, tag, t, c); return r; };
row($("owners"), [["bytes", "n"], ["share", "n"], ["what lies there"], ["source"]], "th");
for (const o of plan.peak.owners) {
  const r = row($("owners"), [[size(o.bytes), "n"], [(100 * o.bytes / plan.peak.arena_bytes).toFixed(1) + " %", "n"], [o.values.join(" "), "v"], [o.source, "v"]]);
  const same = () => document.querySelectorAll(`[data-block="${o.block}"]`);
  r.addEventListener("mouseenter", () => same().forEach(e => e.classList.add("on")));
  r.addEventListener("mouseleave", () => same().forEach(e => e.classList.remove("on")));
}
const copied = plan.updates.filter(u => !u.in_place);
$("updated").textContent = `Updates: ${plan.updates.length - copied.length} in place, ${copied.length} copied (${size(copied.filter(u => u.loops_around).reduce((s, u) => s + u.bytes, 0))} in steps of loops, ${size(copied.filter(u => !u.loops_around).reduce((s, u) => s + u.bytes, 0))} once a run)`;
row($("updates"), [["instruction"], ["what"], ["bytes", "n"], [""], ["source"]], "th");
for (const u of [...copied.sort((a, b) => b.bytes - a.bytes), ...plan.updates.filter(u => u.in_place)])
  row($("updates"), [[u.at, "v"], [`${u.kind}, leaf ${u.leaf}`], [size(u.bytes) + (u.in_place ? "" : u.loops_around ? " a step" : " a run"), "n"], [u.in_place ? "in place" : "copied, because " + u.reason, u.in_place ? "good" : "bad"], [u.source, "v"]]);
</script>
</html>
)page";

}  // namespace

std::string memory_page(const std::string& json) {
  std::string page(kHead);
  // Inside a script element nothing may look like its end.
  for (const char c : json) page.append(c == '<' ? "\\u003c" : std::string(1, c));
  return page.append(kTail);
}

}  // namespace hloom::compiler
