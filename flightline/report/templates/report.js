(() => {
"use strict";
// Texts from nodes reach the page through textContent and fillText only, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const WORDS = {P: "PASS", I: "INFO", W: "WARN", F: "FAIL", U: "UNKNOWN", X: "UNREACHABLE", S: "SKIP", ".": "not run"};
const RANK = {".": 0, S: 1, P: 2, I: 3, W: 4, U: 5, X: 6, F: 7};
const LETTER = {P: "", I: "i", W: "W", F: "F", U: "U", X: "X", S: "–", ".": ""};
const ORDER = ["F", "X", "U", "W", "I", "P", "S", "."];
const PAGE = 40;
const MORE = 500;
const ROW = 15;
const $ = (id) => document.getElementById(id);
const cell = (node, check) => data.patterns[data.cells[node]][check];
const isBad = (node) => data.go[node] === "n";
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const all = data.host.map((_, node) => node);
const number = (value) => value.toLocaleString("en");

const notes = new Map();
for (let at = 0; at < data.notes.length; at += 3) {
  notes.set(data.notes[at] * data.checks.length + data.notes[at + 1], data.texts[data.notes[at + 2]]);
}
const troubles = data.patterns.map((letters) =>
  [...letters].map((letter, check) => [check, letter]).filter(([, letter]) => RANK[letter] >= RANK.W)
    .sort((a, b) => RANK[b[1]] - RANK[a[1]]));
const troublesOf = (node) => troubles[data.cells[node]];
// No-go before go, then the worst status, then the most troubles.
const weight = (node) => (isBad(node) ? 1e6 : 0) + RANK[data.worst[node]] * 1e4 + Math.min(troublesOf(node).length, 9999);
// Of a large fleet: trouble first, neighbours side by side, for they share power, cooling and switches.
const MANY = 64;
const standing = new Map(data.order.map((node, at) => [node, at]));
const trouble = (node) => (isBad(node) ? 2 : data.worst[node] === "W" ? 1 : 0);
const worstFirst = all.length > MANY
  ? all.slice().sort((a, b) => trouble(b) - trouble(a) || standing.get(a) - standing.get(b))
  : all.slice().sort((a, b) => weight(b) - weight(a) || a - b);

/* Copying: the clipboard interface is missing where the page is not trusted, so there is a second way. */
async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const label = button.dataset.label || (button.dataset.label = button.textContent);
  button.textContent = done ? "Copied" : "Could not copy";
  setTimeout(() => { button.textContent = label; }, 1500);
}
for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", () => copy(button.parentElement.querySelector("pre").textContent, button));
}

/* Node list */
const list = {sort: "verdict", down: false, shown: PAGE, matches: [], target: -1};
const collator = new Intl.Collator("en", {numeric: true});
const compare = {
  host: (a, b) => collator.compare(data.host[a], data.host[b]),
  verdict: (a, b) => weight(b) - weight(a),
  trouble: (a, b) => troublesOf(b).length - troublesOf(a).length,
  type: (a, b) => collator.compare(data.types[data.type[a]], data.types[data.type[b]]),
  id: (a, b) => collator.compare(data.id[a], data.id[b]),
  seconds: (a, b) => data.seconds[a] - data.seconds[b],
};

function matching() {
  const text = $("node-text").value.trim().toLowerCase();
  const verdict = $("node-verdict").value;
  const check = $("node-check").value;
  return all.filter((node) =>
    (!text || `${data.host[node]} ${data.id[node]} ${data.types[data.type[node]]} ${data.places[data.place[node]]}`.toLowerCase().includes(text)) &&
    (!verdict || (verdict === "X" ? data.worst[node] === "X" : verdict === "W" ? !isBad(node) && data.worst[node] === "W" : data.go[node] === verdict)) &&
    (check === "" || RANK[cell(node, +check)] >= RANK.W));
}

