// What a person does to something in a page: open_notebook.mjs lists the steps.
import { readFileSync } from 'node:fs';

export async function inPicture(page, element, { do: what, at = [0.5, 0.5], to, by, key, held }) {
  await element.scrollIntoViewIfNeeded();
  const box = await element.boundingBox();
  const point = ([u, v]) => [box.x + u * box.width, box.y + v * box.height];
  await page.mouse.move(...point(at));
  if (held) await page.keyboard.down(held);
  if (what === 'click') await element.click({ position: { x: at[0] * box.width, y: at[1] * box.height } });
  if (what === 'focus') await element.focus();
  if (what === 'wheel') await page.mouse.wheel(0, by);
  if (what === 'press') await page.keyboard.press(key);
  if (what === 'type') await element.fill(by);
  if (what === 'drag') {
    await page.mouse.down();
    await page.mouse.move(...point(to), { steps: 5 });
    await page.mouse.up();
  }
  if (held) await page.keyboard.up(held);
}

// What axe-core finds grave in the parts of a page.
export async function audited(page, ...parts) {
  // Not as a script of the page: its policy may forbid that.
  await page.evaluate(readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8'));
  return page.evaluate(async parts => {
    const { violations } = await axe.run({ include: parts.map(part => [part]) }, { resultTypes: ['violations'] });
    const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    return grave.flatMap(({ id, nodes }) => nodes.map(node => `${id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`));
  }, parts);
}
