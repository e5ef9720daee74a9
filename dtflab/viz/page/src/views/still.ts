// A picture that answers nothing: it takes the width of the output, with text as large as in the pictures around it.

import type { Picture } from "../picture";

export function still(picture: Picture): void {
  picture.said.hidden = true;
  picture.redraws(() => picture.widen());
}
