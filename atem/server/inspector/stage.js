// The stage: one turn at one step, on the page. Everything that a model wrote goes in as text.
"use strict";

const $ = (id) => document.getElementById(id);

// An element with properties, attributes (those with a dash, and role) and children.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

const KINDS = [
  ["framing", "framing", "headers, terminators and tags"],
  ["reasoning", "reasoning", "the message to self"],
  ["answer", "answer", "what the user sees"],
  ["forming", "call, not decided", "may still be taken back"],
  ["call", "call", "decided: it may run"],
  ["rejected", "rejected", "a call that must not run"],
  ["discarded", "discarded", "nobody gets it"],
  ["held", "held", "read, but not told yet"],
];

const STATES = [
  "first header", "header", "reasoning body", "answer body", "tool body", "terminator, undecided",
  "header inside reasoning", "header inside a tool body", "between messages", "turn over",
];

const EVENT_TEXT = {
  message_start: (e) => (e.recipient === null ? "no recipient: an answer" : `to=${e.recipient}`),
  message_end: (e) => (e.terminator || "no terminator") + (e.tokens === null ? "" : `, ${e.tokens} tokens`),
  call_start: (e) => `${e.raw_name}, provisional`,
  call_end: (e) => `${e.call.raw_name}, may run` + errorsOf(e.call),
  call_rejected: (e) => (e.rejected ? `${e.rejected.raw_name}: ${e.rejected.reason}` + errorsOf(e.rejected) : "taken back"),
  problem: (e) => `${e.code}: ${e.message}`,
  turn_end: (e) => `${e.complete ? "complete" : "incomplete"}, ${e.finish_reason}`,
};

function errorsOf(call) {
  return call.errors.map((error) => `; ${error.path}: ${error.message}`).join("");
}

// An event as JSON, its arguments as they were written: a number may be larger than JavaScript's.
function exactly({ paint, arguments_json: json, ...event }) {
  if (json === undefined) return JSON.stringify(event);
  const field = event.call ? "call" : "rejected";
  const { arguments: _, ...call } = event[field];
  return `${JSON.stringify({ ...event, [field]: call })}\narguments ${json}`;
}

class Stage {
  constructor(onStep) {
    this.turn = new Turn();
    this.step = -1;
    this.onStep = onStep;
    this.timer = null;
    this.follows = false;
    this.#controls();
    this.#legend();
    new ResizeObserver(() => this.paintLine()).observe($("line"));
  }

  // Show another turn, at its end unless a step is given.
  show(turn, step = turn.last) {
    this.pause();
    this.turn = turn;
    this.step = -1;
    for (const id of ["text", "calls", "events"]) $(id).replaceChildren();
    document.body.classList.toggle("empty", turn.last < 0);
    this.grown();
    this.go(step);
  }

  // The turn has got more steps.
  grown() {
    this.#layText();
    const list = $("events");
    for (const { step, event } of this.turn.events.slice(list.children.length)) {
      const say = EVENT_TEXT[event.type](event);
      const button = make("button", { type: "button", className: `event e-${event.type}` },
        make("span", { className: "number", textContent: step }),
        make("span", { className: "type", textContent: event.type.replace("_", " ") }),
        make("span", { className: "say", textContent: say }));
      button.addEventListener("click", () => this.go(step));
      list.append(make("li", {}, button));
    }
    $("slider").max = Math.max(this.turn.last, 0);
    this.paintLine();
  }

  go(step) {
    const from = this.step;
    this.step = Math.max(Math.min(step, this.turn.last), -1);
    if (this.step < 0) return;
    const low = Math.max(Math.min(from, this.step), 0);
    for (let at = low; at <= Math.max(from, this.step); at++) {
      this.turn.changes[at]?.forEach((segment) => this.#dress(segment));
    }
    this.#scroll();
    this.#status();
    this.#lanes();
    this.#calls();
    this.#events();
    this.#mark();
    this.onStep(this.step);
  }

  // To the next or the last step before this one that brings more than text.
  jump(way) {
    const steps = this.turn.events.map(({ step }) => step);
    const found = way > 0 ? steps.find((step) => step > this.step) : steps.findLast((step) => step < this.step);
    this.go(found ?? (way > 0 ? this.turn.last : 0));
  }

  toggle() {
    if (this.timer !== null) return this.pause();
    if (this.step >= this.turn.last) this.go(0);
    this.timer = setInterval(() => {
      if (this.step < this.turn.last) this.go(this.step + 1);
      else if (!this.turn.open) this.pause();
    }, 1000 / Number($("speed").value));
    this.#playing(true);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.#playing(false);
  }

  #playing(plays) {
    $("play").setAttribute("aria-label", plays ? "Pause" : "Play");
    $("play").title = plays ? "Pause (space)" : "Play (space)";
    $("play").classList.toggle("on", plays);
    $("status").setAttribute("aria-live", plays ? "off" : "polite");
  }

