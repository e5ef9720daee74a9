// Numbers with their units, as the cards of pictures say them.

export function duration(micros: number, digits = 4): string {
  const [value, unit] = micros >= 1e6 ? [micros / 1e6, "s"] : micros >= 1e3 ? [micros / 1e3, "ms"] : [micros, "µs"];
  return `${Number(value.toPrecision(digits))} ${unit}`;
}

// From when to when: with four digits, or as many as tell the end from the beginning.
export function span(start: number, end: number): string {
  const digits = [4, 5, 6, 7, 8, 9].find((each) => duration(start, each) !== duration(end, each)) ?? 4;
  return `from ${duration(start, digits)} to ${duration(end, digits)}`;
}

// The times along an axis: with four digits, or as many as tell them from each other.
export function labels(times: number[]): string[] {
  const written = (digits: number) => times.map((time) => (time ? duration(time, digits) : "0"));
  return [4, 5, 6, 7, 8, 9, 10, 11, 12].map(written).find((all) => new Set(all).size === times.length) ?? written(4);
}

// `1 bar`, `2 bars`.
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// Of what travels, in decimal units, as link speeds have.
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count, i = 0;
  while (value >= 1000 && i < units.length - 1) [value, i] = [value / 1000, i + 1];
  return `${Number(value.toPrecision(3))} ${units[i]}`;
}

// As Python's: never 100% idle where something ran.
export function percent(share: number): string {
  return share >= 0.995 && share < 1 ? ">99%" : `${Math.round(100 * share)}%`;
}

// Of what is held in memory, in binary units.
export function memorySize(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let value = count, i = 0;
  while (value >= 1024 && i < units.length - 1) [value, i] = [value / 1024, i + 1];
  return `${i === 0 ? value : value.toFixed(value >= 99.95 ? 0 : i === 1 ? 1 : value >= 9.995 ? 1 : 2)} ${units[i]}`;
}
