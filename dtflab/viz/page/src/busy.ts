// When something was busy, so that its share of any window is found at once.

import { percent } from "./units";

const ALMOST = 1 - Number.EPSILON; // idle, where all that ran took less than a trace's resolution

export class Busy {
  private readonly start: number[] = [];
  private readonly end: number[] = [];
  private readonly before: number[] = []; // busy time until each start

  constructor(spans: [start: number, end: number][]) {
    for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
      const last = this.end.length - 1;
      if (last >= 0 && start <= this.end[last]!) this.end[last] = Math.max(this.end[last]!, end);
      else {
        this.before.push(last < 0 ? 0 : this.before[last]! + this.end[last]! - this.start[last]!);
        this.start.push(start);
        this.end.push(end);
      }
    }
  }

  time(from: number, to: number): number {
    return this.until(to) - this.until(from);
  }

  // As Python's: never 100% where something ran.
  idle(from: number, to: number): string {
    const busy = this.time(from, to), last = this.last(to);
    const ran = last >= 0 && this.end[last]! >= from;
    return percent(busy || !ran ? 1 - busy / (to - from || 1) : ALMOST);
  }

  private last(time: number): number {
    return after(this.start.length, (i) => this.start[i]!, time) - 1;
  }

  private until(time: number): number {
    const last = this.last(time);
    return last < 0 ? 0 : this.before[last]! + Math.min(time, this.end[last]!) - this.start[last]!;
  }
}

// How many of `count` moments, in order, come until a time, itself included.
export function after(count: number, moment: (i: number) => number, time: number): number {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moment(middle) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
