// A turn as its trace tells it, at any step. No page and no parser here: every span, kind and
// state is the server's; this file keeps them so that any step can be shown without a search.
"use strict";

// A text that grows step by step.
class Lane {
  constructor() {
    this.text = "";
    this.steps = [];
    this.ends = [];
  }

  add(step, text) {
    this.text += text;
    if (this.steps[this.steps.length - 1] === step) {
      this.ends[this.ends.length - 1] = this.text.length;
    } else {
      this.steps.push(step);
      this.ends.push(this.text.length);
    }
  }

  at(step) {
    const found = lastAtMost(this.steps, step);
    return found < 0 ? "" : this.text.slice(0, this.ends[found]);
  }
}

// The index of the last number that is at most `most` in an ascending list; -1 for none.
function lastAtMost(numbers, most, key = (each) => each) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(numbers[middle]) <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

class Turn {
  constructor() {
    this.steps = [];
    this.points = []; // Python counts characters, JavaScript halves of some: here is one entry each
    this.segments = []; // {start, end, step, paints: [[step, kind]], element}
    this.changes = []; // for each step the segments that look different from it on
    this.lanes = { reasoning: new Lane(), answer: new Lane() };
    this.calls = [];
    this.events = []; // without deltas
    this.result = null;
    this.open = true;
  }

  static of(trace) {
    const turn = new Turn();
    turn.add(trace.steps);
    turn.end(trace.turn);
    return turn;
  }

  get last() {
    return this.steps.length - 1;
  }

  get text() {
    return this.points.join("");
  }

  slice(start, end) {
    return this.points.slice(start, end).join("");
  }

  add(steps) {
    for (const step of steps) {
      const number = this.steps.length;
      const start = this.points.length;
      for (const point of step.text) this.points.push(point);
      this.steps.push(step);
      this.changes.push([]);
      if (this.points.length > start) this.#append(start, this.points.length, number);
      step.events.forEach((event) => this.#event(event, number));
    }
  }

  end(result) {
    this.result = result;
    this.open = false;
  }

  // What a segment is at a step: "future", "held", or the kind of its text.
  kind(segment, step) {
    if (segment.step > step) return "future";
    let kind = "held";
    for (const [since, name] of segment.paints) {
      if (since > step) break;
      kind = name;
    }
    return kind;
  }

  #append(start, end, step) {
    const segment = { start, end, step, paints: [], element: null };
    this.segments.push(segment);
    this.changes[step].push(segment);
  }

  #event(event, step) {
    event.paint.forEach(([kind, start, end]) => this.#paint(kind, start, end, step));
    switch (event.type) {
      case "reasoning_delta":
        this.lanes.reasoning.add(step, event.text);
        return;
      case "content_delta":
        this.lanes.answer.add(step, event.text);
        return;
      case "arguments_delta":
        this.#call(event.index).json.add(step, event.json);
        return;
      case "call_start":
        this.calls.push({ index: event.index, name: event.raw_name, to: event.recipient, start: step, json: new Lane(), verdict: null });
        break;
      case "call_end":
        this.#call(event.index).verdict = { step, kind: "decided", call: event.call, json: event.arguments_json };
        break;
      case "call_rejected":
        this.#rejected(event, step);
        break;
    }
    this.events.push({ step, event });
  }

  #call(index) {
    return this.calls.find((call) => call.index === index);
  }

  #rejected(event, step) {
    const verdict = { step, kind: event.rejected ? "rejected" : "taken back", call: event.rejected, json: event.arguments_json };
    const announced = event.index === null ? null : this.#call(event.index);
    if (announced) announced.verdict = verdict;
    else this.calls.push({ index: null, name: event.rejected.raw_name, to: null, start: step, json: new Lane(), verdict });
  }

  #paint(kind, start, end, step) {
    if (start >= end) return;
    let at = this.#cut(start);
    const stop = this.#cut(end);
    for (; at < stop; at++) {
      this.segments[at].paints.push([step, kind]);
      this.changes[step].push(this.segments[at]);
    }
  }

  // The index of the segment that begins at `place`, which is made if it lies inside one.
  #cut(place) {
    const at = lastAtMost(this.segments, place, (segment) => segment.start);
    const segment = this.segments[at];
    if (segment.start === place) return at;
    if (segment.end <= place) return at + 1;
    const rest = { ...segment, start: place, paints: [...segment.paints], element: null };
    segment.end = place;
    segment.stale = true;
    this.segments.splice(at + 1, 0, rest);
    for (const step of new Set([rest.step, ...rest.paints.map(([since]) => since)])) this.changes[step].push(rest);
    return at + 1;
  }
}

// JSON text with line breaks, its numbers and strings as they were written; half of it works too.
function indented(json) {
  let out = "";
  let depth = 0;
  const parts = json.match(/"(?:[^"\\]|\\.?)*"?|[{}[\],:]|[^\s"{}[\],:]+/g) || [];
  parts.forEach((part, place) => {
    const next = parts[place + 1];
    if (part === "{" || part === "[") {
      out += part;
      if (next === "}" || next === "]") return;
      depth += 1;
      out += "\n" + "  ".repeat(depth);
    } else if (part === "}" || part === "]") {
      if (!["{", "["].includes(parts[place - 1])) {
        depth -= 1;
        out += "\n" + "  ".repeat(Math.max(depth, 0));
      }
      out += part;
    } else if (part === ",") out += ",\n" + "  ".repeat(depth);
    else if (part === ":") out += ": ";
    else out += part;
  });
  return out;
}

// Text on one line, with signs for what can't be seen.
function visible(text) {
  return text
    .replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (sign) =>
      sign === "\n" ? "⏎" : sign === "\t" ? "⇥" : `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replace(/ /g, "␣");
}
