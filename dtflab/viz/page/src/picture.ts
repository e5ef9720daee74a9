// What every live picture has: its still, a bar of controls, a card at the pointer, keys, colours of the theme.

import css from "./live.css";
import { stretch } from "./stretch";

export interface Command {
  label: string;
  key: string; // as KeyboardEvent.key, in lower case
  says: string; // for the tool tip and the list of keys
  run: () => void;
}

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const GAP = 6, REACH = 12, TALL = 120; // pixels between a card and what it explains, around the pointer, of a shape

export const KERNELS: Map<string, (message: object) => void> = ((window as any)[Symbol.for("dtflab kernels")] ??= new Map());

export class Picture {
  readonly drawing: HTMLElement;
  svg: SVGSVGElement; // of a drawing that is one
  readonly bar = element("div", "dtf-bar");
  readonly card = element("div", "dtf-card");
  readonly said = element("div", "dtf-said"); // read aloud when it changes
  private readonly still = { unit: 0, width: 0, height: 0 }; // pixels of a unit, units of its page
  private rest = "";
  private readonly keys = new Map<string, () => void>();

  constructor(readonly root: HTMLElement, readonly from: { kernel?: string; picture?: string }) {
    const drawing = (this.drawing = root.querySelector<HTMLElement>(".dtf-drawing")!);
    this.svg = drawing.querySelector("svg")!;
    root.setAttribute("data-lm-suppress-shortcuts", "true"); // else JupyterLab takes `a` for “insert a cell”
    this.card.hidden = true;
    this.said.setAttribute("aria-live", "polite");
    this.bar.setAttribute("role", "toolbar");
    this.bar.setAttribute("aria-label", "What this picture can do");
    const style = element("style");
    style.textContent = css;
    root.prepend(style);
    drawing.before(this.bar);
    drawing.append(this.card);
    drawing.after(this.said);
    drawing.style.position = "relative";
    root.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Take the width of the output, up to 1,900 pixels, with text as large as before: the card and what has the class `wide`
  // grow, what has the class `right` or `middle` moves, a `stretch` has its shapes stretched. Returns how many units the
  // drawing is wider than its still; it is `taller` by some, too.
  widen(taller = 0): number {
    const svg = this.svg, box = svg.viewBox.baseVal;
    const unit = (this.still.unit ||= parseFloat(svg.getAttribute("width")!) / box.width);
    const extra = Math.max(0, Math.min(this.drawing.clientWidth, 1900) / unit - (this.still.width ||= box.width));
    const height = (this.still.height ||= box.height) + taller;
    svg.setAttribute("viewBox", `0 0 ${this.still.width + extra} ${height}`);
    svg.setAttribute("width", String((this.still.width + extra) * unit));
    svg.setAttribute("height", String(height * unit));
    svg.style.maxWidth = `${(this.still.width + extra) * unit}px`; // it grows by units, not in scale
    svg.querySelector("rect.card")?.setAttribute("height", String(height));
    for (const rect of svg.querySelectorAll<SVGRectElement>(":scope > rect.card, rect.wide")) {
      rect.dataset.width ??= rect.getAttribute("width")!;
      rect.setAttribute("width", String(parseFloat(rect.dataset.width) + extra));
    }
    for (const [part, share] of [["right", 1], ["middle", 0.5]] as const)
      for (const each of svg.querySelectorAll(`.${part}`)) each.setAttribute("transform", `translate(${extra * share} 0)`);
    for (const part of svg.querySelectorAll<SVGElement>(".stretch")) stretch(part, extra);
    return extra;
  }

  // Buttons of the bar, which are also keys.
  command(...commands: Command[]): HTMLButtonElement[] {
    return commands.map(({ label, key, says, run }) => {
      const button = element("button", "dtf-button");
      button.textContent = label;
      button.title = `${says} (${key})`;
      button.setAttribute("aria-label", /\w/.test(label) ? `${label}: ${says}` : says); // what is seen is in the name
      button.setAttribute("aria-keyshortcuts", key);
      button.addEventListener("click", run);
      this.bar.append(button);
      this.bind(key, run);
      return button;
    });
  }

  // How to move in the picture, after its buttons.
  hint(text: string): HTMLElement {
    const made = element("span", "dtf-help");
    made.textContent = text;
    this.bar.append(made);
    return made;
  }

  // Keys without a button.
  on(keys: string, run: () => void): void {
    for (const key of keys.split(" ")) this.bind(key, run);
  }

  // Call `run` for a key; a picture with keys can have the focus.
  private bind(key: string, run: () => void): void {
    this.keys.set(key, run);
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "group");
    const title = this.svg?.getAttribute("aria-label")?.split(/[:.](?!\d)/)[0] ?? "A picture";
    this.root.setAttribute("aria-label", `${title}: a picture with keys, which its buttons name`);
  }

