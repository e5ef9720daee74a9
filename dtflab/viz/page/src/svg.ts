// Elements of a drawing.

type Attributes = Record<string, string | number>;

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  return made;
}

export function set(shape: Element, attributes: Attributes): void {
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, String(value));
}

export function text(words: string, x: number, y: number, kind: string): SVGTextElement {
  const made = svg("text", { x, y, class: kind });
  made.textContent = words;
  return made;
}
