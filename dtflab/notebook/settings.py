"""`%config DtfLab.palette = "muted"`: how pictures look in a notebook, also from IPython's configuration files.

Rule: the library owns each setting (`tf.viz.palette`, `tf.viz.style`, …); what stands here reads and writes it there,
so that both always say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.error import UsageError
from traitlets import TraitType
from traitlets.config import Config, Configurable
from traitlets.config.loader import DeferredConfig

from dtflab.base.suggestions import did_you_mean
from dtflab.viz.drawing import palette, png, style


class _Setting(TraitType[Any, Any]):
    """A trait whose value, one of a few, the library keeps."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], values: Sequence[Any], text: str) -> None:
        super().__init__(default_value=values[0], help=f"{text}: {', '.join(map(repr, values))}")
        self.tag(config=True)
        self._read, self._write, self._values = read, write, values

    def get(self, obj: Any, cls: Any = None) -> Any:
        """The value of now."""
        return self._read()

    def set(self, obj: Any, value: Any) -> None:
        """Check it and hand it on."""
        self._write(self.checked(value))

    def from_string(self, s: str) -> Any:
        """The value of `--DtfLab.png=True`."""
        return {str(value): value for value in self._values}.get(s, s)

    def checked(self, value: Any) -> Any:
        """The value; UsageError that names those there are if it is not one of them."""
        if isinstance(value, DeferredConfig):
            value = value.get_value(self)
        if not any(value == each and type(value) is type(each) for each in self._values):
            meant, known = did_you_mean(str(value), map(str, self._values)), ", ".join(map(repr, self._values))
            raise UsageError(f"DtfLab.{self.name} can't be {value!r}.{meant} Choose {known}.")
        return value


class DtfLab(Configurable):
    """How dtflab draws."""

    palette = _Setting(palette.current_palette, palette.palette, palette.PALETTES, "the colours of pictures")
    style = _Setting(lambda: style.current().name, style.style, style.NAMES, "how large pictures are drawn")
    png = _Setting(png.is_shown, png.show, (False, True), "whether outputs hold pictures as PNG, too")

    def __init__(self, shell: Any) -> None:
        _check(shell.config)
        super().__init__(parent=shell)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_unknown(name))  # as of `%config DtfLab.zoom`

    def update_config(self, config: Config) -> None:
        """Take what `%config` says. An unknown setting or value is reported as a UsageError, and changes nothing.

        The error is not raised: IPython would log it, with "ERROR:root:" before the sentence.
        """
        shell: Any = self.parent
        try:
            _check(config)
        except UsageError as error:
            shell.show_usage_error(error)
        else:
            super().update_config(config)


def load(shell: Any) -> None:
    """Let `%config` know the settings."""
    shell.configurables.append(DtfLab(shell))


def unload(shell: Any) -> None:
    """Let it forget them; what was set stays."""
    shell.configurables[:] = [each for each in shell.configurables if not isinstance(each, DtfLab)]


def values(name: str) -> list[str]:
    """The values of a setting, as Python writes them; none for an unknown setting."""
    setting = DtfLab.class_traits(config=True).get(name)
    return [repr(value) for value in setting._values] if isinstance(setting, _Setting) else []


def _unknown(name: str) -> str:
    known = DtfLab.class_traits(config=True)
    return f"DtfLab has no setting {name!r}.{did_you_mean(name, known)} It has {', '.join(known)}."


def _check(config: Config) -> None:
    known: dict[str, Any] = DtfLab.class_traits(config=True)
    if wrong := [section for section in config if section.lower().startswith("dtf") and section != DtfLab.__name__]:
        raise UsageError(f"There is no {wrong[0]!r} to configure. Did you mean {DtfLab.__name__}?")
    for name, value in config.get(DtfLab.__name__, {}).items():
        if name not in known:
            raise UsageError(_unknown(name))
        known[name].checked(value)
