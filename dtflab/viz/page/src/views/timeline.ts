// The timeline: zoom, pan, search, a card for a bar, sums of a range, arrows of the chosen op.
//
// The still has the devices, their rows and the legend; a canvas over its plot draws what is visible. Bars that are
// narrower than a pixel are merged, so a frame takes as long as the plot has pixels, however many bars there are.

import { scaleLinear, type ScaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomTransform } from "d3-zoom";
import { after, Busy } from "../busy";
import { save } from "../perfetto";
import { type Box, element, type Picture } from "../picture";
import { bytes, duration, labels, memorySize, percent, plural, span } from "../units";

// Bars and waits are columns of equal length; times are microseconds, texts numbers of `texts`, rows those of `rows`.
export interface Timeline {
  total: number;
  plot: { x: number; y: number; left: number; right: number; height: number }; // in units of the drawing
  rows: Row[];
  folds: { row: number; rows: number[] }[]; // a row in which others are folded
  looks: { fill: string; line: string; ink: string; label: string }[];
  texts: string[];
  forms: Record<number, number[]>; // of names, the longest first
  bars: Record<"start" | "end" | "row" | "look" | "name" | "op" | "kind" | "part" | "line" | "bytes" | "last" | "had", number[]>;
  waits: Record<"start" | "end" | "row" | "look" | "tensor" | "bytes" | "maker" | "source" | "target", number[]>;
  gaps: Record<"start" | "end" | "row" | "why", number[]>;
  critical: Record<"is_wait" | "index" | "start" | "end", number[]>; // parts of the critical path, in their order
}

interface Row {
  y: number;
  height: number;
  band: number; // the number of its device's band in the still
  device: string;
  below: boolean; // with room for names below the bars
  label: string;
  thread: string; // of its bars, if there are any
  idle: string | null;
}

// Kinds of bars; the legend of the still shows how each looks.
const PART = 1, SENT = 3, COPIED = 4;
export const FAULT = 2;

type Hit = { kind: "bars" | "waits" | "gaps"; index: number };
type Rectangle = [x: number, y: number, width: number, height: number]; // pixels
type Found = Hit & { kind: "bars" | "waits" };
const MOST_ZOOM = 1e5, MOST_KINDS = 6; // kinds of ops that have a line of their own in the sums
const DASHES = [5, 3], LEAST_DASHED = 6; // of the critical path, and pixels in which they can be told apart

export function timeline(picture: Picture, data: Timeline): void {
  new Live(picture, data);
}

class Live {
  private readonly canvas = element("canvas", "dtf-plot");
  private readonly search = element("input", "dtf-search");
  private readonly byRow: Record<Hit["kind"], number[][]>;
  private readonly zoom = zoom<HTMLCanvasElement, unknown>();
  private transform: ZoomTransform = zoomIdentity;
  private chosen: Hit | null = null;
  private hovered: Hit | null = null;
  private found: Record<"bars" | "waits", Set<number>> = { bars: new Set(), waits: new Set() }; // by the search
  private range: [number, number] | null = null; // microseconds
  private shows = { critical: false };
  private readonly opened = new Set<number>(); // folds
  private rows: Row[]; // where they are now; a row that is folded has no height
  private taller = 0; // units that open folds take
  private merges = false; // whether a pixel that is seen stands for several bars
  private readonly merged: HTMLElement; // the key for that
  private readonly home: Record<"bars" | "waits", number[]>; // the row of each when all is open
  private readonly busyOf = new Map<string, Busy>(); // of devices by name, of rows by number

  constructor(private readonly picture: Picture, private readonly data: Timeline) {
    this.rows = data.rows;
    this.home = { bars: data.bars.row, waits: data.waits.row };
    this.byRow = { bars: [], waits: [], gaps: this.sorted("gaps") };
    this.nameShares();
    this.arrange();
    picture.svg.querySelector(".still")?.remove();
    picture.drawing.append(this.canvas);
    this.canvas.setAttribute("aria-hidden", "true"); // the still's sentence and the table say it
    this.controls();
    this.merged = picture.hint("several bars in one pixel");
    this.merged.classList.add("dtf-merged");
    this.merged.hidden = picture.svg.querySelector(".merged") !== null; // the still has this key
    this.gestures();
    if (picture.drawing.clientHeight > innerHeight) picture.speakAbove(); // what it says would be out of sight
    picture.redraws(() => this.draw());
  }

  private sorted(kind: Hit["kind"]): number[][] {
    const rows: number[][] = this.data.rows.map(() => []);
    this.data[kind].row.forEach((row, i) => rows[row]!.push(i));
    const { start, end } = this.data[kind]; // of what begins together, the shortest lies on top
    for (const row of rows) row.sort((a, b) => start[a]! - start[b]! || end[b]! - end[a]!);
    return rows;
  }

  // ---- rows that fold ----

