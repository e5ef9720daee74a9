// A picture as its still is, with answers to the pointer: a thing with a title says it, a plot says its values there, and
// what is joined by lines has its own lines alone. It takes the width of the output.

import type { Picture } from "../picture";
import { Readings, type Reading } from "../readings";

export function still(picture: Picture, data: { readings?: Reading[] }): void {
  picture.said.classList.add("dtf-unseen");
  const readings = data.readings && new Readings(picture, data.readings);
  titles(picture);
  joined(picture.svg);
  picture.redraws(() => {
    const extra = picture.widen();
    readings?.widen(extra);
  });
}

// Say the titles of the drawing in the picture's card: at once, and in its font. One listener serves all drawings that
// come after each other; a card stays when its thing is drawn again.
export function titles(picture: Picture): void {
  let shown: SVGElement | null = null;
  const show = (event: PointerEvent) => {
    mute(picture.svg);
    const isRead = event.defaultPrevented; // a plot says its values there
    const thing = isRead ? null : (event.target as Element).closest<SVGElement>("[data-title]");
    if (thing && thing !== shown) picture.showAt(event, thing.dataset.title!.split("\n"), thing.getBoundingClientRect());
    if (!thing && shown && !isRead) picture.hide();
    shown = thing;
  };
  picture.drawing.addEventListener("pointermove", show);
  picture.drawing.addEventListener("pointerleave", show);
}

// The browser's own tool tips would come, too.
function mute(drawing: SVGSVGElement): void {
  for (const title of drawing.querySelectorAll("title")) {
    const thing = title.parentElement as unknown as SVGElement;
    thing.dataset.title = title.textContent!;
    thing.style.pointerEvents = "all"; // also within a frame
    title.remove();
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
