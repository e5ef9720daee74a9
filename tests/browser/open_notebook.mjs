// Opens a notebook in a running JupyterLab or Notebook 7 as a person would, runs all cells, and reports what can be seen, as JSON on
// stdout. It judges nothing: test_browser.py does.
//
//     node open_notebook.mjs URL TOKEN NOTEBOOK SHOTS [ACTION [STEPS]]      (CHROMIUM=path of the browser)
//
// ACTION is `run`; or the label of a button to press once a cell has printed `waiting`; or `start`: then the steps are
// taken while the cells run; or `look`: then nothing is run.
// STEPS is what the person does then, a JSON list: {"slider": 0, "key": "ArrowRight"} or {"replace": "text of a cell",
// "by": "its new text"}, after which all cells run again; or something in a picture, {"on": "canvas", "do": "click", "at":
// [0.5, 0.2]}, where "do" is click, hover, focus, wheel, drag, type or press (the "key"). "at" is a point in shares of the
// element's size, "to" where a drag ends, "held" a key that is held. Nobody touches anything where "do" is change (wait
// until a line is another one), measure, texts or outlines (note in `measured` where all such elements stand, what they
// say, or how the outlines were drawn on canvases since the last time).
// {"width": 1920} makes the window that wide. {"audit": true} has axe-core judge all outputs in each theme, and drawings
// are only counted. Each step may have "see", what must be seen before the next, and "shot", the name of a screenshot.
//
// Found the hard way: “Run All” before the kernel is connected does nothing, so the status bar is asked first; `body`
// counts as hidden; in a timeout a screenshot says more than the message.
import { chromium } from 'playwright-core';
import { audited, inPicture } from './person.mjs';

const [, , url, token, notebook, shots, action = 'run', steps = '[]'] = process.argv;
const WIDTH = 1280;
const TALLEST = 12_000; // of a window, in pixels
// The kernel is connected: JupyterLab's status bar says so, Notebook 7 then fades out its own line.
const IDLE = '#jp-main-statusbar :text("| Idle"), body:has(.jp-NotebookKernelStatus-fade) .jp-Notebook';
const name = notebook.replace(/\.ipynb$/, '');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'],
});
const page = await browser.newPage({ viewport: { width: WIDTH, height: 1400 } });
page.setDefaultTimeout(300_000); // the machine may be busy
const measured = [];
const noise = []; // what the browser's console and network complain about
await page.addInitScript(() => {
  const strokeRect = CanvasRenderingContext2D.prototype.strokeRect;
  window.outlines = new Set();
  CanvasRenderingContext2D.prototype.strokeRect = function (...box) {
    window.outlines.add(this.lineWidth > 1 ? (this.getLineDash().length ? 'dashed' : 'solid') : 'thin');
    strokeRect.apply(this, box);
  };
  window.lowest = selector => Math.max(...[...document.querySelectorAll(selector)].map(e => e.getBoundingClientRect().bottom));
});
page.on('pageerror', error => noise.push(`uncaught: ${error.message}`));
page.on('console', line => line.type() === 'error' && noise.push(`console: ${line.text()}`));
page.on('requestfailed', request => noise.push(`request failed: ${request.url()} ${request.failure()?.errorText}`));

