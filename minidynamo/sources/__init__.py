"""Where a value came from: how to load it, print it, fetch it and reach it in the guard tree."""
from minidynamo.sources.source import (
    Attr, Builtin, CellContents, Cell, ClassDict, DictItem, DictKey, Fetch, Global, Imported, InstanceAttr,
    DictValue, Item, Local, PlainDictItem, PlainInstanceAttr, PlainItem, DictRoot, Source, TypeOf,
    dict_keys, namespace, namespace_of, nth_value,
)

__all__ = ["Attr", "Builtin", "Cell", "CellContents", "ClassDict", "DictItem", "DictKey", "DictRoot", "DictValue", "Fetch",
           "Global", "Imported", "InstanceAttr", "Item", "Local", "PlainDictItem", "PlainInstanceAttr", "PlainItem", "Source",
           "TypeOf", "dict_keys", "namespace", "namespace_of", "nth_value"]
