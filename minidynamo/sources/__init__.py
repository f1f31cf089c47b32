"""Where a value came from: how to load it, print it, fetch it and reach it in the guard tree."""
from minidynamo.sources.source import (
    Attr, Builtin, CellContents, Cell, DictItem, DictKey, Fetch, Global, Imported, InstanceAttr,
    DictValue, Item, Local, PlainDictItem, PlainInstanceAttr, PlainItem, DictRoot, Source, TypeDictItem, TypeOf,
    dict_keys, nth_value,
)

__all__ = ["Attr", "Builtin", "Cell", "CellContents", "DictItem", "DictKey", "DictRoot", "DictValue", "Fetch", "Global",
           "Imported", "InstanceAttr", "Item", "Local", "PlainDictItem", "PlainInstanceAttr", "PlainItem", "Source",
           "TypeDictItem", "TypeOf", "dict_keys", "nth_value"]
