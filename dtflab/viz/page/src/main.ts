// Brings the pictures of a page to life, in place: each keeps its still until this module has read its data.
//
// Loaded once per page: by a widget without a view in JupyterLab and Notebook 7, by a script in an exported page. It
// asks for nothing but what is on the page.

import { KERNELS, Picture } from "./picture";
import { allocations } from "./views/allocations";
import { cluster } from "./views/cluster";
import { live } from "./views/live";
import { memory } from "./views/memory";
import { placement } from "./views/placement";
import { redrawn } from "./views/redrawn";
import { replay } from "./views/replay";
import { sliders } from "./views/sliders";
import { still } from "./views/still";
import { steps } from "./views/steps";
import { timeline } from "./views/timeline";
import { wire } from "./views/wire";

type View = (picture: Picture, data: any) => void;

const VIEWS: Record<string, View> = {
  allocations,
  cluster,
  live,
  memory,
  placement,
  redrawn,
  replay,
  still,
  steps,
  timeline,
  wire,
};
const OBSERVER = Symbol.for("dtflab pictures"); // of the document; a module of a restarted kernel takes its place

// The way to a kernel: a widget without a view. A page may show notebooks of several kernels.
interface Model {
  get(name: string): string;
  send(message: object): void;
  on(event: string, heard: (message: { picture: string; says: any }) => void): void;
}

function initialize({ model }: { model: Model }): void {
  KERNELS.set(model.get("kernel"), (message) => model.send(message));
  model.on("msg:custom", ({ picture, says }) => document.dispatchEvent(new CustomEvent(`dtflab ${picture}`, { detail: says })));
  document.dispatchEvent(new Event("dtflab kernel"));
  start();
}

function start(): void {
  const page = document as unknown as Record<symbol, MutationObserver | undefined>;
  page[OBSERVER]?.disconnect();
  let waits = false;
  const observer = new MutationObserver(() => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      look();
    });
  });
  page[OBSERVER] = observer;
  observer.observe(document.documentElement, { childList: true, subtree: true });
  look();
}

function look(): void {
  const found = document.querySelectorAll<HTMLScriptElement>(":is(.dtf-picture, .dtf-everywhere):not([data-live]) > script.dtf-data");
  for (const script of found) {
    const root = script.parentElement!;
    root.dataset.live = "begins";
    read(script.textContent ?? "").then(
      (data) => {
        if (data.view === "sliders") sliders(root, data);
        else VIEWS[data.view]?.(new Picture(root, data), data);
        root.dataset.live = data.view;
      },
      (error) => console.error("dtflab: a picture stays still", error),
    );
  }
}

// JSON, or JSON that was deflated and written in base64.
async function read(text: string): Promise<any> {
  const data = JSON.parse(text);
  if (typeof data !== "string") return data;
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

start();

export default { initialize };
