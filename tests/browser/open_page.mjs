// Opens a page of a file, without a network, as a person would who got it by mail, and reports what can be seen, as JSON
// on stdout. It judges nothing: test_pages.py does.
//
//     node open_page.mjs PAGE SHOTS STEPS [EXPECTED]      (CHROMIUM=path of the browser)
//
// MEDIA in the environment is what the reader's system asks for, as playwright's emulateMedia takes it; `moves` is then
// what moves of itself, `faint` are lines that the page swallows, `unavailable` what can't be used, with the reason,
// `broken` words of printed outputs that go on in the next line though they have room in one, and `over` are the pixels
// by which it is wider than the window; `boxes` has what scrolls in a box of its own, its width, and the box's. `cards` says of each card that was shown for a hover whether it lay over that.
// STEPS are those of open_notebook.mjs in pictures, its audit, of the outputs or of {"audit": "PART"}, {"top": true}: put
// into `tops` where the drawing begins in its picture, {"folds": true}: put into `folds` where the names of a timeline's
// rows that fold stand, and {"width": 1920}: make the window that wide, and put into `wide` how large the pictures are
// then; of a step with "saves" the file that the page then saves goes into `saved`. EXPECTED is a JSON file: for each
// place of the sliders, in their order, the code and the HTML that a kernel gives; `differ` are then the places where the
// page shows something else.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { chromium } from 'playwright-core';
import { audited, inPicture } from './person.mjs';

const [, , file, shots, steps, expected] = process.argv;
const name = basename(file, '.html');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, offline: true });
const page = await context.newPage();
page.setDefaultTimeout(120_000);
const report = { noise: [], requests: [], live: [], stills: 0, differ: [], moves: 0, faint: [], buttons: [], saved: [], unavailable: [], broken: [], cards: [], tops: [], folds: [], sliders: [], axe: [], wide: {}, over: 0, boxes: [] };
const media = JSON.parse(process.env.MEDIA ?? '{}');
page.on('pageerror', error => report.noise.push(`uncaught: ${error.message}`));
page.on('console', line => ['error', 'warning'].includes(line.type()) && report.noise.push(`console: ${line.text()}`));
page.on('request', request => /^(data|blob):/.test(request.url()) || report.requests.push(request.url()));

try {
  await page.emulateMedia(media);
  await page.goto(`file://${file}`);
  await allLive();
  const audit = JSON.parse(steps).find(step => step.audit)?.audit;
  const parts = audit === true ? ['body'] : [audit];
  for (const step of JSON.parse(steps))
    if (step.on || step.width) await act(step).catch(error => { throw new Error(`${JSON.stringify(step)}: ${error.message}`); });
  await allLive(); // a step may have put another picture in place
  report.live = await page.evaluate(() => [...document.querySelectorAll('[data-live]')].map(one => one.dataset.live));
  report.stills = await page.locator('.dtf-still, .dtf-of-still').evaluateAll(all => all.filter(one => one.checkVisibility()).length);
  report.buttons = await page.locator('.dtf-button').allInnerTexts();
  report.unavailable = await page.locator('[aria-disabled=true], select:disabled').evaluateAll(all => all.map(one => [one.ariaLabel ?? one.innerText, one.title]));
  report.broken = await page.evaluate(broken);
  report.sliders = await page.locator('.dtf-slider').evaluateAll(all => all.map(one => one.value));
  report.moves = await page.evaluate(moves);
  report.over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  report.boxes = await page.locator('.scroll').evaluateAll(all => all.map(one => [one.ariaLabel, one.scrollWidth, one.clientWidth]));
  if (expected) report.differ = await page.evaluate(compared, JSON.parse(readFileSync(expected, 'utf8')));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ ...media, colorScheme });
    report.faint.push(...await page.evaluate(faint));
    if (audit) report.axe.push(...(await audited(page, ...parts)));
    await page.screenshot({ path: `${shots}/${name}-${colorScheme}.png`, fullPage: true });
  }
  console.log(JSON.stringify(report));
} catch (error) {
  await page.screenshot({ path: `${shots}/${name}-failed.png`, fullPage: true });
  throw new Error(`${error.message}\nseen then: ${shots}/${name}-failed.png\nbrowser's complaints: ${report.noise.join('\n')}`);
} finally {
  await browser.close();
}

// Wait until each picture that has data is live, or nothing but a still.
async function allLive() {
  const begins = ':is(.dtf-picture, .dtf-everywhere):not([data-live]) > script.dtf-data, [data-live=begins]';
  await page.waitForFunction(begins => !document.querySelector(begins), begins);
}

async function act({ on, nth, width, see, shot, saves, top, folds, ...how }) {
  const saved = saves && page.waitForEvent('download');
  if (on) await inPicture(page, page.locator(on).nth(nth ?? 0), how);
  if (saved) report.saved.push(readFileSync(await (await saved).path(), 'utf8'));
  if (how.do === 'hover') report.cards.push(...await page.locator(on).nth(nth ?? 0).evaluate(covers));
  if (top) report.tops.push(await page.locator(on).evaluate(begins));
  if (width) {
    await page.setViewportSize({ width, height: 1000 });
    report.wide[width] = await page.evaluate(sizes);
  }
  await page.waitForFunction(text => document.body.innerText.includes(text), see ?? '');
  if (folds) report.folds.push(await page.evaluate(labels));
  if (shot) await page.screenshot({ path: `${shots}/${name}-${shot}.png` });
}

