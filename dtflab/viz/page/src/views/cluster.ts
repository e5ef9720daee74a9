// A cluster while it is looked at: a line for each task, several that are alike in one that opens, buttons above.
//
// The panel reports to the kernel when it is shown, and every few seconds while it is on the screen; the kernel then
// sends the new numbers. A button acts on the chosen line.

import { element, type Picture } from "../picture";
import { svg } from "../svg";

const HERE = 5000; // milliseconds between two words to the kernel
const NOTED = 10_000; // for which a line keeps the room of what it waited for
const AGAIN = 250; // between the first two, until it answers
const COLUMNS = { // the name of each, and the room that it has from the beginning, in widths of a digit
  task: 11, state: 11, "steps/s": 7, "busy, last 30 s": 17, received: 9, sent: 9, "variables, GPU memory": 16,
};
const HEADS = Object.keys(COLUMNS);
const NUMBERS = new Set(["steps/s", "received", "sent"]);
const ACTS = ["pause", "resume", "stop", "kill", "start", "restart"];
const [WIDTH, HEIGHT] = [90, 18];

interface Line {
  key: string;
  name: string;
  letter: string;
  fill: string;
  ink: string;
  line: string;
  state: string;
  runs: boolean;
  steps: string;
  busy: string;
  received: string;
  sent: string;
  memory: string;
  shares: number[]; // the latest busy shares, in percent
  notes: string[];
  can: string[];
  size: number; // of a line for several tasks: how many
  within: string; // the key of the line into which this one folds
}

interface State {
  title: string;
  rows: Line[];
  says: string;
  kept: number; // how many busy shares are shown
  circle: string; // the drawing of who waits for whom, while some wait in a circle
  note?: string;
}

// What a person has done to a panel, for the output that takes its place when the state of a task has changed.
interface Kept {
  chosen: string;
  open: Set<string>;
  focus: string; // the words of the button that has it, or "line"
}

interface Data extends State {
  stops: { label: string; says: string };
}

const KEPT = new Map<string, Kept>(); // by kernel and picture

// In a saved notebook, whose kernel is gone, the table of the still stays.
export function cluster(picture: Picture, data: Data): void {
  picture.onceItCanAsk(() => live(picture, data));
}

