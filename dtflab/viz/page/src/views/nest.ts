// Where boxes and lines go while scopes are opened and closed. No search: rows, order and lanes come from Python
// (layout/nested.py), which laid out each scope with its children closed. Here what follows an open child moves on, and
// lines get tracks in their channels. Nothing here knows of the page.

export interface Scope {
  label: string;
  title: string;
  name: string;
  width: number; // closed
  looks: [look: number, ops: number][];
  open: boolean; // in the still
  children: (Scope | 0)[]; // 0: the next op
  room: number; // width of the inside with all children closed
  titled: number;
  rows: number[]; // of the children, from 1; row 0 and the one after the last are the border
  lefts: number[];
  nets: Net[];
}

// Lines of one colour from one child (-1: from outside): where they leave it; their x in the rows they pass, from the
// row after it (from outside: from row 0); and their goals: a child (-1: out), where they enter it, whether that closes
// a cycle.
export type Net = [origin: number, colour: number, outlet: number, lanes: number[], goals: [child: number, inlet: number, closes: number][]];
export type Point = [x: number, y: number];

export interface Edges {
  source: number[];
  target: number[];
  tensor: number[];
  kind: number[]; // of KINDS
}

export const TRANSFER = 1, CONTROL = 2;
export const BOX = 26;
const TITLE = 19, BORDER = 10, GUTTER = 13, TRACK = 7, FREE = 22, BEFORE = 9, AFTER = 13, PADDING = 9, SLANT = 4, TIP = 8;

export class Block {
  readonly children: Block[];
  readonly first: number; // its ops are those from `first` up to `last`
  readonly last: number;
  isOpen = false;
  used = 0;
  x = 0; // in its parent
  y = 0;
  width = 0;
  height = 0;
  private ways: Map<string, [net: number, goal: number][]> | null = null;

  constructor(readonly scope: Scope | 0, readonly parent: Block | null, readonly index: number, next: { op: number }) {
    this.first = next.op;
    if (!scope) next.op++;
    this.children = scope ? scope.children.map((child, i) => new Block(child, this, i, next)) : [];
    this.last = next.op;
  }

  get size(): number {
    return this.last - this.first;
  }

  holds(op: number): boolean {
    return this.first <= op && op < this.last;
  }

  *above(): Iterable<Block> {
    for (let block = this.parent; block; block = block.parent) yield block;
  }

  // The parts of it that are seen: closed blocks, which are boxes, and open ones before their children.
  *seen(): Iterable<Block> {
    yield this;
    if (this.isOpen) for (const child of this.children) yield* child.seen();
  }

  // The net from one child to another, of this colour if there is one: lines that stay on a device go along with others.
  way(origin: number, goal: number, colour: number): [net: number, goal: number] {
    const { nets } = this.scope as Scope;
    if (!this.ways) {
      this.ways = new Map();
      nets.forEach(([from, , , , goals], net) => goals.forEach(([to], i) => {
        const key = `${from} ${to}`;
        this.ways!.set(key, [...(this.ways!.get(key) ?? []), [net, i]]);
      }));
    }
    const all = this.ways.get(`${origin} ${goal}`)!;
    return all.find(([net]) => nets[net]![1] === colour) ?? all[0]!;
  }
}

// Edges between the same two boxes, of one colour.
export interface Bundle {
  from: Block;
  to: Block;
  colour: number;
  edges: number[];
  strands: Strand[];
}

// A line within one open block: of a net, to one of its goals, from and to ports of open children (-1: of closed ones).
export interface Strand {
  inside: Block;
  net: number;
  goal: number;
  from: number;
  to: number;
  bundles: Bundle[];
  points: Point[]; // in the drawing
}

export class Nest {
  readonly root: Block;
  strands: Strand[] = [];
  bundles: Bundle[] = [];
  private readonly lines = new Map<Block, Line[]>();

  constructor(tree: Scope, private readonly edges: Edges, private readonly lookOf: number[], private readonly widths: number[]) {
    this.root = new Block(tree, null, 0, { op: 0 });
    this.root.isOpen = true;
  }

  boxes(): Block[] {
    return [...this.root.seen()].filter((block) => !block.isOpen);
  }

  // Give everything that is seen its place.
  place(): void {
    this.bundle();
    this.placed(this.root);
    this.moved(this.root, 0, 0);
  }