try {
  await page.goto(`${url}${notebook}?token=${token}&reset`, { waitUntil: 'domcontentloaded' });
  await page.waitForSelector(IDLE, { timeout: 300_000 });
  const started = Date.now();
  if (action === 'start') await menu('Run', 'Run All Cells');
  else if (action !== 'look') await runAll();
  for (const step of JSON.parse(steps)) await act(step);
  if (action === 'start') await page.waitForFunction(allCellsRan, null, { timeout: 600_000, polling: 100 });
  const report = { seconds: (Date.now() - started) / 1000, noise, measured, themes: {} };
  for (const theme of ['Light', 'Dark']) {
    await menu('Settings', 'Theme', `JupyterLab ${theme}`);
    await page.waitForSelector(`body[data-jp-theme-light="${theme === 'Light'}"]`, { state: 'attached' });
    await showEverything();
    const audit = steps.includes('"audit"');
    const seen = (report.themes[theme.toLowerCase()] = await page.evaluate(whatIsSeen, !audit));
    if (audit) seen.axe = await audited(page, '.jp-OutputArea-output');
    await page.screenshot({ path: `${shots}/${name}-${theme.toLowerCase()}.png` });
  }
  console.log(JSON.stringify(report));
} catch (error) {
  await page.screenshot({ path: `${shots}/${name}-failed.png` });
  throw new Error(`${error.message}\nseen then: ${shots}/${name}-failed.png\nbrowser's complaints: ${noise.join('\n')}`);
} finally {
  await browser.close();
}

async function runAll() {
  await menu('Run', 'Run All Cells');
  if (action !== 'run') {
    await page.waitForSelector('.jp-OutputArea-output:has-text("waiting")');
    await page.click(`button:has-text("${action}")`);
  }
  await page.waitForFunction(allCellsRan, null, { timeout: 600_000, polling: 100 });
}

async function act({ audit, width, slider, key, replace, by, see, on, shot, ...how }) {
  if (audit) return;
  if (width) await page.setViewportSize({ width, height: 1400 });
  else if (how.do === 'change') await changes(on);
  else if (how.do === 'measure') measured.push(await page.locator(on).evaluateAll(placed));
  else if (how.do === 'outlines') measured.push(await page.evaluate(() => [[...outlines].sort(), outlines.clear()][0]));
  else if (how.do === 'texts') measured.push(await page.locator(on).allTextContents());
  else if (on) await inPicture(page, page.locator(on).nth(how.nth ?? 0), { key, by, ...how });
  else if (key) {
    await page.locator('.noUi-handle').nth(slider).focus();
    await page.keyboard.press(key);
  } else {
    await page.locator('.jp-CodeCell', { hasText: replace }).locator('.cm-content').first().click();
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText(by);
    await page.evaluate(() => (window.lastBusy = 0));
    await runAll();
  }
  await page.waitForFunction(text => document.querySelector('.jp-Notebook').innerText.includes(text), see ?? '', { timeout: 60_000 });
  if (shot) await page.screenshot({ path: `${shots}/${name}-${shot}.png` });
}

async function changes(line) {
  await page.waitForSelector(line, { state: 'attached' });
  const isAnother = ([line, before]) => ![before, undefined].includes(document.querySelector(line)?.getAttribute('d'));
  const before = await page.evaluate(line => (document.querySelector(line).scrollIntoView({ block: 'center' }), document.querySelector(line).getAttribute('d')), line);
  await page.waitForFunction(isAnother, [line, before]);
}

async function menu(bar, ...items) {
  await page.click(`.lm-MenuBar-itemLabel:text-is("${bar}")`);
  for (const item of items.slice(0, -1)) await page.hover(`.lm-Menu-itemLabel:text-is("${item}")`);
  await page.click(`.lm-Menu-itemLabel:text-is("${items.at(-1)}")`);
}

// Makes the window as tall as the notebook, so that every output is drawn, and goes to its top, since running has
// scrolled it to its end; again until all is in the window and still: a new theme's styles come when they come, and on
// a busy machine a layout from before them is measured first. Of a notebook that is taller than any window, all never is.
async function showEverything() {
  await page.waitForFunction(() => !document.querySelector('.jp-Notebook').innerText.includes('Loading widget...'));
  const deadline = Date.now() + 120_000;
  let height;
  do {
    height = await page.evaluate(() => lowest('.jp-Cell') + document.querySelector('.jp-WindowedPanel-outer').scrollTop);
    await page.setViewportSize({ width: WIDTH, height: Math.min(Math.ceil(height) + 60, TALLEST) });
    await page.evaluate(settled);
    await page.waitForTimeout(500); // a theme's colours fade in
  } while (height + 60 < TALLEST && !(await page.evaluate(() => lowest('.jp-Cell') <= lowest('.jp-WindowedPanel-outer'))) && Date.now() < deadline);
}

