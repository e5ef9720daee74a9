"""The ground floor: what knows nothing of graphs, and what every other room may use.

- errors: `errors` (TensorFlow's classes), `error_report` (what a notebook shows of one), `missing_names` (names of TF1
  that dtflab does not have), `suggestions` (“Did you mean …?”).
- secrets: `credentials` (certificates and a token).
- seeing: `events` (what happens, and its listeners), `tf_logging` (lines for the person who runs a program),
  `timeouts` (how long a program waits), `text_table` (text in columns), `page_parts` (generated parts of a Markdown
  page).
- data: `nest` (structures), `grouping` (lists by key), `hashing` (TensorFlow's hash of names),
  `fingerprint` (hashes that never change), `varint` (protobuf's numbers),
  `limits` (how much messages and files may ask for),
  `malformed` (what Python raises when they are wrong).
- Python: `naming` (of functions that functions make), `closing` (at the end of a block), `ownership` (whether others
  hold an array), `garbage` (pauses of the collector), `brief_lock` (a lock that many threads take all the time),
  `thread_frames` (what threads do), `redirect` (modules with names of their own), `ipython` (its shell).

Design: docs/design/base.md
"""
