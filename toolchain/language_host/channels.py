"""What every gRPC server and channel of the host shares."""

# The limits of Pulumi's own SDK: a resource's properties travel in one message.
MESSAGE_BYTES = 400 * 1024 * 1024
CHANNEL_OPTIONS = [
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
]
# Run and every RunPlugin hold a worker for as long as their process lives.
WORKERS = 64
