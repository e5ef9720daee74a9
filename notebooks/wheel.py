"""Puts the course into the wheel, as `dtflab/course_files/`: hatchling runs this when it builds one."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CourseHook(BuildHookInterface):
    """Adds the files that `dtflab notebooks` copies; an editable install reads them where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version != "editable":
            course = runpy.run_path(str(root / "dtflab" / "course.py"))  # alone: what dtflab needs is not there yet
            for path in course["files"](root):
                build_data["force_include"][str(root / path)] = f"dtflab/{course['FOLDER']}/{path}"
