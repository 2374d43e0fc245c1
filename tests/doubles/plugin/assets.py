"""Assets in the provider protocol, as objects of plain values for the kinds of a double.

Pulumi's own classes lose the hash of an asset, and cannot read one of which a state has only the
hash.
"""

from typing import Any

from pulumi.runtime import rpc

ASSET = "asset"
"""The key that marks such an object. It also has `hash` and, if known, `path`."""
_KEPT = ("path", "hash")


def spell_out_assets(values: Any) -> None:
    """Replaces every asset in ``values``, a Struct, by an object."""
    for inner in _objects(values):
        signature = inner.fields.get(rpc._special_sig_key)
        if signature is not None and signature.string_value == rpc._special_asset_sig:
            for name in set(inner.fields) - set(_KEPT):
                del inner.fields[name]
            inner.fields[ASSET].bool_value = True
        else:
            spell_out_assets(inner)


def make_assets(values: Any) -> None:
    """Replaces every such object by an asset."""
    for inner in _objects(values):
        if ASSET in inner.fields:
            del inner.fields[ASSET]
            inner.fields[rpc._special_sig_key].string_value = rpc._special_asset_sig
        else:
            make_assets(inner)


def _objects(values: Any) -> list[Any]:
    return [
        field_value.struct_value
        for field_value in values.fields.values()
        if field_value.HasField("struct_value")
    ]