function live(picture: Picture, data: Data): void {
  const lines = new Map<string, Row>();
  const id = `${picture.from.kernel} ${picture.from.picture}`;
  const kept = KEPT.get(id) ?? { chosen: "", open: new Set<string>(), focus: "" };
  KEPT.set(id, kept);
  const open = kept.open;
  let state: State = data;

  const [heading, name, rest] = [element("div", "dtf-cluster-name"), element("b"), element("span")];
  heading.append(name, rest);
  const table = element("table", "dtf-tasks");
  const head = table.createTHead().insertRow();
  for (const [text, room] of Object.entries(COLUMNS)) {
    const cell = element("th");
    cell.style.minWidth = `${room}ch`;
    cell.scope = "col";
    cell.classList.toggle("n", NUMBERS.has(text));
    cell.textContent = text;
    head.append(cell);
  }
  table.append(element("caption"));
  table.caption!.textContent = "Choose a task with a click or with the arrow keys; Enter opens a line of several.";
  const body = table.createTBody();
  const circle = element("div");
  let drawn = "";

  const end = button(data.stops.label, data.stops.says, () => picture.ask({ do: "end" }));
  const stop = button("Interrupt", "Interrupt the cell that runs", () => picture.ask({ do: "interrupt" }));
  const acts = ACTS.map((act) => {
    const made = button("", "", () => picture.ask({ do: act, task: kept.chosen }));
    return { act, made };
  });
  const group = element("span", "dtf-acts");
  group.setAttribute("role", "group");
  group.append(...acts.map(({ made }) => made));
  picture.bar.append(stop, end, group);
  const help = picture.hint("Click a task: pause, stop, kill or restart it");

  const shown = () => state.rows.filter((row) => !row.within || open.has(row.within));

  const toggle = (key: string) => {
    if (!open.delete(key)) open.add(key);
    draw();
  };

  const choose = (key: string) => {
    kept.chosen = key;
    draw();
    lines.get(key)?.root.focus();
  };

  const draw = () => {
    [name.textContent, rest.textContent] = split(state.title);
    const rows = shown();
    if (!rows.some((row) => row.key === kept.chosen)) kept.chosen = "";
    for (const [key, line] of lines) {
      if (rows.some((row) => row.key === key)) continue;
      line.remove();
      lines.delete(key);
    }
    let before: Element | null = null;
    for (const row of rows) {
      const line = lines.get(row.key) ?? new Row(row, () => choose(row.key), toggle);
      lines.set(row.key, line);
      line.draw(row, row.key === (kept.chosen || rows[0]!.key), row.key === kept.chosen, open.has(row.key), history(row.key));
      const next: Element | null = before ? before.nextElementSibling : body.firstElementChild;
      if (next !== line.root) body.insertBefore(line.root, next);
      if (line.root.nextElementSibling !== line.below) line.root.after(line.below);
      before = line.below;
    }
    for (const cell of [...head.cells].slice(0, -1)) { // a column that had to grow stays so: nothing jumps
      if (cell.offsetWidth) cell.style.minWidth = `${cell.offsetWidth}px`;
    }
    const row = rows.find((each) => each.key === kept.chosen);
    help.hidden = row !== undefined;
    for (const { act, made } of acts) {
      made.hidden = !row?.can.includes(act);
      set(made, row ? `${act[0]!.toUpperCase()}${act.slice(1)} ${row.name}` : "");
    }
    if (drawn !== state.circle) circle.innerHTML = drawn = state.circle;
    const says = [state.says, state.note].filter(Boolean).join(" ");
    if (picture.said.textContent !== says) picture.say(says);
  };

  const shares = new Map<string, number[]>();
  const history = (key: string) => shares.get(key) ?? [];
  const take = (said: State) => {
    state = said;
    for (const row of said.rows) shares.set(row.key, [...history(row.key), ...row.shares].slice(-said.kept));
    draw();
  };

  const move = (by: number) => {
    const rows = shown();
    const at = rows.findIndex((row) => row.key === kept.chosen);
    choose(rows[Math.max(0, Math.min(at + by, rows.length - 1))]!.key);
  };
  table.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) move(by);
    else if (event.key === "Enter" && shown().some((row) => row.key === kept.chosen && row.size > 1)) toggle(kept.chosen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  picture.drawing.replaceChildren(heading, table, circle);
  picture.hears(take);
  take(data);
  keepFocus(picture, kept);
  isHere(picture);
}

// Note what has the focus; if that went with the output that was replaced, take it up.
function keepFocus(picture: Picture, kept: Kept): void {
  const { root } = picture;
  if (kept.focus && document.activeElement === document.body) {
    const buttons = [...picture.bar.querySelectorAll("button")];
    const button = buttons.find((each) => each.textContent === kept.focus && !each.hidden);
    (button ?? root.querySelector<HTMLElement>(".dtf-tasks [tabindex='0']"))?.focus();
  }
  root.addEventListener("focusin", ({ target }) => {
    kept.focus = target instanceof HTMLButtonElement ? target.textContent! : "line";
  });
  root.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !root.contains(relatedTarget as Node)) kept.focus = "";
  });
}

// Tell the kernel that the picture is on the screen, now and for as long as it is. Words that come before JupyterLab has
// its subshell wait for the cell to end, so they are repeated until one is answered.
function isHere(picture: Picture): void {
  let isSeen = true, isHeard = false;
  const tell = () => isSeen && !document.hidden && picture.ask({ do: "look" });
  const watcher = new IntersectionObserver(([entry]) => {
    isSeen = entry!.isIntersecting;
    tell();
  });
  watcher.observe(picture.root);
  document.addEventListener("visibilitychange", tell);
  const timer = setInterval(() => {
    if (picture.root.isConnected) return tell();
    clearInterval(timer);
    watcher.disconnect();
    document.removeEventListener("visibilitychange", tell);
  }, HERE);
  const repeat = (wait: number) => {
    if (isHeard || wait > HERE) return;
    tell();
    setTimeout(repeat, wait, 2 * wait);
  };
  picture.hears(() => (isHeard = true));
  repeat(AGAIN);
}

