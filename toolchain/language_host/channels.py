"""Settings of all gRPC servers and channels of the host."""

# The limits of Pulumi's own SDK: all properties of a resource are in one message.
MESSAGE_BYTES = 400 * 1024 * 1024
CHANNEL_OPTIONS = [
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
]
# Run and every RunPlugin occupy a worker until their process ends.
WORKERS = 64