  private bundle(): void {
    const { source, target, kind } = this.edges;
    const at: Block[] = [];
    for (const box of this.boxes()) for (let op = box.first; op < box.last; op++) at[op] = box;
    const bundles = new Map<Block, Map<Block, Bundle[]>>();
    for (let i = 0; i < source.length; i++) {
      const from = at[source[i]!]!, to = at[target[i]!]!;
      if (from === to) continue;
      const colour = kind[i] === TRANSFER ? this.lookOf[source[i]!]! + 1 : 0;
      let onward = bundles.get(from);
      if (!onward) bundles.set(from, (onward = new Map()));
      let same = onward.get(to);
      if (!same) onward.set(to, (same = []));
      const known = same.find((bundle) => bundle.colour === colour);
      if (known) known.edges.push(i);
      else same.push({ from, to, colour, edges: [i], strands: [] });
    }
    this.bundles = [...bundles.values()].flatMap((onward) => [...onward.values()].flat());
    const strands = new Map<string, Strand>();
    const names = new Map([...this.root.seen()].map((block, i) => [block, i]));
    this.lines.clear();
    for (const bundle of this.bundles) {
      for (const way of route(bundle)) {
        const key = `${names.get(way.inside)} ${way.net} ${way.goal} ${way.from} ${way.to}`;
        let strand = strands.get(key);
        if (!strand) strands.set(key, (strand = { ...way, bundles: [], points: [] }));
        strand.bundles.push(bundle);
        bundle.strands.push(strand);
      }
    }
    this.strands = [...strands.values()];
    for (const strand of this.strands) {
      const lines = this.lines.get(strand.inside) ?? [];
      lines.push(new Line(strand));
      this.lines.set(strand.inside, lines);
    }
  }

  // The size of a block, and the places of all that is seen in it.
  private placed(block: Block): void {
    if (!block.isOpen) {
      block.width = block.scope ? block.scope.width : this.widths[block.first]!;
      block.height = BOX;
      return;
    }
    for (const child of block.children) this.placed(child);
    new Inside(block, this.lines.get(block) ?? []).place();
  }

  private moved(block: Block, x: number, y: number): void {
    for (const line of this.lines.get(block) ?? []) for (const [px, py] of line.points) line.strand.points.push([x + px, y + py]);
    for (const child of block.isOpen ? block.children : []) {
      child.x += x;
      child.y += y;
      this.moved(child, child.x, child.y);
    }
  }
}

type Way = Omit<Strand, "bundles" | "points">;

// The strands of a bundle: up out of open blocks, across, and down to the other end.
function route({ from, to, colour }: Bundle): Way[] {
  const common = [...from.above()].find((block) => block.holds(to.first))!;
  const ups: Way[] = [], downs: Way[] = [];
  let a = from, b = to;
  for (let port = -1; a.parent !== common; a = a.parent!) {
    const [net, goal] = a.parent!.way(a.index, -1, colour);
    ups.push({ inside: a.parent!, net, goal, from: port, to: -1 });
    port = net;
  }
  for (let port = -1; b.parent !== common; b = b.parent!) {
    const [net, goal] = b.parent!.way(-1, b.index, colour);
    downs.unshift({ inside: b.parent!, net, goal, from: -1, to: port });
    port = net;
  }
  const [net, goal] = common.way(a.index, b.index, colour);
  return [...ups, { inside: common, net, goal, from: ups.at(-1)?.net ?? -1, to: downs[0]?.net ?? -1 }, ...downs];
}

class Line {
  points: Point[] = []; // in its block
  constructor(readonly strand: Strand) {}
}

// A net in the channel above a row: from the row before, to this one, or out to the gutter at the right.
class Hop {
  readonly tops: number[] = []; // x
  readonly bottoms: number[] = [];
  low = Infinity;
  high = -Infinity;
  track = -1;

  meets(side: number[], x: number): void {
    if (!side.includes(x)) side.push(x);
    this.low = Math.min(this.low, x);
    this.high = Math.max(this.high, x);
  }
}

// An open block: its children, which have their sizes, and its lines.
class Inside {
  private readonly scope: Scope;
  private readonly border: number;
  private readonly last: number; // the row of the lower border
  private readonly hops: Map<string, Hop>[];
  private readonly risers = new Map<string, number>(); // x of lines that close a cycle
  private channels: number[] = []; // y
  private rows: number[] = []; // y
  private stretch: (x: number) => number = (x) => x;

  constructor(private readonly block: Block, private readonly lines: Line[]) {
    this.scope = block.scope as Scope;
    this.border = block.parent ? BORDER : 0;
    this.last = Math.max(0, ...this.scope.rows) + 1;
    this.hops = Array.from({ length: this.last + 2 }, () => new Map());
  }

  place(): void {
    const { block, scope } = this;
    this.across();
    for (const line of this.lines) this.enter(line);
    const tracks = this.hops.map((hops) => assignTracks([...hops.values()]));
    this.down(tracks);
    const right = Math.max(this.stretch(scope.room), scope.titled) + this.border;
    let gutter = right + (this.risers.size ? GUTTER : 0);
    for (const key of this.risers.keys()) this.risers.set(key, (gutter += TRACK));
    block.width = gutter + (this.risers.size ? GUTTER : 0) + this.border;
    block.height = this.rows.at(-1)! + (block.parent ? 0 : 1);
    for (const line of this.lines) line.points = this.points(line.strand);
  }

