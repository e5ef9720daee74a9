"""PluginAsset: files that a plugin of TensorBoard wants next to the event files.

Stands for `python/summary/plugin_asset.py`.

Rule: a graph has one asset of each class, which all code that configures the plugin shares. A FileWriter that writes
the graph writes `plugins/<plugin_name>/<name of the file>` too.
"""

from __future__ import annotations

from typing import TypeVar

from dtflab.graph.graph import Graph
from dtflab.graph.scopes import get_default_graph

_COLLECTION = "__tensorboard_plugin_asset__"  # of names; an asset is in the collection of this and its name


class PluginAsset:
    """Base of a plugin's assets: a subclass has a `plugin_name` and says what its files are."""

    plugin_name: str | None = None

    def assets(self) -> dict[str, str]:
        """The text of each file, by its name; asked when the graph is written."""
        raise NotImplementedError(f"{type(self).__name__} must have a method assets()")


Asset = TypeVar("Asset", bound=PluginAsset)


def get_plugin_asset(plugin_asset_cls: type[Asset], graph: Graph | None = None) -> Asset:
    """The graph's asset of a class, made at the first call; the default graph's if None.

    Raises:
      ValueError: the class has no `plugin_name`, or one that another class has.
    """
    graph = graph or get_default_graph()
    name = plugin_asset_cls.plugin_name
    if not name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    if name not in graph.get_collection(_COLLECTION):
        graph.add_to_collection(_COLLECTION, name)
        graph.add_to_collection(_COLLECTION + name, plugin_asset_cls())
    (asset,) = graph.get_collection(_COLLECTION + name)
    if not isinstance(asset, plugin_asset_cls):
        raise ValueError(
            f"Plugin name collision between classes {plugin_asset_cls.__name__} and {type(asset).__name__}"
        )
    return asset


def get_all_plugin_assets(graph: Graph | None = None) -> list[PluginAsset]:
    """All assets of a graph, the default one if None."""
    graph = graph or get_default_graph()
    return [asset for name in graph.get_collection(_COLLECTION) for asset in graph.get_collection(_COLLECTION + name)]
