"""Images: files, sizes, crops, colours, measures.

Programs: `functions` (all but sizes), `sizes` (crops, margins, resizing).
Behind them: `checks` (of arguments), `resampling` (where new pixels come from).
Ops: `colors` (contrast, hue, saturation), `resize`, `boxes` (crop_and_resize), `png` (files).
"""
