// Placement: scopes open and close in place, the tensors of what is pointed at are lit, a search opens the way to an op.
//
// At most 200 boxes are shown. Where a scope would bring more, the ones that were used longest ago are closed for it.

import { pointer, select } from "d3-selection";
import { type Box, element, type Picture } from "../picture";
import { set, svg } from "../svg";
import { type Block, type Bundle, CONTROL, type Edges, Nest, type Point, type Scope, type Strand } from "./nest";

interface Placement {
  top: number;
  width: number;
  tree: Scope;
  ops: { name: string[] } & Record<"op" | "label" | "width" | "look" | "device" | "why" | "line", number[]>;
  edges: Edges;
  texts: string[];
  looks: { fill: string; line: string; ink: string; label: string; badge: string; room: number }[];
}

export const MOST = 200;
const HIGHEST = 960; // pixels of a picture after “Open all that fits”, in a lower window, too
const WIDEST = 1900, LEAST = 0.85; // pixels of a picture; the share of its size to which one shrinks that then fits the output
const MARGIN = 14, NEAR = 6, MOST_LINES = 8, MOST_BADGES = 3;
const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function placement(picture: Picture, data: Placement): void {
  new Live(picture, data);
}

class Live {
  private readonly nest: Nest;
  private readonly graph = svg("g", { class: "live" });
  private readonly frames = svg("g", {});
  private readonly lines = svg("g", { class: "lines" });
  private readonly lit = svg("g", { class: "lit" });
  private readonly boxes = svg("g", {});
  private readonly search = element("input", "dtf-search");
  private readonly shapes = new Map<Block, SVGGElement>(); // what is drawn of each block
  private readonly blocks = new WeakMap<Element, Block>();
  private readonly leaves: Block[] = []; // by op
  private readonly outgoing: number[][]; // edges by op
  private readonly incoming: number[][];
  private readonly own: number; // pixels of a unit
  private readonly least: number; // the share of its size to which it shrinks if it is scrolled
  private room = 0; // pixels of the output in which it was drawn
  private at: Block | null = null; // the one that Tab goes to
  private locked = false;
  private clock = 0;

  constructor(private readonly picture: Picture, private readonly data: Placement) {
    const { ops, edges } = data;
    this.nest = new Nest(data.tree, edges, ops.look, ops.width);
    const walk = (block: Block): void => (block.scope ? block.children.forEach(walk) : void (this.leaves[block.first] = block));
    walk(this.nest.root);
    this.outgoing = ops.name.map(() => []);
    this.incoming = ops.name.map(() => []);
    edges.source.forEach((op, i) => this.outgoing[op]!.push(i));
    edges.target.forEach((op, i) => this.incoming[op]!.push(i));
    this.own = Number(picture.svg.getAttribute("width")) / picture.svg.viewBox.baseVal.width;
    this.least = parseFloat(picture.svg.style.minWidth) / Number(picture.svg.getAttribute("width"));
    this.graph.append(this.frames, this.lines, this.lit, this.boxes);
    picture.svg.querySelector(".still")?.replaceWith(this.graph);
    picture.svg.setAttribute("role", "group"); // an image has no buttons
    picture.root.removeAttribute("tabindex");
    this.openWhere((block) => (block.scope as Scope).open); // in the still
    this.controls();
    this.gestures();
    this.draw();
    picture.redraws(() => this.room === picture.drawing.clientWidth || this.draw());
  }

  private get count(): number {
    return this.nest.boxes().length;
  }

  private get height(): number {
    return this.data.top + this.nest.root.height + 2 * MARGIN;
  }

  private more(block: Block): number {
    return block.isOpen ? 0 : block.children.length - 1;
  }

  // ---- what a person does ----

  private controls(): void {
    const { picture, search } = this;
    picture.command(
      { label: "Open all that fits", key: "o", says: `Open scopes, the outermost first, up to ${MOST} boxes and the height of a page`, run: () => this.openAll() },
      { label: "Close all", key: "c", says: "Close all scopes", run: () => this.closeAll() },
    );
    picture.on("escape", () => this.clear());
    search.type = "search";
    search.placeholder = "Find an op";
    search.setAttribute("aria-label", search.placeholder);
    search.addEventListener("keydown", (event) => event.key === "Enter" && this.find(search.value));
    picture.bar.append(search);
    picture.hint("Click or Enter: open and close · point at a box or a line: its tensors · arrow keys: next box");
  }