  // Put rows, bars and the still's bands where they are with the folds that are open.
  private arrange(): void {
    const { data } = this;
    const shift = Array(Math.max(...data.rows.map((row) => row.band)) + 2).fill(0) as number[];
    const below = data.rows.map(() => 0); // units that open folds take above a row, on its own device
    data.folds.forEach((fold, i) => {
      const own = data.rows[fold.row]!, taller = this.heightOf(fold) - own.height;
      if (!this.opened.has(i)) return;
      shift[own.band + 1]! += taller;
      const further = data.folds.filter(({ row }) => data.rows[row]!.band === own.band && data.rows[row]!.y > own.y);
      for (const { row, rows } of further) for (const each of [row, ...rows]) below[each]! += taller;
    });
    for (let i = 1; i < shift.length; i++) shift[i]! += shift[i - 1]!;
    this.taller = shift.at(-1)!;
    this.rows = data.rows.map((row, i) => ({ ...row, y: row.y + shift[row.band]! + below[i]! }));
    const shown = this.rows.map((_, i) => i);
    data.folds.forEach((fold, i) => {
      for (const hidden of this.opened.has(i) ? [fold.row] : fold.rows) this.rows[hidden]!.height = 0;
      if (!this.opened.has(i)) for (const row of fold.rows) shown[row] = fold.row;
    });
    for (const kind of ["bars", "waits"] as const) {
      data[kind].row = this.home[kind].map((row) => shown[row]!);
      this.byRow[kind] = this.sorted(kind);
    }
    this.moveStill(shift, below);
  }

  private heightOf(fold: Timeline["folds"][0]): number {
    const last = this.data.rows[fold.rows.at(-1)!]!;
    return last.y + last.height + (last.below ? 14 : 0) - this.data.rows[fold.row]!.y;
  }

  private moveStill(shift: number[], below: number[]): void {
    const marks = [...this.picture.svg.querySelectorAll<SVGGElement>(".fold")];
    this.picture.svg.querySelectorAll<SVGGElement>(".of-device").forEach((device, band) => {
      device.setAttribute("transform", `translate(0 ${shift[band]})`);
      const ground = device.querySelector<SVGRectElement>("rect.band")!;
      ground.dataset.height ??= ground.getAttribute("height")!;
      ground.setAttribute("height", String(parseFloat(ground.dataset.height) + shift[band + 1]! - shift[band]!));
    });
    this.data.folds.forEach(({ row, rows }, i) => {
      const mark = marks[i]!, isOpen = this.opened.has(i), folded = this.data.rows[row]!;
      mark.style.display = isOpen ? "none" : "";
      mark.setAttribute("transform", `translate(0 ${below[row]})`);
      mark.style.cursor = "pointer";
      mark.querySelector("text")!.textContent = `▸ ${folded.label}`;
      mark.onclick = () => this.fold(i);
      while (mark.nextElementSibling?.classList.contains("unfolded")) mark.nextElementSibling.remove();
      const inner = rows.map((number) => this.data.rows[number]!);
      for (const [k, each] of isOpen ? [...inner.entries()].toReversed() : []) {
        const copy = mark.cloneNode(true) as SVGGElement;
        copy.setAttribute("class", "unfolded");
        copy.style.display = "";
        copy.onclick = () => this.fold(i);
        const down = each.y + each.height / 2 - folded.y - folded.height / 2;
        for (const text of copy.querySelectorAll("text")) {
          text.setAttribute("y", String(parseFloat(text.getAttribute("y")!) + down));
          if (text.dataset.idle) Object.assign(text.dataset, { idle: rows[k], whole: each.idle ?? "" });
          else text.textContent = k ? each.label : `▾ ${each.label}`;
        }
        mark.after(copy);
      }
    });
  }

  private fold(number: number): void {
    if (!this.opened.delete(number)) this.opened.add(number);
    this.arrange();
    this.draw();
  }

  // Open or close the fold in which the chosen bar is.
  private foldChosen(): void {
    const hit = this.chosen;
    const row = hit && hit.kind !== "gaps" ? this.home[hit.kind][hit.index]! : -1;
    const number = this.data.folds.findIndex(({ rows }) => rows.includes(row));
    if (number < 0) return this.picture.say("First choose a bar of a row that folds, with the arrow keys or a click.");
    this.fold(number);
    this.visit(hit!, this.opened.has(number) ? "Its row is open: " : "Its row is folded: ");
  }

  // Open all folds, or close them if they are open.
  private foldAll(): void {
    const { folds } = this.data;
    const isOpen = this.opened.size === folds.length;
    this.opened.clear();
    if (!isOpen) folds.forEach((_, i) => this.opened.add(i));
    this.arrange();
    this.picture.say(isOpen ? "Rows are folded." : "All rows are open.");
    this.draw();
  }

  // ---- what a person does ----

  private controls(): void {
    const { picture, search } = this;
    picture.command(
      { label: "Fit", key: "f", says: "Show the whole step", run: () => this.go(zoomIdentity) },
      { label: "+", key: "w", says: "Zoom in", run: () => this.scale(1.5) },
      { label: "−", key: "s", says: "Zoom out", run: () => this.scale(1 / 1.5) },
      { label: "Sums", key: "r", says: "Sums of what is seen: busy, idle, bytes, by op", run: () => this.select(...(this.x.domain() as [number, number])) },
      { label: "Critical path", key: "c", says: "Outline with dashes the ops and transfers that made the step this long", run: () => this.toggle("critical") },
      ...(this.data.folds.length ? [{ label: "Open, fold all", key: "i", says: "Open or fold all rows that are idle, and those of many tensors", run: () => this.foldAll() }] : []),
      ...(this.data.folds.length ? [{ label: "Open, fold row", key: "o", says: "Open or fold the row of the chosen bar", run: () => this.foldChosen() }] : []),
      { label: "For Perfetto", key: "e", says: "Save as a Chrome trace, for ui.perfetto.dev", run: () => this.export() },
    );
    picture.on("a", () => this.pan(1));
    picture.on("d", () => this.pan(-1));
    picture.on("arrowleft", () => this.walk(-1, 0));
    picture.on("arrowright", () => this.walk(1, 0));
    picture.on("arrowup", () => this.walk(0, -1));
    picture.on("arrowdown", () => this.walk(0, 1));
    picture.on("escape", () => this.clear());
    search.type = "search";
    search.placeholder = "Find an op, device or tensor";
    search.setAttribute("aria-label", search.placeholder);
    search.addEventListener("input", () => this.find(search.value));
    search.addEventListener("keydown", (event) => event.key === "Enter" && this.goToFound());
    picture.bar.append(search);
    picture.hint("Click, then wheel or W S: zoom · drag or A D: pan · Shift + drag: sums · click: keep the card · arrow keys: bar to bar · idle: of what is seen");
  }

