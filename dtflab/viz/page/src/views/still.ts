// A picture as its still is, with answers to the pointer: a thing with a title says it, a plot says its values there, and
// what is joined by lines has its own lines alone. It takes the width of the output.

import type { Picture } from "../picture";
import { Readings, type Reading } from "../readings";

export function still(picture: Picture, data: { readings?: Reading[] }): void {
  picture.said.classList.add("dtf-unseen");
  titles(picture);
  joined(picture.svg);
  const readings = data.readings && new Readings(picture, data.readings);
  picture.redraws(() => {
    const extra = picture.widen();
    readings?.widen(extra);
  });
}

// Say the titles of a drawing in the picture's card: at once, and in its font.
export function titles(picture: Picture): void {
  for (const title of picture.svg.querySelectorAll("title")) {
    const thing = title.parentElement as unknown as SVGElement, lines = title.textContent!.split("\n");
    title.remove();
    thing.style.pointerEvents = "all"; // also within a frame
    thing.addEventListener("pointerenter", (event) => picture.showAt(event, lines, thing.getBoundingClientRect()));
    thing.addEventListener("pointerleave", () => picture.hide());
  }
}

// While a thing with a `data-key` is pointed at, lines that are not `data-of` it are faint.
function joined(drawing: SVGSVGElement): void {
  const lines = [...drawing.querySelectorAll<SVGElement>("[data-of]")];
  for (const thing of drawing.querySelectorAll<SVGElement>("[data-key]")) {
    const show = (key?: string) => lines.forEach((line) => line.classList.toggle("faint", !!key && !line.dataset.of!.split(" ").includes(key)));
    thing.addEventListener("pointerenter", () => show(thing.dataset.key));
    thing.addEventListener("pointerleave", () => show());
  }
}