  private gestures(): void {
    const graph = select(this.graph);
    graph.on("click", (event: MouseEvent) => this.click(this.under(event), event));
    graph.on("keydown", (event: KeyboardEvent) => this.key(event));
    graph.on("focusin", (event: FocusEvent) => this.focused(this.under(event)));
    graph.on("focusout", () => this.locked || this.unlight());
    select(this.picture.svg)
      .on("pointermove", (event: PointerEvent) => this.hover(event))
      .on("pointerleave", () => this.locked || this.unlight());
  }

  private under(event: Event): Block | null {
    const shape = (event.target as Element).closest("[tabindex]");
    return (shape && this.blocks.get(shape)) ?? null;
  }

  private click(block: Block | null, event: MouseEvent): void {
    if (!block) return this.clear();
    if (block.scope) return this.toggle(block);
    this.locked = false;
    this.light(this.bundlesOf(block), [block]);
    this.picture.showAt(event, this.card(block), this.inWindow(block));
    this.picture.card.dataset.locked = "";
    this.locked = true;
    this.picture.say(this.card(block).join(". "));
  }

  private key(event: KeyboardEvent): void {
    const block = this.under(event);
    if (!block || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") block.scope ? this.toggle(block) : this.picture.say(this.card(block).join(". "));
    else if (ARROWS[event.key]) this.go(this.neighbour(block, ARROWS[event.key]!));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private focused(block: Block | null): void {
    if (!block || this.locked) return;
    this.at = block;
    this.touch(block);
    for (const [each, shape] of this.shapes) shape.tabIndex = each === block ? 0 : -1;
    if (!this.shapes.get(block)!.matches(":focus-visible")) return; // the pointer has done it
    this.light(this.bundlesOf(block), [block]);
    this.picture.show(this.card(block), this.inWindow(block));
  }

  private go(block: Block | null): void {
    if (block) this.shapes.get(block)?.focus();
  }

  // The nearest in a direction, of those that lie in it rather than aside.
  private neighbour(block: Block, [dx, dy]: Point): Block | null {
    const middle = (each: Block): Point => [each.x + each.width / 2, each.y + (each.isOpen ? 10 : each.height / 2)];
    const [x, y] = middle(block);
    let best: Block | null = null, least = Infinity;
    for (const each of this.shapes.keys()) {
      const [ex, ey] = middle(each);
      const ahead = (ex - x) * dx + (ey - y) * dy, aside = Math.abs((ex - x) * dy) + Math.abs((ey - y) * dx);
      const far = ahead + 2 * aside;
      if (each !== block && ahead > 2 && aside <= 3 * ahead && far < least) [best, least] = [each, far];
    }
    return best;
  }

  private hover(event: PointerEvent): void {
    if (this.locked || event.buttons) return;
    const block = this.under(event);
    if (block) {
      this.light(this.bundlesOf(block), [block]);
      this.picture.showAt(event, this.card(block), this.inWindow(block));
      return;
    }
    const strand = this.near(pointer(event, this.graph));
    if (!strand) return this.unlight();
    this.light(strand.bundles, strand.bundles.flatMap(({ from, to }) => [from, to]));
    this.picture.showAt(event, this.tensors(strand.bundles.flatMap((bundle) => bundle.edges)));
  }

  private clear(): void {
    this.locked = false;
    delete this.picture.card.dataset.locked;
    this.unlight();
    this.picture.say("");
  }

  private toggle(block: Block): void {
    this.clear();
    if (block.isOpen) {
      this.close(block);
      this.draw();
      this.picture.say(`${name(block)} is closed. ${this.shown()}`);
    } else {
      const closed = this.open([block]);
      if (closed) this.draw();
      this.picture.say(closed ? `${name(block)} is open. ${this.shown()}${forIt(closed)}` : tooMany(block));
    }
    this.go(block);
  }

  private shown(): string {
    return `${plural(this.count, "box")} of ${plural(this.data.ops.name.length, "op")}.`;
  }

  private close(block: Block): void {
    for (const child of block.children) if (child.isOpen) this.close(child);
    block.isOpen = false;
  }

  // Open blocks, each in the one before, and return those that are closed for it if there is no room, the ones used
  // longest ago; null if even that does not help.
  private open(blocks: Block[]): Block[] | null {
    const kept = new Set(blocks.flatMap((block) => [block, ...block.above()]));
    const others = [...this.nest.root.seen()].filter((block) => block.isOpen && !kept.has(block)).sort((a, b) => a.used - b.used);
    const closed: Block[] = [];
    let count = this.count + blocks.reduce((sum, block) => sum + this.more(block), 0);
    while (count > MOST && others.length) {
      const other = others.shift()!;
      if (!other.isOpen || closed.some((each) => [...other.above()].includes(each))) continue;
      count -= [...other.seen()].filter((each) => !each.isOpen).length - 1;
      closed.push(other);
    }
    if (count > MOST) return null;
    for (const each of closed) this.close(each);
    for (const each of blocks) {
      each.isOpen = true;
      this.touch(each);
    }
    return closed;
  }

  private touch(block: Block): void {
    this.clock++;
    for (const each of [block, ...block.above()]) each.used = this.clock;
  }

  private openAll(): void {
    this.clear();
    const limit = this.openWhere(() => true);
    this.draw();
    this.picture.say(`${this.shown()}${limit}`);
  }

  // Level by level, the smallest scopes first, for as long as there is room in boxes and in height; say which had none.
  private openWhere(isMeant: (block: Block) => boolean): string {
    const isWanted = (block: Block) => block.scope && !block.isOpen && isMeant(block);
    const highest = Math.max(window.innerHeight, HIGHEST);
    for (let level = [...this.nest.root.seen()].filter(isWanted); level.length; level = level.flatMap((block) => block.children.filter(isWanted))) {
      for (const block of level.sort((a, b) => a.children.length - b.children.length)) {
        block.isOpen = true;
        this.nest.place();
        const isFull = this.count > MOST;
        if (!isFull && this.height * this.own <= highest) continue;
        block.isOpen = false;
        return isFull ? ` No more than ${MOST} are shown at once.` : ` No more fits into ${numbers.format(highest)} pixels of height.`;
      }
    }
    return "";
  }

  private closeAll(): void {
    this.clear();
    for (const child of this.nest.root.children) this.close(child);
    this.draw();
    this.picture.say(this.shown());
  }

  // Open the way to the next op whose name has the text, and go there.
  private find(text: string): void {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return;
    const { name: names } = this.data.ops;
    const found = names.flatMap((each, op) => (each.toLowerCase().includes(wanted) ? [op] : []));
    if (!found.length) return this.picture.say(`No op has ${text} in its name.`);
    const next = found.find((op) => this.at !== null && op >= this.at.last) ?? found[0]!;
    const leaf = this.leaves[next]!;
    this.clear();
    const closed = this.open([...leaf.above()].reverse());
    if (!closed) return this.picture.say(tooMany(leaf.parent!));
    this.at = leaf;
    this.draw();
    this.light(this.bundlesOf(leaf), [leaf]);
    this.shapes.get(leaf)!.scrollIntoView({ block: "nearest" });
    this.picture.say(`${found.indexOf(next) + 1} of ${found.length}: ${this.card(leaf).join(". ")}${forIt(closed)}`);
  }

  // ---- what is lit ----

  private bundlesOf(block: Block): Bundle[] {
    return this.nest.bundles.filter(({ from, to }) => block.holds(from.first) !== block.holds(to.first));
  }

  private light(bundles: Bundle[], blocks: Block[]): void {
    const seen = new Set<Block>([...blocks, ...bundles.flatMap(({ from, to }) => [from, to])]);
    for (const block of [...seen]) for (const each of block.isOpen ? block.seen() : []) seen.add(each);
    for (const [block, shape] of this.shapes) shape.classList.toggle("on", seen.has(block));
    const only = new Set(bundles);
    const strands = new Set(bundles.flatMap((bundle) => bundle.strands));
    this.lit.replaceChildren(...this.paths([...strands], (bundle) => only.has(bundle)));
    this.graph.classList.toggle("dim", bundles.length > 0 || blocks.length > 1);
  }

  private unlight(): void {
    this.graph.classList.remove("dim");
    this.lit.replaceChildren();
    this.picture.hide();
  }

  private near([x, y]: Point): Strand | null {
    let best: Strand | null = null, least = NEAR;
    for (const strand of this.nest.strands) {
      for (let i = 1; i < strand.points.length; i++) {
        const far = distance(x, y, strand.points[i - 1]!, strand.points[i]!);
        if (far < least) [best, least] = [strand, far];
      }
    }
    return best;
  }

  // ---- drawing ----

  private draw(): void {
    const { nest, data, picture } = this;
    nest.place();
    const { width } = nest.root;
    this.room = picture.drawing.clientWidth;
    const whole = Math.max(data.width + 2 * MARGIN, width + 2 * MARGIN, Math.min(this.room, WIDEST) / this.own), tall = this.height;
    picture.svg.setAttribute("viewBox", `0 0 ${whole} ${tall}`);
    set(picture.svg, { width: whole * this.own, height: tall * this.own });
    picture.svg.style.minWidth = `${whole * this.own * LEAST > this.room ? whole * this.own * this.least : 0}px`;
    picture.svg.style.maxWidth = `${whole * this.own}px`;
    set(picture.svg.querySelector(".card")!, { width: whole, height: tall });
    set(this.graph, { transform: `translate(${(whole - 2 * MARGIN - width) / 2} ${data.top})` });
    const hadFocus = this.graph.contains(document.activeElement);
    const before = new Map(this.shapes);
    this.shapes.clear();
    for (const block of nest.root.seen()) {
      if (!block.parent) continue;
      const shape = this.shape(block, before.get(block));
      this.shapes.set(block, shape);
      if (!shape.parentNode) (block.isOpen ? this.frames : this.boxes).append(shape); // what is there stays: its text has been laid out
    }
    for (const [block, shape] of before) if (this.shapes.get(block) !== shape) shape.remove();
    this.lines.replaceChildren(...this.paths(nest.strands, () => true));
    while (this.at && !this.shapes.has(this.at)) this.at = this.at.parent;
    this.at ??= nest.root.children[0]!;
    for (const [each, shape] of this.shapes) shape.tabIndex = each === this.at ? 0 : -1;
    if (hadFocus && !this.graph.contains(document.activeElement)) this.shapes.get(this.at)!.focus({ preventScroll: true });
  }

  private shape(block: Block, known: SVGGElement | undefined): SVGGElement {
    const state = block.isOpen ? "open" : "closed";
    const is = known?.dataset.state === state ? known : block.isOpen ? this.frame(block) : this.box(block);
    is.dataset.state = state;
    if (is !== known) nameAsDrawn(is);
    is.style.transform = `translate(${block.x}px,${block.y}px)`;
    if (block.isOpen) {
      set(is.querySelector(".scope")!, { width: block.width, height: block.height });
      set(is.querySelector(".handle")!, { width: block.width });
    }
    this.blocks.set(is, block);
    return is;
  }

  private frame(block: Block): SVGGElement {
    const { title } = block.scope as Scope;
    const shape = this.button(block, "frame");
    const text = svg("text", { x: 9, y: 14, class: "s11 b soft" });
    text.textContent = title;
    shape.append(svg("rect", { rx: 8, class: "scope" }), svg("rect", { height: 19, rx: 8, class: "handle" }), text);
    return shape;
  }

  private box(block: Block): SVGGElement {
    const { data } = this;
    const looks = this.looks(block).map(([look]) => data.looks[look]!);
    const size = { width: block.width, height: block.height, rx: 4, stroke: looks.length > 1 ? "var(--edge)" : looks[0]!.line };
    const shape = this.button(block, "box-of");
    if (block.scope) shape.append(svg("rect", { x: 3, y: 3, class: "more", ...size }));
    shape.append(svg("rect", { class: "box", ...size }));
    if (looks.length === 1) shape.append(svg("rect", { ...size, fill: looks[0]!.fill, "fill-opacity": 0.13, stroke: "none" }));
    let x = 0;
    for (const { badge, room } of looks.slice(0, MOST_BADGES)) {
      const drawn = svg("g", { transform: `translate(${x} 0)` });
      drawn.innerHTML = badge; // written by Python, which escapes names
      shape.append(drawn);
      x += room;
    }
    const label = svg("text", { x: x + 8, y: 17 });
    label.textContent = block.scope ? block.scope.label : data.texts[data.ops.label[block.first]!]!;
    shape.append(label);
    if (!block.scope) return shape;
    const count = svg("text", { x: block.width - 8, y: 17, class: "s11 soft end" });
    count.textContent = plural(block.size, "op");
    shape.append(count);
    return shape;
  }

  private button(block: Block, kind: string): SVGGElement {
    const shape = svg("g", { class: kind, role: "button", "aria-label": this.heading(block).join(", ") });
    if (block.scope) shape.setAttribute("aria-expanded", String(block.isOpen));
    return shape;
  }

  // One path for all lines of a colour, and one for their heads; those that cross devices last, as they are never hidden.
  private paths(strands: Strand[], isSeen: (bundle: Bundle) => boolean): SVGElement[] {
    const { edges, looks } = this.data;
    const kinds = new Map<string, { shape: Record<string, string>; head: Record<string, string>; lines: string[]; heads: string[] }>();
    for (const strand of strands) {
      const bundles = strand.bundles.filter(isSeen);
      const colours = new Set(bundles.map(({ colour }) => colour));
      if (colours.size > 1) colours.delete(0);
      for (const colour of colours) {
        const isOrder = !colour && bundles.every((bundle) => bundle.edges.every((edge) => edges.kind[edge] === CONTROL));
        const line = looks[colour - 1]?.line ?? "";
        const key = `${colour} ${isOrder}`;
        let kind = kinds.get(key);
        if (!kind) {
          const shape: Record<string, string> = colour ? { class: "x", stroke: line } : { class: isOrder ? "e c" : "e" };
          kinds.set(key, (kind = { shape, head: colour ? { fill: line } : { class: "h" }, lines: [], heads: [] }));
        }
        const ends = strand.to < 0 && (strand.inside.scope as Scope).nets[strand.net]![4][strand.goal]![0] >= 0;
        kind.lines.push(path(ends ? shortened(strand.points, colour ? 5 : 4) : strand.points, colour ? 7 : 6));
        if (ends) kind.heads.push(head(strand.points, colour ? 8 : 6));
      }
    }
    const drawn = [...kinds].sort(([a], [b]) => parseInt(a) - parseInt(b));
    return drawn.flatMap(([, { shape, head, lines, heads }]) => [svg("path", { ...shape, d: lines.join("") }), svg("path", { ...head, d: heads.join("") })]);
  }

  // ---- words ----

  private looks(block: Block): [number, number][] {
    return block.scope ? block.scope.looks : [[this.data.ops.look[block.first]!, 1]];
  }

  private card(block: Block): string[] {
    const { ops, texts } = this.data;
    const [heading, crossing] = [this.heading(block), this.crossing(block)];
    if (block.scope) return [...heading, ...crossing, block.isOpen ? "click closes it" : "click opens it"];
    return [...heading, texts[ops.why[block.first]!]!, ...crossing, texts[ops.line[block.first]!]!].filter(Boolean);
  }

  // What it is, and where.
  private heading(block: Block): [string, string] {
    const { ops, texts, looks } = this.data;
    if (!block.scope) return [`${ops.name[block.first]} = ${texts[ops.op[block.first]!]}`, texts[ops.device[block.first]!]!];
    const where = this.looks(block).map(([look, n], _, all) => (all.length > 1 ? `${n} on ${looks[look]!.label}` : looks[look]!.label));
    return [`${name(block)}: ${plural(block.size, "op")}`, where.join(", ")];
  }

  // How many tensors come in from other devices and go out to them.
  private crossing(block: Block): string[] {
    const { kind, source, target } = this.data.edges;
    const cross = (lists: number[][], other: number[]) => {
      const edges = lists.slice(block.first, block.last).flat().filter((edge) => kind[edge] === 1 && !block.holds(other[edge]!));
      return new Set(edges.map((edge) => `${source[edge]} ${this.data.edges.tensor[edge]}`)).size;
    };
    const incoming = cross(this.incoming, source), outgoing = cross(this.outgoing, target);
    const words = [incoming && `${plural(incoming, "tensor")} from other devices`, outgoing && `${plural(outgoing, "tensor")} to other devices`];
    return words.some(Boolean) ? [words.filter(Boolean).join(", ")] : [];
  }

  private tensors(edges: number[]): string[] {
    const { ops, texts, looks, edges: all } = this.data;
    const device = (op: number) => looks[ops.look[op]!]!.label;
    const lines = edges.slice(0, MOST_LINES).map((edge) => {
      const [a, b] = [all.source[edge]!, all.target[edge]!];
      const tensor = texts[all.tensor[edge]!]!;
      const what = tensor.startsWith("^") ? `after ${ops.name[a]}` : `${ops.name[a]}${tensor}`;
      return `${what} → ${ops.name[b]}${all.kind[edge] === 1 ? ` (${device(a)} → ${device(b)})` : ""}`;
    });
    if (edges.length > MOST_LINES) lines.push(`and ${edges.length - MOST_LINES} more`);
    return [plural(edges.length, "line"), ...lines];
  }

  // ---- where things are on the page ----

  private inWindow(block: Block): Box {
    const screen = this.graph.getScreenCTM()!, at = new DOMPoint(block.x, block.y).matrixTransform(screen);
    return { left: at.x, top: at.y, right: at.x + block.width * screen.a, bottom: at.y + block.height * screen.d };
  }
}

function name(block: Block): string {
  const scope = block.scope as Scope;
  return scope.label.includes(" … ") || !scope.name ? scope.label : scope.name.replace(/\/$/, "");
}

const numbers = new Intl.NumberFormat("en");
const plural = (count: number, what: string) => `${numbers.format(count)} ${what}${count === 1 ? "" : what === "box" ? "es" : "s"}`;
const forIt = (closed: Block[]) => (closed.length ? ` Closed to make room: ${closed.map(name).join(", ")}.` : "");
const tooMany = (block: Block) => `${name(block)} stays closed: with its ${block.children.length} boxes more than ${MOST} would be shown.`;

function distance(x: number, y: number, [ax, ay]: Point, [bx, by]: Point): number {
  const length = (bx - ax) ** 2 + (by - ay) ** 2;
  const share = length ? Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
  return Math.hypot(x - ax - share * (bx - ax), y - ay - share * (by - ay));
}

function toward([x, y]: Point, [bx, by]: Point, length: number): Point {
  const share = Math.min(1, length / (Math.hypot(bx - x, by - y) || 1));
  return [x + (bx - x) * share, y + (by - y) * share];
}

const shortened = (points: Point[], by: number): Point[] => [...points.slice(0, -1), toward(points.at(-1)!, points.at(-2)!, by)];

// A line with its corners rounded.
function path(points: Point[], radius: number): string {
  let text = `M${points[0]}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [before, corner, after] = [points[i - 1]!, points[i]!, points[i + 1]!];
    const room = Math.min(radius, Math.hypot(before[0] - corner[0], before[1] - corner[1]) / 2, Math.hypot(after[0] - corner[0], after[1] - corner[1]) / 2);
    text += `L${toward(corner, before, room)}Q${corner} ${toward(corner, after, room)}`;
  }
  return `${text}L${points.at(-1)!}`;
}

function head(points: Point[], size: number): string {
  const [x, y] = points.at(-1)!, [bx, by] = points.at(-2)!;
  const far = Math.hypot(x - bx, y - by) || 1, dx = (x - bx) / far, dy = (y - by) / far;
  const foot = (side: number): Point => [x - size * dx + side * size * 0.5 * dy, y - size * dy - side * size * 0.5 * dx];
  return `M${[x, y]}L${foot(-1)}L${foot(1)}Z`;
}

// A button's name is what is meant, and what stands on it: who speaks to a computer says that.
function nameAsDrawn(button: SVGGElement): void {
  for (const text of button.querySelectorAll("text")) text.after(" "); // else they are one word
  button.setAttribute("aria-label", `${button.getAttribute("aria-label")}; ${button.textContent.trim()}`);
}