  private gestures(): void {
    const plot = select(this.canvas);
    let from = 0;
    this.zoom
      .scaleExtent([1, MOST_ZOOM])
      .filter((event) => !event.shiftKey && !event.button && (event.type !== "wheel" || this.picture.root.contains(document.activeElement) || event.ctrlKey))
      .on("zoom", (event) => {
        this.transform = event.transform;
        this.draw();
      });
    plot.call(this.zoom).on("dblclick.zoom", null);
    plot.on("pointerdown", (event: PointerEvent) => {
      this.picture.root.focus({ preventScroll: true });
      if (!event.shiftKey) return;
      from = this.time(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    plot.on("pointermove", (event: PointerEvent) => {
      if (event.shiftKey && event.buttons) this.select(from, this.time(event));
      else if (!event.buttons) this.hover(event);
    });
    plot.on("pointerleave", () => this.hover(null));
    plot.on("click", (event: MouseEvent) => event.shiftKey || this.choose(event));
  }

  private go(transform: ZoomTransform): void {
    select(this.canvas).call(this.zoom.transform, transform);
  }

  private scale(by: number): void {
    select(this.canvas).call(this.zoom.scaleBy, by);
  }

  private pan(direction: number): void {
    select(this.canvas).call(this.zoom.translateBy, (direction * this.width * 0.2) / this.transform.k, 0);
  }

  private toggle(what: "critical"): void {
    this.shows[what] = !this.shows[what];
    if (this.shows.critical) this.sayCritical();
    else this.picture.say("");
    this.draw();
  }

  private clear(): void {
    this.chosen = this.range = null;
    this.found = { bars: new Set(), waits: new Set() };
    this.search.value = "";
    this.picture.hide();
    delete this.picture.card.dataset.locked;
    this.picture.say("");
    this.draw();
  }

  private find(text: string): void {
    const { bars, waits, texts, rows, looks } = this.data;
    const wanted = text.trim().toLowerCase();
    const has = texts.map((each) => each.toLowerCase().includes(wanted));
    const onDevice = rows.map((row) => row.device.toLowerCase().includes(wanted));
    const like = looks.map((look) => look.label.toLowerCase().includes(wanted));
    const numbers = (count: number, fits: (i: number) => boolean | undefined) =>
      new Set(wanted ? [...Array(count).keys()].filter(fits) : []);
    this.found = {
      bars: numbers(bars.name.length, (i) => this.isDrawn("bars", i) && (
        has[bars.name[i]!] || has[bars.op[i]!] || onDevice[bars.row[i]!] || like[bars.look[i]!])),
      waits: numbers(waits.tensor.length, (i) => this.isDrawn("waits", i) && (
        has[waits.tensor[i]!] || has[waits.source[i]!] || has[waits.target[i]!])),
    };
    const { bars: found, waits: sent } = this.found;
    this.picture.say(!wanted ? "" : `${plural(found.size, "bar")} and ${plural(sent.size, "awaited tensor")}; Enter goes to the next one.`);
    this.draw();
  }

  private goToFound(): void {
    const all = (["bars", "waits"] as const).flatMap((kind) => [...this.found[kind]].map((index): Found => ({ kind, index })));
    all.sort((a, b) => Number(this.isMeant(b)) - Number(this.isMeant(a)) || this.start(a) - this.start(b));
    const last = all.findIndex(({ kind, index }) => kind === this.chosen?.kind && index === this.chosen.index);
    const next = all[(last + 1) % all.length];
    if (!next) return;
    this.showSpan(this.start(next), this.end(next));
    this.visit(next, `${(last + 1) % all.length + 1} of ${all.length}: `);
  }

  // Go with the keys to the next bar, tensor or gap of the row in time, or to what is above or below.
  private walk(along: number, down: number): void {
    const seen = this.rows.flatMap((row, i) => (row.height ? [{ y: row.y, row: i, hits: this.inRow(i) }] : []));
    const rows = seen.filter(({ hits }) => hits.length).sort((a, b) => a.y - b.y);
    const now = this.chosen, row = now ? this.data[now.kind].row[now.index]! : rows[0]?.row;
    const there = rows[rows.findIndex((each) => each.row === row) + down]?.hits ?? [];
    let place = 0;
    if (now && down) place = Math.max(0, there.findLastIndex((hit) => this.start(hit) <= this.start(now)));
    else if (now) place = there.findIndex((hit) => hit.kind === now.kind && hit.index === now.index) + along;
    const next = there[place];
    if (!next) return this.picture.say(down ? "There is no further row." : "The row ends here.");
    const [low, high] = this.x.domain() as [number, number];
    if (this.start(next) < low || this.end(next) > high) this.showSpan(this.start(next), this.end(next));
    this.visit(next, `${place + 1} of ${there.length} in its row: `);
  }

  // The bars, tensors and gaps of a row, by time.
  private inRow(row: number): Hit[] {
    const hits = (["gaps", "waits", "bars"] as const).flatMap((kind) => this.byRow[kind][row]!.map((index): Hit => ({ kind, index })));
    return hits.sort((a, b) => this.start(a) - this.start(b));
  }

  private visit(hit: Hit, before: string): void {
    this.chosen = hit;
    this.keep(before, (lines) => this.picture.show(lines, this.inWindow(hit)));
    this.draw();
  }

  private start({ kind, index }: Hit): number {
    return this.data[kind].start[index]!;
  }

  private end({ kind, index }: Hit): number {
    return this.data[kind].end[index]!;
  }

  // Where a bar is, in pixels of the window; of one that began before, from where it can be seen.
  private inWindow({ kind, index }: Hit): Box {
    const [x, y, width, height] = this.box(kind, index, this.unit), { left, top } = this.canvas.getBoundingClientRect();
    return { left: left + Math.max(0, x), top: top + y, right: left + x + width, bottom: top + y + height };
  }

  // Show the card of what is chosen and keep it until something else is.
  private keep(before: string, show: (lines: string[]) => void): void {
    const lines = this.card(this.chosen!);
    show(lines);
    this.picture.card.dataset.locked = "";
    this.picture.say(before + lines.join(". "));
  }

  // Whether an op is of the type that is searched for, or has that name, and not only a part of it: these come first.
  private isMeant({ kind, index }: Hit): boolean {
    if (kind !== "bars") return false;
    const { bars, texts } = this.data;
    const name = texts[bars.name[index]!]!, wanted = this.search.value.trim().toLowerCase();
    return [texts[bars.op[index]!]!, name, name.slice(name.lastIndexOf("/") + 1)].some((each) => each.toLowerCase() === wanted);
  }

  // A span with its surroundings: eight times as much, a twelfth of the step at least, and nothing outside of the step.
  private showSpan(start: number, end: number): void {
    const k = Math.max(1, this.data.total / Math.max((end - start) * 8, this.data.total / 12));
    const half = this.width / k / 2, wanted = ((start + end) / 2 / this.data.total) * this.width;
    const middle = Math.max(half, Math.min(wanted, this.width - half));
    this.go(zoomIdentity.translate(this.width / 2, 0).scale(k).translate(-middle, 0));
  }

  private hover(event: PointerEvent | null): void {
    const hit = event && this.at(event);
    if (hit?.index === this.hovered?.index && hit?.kind === this.hovered?.kind) return;
    this.hovered = hit;
    if (!this.chosen) hit && event ? this.picture.showAt(event, this.card(hit), this.inWindow(hit)) : this.picture.hide();
    this.canvas.style.cursor = hit && hit.kind !== "gaps" ? "pointer" : "default";
    this.draw();
  }

  private choose(event: MouseEvent): void {
    const hit = (this.chosen = this.at(event));
    if (hit) this.keep("", (lines) => this.picture.showAt(event, lines, this.inWindow(hit)));
    else {
      this.clear();
      const fold = this.data.folds.findIndex(({ row }) => row === this.rowAt(event));
      if (fold >= 0) this.fold(fold);
    }
    this.draw();
  }

  private select(from: number, to: number): void {
    this.range = [Math.min(from, to), Math.max(from, to)];
    this.sums(...this.range);
    this.draw();
  }

  // ---- where things are ----

  private get width(): number {
    return this.canvas.clientWidth;
  }

  private get x(): ScaleLinear<number, number> {
    return this.transform.rescaleX(scaleLinear([0, this.data.total], [0, this.width]));
  }

  private get unit(): number {
    return this.canvas.clientHeight / (this.data.plot.height + this.taller); // pixels of one unit of the drawing
  }

  // Tensors for which there is no room are in a row without height.
  private isDrawn(kind: "bars" | "waits", index: number): boolean {
    return this.rows[this.data[kind].row[index]!]!.height > 0;
  }

  private time(event: MouseEvent): number {
    return Math.min(this.data.total, Math.max(0, this.x.invert(event.offsetX)));
  }

  private at(event: MouseEvent): Hit | null {
    const row = this.rowAt(event);
    if (row < 0) return null;
    const reach = Math.abs(this.x.invert(2) - this.x.invert(0)); // two pixels
    for (const kind of ["bars", "waits"] as const) {
      const index = this.under(kind, row, this.x.invert(event.offsetX), reach);
      if (index !== null) return { kind, index };
    }
    const index = this.under("gaps", this.first(row), this.x.invert(event.offsetX), 0);
    return index === null ? null : { kind: "gaps", index };
  }

  private rowAt(event: MouseEvent): number {
    const y = event.offsetY / this.unit;
    return this.rows.findIndex((each) => y >= each.y && y < each.y + each.height);
  }

  // The first row of a row's device, where its gaps are listed.
  private first(row: number): number {
    return this.data.rows.findIndex((each) => each.device === this.data.rows[row]!.device);
  }

  // The last span of a row that has begun at a time and not ended by then.
  private under(kind: Hit["kind"], row: number, time: number, reach: number): number | null {
    const { start, end } = this.data[kind];
    const spans = this.byRow[kind][row]!;
    const begun = after(spans.length, (i) => start[spans[i]!]!, time + reach);
    for (let i = begun - 1; i >= Math.max(0, begun - 50); i--) {
      if (end[spans[i]!]! + reach >= time) return spans[i]!;
    }
    return null;
  }

  // ---- drawing ----

  private draw(): void {
    const { plot } = this.data;
    const right = plot.right + this.picture.widen(this.taller);
    const frame = this.picture.drawing.getBoundingClientRect();
    const svg = this.picture.svg.getBoundingClientRect();
    const unit = svg.width / this.picture.svg.viewBox.baseVal.width;
    if (!unit) return; // not on the page now
    Object.assign(this.canvas.style, {
      left: `${svg.left - frame.left + (plot.x + plot.left) * unit}px`,
      top: `${svg.top - frame.top + plot.y * unit}px`,
      width: `${(right - plot.left) * unit}px`,
      height: `${(plot.height + this.taller) * unit}px`,
    });
    const width = (right - plot.left) * unit, height = (plot.height + this.taller) * unit, dense = devicePixelRatio;
    this.canvas.width = Math.round(width * dense);
    this.canvas.height = Math.round(height * dense);
    this.zoom.extent([[0, 0], [width, height]]).translateExtent([[0, 0], [width, height]]);
    const pen = this.canvas.getContext("2d")!;
    pen.scale(dense, dense);
    pen.font = `${11 * unit}px 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif`;
    pen.textBaseline = "middle";
    this.grid(pen, width, height, unit);
    this.drawRange(pen, height);
    this.merges = false;
    this.rows.forEach((row, i) => {
      if (!row.height) return;
      this.drawRow(pen, "waits", i, unit);
      const bare = this.drawRow(pen, "bars", i, unit);
      if (row.below) this.namesBelow(pen, row, bare, unit);
    });
    this.drawShares();
    this.merged.style.visibility = this.merges ? "" : "hidden"; // it keeps its place
    if (this.shows.critical) this.drawCritical(pen, unit);
    const marked = this.chosen ?? this.hovered;
    if (marked && marked.kind !== "gaps") {
      this.outline(pen, this.box(marked.kind, marked.index, unit));
      this.arrows(pen, marked, unit);
    }
    if (marked?.kind === "gaps") this.drawGap(pen, marked.index, unit);
  }

  // Idle shares follow what is seen: mark their texts in the still with the device's name or the row's number.
  private nameShares(): void {
    const { rows, folds } = this.data, folded = new Set(folds.flatMap((fold) => fold.rows));
    this.picture.svg.querySelectorAll(".of-device").forEach((device, band) => {
      const [whole, ...others] = device.querySelectorAll<SVGTextElement>("text.right");
      const own = rows.flatMap((row, i) => (row.band === band && row.idle !== null && !folded.has(i) ? [i] : []));
      whole!.dataset.idle = rows.find((row) => row.band === band)!.device;
      others.forEach((text, i) => (text.dataset.idle = String(own[i])));
      for (const text of [whole!, ...others]) text.dataset.whole = text.textContent!;
    });
  }

  private drawShares(): void {
    const [from, to] = this.x.domain() as [number, number];
    for (const text of this.picture.svg.querySelectorAll<SVGTextElement>("[data-idle]")) {
      const { idle, whole } = text.dataset as { idle: string; whole: string };
      const share = this.transform.k === 1 || !whole ? whole : `${this.busy(idle).idle(from, to)} idle`;
      if (text.textContent !== share) text.textContent = share;
    }
  }

  // Of a device by its name, or of a row, with all rows of its thread or that are folded in it, by its number.
  private busy(of: string): Busy {
    const found = this.busyOf.get(of);
    if (found) return found;
    const { bars, rows, folds } = this.data, row = rows[Number(of)];
    const inner = folds.find((fold) => fold.row === Number(of))?.rows;
    const isOwn = rows.map((each, i) =>
      inner ? inner.includes(i) : row ? each.band === row.band && each.thread === row.thread : each.device === of);
    const spans = this.home.bars.flatMap((home, i): [number, number][] =>
      isOwn[home] && bars.kind[i] !== FAULT && bars.kind[i] !== SENT ? [[bars.start[i]!, bars.end[i]!]] : []);
    const made = new Busy(spans);
    this.busyOf.set(of, made);
    return made;
  }

  private grid(pen: CanvasRenderingContext2D, width: number, height: number, unit: number): void {
    pen.strokeStyle = pen.fillStyle = this.picture.colour("--soft");
    pen.globalAlpha = 0.25;
    const x = this.x, ticks = x.ticks(Math.max(2, width / (95 * unit)));
    for (const tick of ticks) {
      pen.beginPath();
      pen.moveTo(x(tick), 16 * unit);
      pen.lineTo(x(tick), height);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.textAlign = "center";
    labels(ticks).forEach((label, i) => {
      const half = pen.measureText(label).width / 2;
      pen.fillText(label, Math.max(half, Math.min(x(ticks[i]!), width - half)), 8 * unit);
    });
  }

  private drawRange(pen: CanvasRenderingContext2D, height: number): void {
    if (!this.range) return;
    pen.fillStyle = "#0072b2";
    pen.globalAlpha = 0.15;
    pen.fillRect(this.x(this.range[0]), 0, this.x(this.range[1]) - this.x(this.range[0]), height);
    pen.globalAlpha = 1;
  }

  private drawRow(pen: CanvasRenderingContext2D, kind: "bars" | "waits", row: number, unit: number): number[] {
    const { start, end, look } = this.data[kind];
    const bare: number[] = []; // bars that can be seen, without room for their names
    const spans = this.byRow[kind][row]!;
    const [low, high] = this.x.domain() as [number, number];
    const x = this.x, pixel = (high - low) / this.width;
    const place = this.rows[row]!, overlaps = kind === "waits" && this.data.folds.some((fold) => fold.row === row);
    const y = (place.y + 2) * unit, height = (place.height - 4) * unit;
    const dims = this.found.bars.size + this.found.waits.size > 0;
    let i = overlaps ? 0 : Math.max(0, after(spans.length, (i) => start[spans[i]!]!, low) - 1), reached = -1;
    while (i < spans.length && start[spans[i]!]! <= high) {
      const span = spans[i]!;
      const left = x(start[span]!), right = Math.max(x(end[span]!), left + 1);
      pen.globalAlpha = dims && !this.found[kind].has(span) ? 0.2 : 1;
      pen.fillStyle = this.data.looks[look[span]!]!.fill;
      if (right < 0) i++;
      else if (right - left < 1.01) {
        pen.fillRect(left, y, 1, height); // stands for all that begin within its pixel and are as short
        const isHere = (other: number) => start[other]! <= start[span]! + pixel && end[other]! - start[other]! < 1.01 * pixel;
        const first = i;
        do i++; while (!dims && i < spans.length && isHere(spans[i]!));
        this.merges ||= i > first + 1;
      } else {
        if (kind === "waits") {
          this.drawWait(pen, span, left, y, right - left, height, unit, end[span]! <= reached);
          reached = Math.max(reached, end[span]!);
        } else this.drawBar(pen, span, left, y, right - left - (right - left > 4 ? 1 : 0), height);
        const named = overlaps || this.drawName(pen, kind, span, Math.max(left, 0), y + height / 2, Math.min(right, this.width), unit);
        if (!named && right - left >= 4 * unit && bare.length < 500) bare.push(span);
        i++;
      }
    }
    pen.globalAlpha = 1;
    return bare;
  }

  // Names of the longest bars, for as long as they do not touch.
  private namesBelow(pen: CanvasRenderingContext2D, row: Row, bare: number[], unit: number): void {
    const { start, end, name } = this.data.bars;
    const taken: [number, number][] = [];
    pen.fillStyle = this.picture.colour("--soft");
    pen.textAlign = "center";
    for (const bar of bare.sort((a, b) => end[b]! - start[b]! - end[a]! + start[a]!)) {
      const text = this.named(pen, name[bar]!, 90 * unit);
      const half = pen.measureText(text).width / 2;
      const middle = Math.max(half, Math.min((this.x(start[bar]!) + this.x(end[bar]!)) / 2, this.width - half));
      if (taken.some(([low, high]) => middle - half < high + 6 && low - 6 < middle + half)) continue;
      taken.push([middle - half, middle + half]);
      pen.fillText(text, middle, (row.y + row.height + 6) * unit);
    }
  }

  private drawBar(pen: CanvasRenderingContext2D, span: number, x: number, y: number, width: number, height: number): void {
    const kind = this.data.bars.kind[span];
    if (kind === FAULT) pen.fillStyle = this.picture.colour("--bg");
    if (kind === SENT) return this.framed(pen, this.data.looks[this.data.bars.look[span]!]!.line, x, y, width, height);
    pen.fillRect(x, y, width, height);
    if (kind !== PART && kind !== FAULT) return;
    pen.strokeStyle = this.picture.colour(kind === FAULT ? "--fg" : "--bg");
    pen.setLineDash([4, 3]);
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 0.5), height - 1);
    pen.setLineDash([]);
  }

  private drawWait(pen: CanvasRenderingContext2D, span: number, x: number, y: number, width: number, height: number, unit: number, covered: boolean): void {
    const shade = pen.globalAlpha; // what lies on another one has only a frame
    if (covered) pen.fillStyle = "transparent";
    this.framed(pen, this.data.looks[this.data.waits.look[span]!]!.line, x, y, width, height);
    if (!covered) this.stripes(pen, x, y, width, height, 6 * unit);
    pen.globalAlpha = shade;
  }

  // A tensor, which computes nothing: pale, with a frame.
  private framed(pen: CanvasRenderingContext2D, line: string, x: number, y: number, width: number, height: number): void {
    const shade = pen.globalAlpha;
    pen.globalAlpha = shade * 0.25;
    pen.fillRect(x, y, width, height);
    pen.globalAlpha = shade;
    pen.strokeStyle = line;
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 0.5), height - 1);
  }

