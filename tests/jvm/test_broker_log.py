"""The cause among what a broker wrote; excerpts of real logs, cut."""

import pytest

from earshot.jvm.broker_log import cause_of_end, without_frames

SETTING = """\
[2026-11-22 09:11:17,983] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jControllerRegistration$)
[2026-11-22 09:11:18,141] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
org.apache.kafka.common.config.ConfigException: Invalid value abc for configuration num.io.threads: Not a number of type INT
\tat org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:776) ~[kafka-clients-4.1.1.jar:?]
"""  # noqa: E501
BIND = """\
[2026-11-22 09:11:21,187] ERROR Unable to start acceptor for A (kafka.network.DataPlaneAcceptor)
org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:25511: Address already in use.
Caused by: java.net.BindException: Address already in use
\t... 18 more
[2026-11-22 09:11:21,197] ERROR [BrokerServer id=1] Fatal error during broker startup. Prepare to shutdown (kafka.server.BrokerServer)
java.lang.RuntimeException: Received a fatal error while waiting for all of the SocketServer Acceptors to be started
\tat org.apache.kafka.server.util.FutureUtils.waitWithLogging(FutureUtils.java:72) ~[kafka-server-common-4.1.1.jar:?]
Caused by: java.lang.RuntimeException: Unable to start acceptor for A
\tat kafka.network.Acceptor.liftedTree1$1(SocketServer.scala:550) ~[kafka_2.13-4.1.1.jar:?]
Caused by: org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:25511: Address already in use.
\tat org.apache.kafka.server.ServerSocketFactory$KafkaServerSocketFactory.openServerSocket(ServerSocketFactory.java:56) ~[kafka-server-4.1.1.jar:?]
Caused by: java.net.BindException: Address already in use
\tat java.base/sun.nio.ch.Net.bind0(Native Method) ~[?:?]
[2026-11-22 09:11:21,201] INFO [BrokerServer id=1] Transition from STARTED to SHUTTING_DOWN (kafka.server.BrokerServer)
[2026-11-22 09:11:21,365] ERROR Exiting Kafka due to fatal exception during startup. (kafka.Kafka$)
[2026-11-22 09:11:21,366] INFO [ControllerServer id=1] shutting down (kafka.server.ControllerServer)
"""  # noqa: E501
CLASS_3_9 = """\
[2026-11-22 09:12:25,807] ERROR Encountered fatal fault: caught exception (org.apache.kafka.server.fault.ProcessTerminatingFaultHandler)
java.lang.ClassNotFoundException: no.such.Authorizer
\tat java.base/jdk.internal.loader.BuiltinClassLoader.loadClass(BuiltinClassLoader.java:641)
"""  # noqa: E501
REGISTRATION = """\
[2026-11-22 09:13:00,000] ERROR [BrokerLifecycleManager id=1] Shutting down because we were unable to register with the controller quorum. (kafka.server.BrokerLifecycleManager)
[2026-11-22 09:13:00,001] INFO [BrokerLifecycleManager id=1] Transitioning from STARTING to SHUTTING_DOWN. (kafka.server.BrokerLifecycleManager)
[2026-11-22 09:13:00,100] ERROR [BrokerServer id=1] Fatal error during broker startup. Prepare to shutdown (kafka.server.BrokerServer)
java.util.concurrent.CancellationException
"""  # noqa: E501
HARMLESS = """\
[2026-11-22 09:10:00,000] ERROR [ReplicaFetcher replicaId=1] Error for partition t-0 (kafka.server.ReplicaFetcherThread)
org.apache.kafka.common.errors.NotLeaderOrFollowerException: For requests intended only for the leader
"""  # noqa: E501
PLAIN = "[2026-11-22 09:14:00,000] ERROR Nothing was thrown (kafka.server.KafkaApis)\n"
KEY_STORE = """\
[2026-11-22 09:10:00,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
org.apache.kafka.common.KafkaException: Failed to load keystore /k.jks
Caused by: java.io.IOException: keystore password was incorrect
"""
NOT_LEADER = "NotLeaderOrFollowerException: For requests intended only for the leader"
NOT_BOUND = "Socket server failed to bind to 127.0.0.1:25511: Address already in use."
NO_CLASS = "ClassNotFoundException: no.such.Authorizer"
NOT_A_NUMBER = "for configuration num.io.threads: Not a number of type INT"
UNREGISTERED = "Shutting down because we were unable to register with the controller quorum."
NO_JVM = "Error: Could not create the Java Virtual Machine."
WRONG_PASSWORD = (
    "KafkaException: Failed to load keystore /k.jks (IOException: keystore password was incorrect)"
)
OTHER_CLASS = HARMLESS.replace("-0 (", "-1 (") + CLASS_3_9.replace("fatal fault", "a fault")
STARTED = "[2026-11-22 09:10:00,000] INFO started (kafka.server.KafkaRaftServer)\n"
HEAP = "Terminating due to java.lang.OutOfMemoryError: Java heap space\n"


@pytest.mark.parametrize(("log", "console", "cause"), [
    (SETTING, "", f"ConfigException: Invalid value abc {NOT_A_NUMBER}"),
    (BIND, "", f"KafkaException: {NOT_BOUND}"),
    (CLASS_3_9, "", NO_CLASS),
    (REGISTRATION, "", UNREGISTERED),
    (HARMLESS + SETTING.replace("abc", "x y"), HEAP,
     f"ConfigException: Invalid value x y {NOT_A_NUMBER}"),
    (HARMLESS, HEAP, HEAP.strip()),
    (HARMLESS, f"of no matter\n{HEAP}", HEAP.strip()),
    (HARMLESS + PLAIN, "", NOT_LEADER),
    (OTHER_CLASS, "", NO_CLASS),
    (PLAIN.replace("Nothing", "Little") + PLAIN, "", "Nothing was thrown"),
    (HARMLESS, "", NOT_LEADER),
    # the outer exception does not have the cause
    (KEY_STORE, "", WRONG_PASSWORD),
    (STARTED, "", ""),
    ("", "", ""),
    ("", f"{NO_JVM}\nError: A fatal exception\n", f"{NO_JVM} Error: A fatal exception"),
])  # fmt: skip
def test_the_error_that_ended_a_broker_is_picked(log: str, console: str, cause: str) -> None:
    assert cause_of_end(log, console) == cause


def test_lines_without_frames() -> None:
    text = "[t] ERROR it ended \n\njava.lang.X: why\n\tat a.B.c(B.java:1)\n\t... 7 more\n\tmore\n"
    assert without_frames(text) == ["[t] ERROR it ended", "java.lang.X: why", "\tmore"]