function nodeRow(node) {
  const row = make("tr");
  row.id = `row-${node}`;
  const host = make("td", "mono");
  if (data.section[node] === "1") {
    const link = make("a", "", data.host[node]);
    link.href = `#n${node}`;
    host.append(link);
  } else {
    host.textContent = data.host[node];
  }
  const verdict = make("td");
  const word = WORDS[data.worst[node]];
  verdict.append(make("span", `chip s-${word}`, word), ` ${isBad(node) ? "no-go" : "go"}`);
  const trouble = make("td");
  for (const [check, letter] of troublesOf(node).slice(0, 8)) {
    const one = make("span", "trouble");
    one.append(make("b", `c-${letter}`, LETTER[letter]), data.checks[check]);
    one.title = notes.get(node * data.checks.length + check) || WORDS[letter];
    trouble.append(one, " ");
  }
  if (troublesOf(node).length > 8) trouble.append(`+${troublesOf(node).length - 8} more`);
  row.append(host, verdict, trouble, make("td", "", data.types[data.type[node]]), make("td", "mono", data.id[node]),
    make("td", "number", data.seconds[node] ? data.seconds[node].toFixed(1) : ""));
  if (node === list.target) row.className = "target";
  return row;
}

function showNodes() {
  const sign = list.down ? -1 : 1;
  list.matches = matching().sort((a, b) => sign * compare[list.sort](a, b) || a - b);
  $("node-table").tBodies[0].replaceChildren(...list.matches.slice(0, list.shown).map(nodeRow));
  const left = list.matches.length - list.shown;
  $("node-more").hidden = left <= 0;
  $("node-more").textContent = `Show ${number(Math.min(left, MORE))} more`;
  $("node-shown").textContent = left > 0 ? `The first ${number(list.shown)} of ${number(list.matches.length)} are shown. ` : "";
  $("node-count").textContent = `${number(list.matches.length)} of ${number(all.length)} nodes`;
  $("node-copy").disabled = !list.matches.length;
  $("node-table").dataset.rows = Math.min(list.shown, list.matches.length);
}

function refilter() {
  list.shown = PAGE;
  list.target = -1;
  showNodes();
}

function setUpNodes() {
  const seen = new Set(troubles.flatMap((items) => items.map(([check]) => check)));
  for (const check of [...seen].sort((a, b) => a - b)) {
    const option = make("option", "", data.checks[check]);
    option.value = check;
    $("node-check").append(option);
  }
  let wait = 0;
  $("node-text").addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(refilter, 120); });
  $("node-verdict").addEventListener("change", refilter);
  $("node-check").addEventListener("change", refilter);
  $("node-more").addEventListener("click", () => { list.shown += MORE; showNodes(); });
  $("node-copy").addEventListener("click", () => copy(list.matches.map((node) => data.host[node]).join(","), $("node-copy")));
  for (const head of document.querySelectorAll("#node-table th")) {
    head.firstElementChild.addEventListener("click", () => {
      list.down = list.sort === head.dataset.sort && !list.down;
      list.sort = head.dataset.sort;
      for (const other of head.parentElement.children) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", list.down ? "descending" : "ascending");
      showNodes();
    });
  }
  showNodes();
}

/* From the map, or an address, to a node */
function openTarget() {
  const section = /^#n\d+$/.test(location.hash) && document.querySelector(location.hash);
  if (!section) return;
  section.open = true;
  section.scrollIntoView();
}

function goTo(node) {
  hideTip();
  if (data.section[node] === "1") {
    if (location.hash === `#n${node}`) openTarget(); else location.hash = `n${node}`;
    $(`n${node}`).querySelector("summary").focus({preventScroll: true});
    return;
  }
  $("node-verdict").value = "";
  $("node-check").value = "";
  $("node-text").value = data.host[node];
  refilter();
  list.target = node;
  list.shown = Math.max(PAGE, list.matches.indexOf(node) + 1);
  showNodes();
  $(`row-${node}`).scrollIntoView({block: "center"});
}

function goToCell(at) {
  const [, , node] = describeCell(at);
  if (node !== undefined) goTo(node);
}

/* Fleet map. A column is a node, or as many as share a pixel (it shows the worst of them); a row is a check. A small
   fleet is turned round, a row per node, which fits a screen better. */
