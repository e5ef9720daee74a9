// A timeline as a Chrome trace: a file for Perfetto, with a process for each device, a thread for each of its threads
// and for what it received, and an arrow for each tensor from the op that made it to its arrival. All is in it, also
// what is folded, and tensors for which the picture has no room.

import { element } from "./picture";
import { FAULT, type Timeline } from "./views/timeline";

interface Slice { ts: number; dur: number; pid: number; tid: number }

// `rowOf` are the rows of bars and waits when all is open.
export function save(data: Timeline, rowOf: Record<"bars" | "waits", number[]>): void {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify({ traceEvents: events(data, rowOf) })], { type: "application/json" }));
  link.download = "timeline.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

function events({ bars, waits, rows, texts }: Timeline, rowOf: Record<"bars" | "waits", number[]>): object[] {
  const lanes = new Lanes();
  const place = ({ start, end }: Record<"start" | "end", number[]>, i: number, device: string, thread: string) =>
    lanes.place(device, thread, start[i]!, end[i]!);
  const made = inOrder(bars.start, bars.end, (i) => place(bars, i, rows[rowOf.bars[i]!]!.device, rows[rowOf.bars[i]!]!.thread));
  const got = inOrder(waits.start, waits.end, (i) => place(waits, i, rows[rowOf.waits[i]!]!.device, "receives"));
  const ops = made.map((slice, i) => ({
    ph: "X", cat: "op", name: texts[(bars.kind[i] === FAULT ? bars.name : bars.op)[i]!], ...slice,
    args: { name: texts[bars.name[i]!]! + texts[bars.part[i]!], bytes: bars.bytes[i], line: texts[bars.line[i]!] },
  }));
  const transfers = got.map((slice, i) => ({
    ph: "X", cat: "transfer", name: "RecvTensor", ...slice,
    args: { tensor: texts[waits.tensor[i]!], bytes: waits.bytes[i], from: texts[waits.source[i]!], to: texts[waits.target[i]!] },
  }));
  const arrows = got.flatMap((slice, id) => {
    const from = made[waits.maker[id]!]; // none, if the op that made it is not in the trace
    const flow = { cat: "transfer", name: texts[waits.tensor[id]!], id };
    return from ? [{ ph: "s", ...flow, ...lastOf(from) }, { ph: "f", bp: "e", ...flow, ...lastOf(slice) }] : [];
  });
  return [...lanes.names, ...ops, ...transfers, ...arrows];
}

// The last moment of a slice that is still in it, to the nanosecond: there an arrow begins or ends.
function lastOf({ ts, dur, pid, tid }: Slice): Omit<Slice, "dur"> {
  return { ts: ts + Math.max(0, dur - 0.001), pid, tid };
}

// The result for each span, asked for by their starts.
function inOrder<T>(start: number[], end: number[], of: (index: number) => T): T[] {
  const results: T[] = [];
  for (const i of [...start.keys()].sort((a, b) => start[a]! - start[b]! || end[a]! - end[b]!)) results[i] = of(i);
  return results;
}

// Slices of one thread must not overlap: what does gets a further lane of the same name.
class Lanes {
  readonly names: object[] = [];
  private readonly devices = new Map<string, { pid: number; threads: Map<string, { tid: number; free: number }[]> }>();
  private threads = 0; // 0 would be the idle process

  place(device: string, thread: string, start: number, end: number): Slice {
    let of = this.devices.get(device);
    if (!of) {
      this.devices.set(device, (of = { pid: this.devices.size + 1, threads: new Map() }));
      this.name("process_name", of.pid, {}, device);
    }
    const lanes = of.threads.get(thread) ?? [];
    of.threads.set(thread, lanes);
    let lane = lanes.find(({ free }) => free <= start);
    if (!lane) {
      lanes.push((lane = { tid: ++this.threads, free: 0 }));
      this.name("thread_name", of.pid, { tid: lane.tid }, lanes.length > 1 ? `${thread} (${lanes.length})` : thread);
    }
    lane.free = end;
    return { ts: start, dur: Math.round((end - start) * 1000) / 1000, pid: of.pid, tid: lane.tid };
  }

  private name(what: string, pid: number, thread: { tid?: number }, name: string): void {
    this.names.push({ ph: "M", name: what, pid, ...thread, args: { name } });
  }
}
