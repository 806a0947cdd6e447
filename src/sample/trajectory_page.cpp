// The page of trajectory_page: one template, the steps as JSON inside it.
#include "elf/sample/trajectory.h"

namespace elf {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHead = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>From noise to text</title>
<style>
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #fbfaf7; --dim: #77726a; --line: #ddd8cd; --a: #2a6f97; --b: #bc4b2f }
@media (prefers-color-scheme: dark) { :root { --ink: #eceae4; --paper: #17181a; --dim: #96918a; --line: #36373a; --a: #7cc0e8; --b: #f0916f } }
body { margin: 0 auto; padding: 2rem 1.25rem; max-width: 62rem; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.25rem; margin: 0 }
.dim { color: var(--dim); font-size: .85rem }
.bar { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; margin: 1.25rem 0 }
.bar input[type=range] { flex: 1 1 16rem; accent-color: var(--a) }
button, select { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: .4rem; padding: .2rem .7rem }
#figures { font-variant-numeric: tabular-nums; min-width: 24rem }
#text { font: 1.5rem/1.6 Georgia, serif; border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.25rem; min-height: 4.8rem; white-space: pre-wrap; overflow-wrap: anywhere }
svg { width: 100%; height: 9rem; margin-top: 1.25rem; overflow: visible }
table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-size: .9rem }
td, th { text-align: left; padding: .15rem .75rem .15rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
tbody tr { cursor: pointer }
tbody tr.on { background: color-mix(in srgb, var(--a) 16%, transparent) }
</style>
</head>
<body>
<h1>From noise to text</h1>
<div class="dim" id="caption"></div>
<div class="bar">
  <label>sample <select id="sample"></select></label>
  <button id="play">play</button>
  <input id="slider" type="range" min="0" value="0" aria-label="step">
  <span id="figures"></span>
</div>
<div id="text" aria-live="polite"></div>
<div class="dim">A token is as dark as the model is sure of it. Point at one for its figures; arrow keys move the slider.</div>
<svg id="chart" viewBox="0 0 1000 140" preserveAspectRatio="none" role="img" aria-label="confidence and entropy by step"></svg>
<div class="dim"><span style="color:var(--a)">&#9644; confidence</span> (0 to 1) &nbsp; <span style="color:var(--b)">&#9644; entropy</span> (0 to <span id="top"></span> nats), by step</div>
<table><thead><tr><th class="n">step</th><th class="n">t</th><th class="n">confidence</th><th class="n">entropy</th><th>text</th></tr></thead><tbody id="rows"></tbody></table>
<script type="application/json" id="data">)html";

constexpr const char* kTail = R"html(</script>
<script>
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const samples = new Map();
for (const s of data.steps) { if (!samples.has(s.index)) samples.set(s.index, []); samples.get(s.index).push(s); }
let steps = [], timer = null;
$('caption').textContent = data.caption;
for (const i of samples.keys()) $('sample').add(new Option(i, i));

function show() {
  const k = +$('slider').value, s = steps[k];
  $('figures').textContent = `step ${s.step} of ${steps.length} · t ${s.t.toFixed(3)} · confidence ${s.confidence.toFixed(3)} · entropy ${s.entropy.toFixed(2)}`;
  $('text').replaceChildren(...s.tokens.map((token, i) => {
    const span = document.createElement('span');
    span.textContent = token.text === '' ? ' \u220e' : i === 0 ? token.text.trimStart() : token.text;
    span.style.opacity = (0.12 + 0.88 * token.confidence).toFixed(3);
    span.title = `confidence ${token.confidence.toFixed(3)}, entropy ${token.entropy.toFixed(2)} nats`;
    return span;
  }));
  [...$('rows').children].forEach((row, i) => row.classList.toggle('on', i === k));
  $('now').setAttribute('x1', x(k)); $('now').setAttribute('x2', x(k));
}
const x = k => steps.length < 2 ? 500 : 1000 * k / (steps.length - 1);
function line(name, top, colour) {
  const points = steps.map((s, k) => `${x(k).toFixed(1)},${(135 - 130 * s[name] / top).toFixed(1)}`).join(' ');
  return `<polyline points="${points}" fill="none" stroke="var(${colour})" stroke-width="2.5" vector-effect="non-scaling-stroke"/>`;
}
function choose() {
  steps = samples.get(+$('sample').value);
  const top = Math.max(0.1, ...steps.map(s => s.entropy));
  $('top').textContent = top.toFixed(1);
  $('slider').max = steps.length - 1;
  $('slider').value = steps.length - 1;
  $('chart').innerHTML = '<line x1="0" x2="1000" y1="135" y2="135" stroke="var(--line)" vector-effect="non-scaling-stroke"/>'
    + line('confidence', 1, '--a') + line('entropy', top, '--b')
    + '<line id="now" y1="0" y2="135" stroke="var(--dim)" stroke-dasharray="4 4" vector-effect="non-scaling-stroke"/>';
  $('rows').replaceChildren(...steps.map((s, k) => {
    const row = document.createElement('tr');
    for (const [text, kind] of [[s.step, 'n'], [s.t.toFixed(3), 'n'], [s.confidence.toFixed(3), 'n'], [s.entropy.toFixed(2), 'n'], [s.text, '']]) {
      const cell = row.insertCell(); cell.className = kind; cell.textContent = text;
    }
    row.onclick = () => { $('slider').value = k; show(); };
    return row;
  }));
  show();
}
function stop() { clearInterval(timer); timer = null; $('play').textContent = 'play'; }
$('slider').oninput = () => { stop(); show(); };
$('sample').onchange = () => { stop(); choose(); };
$('play').onclick = () => {
  if (timer) return stop();
  $('slider').value = 0; show(); $('play').textContent = 'stop';
  timer = setInterval(() => { const k = +$('slider').value; if (k + 1 >= steps.length) return stop(); $('slider').value = k + 1; show(); }, 150);
};
document.onkeydown = event => {
  if (event.target.tagName === 'SELECT' || event.target.id === 'slider') return;
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (move) { stop(); $('slider').value = +$('slider').value + move; show(); }
};
if (samples.size) choose();
</script>
</body>
</html>
)html";

// JSON that may stand inside a script element: no "<" that could end it.
std::string embedded(const Json& json) {
  std::string result;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string trajectory_page(const std::vector<Json>& steps, const std::string& caption) {
  return kHead + embedded({{"caption", caption}, {"steps", steps}}) + kTail;
}

}  // namespace elf
