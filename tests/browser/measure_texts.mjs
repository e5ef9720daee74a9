// Opens pages with a picture each and prints as JSON where their texts stand: of each page those that are wider than was
// reckoned can be found from `texts`, and here those that lie upon another one, leave their page, or the box they are in.
//
//     node measure_texts.mjs REGULAR BOLD PAGE...        (CHROMIUM=path of the browser)
//
// REGULAR and BOLD are files of the font that stands in for Helvetica.
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [, , regular, bold, ...pages] = process.argv;
const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
const face = (file, weight) =>
  `@font-face{font-family:'Helvetica Neue';font-weight:${weight};src:url(data:font/any;base64,${readFileSync(file).toString('base64')})}`;
const content = `${face(regular, '400')}${face(bold, '600 700')}`;
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1400 } });
  const found = {};
  for (const path of pages) {
    await page.goto(`file://${path}`);
    await page.addStyleTag({ content });
    found[path] = await page.evaluate(measured);
  }
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}

async function measured() {
  await Promise.all(['400', '600'].map(weight => document.fonts.load(`${weight} 12px 'Helvetica Neue'`)));
  const svg = document.querySelector('.dtf-picture svg, .dtf-page svg');
  const frame = svg.getBoundingClientRect();
  const unit = frame.width / svg.viewBox.baseVal.width; // pixels
  const texts = [...svg.querySelectorAll('text')].filter(text => text.textContent.trim() && text.getBoundingClientRect().width);
  const boxes = texts.map(ink);
  const rects = [...svg.querySelectorAll('rect:not(.card)')].map(rect => rect.getBoundingClientRect());
  const words = i => texts[i].textContent;
  const pairs = boxes.flatMap((a, i) => boxes.slice(i + 1).flatMap((b, j) => (shared(a, b) > unit ? [[words(i), words(i + 1 + j)]] : [])));
  return {
    texts: texts.map((text, i) => ({
      text: text.textContent,
      size: parseFloat(getComputedStyle(text).fontSize),
      bold: Number(getComputedStyle(text).fontWeight) >= 600,
      width: text.getComputedTextLength(),
    })),
    overlapping: pairs,
    outside: texts.flatMap((_, i) => (isWithin(boxes[i], frame, true) ? [] : [words(i)])),
    leaving: texts.flatMap((text, i) => {
      const anchor = { start: boxes[i].left + 2, middle: (boxes[i].left + boxes[i].right) / 2, end: boxes[i].right - 2 };
      const x = anchor[getComputedStyle(text).textAnchor], y = (boxes[i].top + boxes[i].bottom) / 2;
      const around = rects.filter(r => r.left <= x && x <= r.right && r.top <= y && y <= r.bottom);
      const box = around.sort((a, b) => a.width * a.height - b.width * b.height)[0];
      return !box || isWithin(boxes[i], box, false) ? [] : [words(i)];
    }),
  };

  // The rectangle of capitals and tails; a text's own box is as high as its line.
  function ink(text) {
    const { left, right, bottom } = text.getBoundingClientRect();
    const size = parseFloat(getComputedStyle(text).fontSize) * unit;
    const base = new DOMPoint(0, text.getBBox().y + text.getBBox().height).matrixTransform(text.getScreenCTM()).y;
    const line = text.y.baseVal.length ? new DOMPoint(0, text.y.baseVal[0].value).matrixTransform(text.getScreenCTM()).y : base;
    return text.hasAttribute('transform') ? text.getBoundingClientRect() : { left, right, top: line - 0.72 * size, bottom: line + 0.2 * size };
  }

  function shared(a, b) {
    return Math.min(a.right, b.right, Infinity) - Math.max(a.left, b.left) > unit
      ? Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) : 0;
  }

  function isWithin(text, box, both) {
    const across = text.left >= box.left - unit && text.right <= box.right + unit;
    return across && (!both || (text.top >= box.top - unit && text.bottom <= box.bottom + unit));
  }
}
