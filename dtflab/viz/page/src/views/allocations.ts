// The way to an out-of-memory error: the blocks of a card's memory, allocation after allocation.

import type { Picture } from "../picture";
import { Player } from "../player";

const WHOLE = 12_000; // milliseconds in which all are played, if they are many

interface Allocations {
  blocks: { first: number[]; last: number[]; card: string[] }; // in use from place `first` until before `last`
  lit: number[]; // the block of each place that was taken or given back just then; -1: none
  says: string[];
}

export function allocations(picture: Picture, data: Allocations): void {
  const blocks = [...picture.svg.querySelectorAll<SVGGElement>(".block")];
  const failed = picture.svg.querySelectorAll(".asked, .head > .soft"); // what is so at the end alone
  const end = data.says.length - 1;
  picture.speakAbove();
  const show = (place: number) => {
    const at = Math.floor(place);
    blocks.forEach((block, i) => {
      const isUsed = data.blocks.first[i]! <= at && at < data.blocks.last[i]!;
      block.setAttribute("class", `block${isUsed ? "" : " gone"}${data.lit[at] === i ? " lit" : ""}`);
    });
    failed.forEach((part) => part.classList.toggle("gone", at < end));
    picture.say(data.says[at]!);
  };
  const plays = Math.min(900, WHOLE / end); // milliseconds for each
  new Player(picture, { count: end, noun: "allocation", show, words: (place) => data.says[Math.floor(place)]!, plays }, end);
  blocks.forEach((block, i) => {
    block.querySelector("title")?.remove();
    block.addEventListener("pointerenter", (event) => picture.showAt(event, data.blocks.card[i]!.split("\n"), block.getBoundingClientRect()));
    block.addEventListener("pointerleave", () => picture.hide());
  });
  picture.on("escape", () => picture.hide());
  picture.redraws(() => picture.widen());
}
