// A picture that the kernel draws again while a cell runs: the drawing and its table are replaced.

import type { Picture } from "../picture";
import { titles } from "./still";

interface Says {
  svg?: string;
  tables?: string;
  says?: string;
  done: boolean;
}

export function redrawn(picture: Picture, data: Says): void {
  titles(picture);
  picture.redraws(() => picture.widen());
  if (!data.done) picture.onceItCanAsk(() => follow(picture)); // a page may know its kernel later than its picture
}

function follow(picture: Picture): void {
  // While it is on a page that is seen, it is drawn; else the kernel rests after a while.
  const beat = setInterval(() => picture.root.isConnected && !document.hidden && picture.ask({ do: "seen" }), 5000);
  picture.said.classList.add("dtf-unseen"); // what the drawing says
  picture.hears(({ svg, tables, says, done }: Says) => {
    if (svg) {
      picture.redraw(svg);
      picture.widen();
    }
    const details = picture.root.querySelector("details");
    if (details && tables) details.replaceChildren(details.querySelector("summary")!, parsed(tables));
    if (!done) return;
    clearInterval(beat);
    picture.say(says ?? "");
  });
  picture.ask({ do: "all" });
}

function parsed(html: string): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}