  // Diagonal lines within a rectangle, as far as it is visible.
  private stripes(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, gap: number): void {
    const from = Math.max(x, 0), to = Math.min(x + width, this.width);
    pen.globalAlpha *= 0.3;
    pen.save();
    pen.beginPath();
    pen.rect(from, y, Math.max(to - from, 0), height);
    pen.clip();
    pen.beginPath();
    for (let at = x + gap * Math.floor((from - x) / gap); at < to + height; at += gap) {
      pen.moveTo(at, y);
      pen.lineTo(at - height, y + height);
    }
    pen.stroke();
    pen.restore();
  }

  private drawName(pen: CanvasRenderingContext2D, kind: "bars" | "waits", span: number, left: number, y: number, right: number, unit: number): boolean {
    const room = right - left - 8 * unit;
    if (room < 14 * unit) return false;
    const { bars, waits } = this.data;
    const text = this.named(pen, kind === "bars" ? bars.name[span]! : waits.tensor[span]!, room);
    if (!text) return false;
    const isOnColour = kind === "bars" && bars.kind[span] !== FAULT && bars.kind[span] !== SENT;
    pen.fillStyle = isOnColour ? this.data.looks[bars.look[span]!]!.ink : this.picture.colour("--fg");
    pen.textAlign = kind === "bars" ? "center" : "left";
    pen.fillText(text, kind === "bars" ? (left + right) / 2 : left + 5 * unit, y);
    return true;
  }

