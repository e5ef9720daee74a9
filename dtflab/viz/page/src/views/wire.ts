// Calls between tasks: messages travel along the chart as a slider moves, and say what they carry.

import type { Picture } from "../picture";
import { Player } from "../player";
import { stretched, type Span } from "../stretch";
import { svg } from "../svg";

interface Wire {
  messages: {
    ways: [number, number][]; // from where to where it goes, in units of the drawing
    y: number;
    colour: string;
    says: string;
    card: string[];
  }[];
  before: string; // said before the first one
  span: Span; // of the chart
}

export function wire(picture: Picture, data: Wire): void {
  picture.speakAbove();
  const rows = [...picture.svg.querySelectorAll<SVGGElement>(".message")];
  const dots = picture.svg.querySelector(".stretch")!.parentElement!.appendChild(svg("g"));
  let extra = 0, shown = rows.length;
  for (const row of rows) row.querySelector("title")?.remove(); // the card says more

  const words = (at: number) => (at < 1 ? data.before : data.messages[Math.ceil(at) - 1]!.says);
  const show = (at: number, says: boolean) => {
    shown = at;
    rows.forEach((row, i) => {
      row.classList.toggle("to-come", i >= at);
      row.classList.toggle("now", i === Math.ceil(at) - 1);
    });
    const message = data.messages[Math.ceil(at) - 1];
    const way = at === Math.floor(at) ? 1 : at - Math.floor(at);
    const ways = (message?.ways ?? []).map((ends) => ends.map((x) => stretched(x, data.span, extra)) as Span);
    dots.replaceChildren(...ways.map(([from, to]) => dot(from + (to - from) * way, message!.y, message!.colour)));
    if (says) picture.say(`Arrow ${Math.ceil(at)} of ${rows.length}. ${words(Math.ceil(at))}`);
  };
  const player = new Player(picture, { count: rows.length, noun: "arrow", show, words, plays: 900 }, rows.length);

  rows.forEach((row, i) => {
    row.addEventListener("pointerenter", (event) => {
      picture.showAt(event, data.messages[i]!.card, row.getBoundingClientRect());
      row.classList.add("lit");
    });
    row.addEventListener("pointerleave", () => {
      picture.hide();
      row.classList.remove("lit");
    });
    row.addEventListener("click", () => player.go(i + 1));
  });
  picture.on("escape", () => picture.hide());
  picture.redraws(() => {
    extra = picture.widen();
    show(shown, false);
  });
}

function dot(cx: number, cy: number, fill: string): SVGElement {
  return svg("circle", { cx, cy, r: 6, fill, class: "travels" });
}