const canvas = $("map-canvas");
const map = {columns: [], rows: [], letters: [], rowHeight: ROW, top: 0, zoom: 1, at: null, flipped: false, parted: false, paper: false};
const PAPER = 680;  // CSS pixels between the margins of an A4 or letter page
const ratio = () => window.devicePixelRatio || 1;

function mapNodes() {
  const nodes = $("map-order").value === "worst" ? worstFirst : all;
  return $("map-nodes").value === "bad" ? nodes.filter(isBad) : nodes;
}

function mapChecks(nodes) {
  const checks = data.checks.map((_, check) => check);
  if (!$("map-quiet").checked) return checks;
  const used = new Set(nodes.map((node) => data.cells[node]));
  return checks.filter((check) => [...used].some((pattern) => RANK[data.patterns[pattern][check]] >= RANK.I));
}

// Side by side from x, in whole device pixels, or columns would blur and some look wider than others.
function place(items, x, room, most) {
  const natural = Math.min(room / Math.max(items.length, 1), most);
  const width = Math.max(Math.floor(natural * ratio()), 1) / ratio();
  return items.map((item, index) => ({...item, x: x + index * width, width}));
}

function nodeColumns(nodes, x, room, most) {
  const per = Math.max(1, Math.ceil(nodes.length / (room * Math.min(ratio(), 2))));
  const items = [];
  for (let at = 0; at < nodes.length; at += per) {
    const group = nodes.slice(at, at + per);
    items.push({nodes: group, name: per === 1 ? data.host[group[0]] : "", bad: group.some(isBad)});
  }
  return place(items, x, room, most);
}

function allColumns(nodes, room) {
  const most = 26 * Math.sqrt(map.zoom);
  const bad = nodes.filter(isBad);
  map.parted = $("map-order").value === "worst" && nodes.length > MANY && bad.length > 0 && bad.length < nodes.length;
  if (!map.parted) return nodeColumns(nodes, 0, room, most);
  // The few that matter get room to be read; the many that are fine share the rest.
  const first = nodeColumns(bad, 0, Math.min(room / 2, bad.length * 14 * map.zoom), most);
  const end = first[first.length - 1].x + first[0].width + 8;
  return first.concat(nodeColumns(nodes.filter((node) => !isBad(node)), end, room - end, most));
}

function layOut() {
  const nodes = mapNodes();
  const checks = mapChecks(nodes);
  const frame = map.paper ? PAPER : $("map-frame").clientWidth;
  const zoom = map.paper ? 1 : map.zoom;
  const loud = new Set(nodes.flatMap((node) => troublesOf(node).map(([check]) => check)));
  const byCheck = checks.map((check) => ({check, name: data.checks[check], bad: loud.has(check)}));
  if (all.length > MANY && $("map-order").value === "worst") byCheck.sort((a, b) => b.bad - a.bad);
  map.parted = false;
  map.flipped = nodes.length <= 30 && frame >= 120 + checks.length * 13;
  map.rowHeight = map.flipped ? 19 : ROW;
  map.rows = map.flipped ? nodes.map((node) => ({nodes: [node], name: data.host[node], bad: isBad(node)})) : byCheck;
  $("map-labels").replaceChildren(...map.rows.map((row) => {
    const label = make("div", row.bad ? "loud" : "", row.name);
    label.style.cssText = `height:${map.rowHeight}px;line-height:${map.rowHeight}px`;
    return label;
  }));
  const room = Math.min(Math.max(frame - $("map-labels").offsetWidth, 120) * zoom, 16000 / ratio());
  map.columns = map.flipped ? place(byCheck, 0, room, 22 * Math.sqrt(map.zoom)) : allColumns(nodes, room);
  map.letters = map.columns.map((_, column) => map.rows.map((__, row) => cell(worstNode(column, row), checkAt(column, row))));
  map.nodes = nodes.length;
}

const nodesAt = (column, row) => map.columns[column].nodes || map.rows[row].nodes;
const checkAt = (column, row) => (map.flipped ? map.columns[column] : map.rows[row]).check;

function worstNode(column, row) {
  const nodes = nodesAt(column, row);
  if (nodes.length === 1) return nodes[0];
  const check = checkAt(column, row);
  return nodes.reduce((worst, node) => (RANK[cell(node, check)] > RANK[cell(worst, check)] ? node : worst));
}