// ---- the rest runs in the page ----

// How far below the top of its picture the drawing begins.
function begins(element) {
  const picture = element.closest('.dtf-picture');
  return picture.querySelector('.dtf-drawing').getBoundingClientRect().top - picture.getBoundingClientRect().top;
}

// The words at the rows that fold, each with where it stands.
function labels() {
  const texts = [...document.querySelectorAll('.fold text, .unfolded text')].filter(text => /^[▸▾]/.test(text.textContent));
  return texts.filter(text => text.checkVisibility()).map(text => [text.textContent, text.getBoundingClientRect().top]);
}

// For each card that is shown, whether it lies over the element.
function covers(element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const boxes = [...document.querySelectorAll('.dtf-card:not([hidden])')].map(card => card.getBoundingClientRect());
  return boxes.map(box => box.left < right && left < box.right && box.top < bottom && top < box.bottom);
}

// Puts the sliders to each of their places. HTML is compared as the browser writes it, whatever quotes it came with.
function compared(places) {
  const sliders = [...document.querySelectorAll('.dtf-knob input')];
  const differ = [];
  places.forEach(([code, html], place) => {
    for (const slider of [...sliders].reverse()) {
      const count = Number(slider.max) + 1;
      slider.value = place % count;
      place = Math.floor(place / count);
      slider.dispatchEvent(new Event('input'));
    }
    const wanted = document.createElement('div');
    wanted.innerHTML = html;
    const shown = document.querySelector('.dtf-explored').innerHTML;
    if (shown !== wanted.innerHTML || document.querySelector('.dtf-sliders-of-page code').textContent !== code) differ.push(code);
  });
  return differ;
}

// Of each live picture: the room that it has, its size, the sizes of its smallest and largest text, in pixels, and the
// texts that end outside of it.
async function sizes() {
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  return [...document.querySelectorAll('[data-live]:has(.dtf-drawing > svg)')].map(root => {
    const drawing = root.querySelector('.dtf-drawing'), svg = drawing.querySelector(':scope > svg');
    const texts = [...svg.querySelectorAll('text')].filter(text => text.checkVisibility() && text.textContent);
    const heights = texts.map(text => parseFloat(getComputedStyle(text).fontSize) * Math.abs(text.getScreenCTM().d));
    const { width, height, right } = svg.getBoundingClientRect();
    const hints = [...root.querySelectorAll('.dtf-help')].map(hint => { // how long the last line is, of the first
      const range = document.createRange();
      range.selectNodeContents(hint);
      const lines = [...range.getClientRects()];
      return lines.at(-1)?.width / lines[0]?.width;
    });
    return { view: root.dataset.live, hints: hints.filter(Boolean), room: drawing.clientWidth, needs: drawing.scrollWidth, width, height,
      texts: [Math.min(...heights), Math.max(...heights)],
      outside: texts.filter(text => text.getBoundingClientRect().right > right).map(text => text.textContent) };
  });
}

function broken() {
  const found = [];
  for (const pre of document.querySelectorAll('.jp-OutputArea-output pre')) {
    const words = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT), range = document.createRange();
    while (words.nextNode())
      for (const { 0: word, index } of words.currentNode.data.matchAll(/\S+/g)) {
        range.setStart(words.currentNode, index);
        range.setEnd(words.currentNode, index + word.length);
        const lines = [...range.getClientRects()];
        if (lines.length > 1 && lines.reduce((sum, { width }) => sum + width, 0) < pre.clientWidth) found.push(word);
      }
  }
  return found;
}

// How many animations run, and pictures that are drawn differently two frames later.
async function moves() {
  const running = document.getAnimations().length;
  const drawn = () => [...document.querySelectorAll('.dtf-drawing svg')].map(svg => svg.outerHTML);
  const before = drawn();
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  return running + drawn().filter((svg, i) => svg !== before[i]).length;
}

// Lines with a contrast to the picture's ground below 3:1, apart from those that are faint on purpose (test_gallery.py).
function faint() {
  const channels = colour => colour.match(/[\d.]+/g)?.slice(0, 3).map(Number);
  const light = colour => {
    const [r, g, b] = channels(colour).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const svg of document.querySelectorAll('.dtf-drawing svg')) {
    const ground = getComputedStyle(svg.querySelector('.card')).fill;
    for (const line of svg.querySelectorAll('path, rect, line, circle')) {
      const { stroke, strokeWidth } = getComputedStyle(line);
      if (!/^rgb/.test(stroke) || stroke === ground || !parseFloat(strokeWidth)) continue;
      const [high, low] = [light(stroke), light(ground)].sort((a, b) => b - a);
      const contrast = (high + 0.05) / (low + 0.05);
      if (contrast < 3 && !line.closest('.grid, .hatch, .stripe, .halo')) found.push(`${line.getAttribute('class')} ${stroke} on ${ground}`);
    }
  }
  return [...new Set(found)];
}