  // The first form of a name that fits, else the beginning of the shortest.
  private named(pen: CanvasRenderingContext2D, name: number, room: number): string {
    const forms = this.data.forms[name]!.map((form) => this.data.texts[form]!);
    return forms.find((form) => fitting(pen, form, room) === form) ?? fitting(pen, forms.at(-1)!, room);
  }

  private box(kind: Hit["kind"], index: number, unit: number): Rectangle {
    const { start, end, row } = this.data[kind];
    const place = this.rows[row[index]!]!;
    const left = this.x(start[index]!);
    return [left, (place.y + 2) * unit, Math.max(this.x(end[index]!) - left, 2), (place.height - 4) * unit];
  }

  private outline(pen: CanvasRenderingContext2D, [x, y, width, height]: Rectangle, dashes: number[] = []): void {
    pen.strokeStyle = this.picture.colour("--fg");
    pen.lineWidth = 2;
    pen.setLineDash(dashes);
    pen.strokeRect(x - 1, y - 1, width + 2, height + 2);
    pen.setLineDash([]);
    pen.lineWidth = 1;
  }

  // Dashes around each part of the critical path; a part too narrow for them has a line below it.
  private drawCritical(pen: CanvasRenderingContext2D, unit: number): void {
    const { is_wait, index, start, end } = this.data.critical;
    pen.fillStyle = this.picture.colour("--fg");
    index.forEach((each, i) => {
      const kind = is_wait[i] ? "waits" : "bars";
      if (!this.isDrawn(kind, each)) return;
      const [, y, , height] = this.box(kind, each, unit);
      const x = this.x(start[i]!), width = Math.max(this.x(end[i]!) - x, 2);
      if (width < LEAST_DASHED) pen.fillRect(x, y + height, width, 2);
      else this.outline(pen, [x, y, width, height], DASHES);
    });
  }

