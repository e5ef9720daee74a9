// Sliders above a picture, in a page without a kernel: the pictures of all their places are in the page.

import css from "../live.css";
import { KERNELS, element } from "../picture";

interface Sliders {
  kernel: string;
  sliders: { name: string; says: string; at: number; texts: string[] }[];
  codes: string[]; // of each place, the last slider's places next to each other
  pictures: string[]; // HTML
}

export function sliders(root: HTMLElement, { kernel, sliders, codes, pictures }: Sliders): void {
  if (KERNELS.has(kernel)) return; // it has sliders of its own and draws
  const place = last(root, ".dtf-explored");
  if (!place) return;
  const code = element("code");
  const said = element("div", "dtf-said");
  said.setAttribute("aria-live", "polite");
  const inputs = sliders.map(({ name, says, at, texts }) => {
    const input = element("input");
    Object.assign(input, { type: "range", min: "0", max: String(texts.length - 1), step: "1", value: String(at) });
    input.setAttribute("aria-label", `${name}. ${says}`);
    input.addEventListener("input", () => show());
    return input;
  });
  const readouts = sliders.map(() => element("output"));
  const rows = sliders.map(({ name, says }, i) => {
    const row = element("div", "dtf-knob");
    row.append(text("span", name), inputs[i]!, readouts[i]!, text("small", says));
    return row;
  });

  const show = () => {
    let at = 0;
    sliders.forEach(({ texts }, i) => {
      const value = inputs[i]!.valueAsNumber;
      at = at * texts.length + value;
      readouts[i]!.textContent = texts[value]!;
      inputs[i]!.setAttribute("aria-valuetext", texts[value]!);
    });
    const isOpen = place.querySelector("details")?.open ?? false; // the table of the picture before
    place.innerHTML = pictures[at]!;
    place.querySelector("details")?.toggleAttribute("open", isOpen);
    code.textContent = codes[at]!;
    said.textContent = place.querySelector("svg")?.getAttribute("aria-label") ?? "";
  };
  const controls = element("div", "dtf-sliders-of-page");
  const style = element("style");
  style.textContent = css;
  controls.append(style, ...rows, text("small", "in a cell: "), code, said);
  place.before(controls);
  show();
}

// The last element before another one in the page.
function last(before: HTMLElement, selector: string): HTMLElement | undefined {
  const isBefore = (one: Node) => before.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING;
  return [...document.querySelectorAll<HTMLElement>(selector)].filter(isBefore).at(-1);
}

function text(name: "span" | "small", content: string): HTMLElement {
  const made = element(name);
  made.textContent = content;
  return made;
}
