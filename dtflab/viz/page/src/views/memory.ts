// Memory over a step: a block lights its row of the list, a row its block; a cursor along time says what is held.

import type { Picture } from "../picture";
import { svg } from "../svg";
import { duration, memorySize } from "../units";

interface Band {
  device: string;
  top: number; // of its plot, in units of the drawing
  bottom: number;
  before: number; // bytes from before the step
  peak: number;
  held: number[]; // the tensors that make the peak; some of them are freed in its very microsecond
  tensors: Record<"start" | "end" | "bytes" | "number" | "name" | "card", number[]>; // end: -1 for after the step
}

interface Memory {
  left: number;
  right: number;
  total: number; // microseconds
  bands: Band[];
  texts: string[];
}

export function memory(picture: Picture, data: Memory): void {
  new Live(picture, data);
}

class Live {
  private readonly svg: SVGSVGElement;
  private readonly cursor: SVGElement;
  private readonly moments: number[]; // at which something changes
  private readonly keys: string[]; // of blocks and rows, in the order of the lists: band-number
  private at = -1; // microseconds; -1: no cursor
  private lit = "";
  private right = 0; // of the plots, as wide as they are now

  constructor(private readonly picture: Picture, private readonly data: Memory) {
    this.svg = picture.svg;
    this.cursor = svg("path", { class: "cursor" });
    this.svg.append(this.cursor);
    const times = data.bands.flatMap(({ tensors }) => [...tensors.start, ...tensors.end.filter((end) => end >= 0)]);
    this.moments = [...new Set([0, ...times, data.total])].sort((a, b) => a - b);
    this.keys = [...this.svg.querySelectorAll<SVGElement>(".entry")].map((entry) => entry.dataset.block!);
    for (const title of this.svg.querySelectorAll(".layer > title")) title.remove(); // the card says more
    this.controls();
    this.gestures();
  }

  private controls(): void {
    const { picture, moments } = this, peaks = [...new Set(this.data.bands.map((band) => band.peak))];
    picture.command(
      { label: "◀", key: "arrowleft", says: "The change before", run: () => this.go([...moments].reverse().find((one) => one < this.at) ?? 0) },
      { label: "▶", key: "arrowright", says: "The next change", run: () => this.go(moments.find((one) => one > this.at) ?? this.data.total) },
      { label: "Peak", key: "p", says: "The moment with most in use; again: that of the next device", run: () => this.go(peaks[(peaks.indexOf(this.at) + 1) % peaks.length]!) },
      { label: "▲", key: "arrowup", says: "The tensor above in the list", run: () => this.next(-1) },
      { label: "▼", key: "arrowdown", says: "The tensor below in the list", run: () => this.next(1) },
    );
    picture.on("escape", () => this.clear());
  }

  private gestures(): void {
    const { svg, picture } = this;
    svg.style.userSelect = "none"; // a drag moves the cursor
    for (const text of svg.querySelectorAll<SVGElement>("text")) text.style.pointerEvents = "none"; // a block is below its number
    picture.speakAbove("Drag or ← →: move in time · hover or ↑ ↓: a tensor's card · P: the peak · Esc: clear");
    picture.redraws(() => {
      this.right = this.data.right + picture.widen();
      if (this.at >= 0) this.mark();
    });
    svg.addEventListener("pointerdown", (event) => {
      picture.root.focus({ preventScroll: true });
      const time = this.time(event);
      if (time === null) return;
      svg.setPointerCapture(event.pointerId);
      this.go(time);
    });
    svg.addEventListener("pointermove", (event) => {
      const time = this.time(event);
      if (event.buttons && time !== null) return this.go(time);
      const shape = (event.target as Element).closest<SVGElement>("[data-block]"), key = shape?.dataset.block ?? "";
      this.light(key);
      const lines = key ? this.card(key, time) : [];
      if (lines.length) picture.showAt(event, lines, shape!.getBoundingClientRect());
      else picture.hide();
    });
    svg.addEventListener("pointerleave", () => {
      picture.hide();
      this.light("");
    });
  }

  // The microsecond under the pointer; null outside of the plots.
  private time(event: PointerEvent): number | null {
    const { right, data: { left, total, bands } } = this;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM()!.inverse());
    if (at.x < left || at.x > right || !bands.some((band) => band.top <= at.y && at.y <= band.bottom)) return null;
    return ((at.x - left) / (right - left)) * total;
  }

  private light(key: string): void {
    if (key === this.lit) return;
    this.lit = key;
    for (const part of this.svg.querySelectorAll<SVGElement>("[data-block]")) {
      part.classList.toggle("lit", part.dataset.block === key);
      part.classList.toggle("unlit", key !== "" && part.dataset.block !== key);
    }
  }

  private card(key: string, time: number | null): string[] {
    const [band, number] = key.split("-").map(Number) as [number, number];
    const { tensors } = this.data.bands[band]!;
    if (number) return this.data.texts[tensors.card[tensors.number.indexOf(number)]!]!.split("\n");
    const at = time ?? this.data.bands[band]!.peak;
    const held = this.held(band, at).filter((i) => !tensors.number[i]);
    return [`${held.length} smaller tensors at ${duration(at)}`, ...held.slice(0, 6).map((i) => this.named(band, i))];
  }

  // The tensors that are held at a moment, the largest first.
  private held(band: number, at: number): number[] {
    const { peak, held, tensors: { start, end, bytes } } = this.data.bands[band]!;
    const found = at === peak ? [...held] : start.flatMap((from, i) => (from <= at && (end[i]! < 0 || at < end[i]!) ? [i] : []));
    return found.sort((a, b) => bytes[b]! - bytes[a]!);
  }

  private named(band: number, i: number): string {
    const { name, bytes } = this.data.bands[band]!.tensors;
    return `${this.data.texts[name[i]!]} ${memorySize(bytes[i]!)}`;
  }

  private go(at: number): void {
    this.at = at;
    this.mark();
    const { bands } = this.data;
    const full = bands.filter((band) => band.peak === at).map((band) => band.device).join(" and ");
    this.picture.say(`At ${duration(at)}${full && `, the peak of ${full}`}: ${bands.map((_, band) => this.sum(band, at)).join("; ")}.`);
  }

  private mark(): void {
    const { right, data: { left, total, bands } } = this, x = left + ((right - left) * this.at) / total;
    this.cursor.setAttribute("d", bands.map((band) => `M${x} ${band.top}V${band.bottom}`).join(""));
  }

  private sum(band: number, at: number): string {
    const { device, before, tensors } = this.data.bands[band]!;
    const held = this.held(band, at);
    const sum = held.reduce((sum, i) => sum + tensors.bytes[i]!, before);
    const parts = held.slice(0, 3).map((i) => this.named(band, i));
    if (held.length > 3) parts.push(`${held.length - 3} more`);
    if (before) parts.push(`${memorySize(before)} from before the step`);
    return `${device} holds ${memorySize(sum)}${parts.length ? ` (${parts.join(", ")})` : ""}`;
  }

  private next(by: number): void {
    const { keys, svg, picture } = this;
    const place = keys.indexOf(this.lit);
    const key = keys[(place + by + keys.length + (place < 0 && by < 0 ? 1 : 0)) % keys.length]!;
    this.light(key);
    const lines = this.card(key, null);
    picture.show(lines, svg.querySelector(`.entry[data-block="${key}"]`)!.getBoundingClientRect());
    picture.say(lines.join(" · "));
  }

  private clear(): void {
    this.at = -1;
    this.cursor.removeAttribute("d");
    this.picture.hide();
    this.light("");
    this.picture.say("");
  }
}
