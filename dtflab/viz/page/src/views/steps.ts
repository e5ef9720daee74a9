// A step run by hand: one picture, and buttons that go back and forth between its sets of ready nodes.
//
// Forward of the last set that has run, the kernel is asked to run the next one.

import { enable, type Picture } from "../picture";

interface Frame {
  states: string[]; // of each node, in the order of the drawing: done, dead, ready, asked or waits
  badges: string[]; // what stands in its badge: a counter, a mark
  says: string;
  drawing: string; // of a large step, in place of states: the nodes where it stands
}

interface Steps {
  first: number; // the place of the first of the frames; those before it are known
  frames: Frame[];
  over: boolean;
  error: string;
  at: number; // the frame that is shown at first
}

const NO_KERNEL = "The next set needs a kernel: open the notebook and run its cells.";

export function steps(picture: Picture, data: Steps): void {
  const nodes = [...picture.svg.querySelectorAll<SVGGElement>(".nodes > .node")];
  let { frames, over, error, at } = data, drawn = "";
  let asked: "" | "next" | "all" = "";
  picture.speakAbove();
  picture.redraws(() => picture.widen());

  const show = (to: number) => {
    at = Math.max(0, Math.min(to, frames.length - 1));
    const frame = frames[at]!;
    frame.states.forEach((state, i) => {
      nodes[i]!.setAttribute("class", `node ${state}`);
      nodes[i]!.querySelector(".counter")!.textContent = frame.badges[i]!;
    });
    if (frame.drawing !== drawn) picture.redraw((drawn = frame.drawing));
    if (drawn) picture.widen();
    const isLast = at === frames.length - 1, isStuck = isLast && !over && !picture.canAsk;
    for (const [button, says] of onward) enable(button, !isStuck, isStuck ? NO_KERNEL : says);
    const end = isStuck ? ` ${NO_KERNEL}` : isLast && over ? ` ${error || "The step is over."}` : "";
    picture.say(`Set ${at} of ${over ? frames.length - 1 : "?"}. ${frame.says}${end}`);
  };

  const ask = (what: "next" | "all") => {
    if (over || asked || !picture.canAsk) return;
    asked = what;
    picture.ask({ run: what, has: frames.length });
  };

  const [, , ...forward] = picture.command(
    { label: "|◀", key: "home", says: "To the beginning", run: () => show(0) },
    { label: "◀", key: "arrowleft", says: "One set back", run: () => show(at - 1) },
    { label: "▶", key: "arrowright", says: "The next set", run: () => (at < frames.length - 1 ? show(at + 1) : ask("next")) },
    { label: "▶▶", key: "end", says: "To the end", run: () => (over || !picture.canAsk ? show(frames.length - 1) : ask("all")) },
  );
  const onward = forward.map((button) => [button, button.title] as const);
  picture.hears((says: Steps) => {
    frames = [...frames.slice(0, says.first), ...says.frames];
    ({ over, error } = says);
    show(asked === "next" ? at + 1 : frames.length - 1); // a later cell may have run the rest meanwhile
    asked = "";
  });
  show(at);
  picture.onceItCanAsk(() => show(at));
}
