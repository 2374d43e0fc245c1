"""The `local` placement: brokers as processes of this machine."""
