"""Exercises that grade themselves: checks, hints, scores. `dtflab.grade("placement/q1")`.

In the order of reading: `questions` (what a question is; `checks/` has them, a file per topic), `judge` (an answer's
report), with `watchdog`, `meter` (which seconds count) and `capture` around the answer; `score` and `pages` (what is
shown of it), `grade` (what is called); `choices` (a choice before a run, and what is said to it); `sources` (an
exercise from its solution); `hidden` (a teacher's own checks).
Then many answers at once: `submissions` (files and their cells), `isolation` (a process with limits), with `supervisor`
between the two, `attempt` (what runs in it), `batch` (attempts until there is a mark), `workplace` (where they run),
`journal` (marks as they come), `students` (the class), `sheets` (the marks of all), `cli`;
`otter` (for another grader).
Beside them, for checks: `device_functions`, `programs`.

Design: docs/design/grading.md
"""
