// Parts of a drawing that take more room from left to right, with text and marks as large as before.

export type Span = [low: number, high: number]; // in units of the drawing

// Where `x` is when what lies in the span is wider by some units; what is to the right of it moves.
export function stretched(x: number, [low, high]: Span, extra: number): number {
  return x <= low ? x : x >= high ? x + extra : low + ((x - low) * (high - low + extra)) / (high - low);
}

// Stretch a group with its `data-span`: shapes grow, text and circles move, and so does a group with `data-at`, as a whole.
export function stretch(group: SVGElement, extra: number): void {
  const span = group.dataset.span!.split(" ").map(Number) as Span;
  const to = (x: number) => stretched(x, span, extra);
  const rate = (span[1] - span[0] + extra) / (span[1] - span[0]);
  for (const part of group.querySelectorAll<SVGElement>("[data-at]"))
    part.setAttribute("transform", `translate(${to(Number(part.dataset.at)) - Number(part.dataset.at)} 0)`);
  const first = (part: SVGElement, name: string) => Number((part.dataset[name] ??= part.getAttribute(name)!));
  for (const part of group.querySelectorAll<SVGElement>("text, circle, rect, path")) {
    if (part.closest("[data-at]")) continue;
    const name = part.localName === "circle" ? "cx" : "x";
    if (part.localName === "path") part.setAttribute("d", path((part.dataset.d ??= part.getAttribute("d")!), to, rate));
    else if (part.localName === "rect") part.setAttribute("width", String(to(first(part, "x") + first(part, "width")) - to(first(part, "x"))));
    if (part.localName !== "path") part.setAttribute(name, String(to(first(part, name))));
  }
}

// A path of lines and curves, with other x.
function path(d: string, to: (x: number) => number, rate: number): string {
  return d.replace(/([A-Za-z])([^A-Za-z]*)/g, (_, command: string, numbers: string) => {
    let i = 0;
    const isX = () => command !== "V" && command !== "v" && (command === "H" || command === "h" || i++ % 2 === 0);
    const moved = (x: number) => (command === command.toUpperCase() ? to(x) : x * rate);
    return command + numbers.replace(/-?[\d.]+/g, (text) => (isX() ? `${+moved(Number(text)).toFixed(2)}` : text));
  });
}