const isNamed = (column) => column.name && column.width >= 12;

function nameHeight(context) {
  context.font = "11px system-ui, sans-serif";
  const widths = map.columns.filter(isNamed).map((column) => context.measureText(column.name).width);
  return widths.length ? Math.min(Math.ceil(Math.max(...widths)) + 8, 150) : 0;
}

function draw() {
  layOut();
  const context = canvas.getContext("2d");
  const last = map.columns[map.columns.length - 1];
  map.top = nameHeight(context);
  const width = last ? last.x + last.width : 1;
  const height = Math.max(map.top + map.rows.length * map.rowHeight, 1);
  canvas.width = Math.round(width * ratio());
  canvas.height = Math.round(height * ratio());
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  $("map-labels").style.paddingTop = `${map.top}px`;
  context.scale(ratio(), ratio());
  drawCells(context);
  drawNames(context);
  sayMap();
}

function drawCells(context) {
  const style = getComputedStyle(document.documentElement);
  let cells = 0;
  context.font = "bold 10px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  // From harmless to worst: where columns are thin, the worse cell is widened over its neighbour.
  for (const letter of ORDER.slice(0, -1).reverse()) {
    const least = RANK[letter] >= RANK.W ? 2 : 0;
    const fill = style.getPropertyValue(`--${letter}`).trim();
    const ink = style.getPropertyValue(`--on-${letter}`).trim();
    map.columns.forEach((column, at) => map.letters[at].forEach((found, row) => {
      if (found !== letter) return;
      const y = map.top + row * map.rowHeight;
      cells += 1;
      context.fillStyle = fill;
      context.fillRect(column.x, y, Math.max(column.width - (column.width >= 5 ? 1 : 0), least), map.rowHeight - 1);
      if (column.width < 10 || !LETTER[letter]) return;
      context.fillStyle = ink;
      context.fillText(LETTER[letter], column.x + column.width / 2 - 0.5, y + map.rowHeight / 2);
    }));
  }
  canvas.dataset.cells = cells;
  canvas.dataset.columns = map.columns.length;
  canvas.dataset.rows = map.rows.length;
}

function drawNames(context) {
  const style = getComputedStyle(document.documentElement);
  const [strong, weak] = ["--fg", "--muted"].map((name) => style.getPropertyValue(name).trim());
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const column of map.columns.filter(isNamed)) {
    context.save();
    context.font = `${column.bad ? "600 " : ""}11px system-ui, sans-serif`;
    context.fillStyle = column.bad ? strong : weak;
    context.translate(column.x + column.width / 2, map.top - 4);
    context.rotate(-Math.PI / 2);
    context.fillText(column.name, 0, 0, map.top - 6);
    context.restore();
  }
}

function sayMap() {
  const most = Math.max(0, ...map.columns.map((column) => (column.nodes || []).length));
  $("map-says").textContent = [
    `${number(map.nodes)} ${map.nodes === 1 ? "node" : "nodes"}, ${$("map-order").value !== "worst" ? "in the order of the inventory" : all.length <= MANY ? "worst first" : data.placed ? "trouble first, then by rack or zone and name" : "trouble first, then by name"}.`,
    map.flipped ? "A row per node, a column per check." : "A row per check, a column per node.",
    map.parted ? "No-go nodes stand on the left, before the gap, and get more room." : "",
    most > 1 ? `Where nodes outnumber pixels a column stands for up to ${most} nodes and shows the worst; widen with + to part them.` : "",
  ].filter(Boolean).join(" ");
}

function columnAt(x) {
  let [low, high] = [0, map.columns.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const column = map.columns[middle];
    if (x < column.x) high = middle - 1;
    else if (x >= column.x + column.width) low = middle + 1;
    else return middle;
  }
  return -1;
}