// ---- the rest runs in the page ----

// Where elements stand within what holds them: left, top, width.
function placed(elements) {
  return elements.map(element => [element.offsetLeft, element.offsetTop, element.offsetWidth, element.offsetHeight]);
}

// True when every code cell has its number, or when nothing has been running for two seconds: an error stops the rest.
function allCellsRan() {
  const prompts = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')].map(p => p.textContent);
  const numbered = prompts.filter(text => /^\[\d+\]:$/.test(text)).length;
  if (!window.lastBusy || !numbered || prompts.includes('[*]:')) window.lastBusy = Date.now();
  return numbered && (numbered === prompts.length || Date.now() - window.lastBusy > 2000);
}

// Waits until the notebook stays at its top with all its images decoded.
async function settled() {
  const panel = document.querySelector('.jp-WindowedPanel-outer');
  await document.fonts.ready;
  await Promise.all([...document.querySelectorAll('.jp-OutputArea img')].map(image => image.decode().catch(() => {})));
  for (let still = 0; still < 5; ) {
    still = panel.scrollTop === 0 ? still + 1 : 0;
    panel.scrollTop = 0;
    await new Promise(requestAnimationFrame);
  }
}

function whatIsSeen(describes) {
  const outputs = [...document.querySelectorAll('.jp-Notebook .jp-OutputArea-output')];
  const text = kind => outputs.filter(output => output.dataset.mimeType === kind).map(output => output.innerText);
  const all = selector => outputs.flatMap(output => [...output.querySelectorAll(selector)]);
  const outermost = all('svg').filter(svg => !svg.parentElement.closest('svg') && !svg.ariaHidden && svg.clientWidth > 48);
  const shown = all('img').filter(image => getComputedStyle(image).display !== 'none');
  return {
    background: getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor,
    stdout: text('application/vnd.jupyter.stdout'),
    stderr: text('application/vnd.jupyter.stderr'), // tracebacks too
    notRun: [...document.querySelectorAll('.jp-CodeCell')].filter(c => c.innerText.startsWith('[ ]')).map(c => c.innerText),
    notShown: text('text/plain').filter(shown => /^<Figure size|widget|untrusted/i.test(shown)),
    shown: outputs.filter(output => output.checkVisibility()).map(output => output.innerText),
    buttons: all('button').map(button => button.innerText.trim()),
    svgs: describes ? outermost.map(describeSvg) : outermost.length,
    canvases: all('canvas').filter(canvas => canvas.checkVisibility()).map(describeCanvas),
    images: shown.map(image => ({
      type: /^data:([^;,]*)/.exec(image.src)?.[1] ?? image.src,
      size: [image.clientWidth, image.clientHeight],
      drawn: image.complete && image.naturalWidth > 0,
      inWindow: inWindow(image),
    })),
  };

  // How many pixels are painted, in how many colours, and whether it has a pixel for each of the screen's.
  function describeCanvas(canvas) {
    const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    const painted = pixels.filter(pixel => pixel >>> 24);
    return {
      view: canvas.closest('[data-live]')?.dataset.live ?? '',
      size: [canvas.clientWidth, canvas.clientHeight],
      painted: painted.length / pixels.length,
      colours: new Set(painted).size,
      isSharp: canvas.width >= Math.floor(canvas.clientWidth * devicePixelRatio),
      inWindow: inWindow(canvas),
    };
  }

  function describeSvg(svg) {
    const frame = svg.getBoundingClientRect();
    const shapes = [...svg.querySelectorAll('rect, path, circle, ellipse, line, polygon, polyline')].filter(isSeen);
    const texts = [...svg.querySelectorAll('text')].filter(isSeen);
    const boxes = texts.map(t => t.getBoundingClientRect());
    const outside = box => box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
    const faint = texts.map(t => [t.textContent, contrast(t)]).filter(([, ratio]) => ratio < 3);
    const overlapping = boxes.flatMap((a, i) => boxes.slice(i + 1).map((b, j) => [i, i + 1 + j, shared(a, b)]));
    return {
      label: svg.getAttribute('aria-label') ?? svg.querySelector('title')?.textContent ?? '',
      size: [frame.width, frame.height],
      inWindow: inWindow(svg),
      shapes: shapes.length,
      texts: texts.map(t => t.textContent),
      outside: texts.filter((_, i) => outside(boxes[i])).map(t => t.textContent),
      overlapping: overlapping.filter(o => o[2] > 0.3).map(([i, j]) => [texts[i].textContent, texts[j].textContent]),
      faint: faint.map(([label, ratio]) => `${label} (${ratio.toFixed(1)}:1)`),
    };
  }

  function inWindow(element) {
    const box = element.getBoundingClientRect();
    const cells = document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect();
    return box.top >= cells.top && box.bottom <= cells.bottom && box.left >= cells.left && box.right <= cells.right;
  }

  function isSeen(element) {
    const { width, height } = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return width + height > 0 && style.visibility === 'visible' && style.display !== 'none' && style.opacity > 0;
  }

  // The part of the smaller box that the other one covers.
  function shared(a, b) {
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    return width > 0 && height > 0 ? (width * height) / Math.min(a.width * a.height, b.width * b.height) : 0;
  }

  // WCAG contrast of a text against what is painted below it. Of 21 points the seventh worst counts: thin lines that
  // pass behind a word leave it readable, a text that is half on another colour is not. Nothing can be said of the
  // colours of what is not on the screen: a text below the window is scrolled into it.
  function contrast(text) {
    if (!inWindow(text)) text.scrollIntoView({ block: 'center' });
    const box = text.getBoundingClientRect();
    const points = [0.25, 0.5, 0.75].flatMap(v => [...Array(7).keys()].map(i => [(i + 0.5) / 7, v]));
    const ratios = points.map(([u, v]) => contrastAt(text, box.left + u * box.width, box.top + v * box.height));
    document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0;
    return ratios.sort((a, b) => a - b)[6];
  }

  function contrastAt(text, x, y) {
    const below = document.elementsFromPoint(x, y).filter(e => !text.contains(e));
    const layers = [...below.flatMap(e => paints(e, x, y)).filter(c => c && c[3] > 0.05), [255, 255, 255, 1]];
    const opaque = layers.findIndex(c => c[3] > 0.99);
    const ground = layers.slice(0, opaque + 1).reduceRight((under, over) => blend(over, under));
    const [high, low] = [luminance(blend(faded(text, 'fill'), ground)), luminance(ground)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  }

  // What an element paints at a point, uppermost first.
  function paints(element, x, y) {
    if (!(element instanceof SVGElement)) return [rgba(getComputedStyle(element).backgroundColor)];
    if (!(element instanceof SVGGeometryElement)) return [];
    const point = new DOMPoint(x, y).matrixTransform(element.getScreenCTM().inverse());
    return [
      element.isPointInStroke(point) && faded(element, 'stroke'),
      element.isPointInFill(point) && faded(element, 'fill'),
    ];
  }

  function faded(shape, part) {
    const style = getComputedStyle(shape);
    const colour = rgba(style[part]);
    return colour && [...colour.slice(0, 3), colour[3] * style.opacity * style[`${part}Opacity`]];
  }

  function rgba(colour) {
    const numbers = colour.startsWith('rgb') && colour.match(/[\d.]+/g)?.map(Number);
    return numbers ? [...numbers.slice(0, 3), numbers[3] ?? 1] : null;
  }

  function blend(over, under) {
    return [0, 1, 2].map(i => over[i] * over[3] + under[i] * (1 - over[3])).concat(1);
  }

  function luminance(colour) {
    const [r, g, b] = colour.map(c => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
}
