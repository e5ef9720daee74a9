// Calls between tasks: messages travel along the chart as a slider moves, and say what they carry.

import type { Picture } from "../picture";
import { Player } from "../player";
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
}

export function wire(picture: Picture, data: Wire): void {
  picture.speakAbove();
  picture.fill();
  const rows = [...picture.svg.querySelectorAll<SVGGElement>(".message")];
  const dots = picture.svg.appendChild(svg("g"));
  for (const row of rows) row.querySelector("title")?.remove(); // the card says more

  const words = (at: number) => (at < 1 ? data.before : data.messages[Math.ceil(at) - 1]!.says);
  const show = (at: number, says: boolean) => {
    rows.forEach((row, i) => {
      row.classList.toggle("to-come", i >= at);
      row.classList.toggle("now", i === Math.ceil(at) - 1);
    });
    const message = data.messages[Math.ceil(at) - 1];
    const way = at === Math.floor(at) ? 1 : at - Math.floor(at);
    dots.replaceChildren(...(message?.ways ?? []).map(([from, to]) => dot(from + (to - from) * way, message!.y, message!.colour)));
    if (says) picture.say(`${Math.ceil(at)} of ${rows.length}. ${words(Math.ceil(at))}`);
  };
  const player = new Player(picture, { count: rows.length, noun: "message", show, words, plays: 900 }, rows.length);

  rows.forEach((row, i) => {
    row.addEventListener("pointerenter", (event) => {
      picture.showAt(event, data.messages[i]!.card);
      row.classList.add("lit");
    });
    row.addEventListener("pointerleave", () => {
      picture.hide();
      row.classList.remove("lit");
    });
    row.addEventListener("click", () => player.go(i + 1));
  });
  picture.on("escape", () => picture.hide());
}

function dot(cx: number, cy: number, fill: string): SVGElement {
  return svg("circle", { cx, cy, r: 6, fill, class: "travels" });
}
