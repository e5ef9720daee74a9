// A run in virtual time: a moment that moves, what every row does then, and a fork that the kernel computes.
//
// Nothing is asked of a kernel but a fork, so that an exported page can be stepped through.

import { scaleLinear } from "d3-scale";

import { type Box, element, enable, type Picture } from "../picture";
import { Playing } from "../player";
import { svg, text } from "../svg";
import { bytes, duration, labels, plural, span } from "../units";

interface Row {
  kind: "device" | "link" | "queue" | "variable";
  label: string;
  look: { fill: string; line: string; label: string };
  n: number[]; // the number of each kernel or message in its run
  from: number[]; // moments, by number; -1: never
  to: number[];
  ready: number[];
  name: number[]; // in the texts
  bytes: number[];
  level: number[];
  capacity: number[];
  dead: [from: number, to: number][]; // moments between which its task was killed
}

interface Replay {
  moments: number[]; // µs
  runs: { end: number; rows: Row[]; said: number[]; says: string[] }[];
  texts: string[];
  plot: {
    left: number; right: number; top: number; bottom: number;
    blocks: [top: number, bottom: number][]; places: [y: number, height: number, bar: number][][]; apart: number; shown: number;
  };
  at: number;
  marks: [at: number, words: string][];
  notes: string[];
  tasks: string[];
}

interface Placed {
  row: Row;
  end: number; // of its run
  place: [y: number, height: number, bar: number];
}

type Says = { html?: string; error?: string; reached?: string };

const WAIT = 3, MOST_CHOICES = 8, MOST_LINES = 8;
const NEAR = 3, LEAST = 20; // units: from the pointer to a bar; of the room in which words begin
const PLAYS = 600, WHOLE = 20_000; // milliseconds that a moment takes when it is played; that all take, if they are many
const NO_KERNEL = "A fork needs a kernel: open the notebook and run its cells.";
const FORKS = new WeakMap<Element, { original: Element; choice: string }>(); // of the picture of a fork

export function replay(picture: Picture, data: Replay): void {
  new Live(picture, data);
}

class Live {
  private readonly x = scaleLinear();
  private readonly slider = element("input", "dtf-scrub");
  private readonly choices = element("select", "dtf-search dtf-choices");
  private readonly moving: SVGGElement;
  private readonly texts: SVGTextElement[];
  private readonly rows: Placed[];
  private row = -1; // that keys have chosen: its card stays
  private at: number;
  private now: number; // µs; between two moments while it plays
  private choice: string; // the value of the one that was made: it stays chosen wherever it is offered
  private isAsked = false;
  private canAsk = false;
  private readonly playing: Playing;
  private readonly longest: string[][]; // of the texts that are said of each run
  private readonly button = element("button", "dtf-button");
  private readonly cancel = element("button", "dtf-button");
  private readonly reached = element("span", "dtf-help"); // how far a fork is that is being computed

  constructor(private readonly picture: Picture, private readonly data: Replay) {
    this.at = data.at;
    this.now = data.moments[data.at]!;
    this.rows = data.runs.flatMap(({ rows, end }, i) => rows.map((row, j) => ({ row, end, place: data.plot.places[i]![j]! })));
    this.choice = FORKS.get(picture.root)?.choice ?? "";
    this.moving = picture.svg.querySelector<SVGGElement>(".moving")!;
    this.texts = [...picture.svg.querySelectorAll<SVGTextElement>(".now")];
    this.x.domain([0, data.plot.shown]);
    picture.command(
      { label: "|◀", key: "home", says: "To the beginning", run: () => this.go(0) },
      { label: "◀", key: "arrowleft", says: "One moment back", run: () => this.go(this.at - 1) },
      { label: "▶", key: "arrowright", says: "The next moment", run: () => this.go(this.at + 1) },
      { label: "▶▶", key: "end", says: "To the end", run: () => this.go(data.moments.length - 1) },
    );
    this.playing = new Playing(picture, {
      count: data.moments.length - 1,
      plays: Math.min(PLAYS, WHOLE / data.moments.length),
      at: () => this.at,
      draw: (to, says) => this.move(to, says),
      stop: (at) => this.go(Math.floor(at)),
    });
    picture.command(
      { label: "+", key: "w", says: "Zoom in around this moment", run: () => this.zoom(0.5) },
      { label: "−", key: "s", says: "Zoom out", run: () => this.zoom(2) },
    );
    picture.on("arrowup", () => this.choose(-1));
    picture.on("arrowdown", () => this.choose(1));
    picture.on("escape", () => this.unchoose());
    picture.hint("Drag or ← →: move in time · W S: zoom · ↑ ↓: a row's card · Fork here: run it again from this moment on");
    this.addForks();
    this.addSlider();
    picture.speakAbove();
    picture.said.classList.add("lines");
    picture.hears((says: Says) => this.hear(says));
    this.longest = data.runs.map(({ says }) => [...says].sort((a, b) => b.length - a.length).slice(0, 4));
    picture.redraws(() => {
      this.reserve();
      this.draw();
    });
    this.scrub();
    this.go(this.at);
  }

