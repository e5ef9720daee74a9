// Steps of a record, gone through by buttons, keys and a slider: the way of every picture that is replayed.

import { element, isCalm, type Picture } from "./picture";

export interface Recording {
  count: number; // of steps; places are 0 (before the first) to count
  noun: string; // what a step is called: "message"
  show: (at: number, says: boolean) => void; // draws a place, between two steps too; `says` when it is to be read aloud
  words: (at: number) => string; // what is true at a place
  plays?: number; // milliseconds that a step takes when it is played
}

interface Played {
  count: number;
  plays: number;
  at: () => number;
  draw: (to: number, says: boolean) => void;
  stop: (at: number) => void; // by the button, or at the end
}

// The button that lets places go by, between two steps too; missing where the reader wants less motion.
export class Playing {
  private timer = 0;
  private readonly button: HTMLButtonElement | undefined;

  constructor(private readonly picture: Picture, private readonly played: Played) {
    if (isCalm()) return;
    const run = () => (this.timer ? played.stop(played.at()) : this.play());
    [this.button] = picture.command({ label: "Play", key: "p", says: "Play, or stop", run });
  }

  end(): void {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.say("Play");
  }

  private say(label: string): void {
    if (!this.button) return;
    this.button.textContent = label;
    this.button.setAttribute("aria-label", `${label}: Play, or stop`); // what is seen is in the name
  }

  private play(): void {
    this.say("Stop");
    const { count, plays, draw, stop } = this.played;
    let at = this.played.at(), before = performance.now();
    if (at >= count) at = 0;
    const frame = (now: number) => {
      const place = Math.floor(at);
      at += (now - before) / plays;
      before = now;
      if (at >= count || !this.picture.root.isConnected) return stop(at);
      draw(at, Math.floor(at) !== place); // once for each step
      this.timer = requestAnimationFrame(frame);
    };
    this.timer = requestAnimationFrame(frame);
  }
}

export class Player {
  private at = 0;
  private readonly playing: Playing | undefined;
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
    if (record.plays)
      this.playing = new Playing(picture, {
        count: record.count,
        plays: record.plays,
        at: () => this.at,
        draw: (to, says) => this.draw(to, says),
        stop: (at) => this.go(at),
      });
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
    this.playing?.end();
    this.draw(to, true);
  }

  private draw(to: number, says: boolean): void {
    this.at = Math.max(0, Math.min(to, this.record.count));
    if (isCalm()) this.at = Math.round(this.at);
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", this.record.words(this.at));
    this.record.show(this.at, says);
  }
}
