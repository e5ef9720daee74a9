"""`%config DtfLab.…`: the settings of pictures, and what is said of a wrong one."""

from __future__ import annotations

import base64

import pytest
from IPython.core.error import UsageError
from traitlets.config import Config

from dtflab import viz
from dtflab.viz.drawing import palette, png, style
from tests.notebook.cells import cell, magic


@pytest.fixture(autouse=True)
def as_before():
    yield
    viz.palette("okabe-ito")
    viz.style("default")
    png.show(False)


def test_a_setting_is_the_librarys(shell):
    magic(shell, "%config DtfLab.palette = 'muted'")
    magic(shell, "%config DtfLab.style = 'projector'")
    assert palette.current_palette() == "muted" and style.current().name == "projector"
    magic(shell, "%dtf_style --default")
    viz.palette("okabe-ito")
    assert magic(shell, "%config DtfLab.style", "now") == "default", "set in another way"
    assert magic(shell, "%config DtfLab.palette", "now") == "okabe-ito"
    listed = cell(shell, "%config DtfLab")
    assert all(f"DtfLab.{name}" in listed for name in ("palette", "style", "png")) and "'muted'" in listed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("pallete = 1", "DtfLab has no setting 'pallete'. Did you mean palette? It has palette, png, style."),
        ("png = 'yes'", "DtfLab.png can't be 'yes'. Choose False, True."),
        ("zoom = 1", "DtfLab has no setting 'zoom'. It has palette, png, style."),
        ("palette = 'mutd'", "DtfLab.palette can't be 'mutd'. Did you mean muted? Choose 'okabe-ito', 'muted'."),
        ("png = 1", "DtfLab.png can't be 1. Choose False, True."),
        ("palette = 'nonsense'", "DtfLab.palette can't be 'nonsense'. Choose 'okabe-ito', 'muted'."),
    ],
)
def test_a_wrong_setting_is_told_and_changes_nothing(shell, line, says, caplog):
    magic(shell, "%config DtfLab.palette = 'muted'")
    assert cell(shell, f"%config DtfLab.{line}") == f"UsageError: {says}\n"
    assert palette.current_palette() == "muted" and not png.is_shown()
    magic(shell, "%config DtfLab.style = 'projector'")  # what was wrong is forgotten
    assert style.current().name == "projector"
    assert caplog.records == [], "IPython writes these with ERROR:root: before them"


def test_a_setting_that_is_asked_for_and_not_there_gets_its_nearest(shell):
    text = cell(shell, "%config DtfLab.pallete")
    assert "DtfLab has no setting 'pallete'. Did you mean palette? It has palette, png, style." in text
    assert "Traceback" not in text and "settings.py" not in text


def test_a_wrong_class_is_told_too(shell, caplog):
    said = cell(shell, "%config DtfLb.palette = 'muted'")
    assert said == "UsageError: There is no 'DtfLb' to configure. Did you mean DtfLab?\n" and caplog.records == []
    assert palette.current_palette() == "okabe-ito"


def test_a_configuration_file_is_read_and_checked(shell):
    shell.config.merge(Config({"DtfLab": {"palette": "muted"}}))
    magic(shell, "%reload_ext dtflab")
    assert palette.current_palette() == "muted"
    shell.config.merge(Config({"DtfLab": {"pallete": "muted"}}))
    magic(shell, "%unload_ext dtflab")
    with pytest.raises(UsageError, match="Did you mean palette"):
        magic(shell, "%load_ext dtflab")
    del shell.config["DtfLab"]["pallete"]
    magic(shell, "%load_ext dtflab")
    assert magic(shell, "%config DtfLab.palette", "now") == "muted"


def test_the_settings_go_with_the_extension(shell):
    assert "DtfLab" in cell(shell, "%config")
    magic(shell, "%unload_ext dtflab")
    assert "DtfLab" not in cell(shell, "%config")


def test_an_output_holds_a_png_only_on_demand(model):
    pytest.importorskip("resvg_py")
    line = "%dtf_placement y"
    assert model.display_formatter.format(magic(model, line, "p"))[0].keys() == {"text/plain", "text/html"}
    magic(model, "%config DtfLab.png = True")
    data = model.display_formatter.format(magic(model, line, "p"))[0]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG") and data.keys() >= {"text/plain", "text/html"}