function cellAt(event) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top - map.top) / map.rowHeight);
  const exact = columnAt(event.clientX - box.left);
  if (exact < 0 || row >= map.rows.length) return null;
  if (row < 0) return isNamed(map.columns[exact]) ? [exact, -1] : null;
  // A column of a pixel or two is hard to hit: take the worst cell within reach, the nearest of equals.
  const width = map.columns[exact].width;
  const reach = width < 4 ? Math.ceil(4 / width) : 0;
  let best = exact;
  for (let away = 1; away <= reach; away += 1) {
    for (const column of [exact - away, exact + away]) {
      const found = map.letters[column];
      if (found && RANK[found[row]] > Math.max(RANK[map.letters[best][row]], RANK.I)) best = column;
    }
  }
  return [best, row];
}

// What a cell says, and the node it leads to; a column's name says less, and a check's leads nowhere.
function describeCell([column, row]) {
  if (row < 0) {
    const [node] = map.columns[column].nodes || [];
    return [map.columns[column].name, node === undefined ? "" : isBad(node) ? "no-go" : "go", node];
  }
  const node = worstNode(column, row);
  const check = checkAt(column, row);
  const group = nodesAt(column, row).length;
  const note = notes.get(node * data.checks.length + check);
  const host = data.host[node] + (group > 1 ? ` (worst of ${group})` : "");
  return [host, `${data.checks[check]}: ${WORDS[cell(node, check)]}${note ? ". " + note : ""}`, node];
}

function showTip(at, x, y) {
  const tip = $("tip");
  const [host, text] = describeCell(at);
  tip.replaceChildren(make("b", "", host), text);
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? Math.max(4, y - tip.offsetHeight - 12) : y + 18}px`;
  [...$("map-labels").children].forEach((label, row) => label.classList.toggle("at", row === at[1]));
}

function hideTip() {
  $("tip").hidden = true;
  for (const label of $("map-labels").children) label.classList.remove("at");
}

function moveBy(event) {
  const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
  if (event.key === "Escape") hideTip();
  if (event.key === "Enter" && map.at) goToCell(map.at);
  if (!step || !map.columns.length || !map.rows.length) return;
  event.preventDefault();
  const [column, row] = map.at || [0, -1];
  map.at = [
    Math.max(0, Math.min(column + step[0], map.columns.length - 1)),
    Math.max(0, Math.min(row + step[1], map.rows.length - 1)),
  ];
  const box = canvas.getBoundingClientRect();
  const spot = map.columns[map.at[0]];
  showTip(map.at, box.left + spot.x + spot.width / 2, box.top + map.top + (map.at[1] + 0.5) * map.rowHeight);
  $("map-cell").textContent = describeCell(map.at).slice(0, 2).join(", ");
}

function setUpMap() {
  for (const letter of ORDER) {
    const entry = make("li");
    entry.append(make("i", letter === "." ? "c-none" : `c-${letter}`, LETTER[letter]), WORDS[letter]);
    $("legend").append(entry);
  }
  if (all.length <= MANY) $("map-order").value = "inventory";
  const again = () => { map.at = null; hideTip(); draw(); };
  for (const id of ["map-nodes", "map-order", "map-quiet"]) $(id).addEventListener("change", again);
  $("map-in").addEventListener("click", () => { map.zoom = Math.min(map.zoom * 2, 16); again(); });
  $("map-out").addEventListener("click", () => { map.zoom = Math.max(map.zoom / 2, 1); again(); });
  canvas.addEventListener("pointermove", (event) => {
    const at = cellAt(event);
    if (at) { map.at = at; showTip(at, event.clientX, event.clientY); } else hideTip();
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => {
    const at = cellAt(event);
    if (at) goToCell(at);
  });
  canvas.addEventListener("keydown", moveBy);
  canvas.addEventListener("blur", hideTip);
  let wait = 0;
  addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(again, 100); });
  addEventListener("scroll", hideTip, {passive: true});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

/* Paper: light colours, and everything unfolded */
let folded = [];
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("paper");
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const part of folded) part.open = true;
  map.paper = true;
  draw();
});
addEventListener("afterprint", () => {
  map.paper = false;
  document.documentElement.classList.remove("paper");
  for (const part of folded) part.open = false;
  draw();
});

for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
setUpNodes();
setUpMap();
addEventListener("hashchange", openTarget);
openTarget();
document.documentElement.dataset.ready = Math.ceil(performance.now());  // milliseconds from the start of loading
})();
