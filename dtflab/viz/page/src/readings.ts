// Values of plots, read at the pointer or with arrow keys: a line where they are read, and a card that says them.

import type { Picture } from "./picture";
import { stretched } from "./stretch";
import { set, svg } from "./svg";

export interface Reading {
  box: [left: number, top: number, right: number, bottom: number]; // of a plot, in units of the still
  at: number[]; // places along x, from left to right
  ys?: number[]; // of points that stand alone: the nearest one is read
  holds: boolean; // what is said holds until the next place; else the nearest place is read
  says: string[][]; // lines of a card for each place
}

export class Readings {
  private readonly cursor = svg("path", { class: "cursor" });
  private extra = 0;
  private plot = 0;
  private place = -1;

  constructor(private readonly picture: Picture, private readonly plots: Reading[]) {
    picture.svg.querySelector(":scope > g")!.append(this.cursor);
    picture.drawing.addEventListener("pointermove", (event) => this.point(event));
    picture.drawing.addEventListener("pointerleave", () => this.hide());
    for (const [key, by] of [["arrowleft", -1], ["arrowright", 1]] as const) picture.on(key, () => this.read(this.plot, this.place + by));
    for (const [key, by] of [["arrowup", -1], ["arrowdown", 1]] as const) picture.on(key, () => this.read(this.plot + by, 0));
    picture.on("escape", () => this.leave());
    const { root } = picture, keys = `← and → go from value to value${plots.length > 1 ? ", ↑ and ↓ from plot to plot" : ""}`;
    root.setAttribute("aria-label", `${root.getAttribute("aria-label")!.split(": a picture")[0]}: a picture with values; ${keys}`);
    root.addEventListener("focus", () => root.matches(":focus-visible") && this.place < 0 && picture.show([keys], this.window(plots[0]!, 0, 0)));
    root.addEventListener("blur", () => this.leave());
  }

  widen(extra: number): void {
    this.extra = extra;
    this.leave();
  }

  private x({ box: [left, , right] }: Reading, at: number): number {
    return stretched(at, [left, right], this.extra);
  }

  private point(event: PointerEvent): void {
    const screen = this.cursor.getScreenCTM()!;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(screen.inverse());
    const isIn = (plot: Reading) => y >= plot.box[1] && y <= plot.box[3] && x >= plot.box[0] - 4 && x <= this.x(plot, plot.box[2]) + 4;
    const plot = this.plots.findIndex(isIn);
    if (plot < 0) return this.hide(); // keys go on from where they were
    event.preventDefault(); // what has a title there keeps silent
    this.read(plot, this.nearest(this.plots[plot]!, x, y));
  }

  private nearest(plot: Reading, x: number, y: number): number {
    let found = 0, least = Infinity;
    plot.at.forEach((at, i) => {
      const away = plot.holds ? x - this.x(plot, at) : Math.hypot(this.x(plot, at) - x, plot.ys ? plot.ys[i]! - y : 0);
      if (away >= (plot.holds ? -0.5 : 0) && away < least) [found, least] = [i, away];
    });
    return found;
  }

  private read(which: number, place: number): void {
    this.plot = Math.max(0, Math.min(this.plots.length - 1, which));
    const plot = this.plots[this.plot]!;
    this.place = Math.max(0, Math.min(plot.at.length - 1, place));
    const x = this.x(plot, plot.at[this.place]!), y = plot.ys?.[this.place];
    const [, top, , bottom] = plot.box;
    set(this.cursor, { d: y === undefined ? `M${x} ${top}V${bottom}` : `M${x - 6} ${y}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0` });
    const lines = plot.says[this.place]!;
    this.picture.show(lines, this.window(plot, x, y));
    this.picture.say(lines.join("; "));
  }

  // The place of a value in the window: the card lies next to it, or below a plot's whole height.
  private window({ box: [, top, , bottom] }: Reading, x: number, y?: number): { left: number; top: number; right: number; bottom: number } {
    const screen = this.cursor.getScreenCTM()!;
    const [low, high] = [y ?? top, y ?? bottom].map((each) => new DOMPoint(x, each).matrixTransform(screen)) as [DOMPoint, DOMPoint];
    return { left: low.x - 8, top: low.y - 8, right: high.x + 8, bottom: high.y + 8 };
  }

  private hide(): void {
    if (this.cursor.hasAttribute("d")) this.picture.hide(); // else the card is that of a title
    this.cursor.removeAttribute("d");
  }

  private leave(): void {
    this.place = -1;
    this.picture.hide(); // also the card that names the keys
    this.hide();
  }
}