  // Room for what is said at any moment, so that the drawing does not jump. Of texts the longest have most lines.
  private reserve(): void {
    const { said } = this.picture, probe = said.cloneNode() as HTMLElement;
    Object.assign(probe.style, { minHeight: "0", position: "absolute", visibility: "hidden", width: `${said.clientWidth}px` });
    said.after(probe);
    const heights = [0, 1, 2, 3].map((i) => {
      probe.textContent = ["Moment", ...this.longest.map((texts) => `Original: ${texts[i]}`), ...this.data.notes].join("\n");
      return probe.offsetHeight;
    });
    probe.remove();
    said.style.minHeight = `${Math.max(...heights)}px`;
  }

  private addSlider(): void {
    const { slider } = this;
    slider.type = "range";
    slider.step = "any";
    slider.setAttribute("aria-label", "Virtual time");
    slider.addEventListener("input", () => this.go(this.momentAt(Number(slider.value))));
    const steps: Record<string, () => number> = {
      ArrowLeft: () => this.at - 1, ArrowRight: () => this.at + 1, Home: () => 0, End: () => this.data.moments.length - 1,
    };
    slider.addEventListener("keydown", (event) => {
      const to = steps[event.key];
      if (!to) return;
      event.preventDefault();
      event.stopPropagation();
      this.go(to());
    });
    this.picture.drawing.before(slider);
  }

  private addForks(): void {
    const bar = element("div", "dtf-bar"), { button, cancel } = this;
    button.textContent = "Fork here";
    button.addEventListener("click", () => this.fork());
    cancel.textContent = "Cancel";
    cancel.title = "Do not wait for the fork: end the run that is being computed";
    cancel.addEventListener("click", () => {
      this.picture.ask({ kind: "cancel" });
      this.hear({ error: "Cancelled: there is no fork." });
    });
    this.choices.setAttribute("aria-label", "Another choice at this moment");
    this.choices.addEventListener("keydown", (event) => event.stopPropagation());
    this.choices.addEventListener("change", () => {
      this.choice = this.choices.value;
      this.choices.title = this.choices.selectedOptions[0]!.text;
    });
    const why = element("span", "dtf-help");
    why.textContent = NO_KERNEL;
    this.busy(false);
    this.picture.onceItCanAsk(() => {
      this.canAsk = why.hidden = true;
      this.busy(this.isAsked);
    });
    bar.append(button, this.choices, cancel, this.reached, why);
    const original = FORKS.get(this.picture.root)?.original;
    if (original) {
      const back = element("button", "dtf-button");
      back.textContent = "Without the fork";
      back.addEventListener("click", () => {
        this.picture.root.replaceWith(original);
        (original as HTMLElement).focus();
      });
      bar.append(back);
    }
    this.picture.bar.after(bar);
  }

