// The page: what is to be looked at, where it comes from, and the link to it. The server parses.
"use strict";

const KEY = "atem-key";
const THEMES = ["auto", "light", "dark"];
const NARROW = matchMedia("(max-width: 60rem)"); // where the form is folded away once it has done its work
const POLL = 400; // milliseconds between two looks at a turn that is being written
const LONGEST_LINK = 4 << 20;

let asked = null; // the body that the present turn was asked with, for its link
let following = 0; // counts up, so that an older follower sees that it is not wanted
let linked = null;

const stage = new Stage(() => {
  clearTimeout(linked);
  linked = setTimeout(relink, 250);
});

// ---- asking the server ----------------------------------------------------------------------

async function ask(path, body) {
  const headers = { accept: "application/json" };
  const key = $("key").value.trim();
  if (key) headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const answer = await fetch(`inspect/${path}`, {
    method: body === undefined ? "GET" : "POST", headers, body: body === undefined ? undefined : JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  if (answer.status === 401) {
    $("key-box").open = true;
    $("key").focus();
  }
  throw new Error(found.error?.message ?? `The server answered ${answer.status}.`);
}

async function attempt(work) {
  say("");
  document.body.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    say(error instanceof TypeError ? "The server can't be reached." : error.message);
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

function say(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

// ---- a turn that is pasted ------------------------------------------------------------------

function bodyOf() {
  const body = { text: $("wire").value };
  const tools = $("tools").value.trim();
  if (tools) {
    try {
      body.tools = JSON.parse(tools);
    } catch (error) {
      throw new Error(`The tools are not JSON: ${error.message}`);
    }
  }
  for (const name of ["cut", "reason", "arguments", "unknown", "channel"]) {
    const value = $(name).value.trim();
    if (value) body[name] = value;
  }
  return body;
}

async function trace(body, step) {
  following += 1;
  const found = await ask("trace", body);
  asked = body;
  stage.show(Turn.of(found), step);
  if (NARROW.matches) $("source").open = false;
}

function fill(body) {
  $("wire").value = body.text ?? body.pieces.map((piece) => piece.text ?? piece).join("");
  $("tools").value = body.tools ? JSON.stringify(body.tools, null, 1) : "";
  for (const name of ["cut", "reason", "arguments", "unknown", "channel"]) {
    $(name).value = body[name] ?? $(name).dataset.default ?? "";
  }
}

// ---- examples -------------------------------------------------------------------------------

async function loadExamples() {
  const found = await fetch("inspect/examples.json").then((answer) => answer.json());
  found.turns.forEach(({ title }, place) => $("example").append(make("option", { value: place, textContent: title })));
  $("example").addEventListener("change", () => {
    const chosen = found.turns[$("example").value];
    if (!chosen) return;
    fill({ text: chosen.text, reason: chosen.reason, tools: found.tools });
    attempt(() => trace(bodyOf()));
  });
  return found;
}

// ---- turns of this server -------------------------------------------------------------------

async function list() {
  if (!$("live-box").open) return;
  const found = await ask("live");
  $("live-off").hidden = found.most > 0;
  $("live-none").hidden = found.most === 0 || found.data.length > 0;
  const rows = found.data.flatMap((response) => response.turns.map((turn, number) => {
    const time = new Date(response.created_at * 1000).toLocaleTimeString();
    const which = response.turns.length > 1 ? `, turn ${number + 1}` : "";
    const button = make("button", { type: "button" },
      make("span", { textContent: `${time}${which}` }),
      make("span", { className: turn.open ? "badge writing" : "badge", textContent: turn.open ? "writing" : `${turn.pieces} pieces` }),
      make("code", { textContent: response.id }));
    button.addEventListener("click", () => attempt(() => follow(response.id, number)));
    return make("li", {}, button);
  }));
  $("live").replaceChildren(...rows);
}

async function follow(id, number) {
  const mine = ++following;
  $("example").value = "";
  const turn = new Turn();
  asked = null;
  const path = `live/${encodeURIComponent(id)}/${number}`;
  let first = null;
  while (mine === following) {
    const found = await ask(`${path}?after=${turn.steps.length}`);
    if (mine !== following) return;
    const follows = first === null || stage.step === turn.last;
    turn.add(found.steps);
    if (!found.open) turn.end(found.turn);
    if (first === null) stage.show(turn);
    else stage.grown();
    first ??= found;
    if (follows) stage.go(turn.last);
    if (!found.open) return kept(turn, found);
    await new Promise((wake) => setTimeout(wake, POLL));
  }
}

// The turn is whole: from now on it is one like any other, with a link.
function kept(turn, found) {
  const pieces = turn.steps.filter((step) => step.end === undefined).map((step) =>
    step.special === undefined ? step.text : { text: step.text, special: step.special });
  asked = { ...found.options, reason: turn.steps[turn.last].end, pieces };
  fill(asked);
  say(found.full ? "The turn was too long to keep whole: its rest is missing." : "");
  stage.go(stage.step);
}

// ---- the link -------------------------------------------------------------------------------

async function packed(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const squeezed = await through(bytes, new CompressionStream("deflate-raw"));
  let text = "";
  squeezed.forEach((byte) => { text += String.fromCharCode(byte); });
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

async function unpacked(text) {
  const raw = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(raw, (sign) => sign.charCodeAt(0));
  const whole = await through(bytes, new DecompressionStream("deflate-raw"));
  return JSON.parse(new TextDecoder().decode(whole));
}

// The bytes behind a stream; a small link must not become a large page.
async function through(bytes, change) {
  const parts = [];
  let size = 0;
  const reader = new Blob([bytes]).stream().pipeThrough(change).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > LONGEST_LINK) throw new Error("The link holds more than a turn.");
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function relink() {
  const body = asked;
  if (body === null || ALONE) return;
  const fragment = `#turn=${await packed(body)}&step=${stage.step}`;
  if (body !== asked) return;
  if (location.hash !== fragment) history.replaceState(null, "", fragment);
}

async function openLink() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("turn")) return false;
  await attempt(async () => {
    let body;
    try {
      body = await unpacked(fields.get("turn"));
      fill(body);
    } catch {
      throw new Error("The link is damaged: its turn can't be read.");
    }
    const step = Number(fields.get("step"));
    await trace(body, Number.isInteger(step) ? step : undefined);
  });
  return true;
}

async function copyLink() {
  await relink();
  try {
    await navigator.clipboard.writeText(location.href);
    $("copied").textContent = "Copied";
  } catch {
    $("copied").textContent = "The link is in the address bar";
  }
  setTimeout(() => { $("copied").textContent = ""; }, 2000);
}

// ---- the beginning --------------------------------------------------------------------------

function theme(choice) {
  document.documentElement.dataset.theme = choice;
  $("theme").textContent = `Theme: ${choice}`;
  stage.paintLine();
}

function begin() {
  $("theme").addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    theme(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.paintLine());
  NARROW.addEventListener("change", () => { $("source").open = !NARROW.matches; });
  if (ALONE) {
    document.body.classList.add("alone");
    document.title = `${ALONE.title} - atem inspector`;
    $("title").textContent = ALONE.title;
    stage.show(Turn.of(ALONE.trace));
    return;
  }
  $("key").value = sessionStorage.getItem(KEY) ?? "";
  $("key").addEventListener("change", () => sessionStorage.setItem(KEY, $("key").value.trim()));
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      await trace(bodyOf());
      $("text").focus({ preventScroll: true }); // where the keys step
    });
  });
  $("wire").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (!file) return;
    $("wire").value = await file.text();
    attempt(() => trace(bodyOf()));
  });
  $("link").addEventListener("click", copyLink);
  $("live-box").addEventListener("toggle", () => attempt(list));
  $("refresh").addEventListener("click", () => attempt(list));
  addEventListener("hashchange", openLink);
  attempt(async () => {
    const found = await loadExamples();
    if (await openLink()) return;
    const [first] = found.turns;
    $("example").value = "0";
    fill({ text: first.text, reason: first.reason, tools: found.tools });
    await trace(bodyOf());
  });
}

const ALONE = JSON.parse($("shown")?.textContent ?? "null");
begin();
