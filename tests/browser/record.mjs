// Drives a page as a person would and takes a screenshot of each moment: NNN.png in a folder, and on stdout, as JSON, for
// how many milliseconds each of them is to be shown. tests/browser/gallery.py makes moving pictures of them.
//
//     node record.mjs WHERE FOLDER WIDTH HEIGHT STEPS      (CHROMIUM=path of the browser)
//
// WHERE is a page's file, or the address of a notebook in a JupyterLab: then all cells run, and only the
// notebook is shown, without the cells above that show nothing, once the first step's element is there. STEPS are those of open_notebook.mjs in pictures, each
// with "rest", for how long its result is shown (900 ms).
import { chromium } from 'playwright-core';
import { inPicture } from './person.mjs';

const [, , where, folder, width, height, steps] = process.argv;
const ARROW = "url('data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 width=%2220%22 height=%2224%22><path d=%22M2 2v17l4.5-4 3 7 3-1.300-3-6.700h6z%22 fill=%22black%22 stroke=%22white%22 stroke-width=%221.5%22/></svg>')";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'],
});
const page = await browser.newPage({ viewport: { width: Number(width), height: Number(height) } });
page.setDefaultTimeout(120_000);
const durations = [];
let mouse = [Number(width) * 0.6, Number(height) * 0.8];
const actions = JSON.parse(steps);
let clip;
try {
  if (where.startsWith('http')) await runInLab();
  else await openPage();
  if (actions.length) await page.evaluate(drawnMouse, ARROW);
  await page.waitForFunction(() => !document.querySelector('[data-live=begins]'));
  await page.mouse.move(...mouse);
  await shoot(900);
  for (const { rest = 900, on, nth, see, ...how } of actions) {
    await act(page.locator(on).nth(nth ?? 0), how, see);
    await shoot(rest);
  }
  console.log(JSON.stringify(durations));
} finally {
  await browser.close();
}

async function openPage() {
  await page.goto(`file://${where}`);
  await page.addStyleTag({ content: '.jp-Cell-inputWrapper, .jp-OutputPrompt { display: none !important; } main { padding: 0; }' });
}

async function runInLab() {
  await page.goto(where, { waitUntil: 'domcontentloaded' });
  await page.waitForSelector('#jp-main-statusbar :text("| Idle")');
  await page.click('.lm-MenuBar-itemLabel:text-is("Run")');
  await page.click('.lm-Menu-itemLabel:text-is("Run All Cells")');
  await page.locator(actions[0].on).nth(actions[0].nth ?? 0).waitFor({ state: 'attached' });
  await page.addStyleTag({ content: '.jp-cell-toolbar, .jp-CodeCell:not(:last-child, :has(.jp-OutputArea-child)) { display: none !important; }' });
  clip = await page.locator('.jp-Notebook').boundingBox();
}

async function shoot(milliseconds) {
  await page.screenshot({ path: `${folder}/${String(durations.length).padStart(3, '0')}.png`, clip });
  durations.push(milliseconds);
}

// The mouse goes there in sight, then does it.
async function act(element, how, see) {
  const box = await element.boundingBox();
  const at = how.at ?? [0.5, 0.5];
  const end = [box.x + at[0] * box.width, box.y + at[1] * box.height];
  const isFar = Math.hypot(end[0] - mouse[0], end[1] - mouse[1]) > 8;
  for (let i = 1; isFar && i <= 4; i++) {
    await page.mouse.move(...[0, 1].map(k => mouse[k] + ((end[k] - mouse[k]) * i) / 4));
    await shoot(70);
  }
  mouse = how.to ? [box.x + how.to[0] * box.width, box.y + how.to[1] * box.height] : end;
  await inPicture(page, element, how);
  await page.waitForFunction(text => document.body.innerText.includes(text), see ?? '');
  await page.waitForTimeout(250); // boxes slide to their places
}

// A browser without a screen draws no mouse.
function drawnMouse(arrow) {
  const mouse = document.createElement('div');
  mouse.style.cssText = `position:fixed;z-index:99999;width:20px;height:24px;pointer-events:none;background:${arrow}`;
  document.body.append(mouse);
  document.addEventListener('mousemove', event => {
    mouse.style.left = `${event.clientX - 2}px`;
    mouse.style.top = `${event.clientY - 2}px`;
  }, true);
}
