#!/usr/bin/env bash
# Run a class of Kafka's with the variables that Kafka's own script of this name reads.
set -eu
home=$(cd "$(dirname "$0")/.." && pwd)
logging=$home/config/tools-log4j2.yaml
[[ -e $logging ]] || logging=/etc/kafka/docker/tools-log4j2.yaml # before the wrapper has run
case $1 in
kafka.Kafka) archive=kafka ;;
kafka.tools.StorageTool | kafka.docker.*) archive=storage ;;
*) archive=tools ;;
esac
for archive in {"$home",/usr/local/share/kafka}/$archive.jsa; do # made with the image
    [[ -e $archive ]] || continue
    archived="-XX:SharedArchiveFile=$archive -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
    break
done
# Several options in one variable are several words. Unlike Kafka's own, the default is for JVMs that
# live for minutes and share two processors.
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1} ${archived-} \
    ${KAFKA_GC_LOG_OPTS-} ${KAFKA_JMX_OPTS-} -Dkafka.logs.dir="$home/logs" \
    ${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=file:$logging} \
    -cp "$home/libs/*" ${KAFKA_OPTS-} "$@"
