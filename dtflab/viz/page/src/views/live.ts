// A training while it runs: lines that grow, the values at the pointer, a button that stops it.
//
// The kernel says five times a second what is new; a page that has missed something asks for all. The axes follow the
// data, the x axis the number of steps if that is known; what stands around the plot is the kernel's.

import { scaleLinear, type ScaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { element, type Picture } from "../picture";
import { set, svg, text } from "../svg";

type News = [first: number, xs: number[], ys: (number | null)[]]; // of a line: what follows its first points

interface Says {
  lines?: News[];
  done: boolean;
  head?: string; // the heading, as SVG
  status?: string;
  svg?: string; // with what follows: another line, so another legend
  over?: string; // the name of the x axis
  until?: number | null; // where the last of the known steps will stand on it
  plot?: { left: number; right: number; top: number; bottom: number };
  pens?: { name: string; colour: string; dash: string }[];
}

interface Live extends Says {
  value: string;
}

const SPOKEN = 10_000; // milliseconds from one sentence for a screen reader to the next
const place = (value: number) => Number(value.toPrecision(6)).toLocaleString("en-US", { maximumSignificantDigits: 6 });

// A value as the still has it: a loss may explode, or vanish.
function number(value: number): string {
  const size = Math.abs(value);
  if (!size || (size >= 1e-4 && size < 1e6)) return place(value);
  return Number(value.toPrecision(6)).toExponential().replace(/e(.)(\d)$/, "e$10$2");
}

export function live(picture: Picture, data: Live): void {
  new Curves(picture, data);
}

class Curves {
  private readonly lines: { xs: number[]; ys: (number | null)[] }[] = [];
  private readonly stop = element("button", "dtf-button");
  private plot: NonNullable<Says["plot"]>;
  private pens: NonNullable<Says["pens"]>;
  private at: number | null = null; // where the values are read, on the x axis
  private x: ScaleLinear<number, number> = scaleLinear();
  private spoken = -Infinity;
  private isWaiting = false;
  private isOver = false;

  constructor(private readonly picture: Picture, private readonly data: Live) {
    this.plot = data.plot!;
    this.pens = data.pens!;
    picture.said.classList.add("dtf-unseen"); // the heading says it, too often for a screen reader
    picture.on("arrowleft", () => this.step(-1));
    picture.on("arrowright", () => this.step(1));
    picture.on("escape", () => this.read(null));
    picture.drawing.addEventListener("pointermove", (event) => this.point(event));
    picture.drawing.addEventListener("pointerleave", () => this.read(null));
    picture.hears((says: Says) => this.hear(says));
    this.take(data);
    picture.redraws(() => this.draw());
    if (!data.done) picture.onceItCanAsk(() => this.begin()); // a page may know its kernel later than its picture
  }

  private begin(): void {
    if (this.isOver) return;
    this.controls();
    this.picture.ask({ do: "all" });
  }

  private controls(): void {
    this.stop.textContent = "■ Stop";
    this.stop.title = "Ask the training to end (x)";
    this.stop.setAttribute("aria-label", "Stop the training");
    const ask = () => {
      this.picture.ask({ do: "stop" });
      this.stop.textContent = "Stopping …";
    };
    this.stop.addEventListener("click", ask);
    this.picture.bar.append(this.stop);
    this.picture.on("x", () => this.stop.isConnected && ask());
  }

  // ---- what the kernel says ----

  private hear(says: Says): void {
    if (says.svg) {
      this.picture.redraw(says.svg);
      this.plot = says.plot!;
      this.pens = says.pens!;
      this.data.over = says.over!;
      this.lines.length = 0;
    }
    this.data.until = says.until ?? null;
    if (!this.take(says)) return this.picture.ask({ do: "all" });
    if (says.head) this.picture.svg.querySelector(".head")!.innerHTML = says.head;
    if (says.done) {
      this.isOver = true;
      this.stop.remove();
    }
    const speaks = says.done || performance.now() - this.spoken > SPOKEN;
    if (says.status && (speaks || this.at === null)) { // as new as the heading, also where it is not read aloud
      if (speaks) this.spoken = performance.now();
      this.picture.said.setAttribute("aria-live", speaks ? "polite" : "off");
      this.picture.say(says.status);
    }
    if (!this.isWaiting) requestAnimationFrame(() => this.draw());
    this.isWaiting = true;
  }

  // Add what is new; false if something before it is missing.
  private take({ lines }: Says): boolean {
    return (lines ?? []).every(([first, xs, ys], i) => {
      const own = (this.lines[i] ??= { xs: [], ys: [] });
      if (own.xs.length < first) return false;
      own.xs.length = own.ys.length = first;
      own.xs.push(...xs);
      own.ys.push(...ys);
      return true;
    });
  }

  // ---- drawing ----

  private draw(): void {
    this.isWaiting = false;
    const drawing = this.picture.svg;
    const extra = this.picture.widen();
    drawing.querySelector(".still")?.remove();
    drawing.querySelector(".grown")?.remove();
    const { left, top, bottom } = this.plot, right = this.plot.right + extra;
    this.x = scaleLinear(span([...this.lines.flatMap(({ xs }) => xs), this.data.until ?? null], false), [left, right]);
    const y = scaleLinear(span(this.lines.flatMap(({ ys }) => ys), true), [bottom, top]);
    const parts = [
      text(this.data.value, left, top - 8, "soft"),
      text(this.data.over!, right, bottom + 32, "soft end"),
      ...(this.lines.length ? y.ticks(5) : []).flatMap((v) => [path(`M${left} ${y(v)}H${right}`, "grid"), text(number(v), left - 6, y(v) + 4, "s11 soft end")]),
      ...(this.lines.length ? this.x.ticks((right - left) / 90) : []).map((v) => text(place(v), this.x(v), bottom + 16, "s11 soft mid")),
      path(`M${left} ${top}V${bottom}H${right}`, "axis"),
      ...this.lines.map(({ xs, ys }, i) => {
        const shape = line<number | null>((_, k) => this.x(xs[k]!), (v) => y(v!)).defined((v) => v !== null);
        return path(shape(ys) ?? "", "", this.pens[i]);
      }),
    ];
    if (this.at !== null) parts.push(path(`M${this.x(this.at)} ${top}V${bottom}`, "axis"));
    const group = svg("g", { class: "grown" });
    group.append(...parts);
    drawing.append(group);
  }

  // ---- reading values ----

  private point(event: PointerEvent): void {
    const box = this.picture.svg.getBoundingClientRect();
    const unit = box.width / this.picture.svg.viewBox.baseVal.width;
    const x = (event.clientX - box.left) / unit, y = (event.clientY - box.top) / unit;
    const isIn = y > this.plot.top && y < this.plot.bottom && x >= this.plot.left && x <= this.x.range()[1]!;
    this.read(isIn && this.lines.length ? this.x.invert(x) : null);
  }

  private step(by: number): void {
    const [low, high] = this.x.domain() as [number, number];
    if (this.lines.length) this.read(Math.max(low, Math.min(high, (this.at ?? low) + (by * (high - low)) / 50)));
  }

  private read(at: number | null): void {
    this.at = at;
    this.draw();
    if (at === null) return this.picture.hide();
    const said = this.lines.map(({ xs, ys }, i) => {
      const k = nearest(xs, at), value = ys[k];
      return `${this.pens[i]!.name}: ${value === null || value === undefined ? "not a number" : number(value)} at ${place(xs[k]!)}`;
    });
    const screen = this.picture.svg.getScreenCTM()!;
    const [top, bottom] = [this.plot.top, this.plot.bottom].map((y) => new DOMPoint(this.x(at), y).matrixTransform(screen)) as [DOMPoint, DOMPoint];
    const box = { left: top.x, top: top.y, right: top.x, bottom: bottom.y };
    this.picture.said.setAttribute("aria-live", "polite");
    this.picture.show([`${this.data.value} over ${this.data.over}`, ...said.slice(0, 12)], box);
    this.picture.say(said.join("; "));
  }
}

// The ends of an axis, by the rule of the still: from 0 where the largest is more than twice the smallest.
function span(values: (number | null)[], fromZero: boolean): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  if (fromZero && low >= 0 && 2 * low < high) low = 0;
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

function nearest(xs: number[], at: number): number {
  let found = 0;
  xs.forEach((x, i) => Math.abs(x - at) < Math.abs(xs[found]! - at) && (found = i));
  return found;
}

function path(d: string, class_: string, pen?: { colour: string; dash: string }): SVGElement {
  const made = svg("path", { d, class: class_, fill: "none" });
  if (pen) set(made, { stroke: pen.colour, "stroke-width": 2, "stroke-dasharray": pen.dash });
  return made;
}
