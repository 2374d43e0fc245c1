"""Assets in the provider protocol, as the kinds of a double see them: objects of plain values.

Pulumi's own classes lose the hash of an asset, and cannot read one of which a state keeps no more.
"""

from typing import Any

from pulumi.runtime import rpc

ASSET = "asset"
"""Marks such an object; beside it stand `hash` and, where it is known, `path`."""
_KEPT = ("path", "hash")


def spell_out_assets(values: Any) -> None:
    """Every asset in ``values``, a Struct, becomes an object."""
    for inner in _objects(values):
        signature = inner.fields.get(rpc._special_sig_key)
        if signature is not None and signature.string_value == rpc._special_asset_sig:
            for name in set(inner.fields) - set(_KEPT):
                del inner.fields[name]
            inner.fields[ASSET].bool_value = True
        else:
            spell_out_assets(inner)


def make_assets(values: Any) -> None:
    """The way back."""
    for inner in _objects(values):
        if ASSET in inner.fields:
            del inner.fields[ASSET]
            inner.fields[rpc._special_sig_key].string_value = rpc._special_asset_sig
        else:
            make_assets(inner)


def _objects(values: Any) -> list[Any]:
    return [it.struct_value for it in values.fields.values() if it.HasField("struct_value")]
