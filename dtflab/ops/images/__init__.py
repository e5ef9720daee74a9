"""Images: files, sizes, crops, colours, measures.

Programs: `functions` (all but sizes), `sizes` (crops, margins, resizing).
Behind them: `checks` (of arguments), `resampling` (where new pixels come from).
Ops: `resize` (bilinear, nearest, bicubic, area), `boxes` (crop_and_resize), `colors` (contrast, hue, saturation), `png`
(files).
"""
