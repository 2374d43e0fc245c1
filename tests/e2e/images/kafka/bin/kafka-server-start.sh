#!/usr/bin/env bash
# Run a broker or controller with the properties file given.
set -eu
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G}
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=file:/opt/kafka/config/log4j2.yaml}
exec "$(dirname "$0")/kafka-run-class.sh" kafka.Kafka "$@"
