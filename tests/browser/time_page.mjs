// Times what a person does to the live picture of a page, and prints milliseconds as JSON: of each action, and the mean
// time on the CPU, all work of the page's thread for it, which another program on the machine does not make longer.
//
//     node time_page.mjs PAGE        (CHROMIUM=path of the browser)
//
// Of a placement: opening each of the first 60 scopes, from the click to a page whose layout is done. Of a timeline:
// from one frame to the next while it pans, zoomed in a little, for 120 frames.
import { chromium } from 'playwright-core';

const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1400 } });
  page.setDefaultTimeout(300_000);
  await page.goto(`file://${process.argv[2]}`);
  await page.waitForSelector('.dtf-picture[data-live]:not([data-live=begins])');
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => (await devtools.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
  const before = await worked();
  const found = await page.evaluate(times);
  console.log(JSON.stringify({ times: found, cpu: (1000 * ((await worked()) - before)) / found.length }));
} finally {
  await browser.close();
}

async function times() {
  const picture = document.querySelector('.dtf-picture');
  return picture.dataset.live === 'placement' ? opening() : panning();

  async function opening() {
    const found = [];
    const closed = () => [...document.querySelectorAll('.box-of[aria-expanded=false]')];
    while (found.length < 60 && closed().length) {
      const box = closed()[Math.floor(closed().length / 2)];
      const begun = performance.now();
      box.dispatchEvent(new MouseEvent('click', { bubbles: true }));
      document.body.getBoundingClientRect();
      found.push(performance.now() - begun);
      await new Promise(requestAnimationFrame);
    }
    return found;
  }

  async function panning() {
    const press = key => picture.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    for (let i = 0; i < 3; i++) press('w');
    const found = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < 120; i++) {
      press(i % 20 < 10 ? 'd' : 'a');
      const now = await new Promise(requestAnimationFrame);
      found.push(now - last);
      last = now;
    }
    return found;
  }
}