  // ---- x ----

  // What stands right of an open child moves by what that has grown; what stands above and below is spread.
  private across(): void {
    const { scope, block } = this;
    const open = block.children.filter((child) => child.isOpen);
    const left = (child: Block) => scope.lefts[child.index]!;
    const right = (child: Block) => left(child) + (child.scope as Scope).width;
    const marks = [...new Set([0, ...open.flatMap((child) => [left(child), right(child)])])].sort((a, b) => a - b);
    const to: number[] = [marks[0]!];
    for (let i = 1; i < marks.length; i++) {
      const grown = open.filter((child) => right(child) === marks[i]).map((child) => to[marks.indexOf(left(child))]! + child.width);
      to.push(Math.max(to[i - 1]! + marks[i]! - marks[i - 1]!, ...grown));
    }
    this.stretch = (x) => {
      let i = marks.length - 1;
      while (i > 0 && marks[i]! > x) i--;
      const rate = i + 1 < marks.length ? (to[i + 1]! - to[i]!) / (marks[i + 1]! - marks[i]!) : 1;
      return to[i]! + (x - marks[i]!) * rate;
    };
    const lineUp = this.ports();
    for (const child of block.children) {
      const closed = child.isOpen ? (child.scope as Scope).width : child.width;
      const low = this.stretch(left(child)), high = this.stretch(left(child) + closed);
      const port = lineUp[child.index]!.sort((a, b) => a - b)[lineUp[child.index]!.length >> 1] ?? child.width / 2;
      const x = child.isOpen ? (low + high - child.width) / 2 : this.stretch(left(child) + port) - port;
      child.x = this.border + Math.max(low, Math.min(x, high - child.width));
    }
  }

  // Where lines leave and enter each child, closed; the one in the middle is to stay straight.
  private ports(): number[][] {
    const found: number[][] = this.block.children.map(() => []);
    for (const [origin, , outlet, , goals] of this.scope.nets) {
      found[origin]?.push(outlet);
      for (const [child, inlet] of goals) found[child]?.push(inlet);
    }
    return found;
  }

  private start(net: Net): number {
    return net[0] < 0 ? 0 : this.scope.rows[net[0]]! + 1;
  }

  private row(child: number): number {
    return child < 0 ? this.last : this.scope.rows[child]!;
  }

  private lane(net: Net, row: number): number {
    return this.border + this.stretch(net[3][row - this.start(net)]!);
  }

  // Where an open block's own net passes its border; in the coordinates of its parent.
  private static port(block: Block, index: number, isOut: boolean): number {
    const inside = ports.get(block)!;
    const net = inside.scope.nets[index]!;
    return block.x + inside.lane(net, isOut ? inside.last : 0);
  }

  private from({ net, from }: Strand): number {
    const [origin, , outlet] = this.scope.nets[net]!;
    if (origin < 0) return this.lane(this.scope.nets[net]!, 0);
    const child = this.block.children[origin]!;
    return from < 0 ? child.x + outlet : Inside.port(child, from, true);
  }

  private to({ net, goal, to }: Strand): number {
    const [index, inlet] = this.scope.nets[net]![4][goal]!;
    if (index < 0) return this.lane(this.scope.nets[net]!, this.last);
    const child = this.block.children[index]!;
    return to < 0 ? child.x + inlet : Inside.port(child, to, false);
  }

  // ---- channels ----

  private hop(channel: number, key: string): Hop {
    let hop = this.hops[channel]!.get(key);
    if (!hop) this.hops[channel]!.set(key, (hop = new Hop()));
    return hop;
  }

  private enter({ strand }: Line): void {
    ports.set(this.block, this);
    const net = this.scope.nets[strand.net]!;
    const [child, , closes] = net[4][strand.goal]!;
    const begin = net[0] < 0 ? 1 : this.start(net), end = this.row(child);
    if (closes) {
      this.risers.set(`${strand.net} ${child}`, 0);
      const out = this.hop(begin, `${strand.net}`), back = this.hop(end, `${strand.net}<`);
      out.meets(out.tops, this.from(strand));
      back.meets(back.bottoms, this.to(strand));
      out.high = back.high = Infinity;
      return;
    }
    for (let channel = begin; channel <= end; channel++) {
      const hop = this.hop(channel, `${strand.net}`);
      hop.meets(hop.tops, channel === begin ? this.from(strand) : this.lane(net, channel - 1));
      hop.meets(hop.bottoms, channel === end ? this.to(strand) : this.lane(net, channel));
    }
  }