  #controls() {
    const press = { first: () => this.go(0), back: () => this.go(this.step - 1), play: () => this.toggle(),
      next: () => this.go(this.step + 1), last: () => this.go(this.turn.last) };
    for (const [id, act] of Object.entries(press)) $(id).addEventListener("click", act);
    $("slider").addEventListener("input", () => this.go(Number($("slider").value)));
    $("speed").addEventListener("change", () => {
      if (this.timer !== null) { this.pause(); this.toggle(); }
    });
    $("line").addEventListener("click", (event) => {
      this.go(Math.floor((event.offsetX / $("line").clientWidth) * this.turn.steps.length));
    });
    $("text").addEventListener("click", (event) => {
      const segment = this.turn.segments.find((each) => each.element === event.target);
      if (segment && getSelection().isCollapsed) this.go(segment.step);
    });
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const busy = event.target.closest("input, textarea, select, button, summary, a");
    const slides = event.target.id === "slider";
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (busy && !slides && (event.key === " " || !event.target.closest("button, summary, a"))) return;
    const keys = { ArrowLeft: () => this.go(Math.max(this.step - 1, 0)), ArrowRight: () => this.go(this.step + 1),
      "[": () => this.jump(-1), "]": () => this.jump(1), Home: () => this.go(0),
      End: () => this.go(this.turn.last), " ": () => this.toggle() };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #legend() {
    for (const [kind, name, title] of KINDS) {
      $("legend").append(make("li", { title }, make("span", { className: `k ${kind}`, textContent: name })));
    }
    STATES.forEach((state) => $("states").append(make("li", { textContent: state })));
  }

  // ---- the text ---------------------------------------------------------------------------

  #layText() {
    const pane = $("text");
    let before = null;
    for (const segment of this.turn.segments) {
      const is_new = segment.element === null;
      if (is_new) {
        segment.element = make("span");
        if (before === null) pane.prepend(segment.element);
        else before.after(segment.element);
      }
      if (is_new || segment.stale) {
        segment.element.textContent = this.turn.slice(segment.start, segment.end);
        segment.stale = false;
        this.#dress(segment);
      }
      before = segment.element;
    }
  }

  #dress(segment) {
    if (segment.element === null) return;
    const now = segment.step === this.step ? " now" : "";
    segment.element.className = `k ${this.turn.kind(segment, this.step)}${now}`;
  }

  #scroll() {
    const pane = $("text");
    const element = this.turn.changes[this.step].find((each) => each.step === this.step)?.element;
    if (!element) {
      if (this.step === this.turn.last) pane.scrollTop = pane.scrollHeight;
      return;
    }
    const top = element.offsetTop - pane.offsetTop;
    if (top < pane.scrollTop + 24 || top > pane.scrollTop + pane.clientHeight - 48) {
      pane.scrollTop = top - pane.clientHeight / 2;
    }
  }

  // ---- beside it --------------------------------------------------------------------------

  #status() {
    const step = this.turn.steps[this.step];
    const ends = step.end !== undefined;
    const held = this.turn.slice(step.told, step.read);
    const size = step.read - step.told;
    $("slider").value = this.step;
    $("slider").setAttribute("aria-valuetext", `step ${this.step} of ${this.turn.last}`);
    $("count").textContent = `${this.step} / ${this.turn.last}${this.turn.open ? "+" : ""}`;
    $("piece").textContent = ends ? `end of the stream (${step.end})` : visible(step.text) || "(no text)";
    $("provenance").textContent = ends ? "" : { true: "special", false: "plain" }[step.special] ?? "";
    const end = step.events.find((event) => event.type === "turn_end");
    $("state").textContent = end ? "the stream is over" : step.state;
    $("place").textContent = end ? EVENT_TEXT.turn_end(end) : step.place ?? "—";
    $("to").textContent = step.to === null ? "—" : `to=${step.to}`;
    $("held").textContent = size ? `${size}: ${visible(held.slice(-120))}` : "nothing";
    $("held").classList.toggle("some", size > 0);
    for (const item of $("states").children) {
      if (!end && item.textContent === step.state) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    const told = step.events.map((event) => event.type.replace("_", " ")).join(", ") || "nothing told";
    $("status").textContent = `Step ${this.step}: ${$("piece").textContent}. ${$("state").textContent}. ${told}.`;
    const shown = step.events.map(exactly);
    $("told").textContent = shown.join("\n") || "no event: what was read is held, or means nothing by itself";
    $("told").classList.toggle("none", shown.length === 0);
  }

  #lanes() {
    const none = this.#none();
    for (const [name, lane] of Object.entries(this.turn.lanes)) {
      const text = lane.at(this.step);
      const pane = $(name);
      pane.textContent = text || none;
      pane.classList.toggle("none", !text);
      pane.scrollTop = pane.scrollHeight;
      $(`${name}-size`).textContent = text ? `${Array.from(text).length} characters` : "";
    }
  }

  #none() {
    return this.turn.steps[this.step].end === undefined ? "nothing yet" : "none";
  }

  #calls() {
    const calls = this.turn.calls.filter((call) => call.start <= this.step);
    $("calls").replaceChildren(...calls.map((call) => this.#card(call)));
    $("no-calls").hidden = calls.length > 0;
    $("no-calls").textContent = this.#none();
    $("calls-size").textContent = calls.length ? String(calls.length) : "";
  }

  #card(call) {
    const verdict = call.verdict && call.verdict.step <= this.step ? call.verdict : null;
    const state = verdict ? verdict.kind : "not decided";
    const found = verdict?.call;
    const card = make("li", { className: `card ${state.replace(" ", "-")}` },
      make("div", { className: "head" }, make("strong", { textContent: call.name }),
        make("span", { className: "badge", textContent: state })));
    const json = verdict?.json ?? call.json.at(this.step);
    if (json) card.append(make("pre", { textContent: indented(json), tabIndex: 0, "aria-label": `Arguments of ${call.name}` }));
    const says = [found?.reason, found?.suggestions?.length ? `near: ${found.suggestions.join(", ")}` : "",
      ...(found?.errors ?? []).map((error) => `${error.path || "arguments"}: ${error.message}`)];
    for (const text of says.filter(Boolean)) card.append(make("p", { textContent: text }));
    return card;
  }

  #events() {
    const rows = $("events").children;
    let current = null;
    this.turn.events.forEach(({ step }, place) => {
      rows[place].classList.toggle("later", step > this.step);
      rows[place].classList.toggle("here", step === this.step);
      if (step <= this.step) current = rows[place];
    });
    if (current) $("events").scrollTop = current.offsetTop - $("events").offsetTop - $("events").clientHeight / 2;
  }

  // ---- the line of steps ------------------------------------------------------------------

  paintLine() {
    const canvas = $("line");
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(Math.round(canvas.clientWidth * scale), 1);
    const height = Math.round(canvas.clientHeight * scale);
    canvas.width = width;
    canvas.height = height;
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const steps = this.turn.steps;
    const each = width / Math.max(steps.length, 1);
    steps.forEach((step, at) => {
      pen.fillStyle = colour(`line-${lineOf(step)}`);
      pen.fillRect(Math.floor(at * each), height * 0.35, Math.ceil(each), height * 0.65);
    });
    const marks = { call_end: "call", call_rejected: "rejected", problem: "held" };
    for (const { step, event } of this.turn.events) {
      if (!(event.type in marks)) continue;
      pen.fillStyle = colour(`${marks[event.type]}-ink`);
      pen.fillRect(Math.floor((step + 0.5) * each) - scale, 0, 2 * scale + 1, height);
    }
    this.#mark();
  }

  #mark() {
    const steps = Math.max(this.turn.steps.length, 1);
    $("needle").style.setProperty("left", `${((this.step + 0.5) / steps) * 100}%`);
  }
}

function lineOf(step) {
  const names = { "reasoning body": "reasoning", "answer body": "answer", "tool body": "forming", "turn over": "discarded" };
  return names[step.state] ?? "framing";
}
