// Opens a page of a file, without a network, as a person would who got it by mail, and reports what can be seen, as JSON
// on stdout. It judges nothing: test_pages.py does.
//
//     node open_page.mjs PAGE SHOTS STEPS [EXPECTED]      (CHROMIUM=path of the browser)
//
// STEPS are those of open_notebook.mjs in pictures. EXPECTED is a JSON file: for each place of the sliders, in their
// order, the code and the HTML that a kernel gives; `differ` are then the places where the page shows something else.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { chromium } from 'playwright-core';
import { inPicture } from './person.mjs';

const [, , file, shots, steps, expected] = process.argv;
const name = basename(file, '.html');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, offline: true });
const page = await context.newPage();
page.setDefaultTimeout(120_000);
const report = { noise: [], requests: [], live: [], stills: 0, differ: [] };
page.on('pageerror', error => report.noise.push(`uncaught: ${error.message}`));
page.on('console', line => ['error', 'warning'].includes(line.type()) && report.noise.push(`console: ${line.text()}`));
page.on('request', request => /^(data|blob):/.test(request.url()) || report.requests.push(request.url()));

try {
  await page.goto(`file://${file}`);
  await page.waitForFunction(() => !document.querySelector('[data-live=begins]'));
  for (const step of JSON.parse(steps)) await act(step);
  report.live = await page.evaluate(() => [...document.querySelectorAll('[data-live]')].map(one => one.dataset.live));
  report.stills = await page.locator('.dtf-still, .dtf-of-still').evaluateAll(all => all.filter(one => one.checkVisibility()).length);
  if (expected) report.differ = await page.evaluate(compared, JSON.parse(readFileSync(expected, 'utf8')));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${shots}/${name}-${colorScheme}.png`, fullPage: true });
  }
  console.log(JSON.stringify(report));
} catch (error) {
  await page.screenshot({ path: `${shots}/${name}-failed.png`, fullPage: true });
  throw new Error(`${error.message}\nseen then: ${shots}/${name}-failed.png\nbrowser's complaints: ${report.noise.join('\n')}`);
} finally {
  await browser.close();
}

async function act({ on, nth, see, shot, ...how }) {
  await inPicture(page, page.locator(on).nth(nth ?? 0), how);
  await page.waitForFunction(text => document.body.innerText.includes(text), see ?? '');
  if (shot) await page.screenshot({ path: `${shots}/${name}-${shot}.png` });
}

// ---- the rest runs in the page ----

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