  private onKey(event: KeyboardEvent): void {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.ctrlKey || event.metaKey || event.altKey || (isTyping && event.key !== "Escape")) return;
    const run = this.keys.get(event.key.toLowerCase());
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  }

  // Whether the kernel that drew the picture can be asked; in a saved or exported page none can.
  get canAsk(): boolean {
    return this.from.picture !== undefined && KERNELS.has(this.from.kernel ?? "");
  }

  // Call `run` once the kernel can be asked: now, or when its way to the page is there.
  onceItCanAsk(run: () => void): void {
    if (this.canAsk) return run();
    const listener = () => {
      if (!this.canAsk) return;
      document.removeEventListener("dtflab kernel", listener);
      run();
    };
    document.addEventListener("dtflab kernel", listener);
  }

  ask(asks: object): void {
    KERNELS.get(this.from.kernel ?? "")?.({ picture: this.from.picture, asks });
  }

  // Hear what the kernel says of this picture while it is on the page; JupyterLab takes it away and puts it back.
  hears(heard: (says: any) => void): void {
    document.addEventListener(`dtflab ${this.from.picture}`, (event) => {
      if (this.root.isConnected) heard((event as CustomEvent).detail);
    });
  }

  // Put another drawing in the place of this one.
  redraw(svg: string): void {
    const template = document.createElement("template");
    template.innerHTML = svg;
    const made = template.content.querySelector("svg")!;
    this.svg.replaceWith(made);
    this.svg = made;
    Object.assign(this.still, { unit: 0, width: 0, height: 0 });
  }

  // Lines of text, the first is the heading, next to what they explain: below it, else above it, else at its side. It is a
  // box in pixels of the window; `x` is where the card begins.
  show(lines: string[], box: Box, x = box.left): void {
    this.card.replaceChildren(
      ...lines.map((line, i) => {
        const row = element(i ? "div" : "b");
        row.textContent = line;
        return row;
      }),
    );
    this.card.hidden = false;
    const { left, top, width, height } = this.drawing.getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: tall } = this.card;
    const below = box.bottom - top + GAP, above = box.top - top - tall - GAP;
    const after = box.right - left + GAP, before = box.left - left - wide - GAP;
    const isAside = below + tall > height && above < 0, side = after + wide <= width || before < 0 ? after : before;
    this.card.style.left = `${Math.max(0, Math.min(isAside ? side : x - left, width - wide - 4))}px`;
    this.card.style.top = `${isAside ? Math.max(0, Math.min(box.top - top, height - tall)) : below + tall <= height ? below : above}px`;
  }

  // The same for a shape below the pointer; for none, or one that is too tall, for a place around the pointer.
  showAt({ clientX: x, clientY: y }: MouseEvent, lines: string[], shape?: Box): void {
    const around = { left: x - REACH, top: y - REACH, right: x + REACH, bottom: y + REACH };
    this.show(lines, shape && shape.bottom - shape.top <= TALL ? shape : around, x);
  }

  hide(): void {
    this.card.hidden = true;
  }

  say(text: string): void {
    this.said.textContent = text || this.rest;
  }

  // Speak between the buttons and the drawing: the end of a tall drawing is outside the window. Where nothing is said
  // stands the `rest`.
  speakAbove(rest = ""): void {
    this.rest = rest;
    this.say("");
    this.drawing.before(this.said);
    this.said.classList.add("above");
  }

  // The value of a colour of the theme: --bg, --fg, --soft or --edge.
  colour(name: string): string {
    const value = getComputedStyle(this.svg).getPropertyValue(name).trim();
    const card = this.svg.querySelector<SVGElement>(".card");
    if (!/^[A-Z]/.test(value) || !card) return value;
    card.style.fill = value; // a colour of the system, which a canvas takes for that of a light page
    const found = getComputedStyle(card).fill;
    card.style.fill = "";
    return found;
  }

  // Call `draw` now, and again when the size or the theme changes.
  redraws(draw: () => void): void {
    // Loading a theme, JupyterLab hides everything for a moment, and the size after that is the one before.
    const later = (tries: number) => {
      if (this.drawing.clientWidth) draw();
      else if (tries) setTimeout(later, 100, tries - 1);
    };
    const themes = new MutationObserver(() => (this.root.isConnected ? later(50) : themes.disconnect()));
    const watched = { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] };
    new ResizeObserver(() => {
      themes.observe(document.body, watched); // again, if the page had taken the picture away
      draw();
    }).observe(this.drawing);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.root.isConnected && draw());
  }
}

export function element<K extends keyof HTMLElementTagNameMap>(name: K, class_ = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = class_;
  return made;
}

// Whether a button can be used, and what it says. One that can't keeps its place among the keys, so that the reason is found.
export function enable(button: HTMLButtonElement, can: boolean, says: string): void {
  button.title = says;
  button.setAttribute("aria-disabled", String(!can));
}

export const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