  private drawGap(pen: CanvasRenderingContext2D, index: number, unit: number): void {
    const { start, end, row } = this.data.gaps;
    const first = this.rows[row[index]!]!;
    const last = this.rows.findLast((each) => each.device === first.device && each.height)!;
    pen.strokeStyle = this.picture.colour("--fg");
    pen.setLineDash([4, 3]);
    pen.strokeRect(this.x(start[index]!), first.y * unit, this.x(end[index]!) - this.x(start[index]!), (last.y + last.height - first.y) * unit);
    pen.setLineDash([]);
  }

  // From the op that made a tensor to where it arrived: of the chosen op, all that it sent.
  private arrows(pen: CanvasRenderingContext2D, hit: Hit, unit: number): void {
    const { waits } = this.data;
    const shown = hit.kind === "waits" ? [hit.index] : waits.maker.flatMap((maker, i) => (maker === hit.index ? [i] : []));
    for (const wait of shown) {
      const maker = waits.maker[wait]!;
      if (maker < 0 || !this.isDrawn("waits", wait)) continue;
      const from = this.box("bars", maker, unit), to = this.box("waits", wait, unit);
      const down = from[1] < to[1];
      const begin = [from[0] + from[2], from[1] + (down ? from[3] : 0)] as const;
      const tip = [Math.max(to[0], to[0] + to[2] - 3), to[1] + (down ? 0 : to[3])] as const;
      const bend = (tip[1] - begin[1]) * 0.45;
      pen.strokeStyle = pen.fillStyle = this.data.looks[waits.look[wait]!]!.line;
      pen.lineWidth = 1.8;
      pen.beginPath();
      pen.moveTo(...begin);
      pen.bezierCurveTo(begin[0], begin[1] + bend, tip[0], tip[1] - bend, tip[0], tip[1] - (down ? 5 : -5));
      pen.stroke();
      pen.beginPath();
      pen.moveTo(...tip);
      pen.lineTo(tip[0] - 4, tip[1] - (down ? 7 : -7));
      pen.lineTo(tip[0] + 4, tip[1] - (down ? 7 : -7));
      pen.fill();
      pen.lineWidth = 1;
    }
  }

