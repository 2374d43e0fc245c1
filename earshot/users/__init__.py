"""Users of a secured cluster and their ACLs, in Kafka's form, and the program that sets them."""
