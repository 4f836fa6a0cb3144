"""YAML out of task folders: safe, without aliases and doubled keys, and an error that names the file."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


def read_yaml(text: str, what: str, path: str) -> Any:
    """The content of a text.

    Raises:
        Refusal: TASK_UNREADABLE for what is not plain YAML (an alias, a doubled key, a tag, deep nesting, an integer of
            more than 64 bits, half of a surrogate pair).
    """
    try:
        return yaml.load(text, Loader=_PlainLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Refusal(Reason.TASK_UNREADABLE, f"{what} is not plain YAML: {error}", path=path) from error


class _PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases (the means of a billion laughs) and without doubled keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it holds an alias")
        # it comes without types
        untyped: Any = self
        if untyped.peek_event().tag is not None:
            raise yaml.YAMLError("it holds a tag")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) != len(node.value):
            raise yaml.YAMLError(f"a key stands twice in the mapping {node.start_mark}")
        return mapping

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        # in hexadecimal, or in parts of sixty, a short text is a number that no text in tens may be made of
        value: int = super().construct_yaml_int(node)
        if abs(value) >> 64:
            raise yaml.YAMLError(f"it holds an integer of more than 64 bits {node.start_mark}")
        return value

    def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
        value: str = super().construct_yaml_str(node)
        value.encode()
        return value


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_yaml_int)
_PlainLoader.add_constructor("tag:yaml.org,2002:str", _PlainLoader.construct_yaml_str)