// A line of the table, and below it what its tasks wait for.
class Row {
  readonly root = element("tr");
  readonly below = element("tr", "dtf-notes");
  private noted = -Infinity;
  private readonly cells: HTMLTableCellElement[];
  private readonly badge = element("span", "dtf-badge");
  private readonly name = element("span");
  private readonly opener = element("button", "dtf-open");
  private readonly mark = element("span");
  private readonly busy = element("span");
  private readonly path: SVGPathElement;

  constructor(row: Line, choose: () => void, toggle: (key: string) => void) {
    this.cells = HEADS.map((text) => {
      const cell = this.root.insertCell();
      cell.classList.toggle("n", NUMBERS.has(text));
      return cell;
    });
    this.root.addEventListener("click", choose);
    this.opener.addEventListener("click", (event) => {
      event.stopPropagation();
      toggle(row.key);
    });
    this.opener.tabIndex = -1; // Enter does the same
    const spark = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
    this.path = svg("path");
    spark.append(this.path);
    this.cells[0]!.append(this.opener, this.badge, this.name);
    this.cells[1]!.append(this.mark);
    this.cells[3]!.append(spark, this.busy);
    this.busy.className = "dtf-share";
    this.below.hidden = true;
    this.below.insertCell();
    this.below.insertCell().colSpan = HEADS.length - 1;
  }

  draw(row: Line, isStop: boolean, isChosen: boolean, isOpen: boolean, shares: number[]): void {
    this.root.tabIndex = isStop ? 0 : -1;
    this.root.setAttribute("aria-selected", String(isChosen));
    this.root.classList.toggle("within", row.within !== "");
    this.opener.hidden = row.size === 1;
    set(this.opener, isOpen ? "▾" : "▸");
    this.opener.setAttribute("aria-label", `${isOpen ? "Fold" : "Open"} ${row.name}`);
    this.opener.setAttribute("aria-expanded", String(isOpen));
    set(this.badge, row.letter);
    this.badge.style.background = row.fill;
    this.badge.style.color = row.ink;
    set(this.name, row.name);
    set(this.mark, `${row.runs ? "●" : "○"} ${row.state}`);
    set(this.cells[2]!, row.steps);
    set(this.busy, row.busy);
    this.path.setAttribute("d", area(shares));
    this.path.setAttribute("fill", row.fill);
    this.path.setAttribute("stroke", row.line);
    set(this.cells[4]!, row.received);
    set(this.cells[5]!, row.sent);
    set(this.cells[6]!, row.memory);
    if (row.notes.length) this.noted = performance.now();
    const lately = performance.now() - this.noted < NOTED; // waits come and go: what is below would jump
    const notes = this.below.cells[1]!, keepsRoom = row.runs && !this.below.hidden && lately;
    notes.style.height = keepsRoom ? `${notes.offsetHeight}px` : "";
    this.below.hidden = row.notes.length === 0 && !keepsRoom;
    set(notes, row.notes.join("\n"));
  }

  remove(): void {
    this.root.remove();
    this.below.remove();
  }
}

// The area below shares in percent, the latest at the right edge.
function area(shares: number[]): string {
  const last = shares.length - 1;
  const points = shares.map((share, i) => `${WIDTH - ((last - i) * WIDTH) / 59},${HEIGHT - 1 - (share / 100) * (HEIGHT - 2)}`);
  return last < 1 ? "" : `M${WIDTH - (last * WIDTH) / 59},${HEIGHT - 1}L${points.join("L")}L${WIDTH},${HEIGHT - 1}Z`;
}

function button(label: string, says: string, run: () => void): HTMLButtonElement {
  const made = element("button", "dtf-button");
  made.textContent = label;
  made.title = says;
  made.addEventListener("click", run);
  return made;
}

function set(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

function split(title: string): [string, string] {
  const at = title.indexOf(": ");
  return [title.slice(0, at), title.slice(at)];
}