  // The pointer moves the moment.
  private scrub(): void {
    const { svg } = this.picture, { left, top } = this.data.plot;
    let isHeld = false;
    const move = (event: PointerEvent) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.moving.getScreenCTM()!.inverse());
      if (event.type === "pointerdown") isHeld = at.x >= left - 6 && at.x <= this.x.range()[1]! + 6 && at.y >= top;
      if (event.type === "pointermove" || !isHeld) this.hover(event, at);
      if (!isHeld) return;
      if (event.type === "pointerdown") svg.setPointerCapture(event.pointerId);
      this.go(this.momentAt(this.x.invert(at.x)));
    };
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (isHeld = false));
    svg.addEventListener("pointerleave", () => this.draw()); // the card of a row that keys have chosen, or none
  }

  // The last moment that is not after a time.
  private momentAt(time: number): number {
    let low = 0, high = this.data.moments.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.data.moments[middle]! <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  private zoom(by: number): void {
    const [from, to] = this.x.domain() as [number, number], total = this.data.moments.at(-1)!;
    const wide = Math.max(total / 1e6, Math.min(total, (to - from) * by));
    const start = Math.max(0, Math.min(this.now - wide / 2, total - wide));
    this.x.domain([start, start + wide]);
    this.draw();
  }

  private go(to: number): void {
    this.playing.end();
    this.move(to, true);
  }

  // To a moment, or between two: then as much of the time between them has passed.
  private move(to: number, says: boolean): void {
    const { moments } = this.data, place = Math.max(0, Math.min(to, moments.length - 1));
    this.at = Math.floor(place);
    const before = moments[this.at]!, after = moments[Math.ceil(place)]!;
    this.now = before + (place - this.at) * (after - before);
    const [from, until] = this.x.domain() as [number, number], wide = until - from;
    if (this.now < from || this.now > until) {
      const start = Math.max(0, Math.min(this.now - wide / 2, moments.at(-1)! - wide));
      this.x.domain([start, start + wide]);
    }
    this.draw();
    if (says) this.say();
  }

  private say(): void {
    const { moments, runs, notes } = this.data;
    const says = runs.map((run, i) => {
      const found = run.said.indexOf(this.at);
      const text = found >= 0 ? run.says[found]! : this.at > run.end ? "It has ended." : this.at ? "Nothing happens." : "It begins.";
      return runs.length > 1 ? `${i ? "Fork" : "Original"}: ${text}` : text;
    });
    const when = `Moment ${this.at} of ${moments.length - 1}, at ${duration(this.now)}.`;
    this.picture.say([when, ...says, ...notes].join("\n"));
    this.slider.setAttribute("aria-valuetext", `${duration(this.now)}. ${says.join(" ")}`);
    this.offer();
  }

  // -- drawing ----------------------------------------------------------------------------------------------

  private draw(): void {
    const { plot, runs, marks } = this.data, extra = this.picture.widen();
    [this.slider.min, this.slider.max] = this.x.domain().map(String) as [string, string];
    this.slider.value = String(this.now);
    this.x.range([plot.left, plot.right + extra]);
    const parts: Element[] = this.axis();
    let number = 0;
    runs.forEach((run, i) =>
      run.rows.forEach((row, j) => {
        const [y, , bar] = plot.places[i]![j]!;
        parts.push(...this.bars(row, y, bar, run.end));
        this.write(this.texts[number++]!, this.state(row, run.end));
      }),
    );
    for (const [at, words] of marks) if (this.isIn(at)) parts.push(this.line(`mark ${words.split(" ")[0]}`, at, words));
    if (this.isIn(this.now)) {
      parts.push(this.line("cursor", this.now, ""));
      parts.push(text(duration(this.now), this.x(this.now), plot.bottom + 11, "s11 b mid halo"));
    }
    const chosen = this.rows[this.row];
    if (chosen) {
      const { place: [y, height], row } = chosen;
      parts.push(path(`M0 ${y - 1.5}H${this.x.range()[1]}v${height + 3}H0z`, "cursor"));
      this.picture.show(this.card(row, this.present(row)), this.inWindow(chosen));
    } else this.picture.hide();
    this.moving.replaceChildren(...parts);
  }

  private isIn(time: number): boolean {
    const [from, to] = this.x.domain() as [number, number];
    return time >= from && time <= to;
  }

  private line(kind: string, time: number, words: string): SVGPathElement {
    const made = this.through(time, kind);
    if (words) made.append(titled(`${words} at ${duration(time)}`));
    return made;
  }

  // A line through the rows of all runs, and no title.
  private through(time: number, kind: string): SVGPathElement {
    const x = this.x(time);
    return path(this.data.plot.blocks.map(([top, bottom]) => `M${x} ${top}V${bottom}`).join(""), kind);
  }

  private axis(): Element[] {
    const { top } = this.data.plot, [low, high] = this.x.range() as [number, number];
    const ticks = this.x.ticks(Math.max(2, (high - low) / 85));
    return labels(ticks).flatMap((label, i) => [this.through(ticks[i]!, "grid"), text(label, this.x(ticks[i]!), top + 13, "s11 soft mid")]);
  }

  private bars(row: Row, y: number, bar: number, end: number): Element[] {
    const { moments } = this.data, time = (i: number) => (i < 0 ? Infinity : moments[i]!);
    const over = (from: number) => Math.min(time(end), ...(row.dead ?? []).map(([at]) => time(at)).filter((at) => at >= time(from)));
    const last = this.x.domain()[1]!;
    const spans = row.from.map((from, i): [number, number] => {
      if (row.kind === "variable") return [time(from), time(from)];
      if (row.kind !== "queue") return [time(from), Math.min(time(row.to[i]!), over(from))];
      return row.level[i] ? [time(from), Math.min(time(row.from[i + 1] ?? -1), time(end))] : [Infinity, Infinity];
    });
    const most = Math.max(...(row.level ?? []), 1);
    const heights = row.kind === "queue" ? [...new Set(row.level)].filter(Boolean) : [most];
    const made = heights.map((level) => {
      const own = row.kind === "queue" ? spans.filter((_, i) => row.level[i] === level) : spans, height = bar * (level / most);
      return path(this.boxes(own, y + 2 + bar - height, height, last), row.kind, row.look.fill);
    });
    if (row.kind === "device") {
      const waits = row.ready.map((ready, i): [number, number] => [time(ready), time(row.from[i]!)]).filter(([a, b]) => b > a);
      made.push(path(this.boxes(waits, y + 4 + bar, WAIT, last), "", row.look.line));
    }
    return made;
  }

  // Boxes of what can be seen; those that touch are one, or have a gap if both are wide enough.
  private boxes(spans: [number, number][], y: number, height: number, last: number): string {
    const first = this.x.domain()[0]!, found: [number, number][] = [], { apart } = this.data.plot;
    for (const [start, end] of spans.filter(([a, b]) => a <= last && b >= first).sort((a, b) => a[0] - b[0])) {
      const from = this.x(Math.max(start, first)), to = Math.max(from + 1, this.x(Math.min(end, last)));
      const before = found.at(-1), touches = before !== undefined && from <= before[1] + 0.5;
      const isOne = touches && (from < before[1] - 0.5 || Math.min(to - from, before[1] - before[0]) < apart);
      if (isOne) before[1] = Math.max(before[1], to);
      else found.push([touches ? from + 1 : from, to]);
    }
    return found.map(([a, b]) => `M${a.toFixed(2)} ${y}H${b.toFixed(2)}v${height}H${a.toFixed(2)}z`).join("");
  }

  private write(node: SVGTextElement, words: string): void {
    const room = this.data.plot.left - 8 - Number(node.getAttribute("x"));
    node.textContent = room < LEAST ? "" : words;
    for (let keep = node.textContent.length; keep > 1 && node.getComputedTextLength() > room; ) {
      keep = Math.min(keep - 1, Math.floor((keep * room) / node.getComputedTextLength()));
      node.textContent = `${words.slice(0, keep)}…`;
    }
  }

  // -- cards --------------------------------------------------------------------------------------------------

  // Of the bars under the pointer; over the name of a row, of what is in it now.
  private hover(event: PointerEvent, at: DOMPoint): void {
    const found = this.rows.find(({ place: [y, height] }) => at.y >= y && at.y <= y + height);
    const isName = at.x < this.data.plot.left, here = found ? (isName ? this.present(found.row) : this.under(found, at)) : [];
    if (found && (isName || here.length)) this.picture.showAt(event, this.card(found.row, here), this.inWindow(found));
    else if (this.row < 0) this.picture.hide();
  }

  private inWindow({ place: [y, height] }: Placed): Box {
    const screen = this.moving.getScreenCTM()!, edge = this.x.range()[1]!;
    const low = new DOMPoint(0, y).matrixTransform(screen), high = new DOMPoint(edge, y + height).matrixTransform(screen);
    return { left: low.x, top: low.y, right: high.x, bottom: high.y };
  }

  // The bars at a point of a row; below a device's bars the kernels that wait.
  private under({ row, end, place: [y, , bar] }: Placed, { x, y: at }: DOMPoint): number[] {
    const time = (i: number) => this.data.moments[i < 0 ? end : i]!, near = (from: number, to: number) => this.x(from) - NEAR <= x && x <= this.x(to) + NEAR;
    const isWait = row.kind === "device" && at > y + 3 + bar;
    const spans = row.from.map((from, i): [number, number] => {
      if (isWait) return [time(row.ready[i]!), time(from)];
      return [time(from), row.kind === "variable" ? time(from) : time(row.kind === "queue" ? row.from[i + 1] ?? -1 : row.to[i]!)];
    });
    const found = spans.flatMap(([from, to], i) => (near(from, to) && (to > from || !isWait) && (row.level?.[i] ?? 1) ? [i] : []));
    const within = found.filter((i) => this.x(spans[i]![0]) <= x && x <= this.x(spans[i]![1]));
    return within.length ? within : found;
  }

  private card(row: Row, here: number[]): string[] {
    const kind = row.kind === "device" || row.kind === "link" ? "" : `${row.kind} `;
    const lines = here.slice(0, MOST_LINES).map((i) => this.about(row, i));
    if (here.length > MOST_LINES) lines.push(`and ${here.length - MOST_LINES} more`);
    return [kind + row.label, ...(lines.length ? lines : [row.kind === "link" ? "nothing on its way" : row.kind === "device" ? "idle" : "as it was"])];
  }

  // A kernel, message, level or version, with when.
  private about(row: Row, i: number): string {
    const time = (at: number | undefined) => this.data.moments[at ?? -1] ?? Infinity, from = time(row.from[i]);
    const when = (to: number) => (from === Infinity ? "never begins" : to < Infinity ? span(from, to) : `from ${duration(from)} on`);
    if (row.kind === "queue") return `${plural(row.level[i]!, "element")}${row.capacity[0] ? ` of ${row.capacity[0]}` : ""}, ${when(time(row.from[i + 1]))}`;
    const name = this.data.texts[row.name[i]!]!;
    if (row.kind === "variable") return `version ${i + 1}, by ${name}, at ${duration(from)}`;
    if (row.kind === "link") return `${name} (${bytes(row.bytes[i]!)}), ${when(time(row.to[i]))}`;
    const ready = time(row.ready[i]);
    return `${name}, ${when(time(row.to[i]))}${ready < from ? `; ready at ${duration(ready)}` : ""}`;
  }

  private choose(by: number): void {
    this.row = this.row < 0 ? (by > 0 ? 0 : this.rows.length - 1) : Math.max(0, Math.min(this.rows.length - 1, this.row + by));
    this.draw();
    const { row } = this.rows[this.row]!;
    this.picture.say(this.card(row, this.present(row)).join("; "));
  }

  private unchoose(): void {
    this.row = -1;
    this.draw();
    this.say();
  }

  // -- what is so at this moment ------------------------------------------------------------------------------

  private state(row: Row, end: number): string {
    const { moments } = this.data, at = this.at;
    if (at > end) return "ended";
    const name = (i: number) => this.short(row.name[i]!);
    const seen = row.from.filter((from) => from <= at).length;
    if (row.kind === "variable") return seen ? `version ${seen}` + (row.from[seen - 1] === at ? ` by ${name(seen - 1)}` : "") : "as it was";
    if (row.kind === "queue") return `${seen ? row.level[seen - 1] : 0}${row.capacity[0] ? ` of ${row.capacity[0]}` : ""} elements`;
    if (row.dead?.some(([from, to]) => from <= at && (to < 0 || at < to))) return "killed";
    const goes = this.going(row);
    if (row.kind === "link") return goes.map((i) => `${name(i)} (${bytes(row.bytes[i]!)})`).join(", ");
    const runs = goes.map((i) => {
      const whole = (moments[row.to[i]!] ?? NaN) - moments[row.from[i]!]!;
      return whole ? `${name(i)} ${Math.round((100 * (this.now - moments[row.from[i]!]!)) / whole)}%` : name(i);
    });
    const waits = this.waiting(row).map(name);
    return [runs.length ? `runs ${runs.join(", ")}` : "idle", ...(waits.length ? [`waits: ${waits.join(", ")}`] : [])].join(" · ");
  }

  // The end of a name, of whole scopes, that no other name has.
  private short(name: number): string {
    const { texts } = this.data, parts = texts[name]!.split("/");
    const ends = parts.map((_, i) => parts.slice(i).join("/")).reverse();
    return ends.find((end) => !texts.some((text, i) => i !== name && `/${text}`.endsWith(`/${end}`))) ?? texts[name]!;
  }

  private going(row: Row): number[] {
    return row.from.flatMap((from, i) => (from >= 0 && from <= this.at && (row.to[i]! < 0 || row.to[i]! > this.at) ? [i] : []));
  }

  // For the card of a row at this moment: what runs and waits, or is on its way; the last level or version.
  private present(row: Row): number[] {
    if (row.kind === "device") return [...this.going(row), ...this.waiting(row)];
    if (row.kind === "link") return this.going(row);
    const seen = row.from.filter((from) => from <= this.at).length;
    return seen ? [seen - 1] : [];
  }

  // The kernels of a device that are ready and have not begun.
  private waiting(row: Row): number[] {
    return row.ready.flatMap((ready, i) => (ready <= this.at && (row.from[i]! < 0 || row.from[i]! > this.at) ? [i] : []));
  }

  // -- forks ------------------------------------------------------------------------------------------------

  // What can be chosen at this moment, of the original: the least drastic first, the end of a task last.
  private offer(): void {
    const add = (words: string, kind: string, what: number | string, from?: number) => {
      const option = element("option");
      option.textContent = words;
      option.value = JSON.stringify({ kind, what, from });
      this.choices.append(option);
      option.selected = option.value === this.choice;
    };
    this.choices.replaceChildren();
    const { texts, tasks } = this.data, rows = this.data.runs[0]!.rows;
    for (const row of rows.filter((each) => each.kind === "device"))
      for (const i of this.waiting(row).slice(0, MOST_CHOICES)) add(`Run ${texts[row.name[i]!]} next on ${row.look.label}`, "next", row.n[i]!);
    for (const task of tasks) add(`Network of ${task} 10 times as fast`, "network", `${task}=10x`);
    for (const task of tasks) add(`Network of ${task} 10 times slower`, "network", `${task}=0.1x`);
    for (const row of rows.filter((each) => each.kind === "link"))
      for (const i of this.losable(row)) add(`Lose ${texts[row.name[i]!]}, ${row.label}${this.leaves(row.from[i]!)}`, "lose", row.n[i]!, row.from[i]!);
    for (const task of tasks) add(`Kill ${task}`, "kill", task);
    this.choices.title = this.choices.selectedOptions[0]!.text; // whole
  }

  // The messages of a link that are on their way, and the one that sets out next.
  private losable(row: Row): number[] {
    const sent = row.from.flatMap((from, i) => (from === this.at || (from < this.at && row.to[i]! > this.at) ? [i] : []));
    const next = row.from.findIndex((from) => from > this.at);
    return [...sent.slice(0, MOST_CHOICES), ...(next < 0 ? [] : [next])];
  }

  private leaves(from: number): string {
    const when = duration(this.data.moments[from]!);
    return from === this.at ? "" : from < this.at ? `, on its way since ${when}` : `, which leaves at ${when}`;
  }

  // A message is lost at the moment at which it sets out: if that is over, the fork begins there.
  private fork(): void {
    const option = this.choices.selectedOptions[0];
    if (!option || this.isAsked) return;
    if (!this.picture.canAsk) return this.picture.say(NO_KERNEL);
    this.choice = option.value;
    const { from = this.at, ...asked } = JSON.parse(option.value), at = Math.min(from, this.at);
    this.busy(true);
    this.picture.say(`${option.text}, from ${duration(this.data.moments[at]!)} on: the run is being computed again …`);
    this.picture.ask({ at, ...asked });
  }

  // Whether a fork is being computed: then it can be cancelled, and no other one can be asked for.
  private busy(is: boolean): void {
    const { button, cancel } = this, wasFocused = document.activeElement === cancel;
    this.isAsked = is;
    this.reached.textContent = "";
    this.choices.disabled = is || !this.canAsk;
    cancel.hidden = !is;
    const words = "Compute the run again with this choice from this moment on";
    enable(button, this.canAsk && !is, is ? "A fork is being computed" : this.canAsk ? words : NO_KERNEL);
    if (wasFocused) button.focus();
  }

  private hear({ html, error, reached }: Says): void {
    if (!this.isAsked) return; // it was cancelled
    if (reached) {
      this.reached.textContent = `Being computed: ${reached} of virtual time so far.`;
      return;
    }
    this.busy(false);
    if (!html) return this.picture.say(error ?? "");
    const page = element("div");
    page.innerHTML = html;
    const forked = page.querySelector<HTMLElement>(".dtf-picture")!;
    this.go(this.at); // what it says when it comes back
    FORKS.set(forked, { original: FORKS.get(this.picture.root)?.original ?? this.picture.root, choice: this.choice });
    this.picture.root.replaceWith(forked);
    forked.tabIndex = 0;
    forked.focus();
  }
}

function path(d: string, kind: string, fill = ""): SVGPathElement {
  return svg("path", { d, class: kind, ...(fill && { fill }) });
}

function titled(words: string): SVGTitleElement {
  const made = svg("title");
  made.textContent = words;
  return made;
}
