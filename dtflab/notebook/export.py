"""`dtflab export --html lesson.ipynb`: a notebook as a page whose pictures respond, without a kernel and a network.

It is nbconvert with the template `dtflab` of `viz/page/nbconvert/`, which an installation also puts where nbconvert
looks for templates: `jupyter nbconvert --to html --template dtflab lesson.ipynb`. The template drops what nbconvert
loads from elsewhere and brings the front end's module; `for_page` is its preprocessor. Left out: formulas, which stay
as they are written, and widgets other than dtflab's, which become their text.

Rule: what a page shows is in the notebook's outputs. `--run` makes them first, with the pictures for all places of
each slider (`explorer`) and all sets of steps by hand (`whole_steps`). Until the page is written, the pictures are also
in a file next to it, from which the next run goes on if this one does not end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtflab.files.atomic import replacing
from dtflab.machine.console import show
from dtflab.viz.drawing.front_end import MODULE

EVERYWHERE = "DTFLAB_EVERYWHERE"  # the variable that has explorers draw the pictures of all places, and steps end
_AFTER = "import sys\nif shown := sys.modules.get('dtflab.notebook.whole_steps'):\n    shown.end()"  # all cells
DRAWN = "DTFLAB_DRAWN"  # the variable with the path of the file in which explorers keep what they draw
TOLD = {"dtflab": "told"}  # the metadata of a display that says how far an explorer is
_TEMPLATES = MODULE.parent / "nbconvert"
_WIDGET = "application/vnd.jupyter.widget-view+json"
Preprocessor = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]


def add_arguments(parser: argparse.ArgumentParser, form: argparse._MutuallyExclusiveGroup) -> None:
    """Declare the arguments of `dtflab export --html`; `form` has one option for each form of export."""
    form.add_argument("--html", nargs="+", type=Path, metavar="NOTEBOOK", help="notebooks to write as pages")
    parser.add_argument("--to", type=Path, metavar="DIR", help="where the pages go (default: next to each notebook)")
    parser.add_argument("--run", action="store_true", help="run them first, once for all places of their sliders")


def main(options: argparse.Namespace) -> int:
    """Write the pages; the exit status."""
    for path in options.html:
        page = (options.to or path.parent) / f"{path.stem}.html"
        drawn = page.absolute().with_name(f"{page.name}.drawn")
        try:
            _export(path, page, drawn if options.run else None)
        except (KeyboardInterrupt, _Failure) as error:
            why = f"{error}" or f"interrupted; {path} has no new page."
            rest = f"\nFinished pictures are kept in {drawn}; the same command goes on from there."
            print(f"dtflab export: {why}{rest * drawn.exists()}", file=sys.stderr)
            return 1 if isinstance(error, _Failure) else 130  # as a shell has it
    return 0


def for_page(**_: Any) -> Preprocessor:
    """The template's preprocessor: it hands over the module, and takes out what needs a kernel."""
    return _prepare


def _prepare(notebook: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    resources["dtflab_module"] = MODULE.read_text(encoding="utf-8")
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                output.get("data", {}).pop(_WIDGET, None)
            cell.outputs = [one for one in cell.outputs if "data" not in one or any(one.data.values())]  # a widget
    return notebook, resources


def html(notebook: Any, path: Path) -> str:
    """The page of a notebook with outputs. `path` is where it came from: its title, and the folder of its images."""
    from jinja2 import pass_context
    from nbconvert import HTMLExporter
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def _html_embed_images(self, html: str) -> str:
            """A tag by itself stays as it is: parsing would close `<details>` before what it folds away."""
            return str(super()._html_embed_images(html)) if "<img" in html else html

    class Exporter(HTMLExporter):
        def default_filters(self) -> Any:
            yield from super().default_filters()
            yield "markdown2html", self.as_html

        @pass_context
        def as_html(self, context: Any, source: str) -> str:
            attachments = context.get("cell", {}).get("attachments", {})
            folder = context.get("resources", {}).get("metadata", {}).get("path", "")
            renderer = Renderer(escape=False, attachments=attachments, embed_images=True, path=folder)
            return str(MarkdownWithMath(renderer=renderer).render(source))

    exporter = Exporter(template_name="dtflab", extra_template_basedirs=[str(_TEMPLATES)])
    resources = {"metadata": {"name": path.stem, "path": str(path.parent.resolve())}}
    text, _ = exporter.from_notebook_node(notebook, resources)
    return str(text)


class _Failure(Exception):
    """A reason for which a page can't be written."""


def _export(path: Path, page: Path, drawn: Path | None) -> None:
    if missing := [name for name in ("nbformat", "nbconvert", "nbclient") if importlib.util.find_spec(name) is None]:
        raise _Failure(f"pages need {', '.join(missing)}: pip install 'dtflab[lab]'")
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
    except OSError as error:
        raise _Failure(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # nbformat takes what it expects
        raise _Failure(f"{path} is not a notebook of Jupyter's, or it is damaged.") from error
    page.parent.mkdir(parents=True, exist_ok=True)
    if drawn:
        _run(notebook, path, drawn)
    elif not any(cell.get("outputs") for cell in notebook.cells):
        print(f"dtflab export: {path} has no outputs. Run its cells and save it, or add --run.", file=sys.stderr)
    text = html(notebook, path).encode()
    with replacing(str(page)) as file:
        file.write(text)
    if drawn:
        drawn.unlink(missing_ok=True)
    show(f"{page}: written, {len(text) / 1e6:.1f} MB")


def _run(notebook: Any, path: Path, drawn: Path) -> None:
    """Run all cells in a kernel of their own, in the notebook's folder; `drawn` keeps the pictures of sliders."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    class Client(NotebookClient):
        """A client that says in the terminal how far the kernel is. An interrupt kills the kernel."""

        async def async_start_new_kernel(self, **kwargs: Any) -> None:
            """Start it; nbclient's own signal handler would close the kernel's connection while it is in use."""
            run = asyncio.current_task()
            assert run is not None

            def interrupt() -> None:
                self.shutdown_kernel = "immediate"
                run.cancel()

            with contextlib.suppress(RuntimeError):  # not the main thread, or Windows
                asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
            await super().async_start_new_kernel(**kwargs)

        def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
            if msg["content"].get("metadata") == TOLD:
                show(f"{path}: {msg['content']['data']['text/plain']}", flush=True)
            return super().process_message(msg, cell, cell_index)

    client = Client(notebook, timeout=None, resources={"metadata": {"path": str(path.parent.resolve())}})
    notebook.cells.append(nbformat.v4.new_code_cell(_AFTER))
    try:
        client.execute(env=os.environ | {EVERYWHERE: "1", DRAWN: str(drawn)})
    except CellExecutionError as error:
        meant = "If it is meant to fail, give it the tag raises-exception (Property Inspector → Cell Tags)."
        raise _Failure(f"{path}: a cell failed, so there is no page. {meant}\n{error}") from error
    except (asyncio.CancelledError, RuntimeError) as error:  # a DeadKernelError, if a cell was running
        if client.shutdown_kernel == "immediate":
            raise KeyboardInterrupt from None
        raise _Failure(f"{path} has no new page, because its kernel was killed or crashed ({error}).") from error
    finally:
        notebook.cells.pop()
