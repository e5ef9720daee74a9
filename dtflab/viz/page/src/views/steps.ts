// A step run by hand: one picture, and buttons that go back and forth between its sets of ready nodes.
//
// Forward of the last set that has run, the kernel is asked to run the next one.

import type { Picture } from "../picture";

interface Frame {
  states: string[]; // of each node, in the order of the drawing: done, dead, ready, asked or waits
  badges: string[]; // what stands in its badge: a counter, a mark
  says: string;
}

interface Steps {
  frames: Frame[];
  over: boolean;
  error?: string;
}

export function steps(picture: Picture, data: Steps): void {
  const nodes = [...picture.svg.querySelectorAll<SVGGElement>(".nodes > .node")];
  let { frames, over } = data;
  let at = frames.length - 1;
  let isAsked = false;
  picture.speakAbove();
  picture.fill();

  const show = (to: number, more = "") => {
    at = Math.max(0, Math.min(to, frames.length - 1));
    const frame = frames[at]!;
    nodes.forEach((node, i) => {
      node.setAttribute("class", `node ${frame.states[i]}`);
      node.querySelector(".counter")!.textContent = frame.badges[i]!;
    });
    const end = at === frames.length - 1 ? (over ? " The step is over." : "") : "";
    picture.say(`Set ${at} of ${over ? frames.length - 1 : "?"}. ${frame.says}${end}${more}`);
  };

  const ask = (what: "next" | "all") => {
    if (over || isAsked) return;
    if (!picture.canAsk) return show(at, " The kernel of this step is gone: what it had run is shown.");
    isAsked = true;
    picture.ask({ run: what });
  };

  picture.command(
    { label: "|◀", key: "home", says: "To the beginning", run: () => show(0) },
    { label: "◀", key: "arrowleft", says: "One set back", run: () => show(at - 1) },
    { label: "▶", key: "arrowright", says: "The next set", run: () => (at < frames.length - 1 ? show(at + 1) : ask("next")) },
    { label: "▶▶", key: "end", says: "To the end", run: () => (over ? show(frames.length - 1) : ask("all")) },
  );
  picture.hears((says: Steps) => {
    isAsked = false;
    ({ frames, over } = says);
    show(frames.length - 1, says.error ? ` ${says.error}` : "");
  });
  show(at);
}
