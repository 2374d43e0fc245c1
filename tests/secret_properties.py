"""The secret properties of a message of the plugin."""

from google.protobuf import struct_pb2
from pulumi.provider.experimental.property_value import PropertyValue


def secrets_in(struct: struct_pb2.Struct) -> set[str]:
    """The properties that are secret as a whole."""
    return {key for key, value in PropertyValue.unmarshal_map(struct).items() if value.is_secret}
