// Steps of a record, gone through by buttons, keys and a slider: the way of every picture that is replayed.

import { element, isCalm, type Picture } from "./picture";

export interface Recording {
  count: number; // of steps; places are 0 (before the first) to count
  noun: string; // what a step is called: "message"
  show: (at: number, says: boolean) => void; // draws a place, between two steps too; `says` when it is to be read aloud
  words: (at: number) => string; // what is true at a place
  plays?: number; // milliseconds that a step takes when it is played
}

export class Player {
  private at = 0;
  private timer = 0;
  private readonly slider = element("input", "dtf-slider");

  constructor(picture: Picture, private readonly record: Recording, begins: number) {
    const { slider } = this;
    const noun = record.noun;
    picture.command(
      { label: "|◀", key: "home", says: "To the beginning", run: () => this.go(0) },
      { label: "◀", key: "arrowleft", says: `One ${noun} back`, run: () => this.go(Math.ceil(this.at) - 1) },
      { label: "▶", key: "arrowright", says: `The next ${noun}`, run: () => this.go(Math.floor(this.at) + 1) },
      { label: "▶▶", key: "end", says: "To the end", run: () => this.go(record.count) },
    );
    if (record.plays && !isCalm()) picture.command({ label: "Play", key: "p", says: "Play, or stop", run: () => this.play(picture) });
    Object.assign(slider, { type: "range", min: "0", max: String(record.count), step: record.plays ? "0.05" : "1" });
    slider.setAttribute("aria-label", `Which ${noun}`);
    slider.addEventListener("input", () => this.go(Number(slider.value)));
    slider.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!by) return;
      event.preventDefault(); // a whole step, not a twentieth
      event.stopPropagation();
      this.go(by > 0 ? Math.floor(this.at) + 1 : Math.ceil(this.at) - 1);
    });
    picture.bar.append(slider);
    this.go(begins);
  }

  go(to: number): void {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.draw(to, true);
  }

  private draw(to: number, says: boolean): void {
    this.at = Math.max(0, Math.min(to, this.record.count));
    if (isCalm()) this.at = Math.round(this.at);
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", this.record.words(this.at));
    this.record.show(this.at, says);
  }

  private play(picture: Picture): void {
    if (this.timer) return this.go(this.at);
    if (this.at >= this.record.count) this.at = 0;
    let before = performance.now(), place = Math.floor(this.at);
    const frame = (now: number) => {
      const to = this.at + (now - before) / this.record.plays!;
      before = now;
      if (to >= this.record.count || !picture.root.isConnected) return this.go(to);
      this.draw(to, Math.floor(to) !== place); // once for each step
      place = Math.floor(to);
      this.timer = requestAnimationFrame(frame);
    };
    this.timer = requestAnimationFrame(frame);
  }
}