  // ---- words ----

  private card({ kind, index }: Hit): string[] {
    const { bars, waits, gaps, texts, rows } = this.data;
    if (kind === "gaps") return [`Idle for ${duration(gaps.end[index]! - gaps.start[index]!)}`, texts[gaps.why[index]!]!];
    if (kind === "waits") {
      const size = waits.bytes[index]! ? bytes(waits.bytes[index]!) : "order only";
      return [
        `${texts[waits.tensor[index]!]}, ${size}`,
        `${texts[waits.source[index]!]} → ${texts[waits.target[index]!]}`,
        `asked for and received in ${duration(waits.end[index]! - waits.start[index]!)}, at ${duration(waits.end[index]!)}`,
      ];
    }
    const name = texts[bars.name[index]!]!, op = texts[bars.op[index]!]!;
    const what = bars.kind[index] === FAULT ? name : `${name} = ${op}${texts[bars.part[index]!]}`;
    if (bars.kind[index] === SENT) return [`${name}, ${bytes(bars.bytes[index]!)}`, `on the wire to ${rows[bars.row[index]!]!.device}`, this.span(index)];
    const lines = [what, rows[bars.row[index]!]!.device, this.span(index)];
    if (bars.bytes[index]) lines.push(`makes ${memorySize(bars.bytes[index]!)}`);
    const line = texts[bars.line[index]!]!;
    if (line) lines.push(line);
    const why = this.before(index);
    if (why) lines.push(why);
    return lines;
  }