  private down(tracks: number[]): void {
    const { block, scope } = this;
    const entered = new Set(this.lines.map(({ strand }) => scope.nets[strand.net]![4][strand.goal]![0]));
    const heights = Array.from({ length: this.last + 1 }, () => 0);
    heights[0] = block.parent ? TITLE : 0;
    for (const child of block.children) heights[this.row(child.index)] = Math.max(heights[this.row(child.index)]!, child.height);
    let y = 0;
    for (let row = 0; row <= this.last; row++) {
      const outer = Math.min(row, this.last + 1 - row);
      let height = tracks[row] ? BEFORE + (tracks[row]! - 1) * TRACK + AFTER : FREE;
      if (!tracks[row] && outer <= 1) height = outer && block.parent ? PADDING + (this.hops[row]!.size ? 3 : 0) : 0;
      this.channels.push(y);
      this.rows.push((y += height));
      y += heights[row]!;
    }
    for (const child of block.children) {
      const row = this.row(child.index);
      child.y = this.rows[row]! + (entered.has(child.index) ? 0 : heights[row]! - child.height);
    }
  }

  private points(strand: Strand): Point[] {
    const net = this.scope.nets[strand.net]!, [origin] = net, [child, , closes] = net[4][strand.goal]!;
    const begin = origin < 0 ? 1 : this.start(net), end = this.row(child);
    const source = this.block.children[origin];
    const points: Point[] = [[this.from(strand), source ? source.y + source.height : 0]];
    const to = this.to(strand), goal: Point = [to, child < 0 ? this.rows[this.last]! : this.block.children[child]!.y];
    const track = (channel: number, key: string) => this.channels[channel]! + BEFORE + this.hops[channel]!.get(key)!.track * TRACK;
    if (closes) {
      const riser = this.risers.get(`${strand.net} ${child}`)!;
      const out = track(begin, `${strand.net}`), back = track(end, `${strand.net}<`);
      points.push([points[0]![0], out], [riser, out], [riser, back], [to, back]);
      return corners([...points, goal]);
    }
    for (let channel = begin; channel <= end; channel++) {
      const hop = this.hops[channel]!.get(`${strand.net}`)!;
      const x = channel === end ? to : this.lane(net, channel), before = points.at(-1)![0];
      const [above, below] = hop.track < 0 ? [this.channels[channel]!, this.rows[channel]! - TIP] : Array(2).fill(track(channel, `${strand.net}`));
      points.push([before, above], [x, below]);
    }
    return corners([...points, goal]);
  }
}

const ports = new WeakMap<Block, Inside>(); // of open blocks, as they were placed last

// Without points on a straight line between their neighbours.
function corners(points: Point[]): Point[] {
  const kept: Point[] = [];
  for (const point of points) {
    const last = kept.at(-1), before = kept.at(-2);
    if (last && Math.abs(last[0] - point[0]) + Math.abs(last[1] - point[1]) < 0.1) continue;
    if (before && [0, 1].some((i) => Math.abs(before[i]! - last![i]!) + Math.abs(last![i]! - point[i]!) < 0.1)) kept.pop();
    kept.push(point);
  }
  return kept;
}

// As layout/tracks.py has it: every hop that is not straight gets a track, so that few cross and none lie on each other.
function assignTracks(hops: Hop[]): number {
  const bent = hops.filter((hop) => hop.high - hop.low > SLANT);
  const debts = new Map(bent.map((hop) => [hop, 0]));
  bent.forEach((a, i) => {
    for (const b of bent.slice(i + 1)) {
      const debt = cost(a, b) - cost(b, a);
      debts.set(a, debts.get(a)! + debt);
      debts.set(b, debts.get(b)! - debt);
    }
  });
  let left = [...bent].sort((a, b) => a.low - b.low || a.high - b.high || 0);
  const order: Hop[] = [];
  while (left.length) {
    const next = left.reduce((best, hop) => (debts.get(hop)! < debts.get(best)! ? hop : best));
    left = left.filter((hop) => hop !== next);
    const taken = order.filter((hop) => hop.low < next.high + TRACK && next.low < hop.high + TRACK).map((hop) => hop.track);
    next.track = Math.max(-1, ...taken) + 1;
    order.push(next);
    for (const hop of left) debts.set(hop, debts.get(hop)! - cost(hop, next) + cost(next, hop));
  }
  return Math.max(-1, ...order.map((hop) => hop.track)) + 1;
}

// Of running one above another: lines crossed, and dearly, lines laid upon each other.
function cost(upper: Hop, lower: Hop): number {
  let found = 0;
  for (const x of lower.tops) found += +(upper.low < x && x < upper.high);
  for (const x of upper.bottoms) {
    found += +(lower.low < x && x < lower.high);
    for (const other of lower.tops) found += 50 * +(Math.abs(x - other) < 4);
  }
  return found;
}
