// A timeline as a Chrome trace: a file for Perfetto, with a process for each device and a thread for each row.

import { element } from "./picture";
import type { Timeline } from "./views/timeline";

export function save({ bars, waits, rows, texts }: Timeline): void {
  const pid = (row: number) => rows.findIndex((each) => each.device === rows[row]!.device);
  const events: object[] = rows.map((row, tid) => ({ ph: "M", name: "process_name", pid: pid(tid), tid, args: { name: row.device } }));
  bars.start.forEach((ts, i) => events.push({
    ph: "X", name: texts[bars.op[i]!], ts, dur: bars.end[i]! - ts, pid: pid(bars.row[i]!), tid: bars.row[i],
    args: { name: texts[bars.name[i]!], line: texts[bars.line[i]!] },
  }));
  waits.start.forEach((ts, i) => events.push({
    ph: "X", name: "RecvTensor", ts, dur: waits.end[i]! - ts, pid: pid(waits.row[i]!), tid: waits.row[i],
    args: { tensor: texts[waits.tensor[i]!], bytes: waits.bytes[i] },
  }));
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify({ traceEvents: events })], { type: "application/json" }));
  link.download = "timeline.json";
  link.click();
  URL.revokeObjectURL(link.href);
}