  private span(bar: number): string {
    const { start, end } = this.data.bars;
    return `${duration(end[bar]! - start[bar]!)}, ${span(start[bar]!, end[bar]!)}`;
  }

  // Why a bar began when it did: the idle time that ends there, or the input that was there last.
  private before(bar: number): string {
    const { bars, gaps, texts } = this.data;
    const gap = this.byRow.gaps[this.first(bars.row[bar]!)]!.find((i) => Math.abs(gaps.end[i]! - bars.start[bar]!) < 0.02);
    if (gap !== undefined) return `idle before it: ${texts[gaps.why[gap]!]}`;
    const last = texts[bars.last[bar]!]!, waited = bars.start[bar]! - bars.had[bar]!;
    return last && `its last input, ${last}, was there ${waited < 0.001 ? "just" : duration(waited)} before`;
  }

  private sayCritical(): void {
    const { is_wait, start, end } = this.data.critical;
    const parts = is_wait.map((wait, i) => ({ wait, time: end[i]! - start[i]! }));
    const [ops, sent] = [0, 1].map((kind) => parts.filter(({ wait }) => wait === kind)) as [typeof parts, typeof parts];
    const sum = (of: typeof parts) => of.reduce((all, { time }) => all + time, 0);
    const computes = `${plural(ops.length, "op")} ${ops.length === 1 ? "computes" : "compute"} for ${duration(sum(ops))}`;
    const travels = `${plural(sent.length, "tensor")} ${sent.length === 1 ? "is" : "are"} on the way for ${duration(sum(sent))}`;
    const waits = Math.max(0, Math.round((this.data.total - sum(parts)) * 1000) / 1000); // as the times are rounded
    this.picture.say(
      `Critical path of ${duration(this.data.total)}: ${computes}, ${travels}, and for ${duration(waits)} it only waits. Its parts have dashed outlines, narrow ones a line below them. The chosen bar has a solid outline.`,
    );
  }

  private export(): void {
    save(this.data, this.home);
    this.picture.say("Saved as timeline.json: open it in Perfetto (ui.perfetto.dev) or in chrome://tracing.");
  }

  // Busy and idle time of each device in a range, the bytes that it received, and the kinds of ops that took longest.
  private sums(from: number, to: number): void {
    const { bars, waits, rows, texts } = this.data;
    const devices = [...new Set(rows.map((row) => row.device))];
    const inside = (start: number, end: number) => Math.max(0, Math.min(end, to) - Math.max(start, from));
    const byOp = new Map<string, { count: number; time: number }>();
    const table = devices.map((device) => {
      const spans = bars.row.flatMap((row, i) =>
        rows[row]!.device === device && bars.kind[i] !== FAULT && bars.kind[i] !== SENT && bars.start[i]! <= to && bars.end[i]! >= from ? [i] : []); // some take no time
      const whole = spans.filter((i) => bars.kind[i] !== PART && bars.kind[i] !== COPIED); // which belong to ops
      for (const i of whole) {
        const { count, time } = byOp.get(texts[bars.op[i]!]!) ?? { count: 0, time: 0 };
        byOp.set(texts[bars.op[i]!]!, { count: count + 1, time: time + inside(bars.start[i]!, bars.end[i]!) });
      }
      const busy = this.busy(device);
      const got = waits.row.reduce((sum, row, i) => sum + (rows[row]!.device === device && waits.end[i]! >= from && waits.end[i]! <= to ? waits.bytes[i]! : 0), 0);
      return [device, String(whole.length), duration(busy.time(from, to)), busy.idle(from, to), bytes(got)];
    });
    const kinds = [...byOp].map(([op, sums]) => ({ op, ...sums })).sort((a, b) => b.time - a.time);
    const others = kinds.slice(MOST_KINDS);
    const sum = (what: "count" | "time", of: typeof kinds) => of.reduce((all, each) => all + each[what], 0);
    if (others.length) kinds.splice(MOST_KINDS, others.length, { op: `${others.length} other${others.length > 1 ? "s" : ""}`, count: sum("count", others), time: sum("time", others) });
    const all = sum("time", kinds);
    this.picture.said.replaceChildren(
      `${span(from, to).replace("f", "F")}, ${duration(to - from)}:`,
      element("br"),
      tableOf("By device", ["device", "ops", "busy", "idle", "received"], table),
      tableOf("By op", ["op", "times", "took", "share"], kinds.map(({ op, count, time }) => [op, String(count), duration(time), percent(time / (all || 1))])),
    );
  }
}

const widths = new Map<string, number>();

// The text, or its beginning, in some pixels; nothing if not even three letters fit.
function fitting(pen: CanvasRenderingContext2D, text: string, room: number): string {
  const key = `${pen.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) widths.set(key, (width = pen.measureText(text).width));
  if (width <= room) return text;
  const letters = Math.floor((text.length * room) / width) - 1;
  return letters < 3 ? "" : `${text.slice(0, letters)}…`;
}

function tableOf(title: string, heads: string[], rows: string[][]): HTMLTableElement {
  const table = element("table");
  table.createCaption().textContent = title;
  const line = (cells: string[], name: "th" | "td") => {
    const row = element("tr");
    row.append(...cells.map((text, i) => Object.assign(element(name, i ? "n" : ""), { textContent: text })));
    return row;
  };
  table.append(line(heads, "th"), ...rows.map((row) => line(row, "td")));
  return table;
}
