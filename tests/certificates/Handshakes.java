import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Prints for each pair of a key store and a trust store whether two brokers with both come to terms.
 *
 * Kafka's own factory makes the engines, with the settings of a node of earshot's; each side asks
 * for the other's certificate. A line of the file has key store, trust store, host and cipher
 * suites; a line of the answer is `ok`, or what the side said that ended it.
 */
public class Handshakes {
    public static void main(String[] arguments) throws Exception {
        StringBuilder answers = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] fields = line.split("\t");
            String answer = "ok";
            try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
                factory.configure(settings(fields));
                for (String version : List.of("TLSv1.3", "TLSv1.2")) {
                    handshake(factory, fields[2], version);
                }
            } catch (Exception refused) {
                Throwable cause = refused;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer = String.valueOf(cause.getMessage()).replaceAll("\\s+", " ");
            }
            answers.append(answer).append('\n');
        }
        System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static Map<String, Object> settings(String[] fields) {
        Map<String, Object> found = new HashMap<>();
        found.put("ssl.protocol", "TLSv1.3");
        found.put("ssl.enabled.protocols", List.of("TLSv1.3", "TLSv1.2"));
        found.put("ssl.cipher.suites", List.of(fields[3].split(",")));
        found.put("ssl.keymanager.algorithm", "SunX509");
        found.put("ssl.trustmanager.algorithm", "PKIX");
        found.put("ssl.client.auth", "required");
        found.put("ssl.keystore.type", "PEM");
        found.put("ssl.keystore.location", fields[0]);
        found.put("ssl.truststore.type", "PEM");
        found.put("ssl.truststore.location", fields[1]);
        return found;
    }

    private static void handshake(DefaultSslEngineFactory factory, String host, String version)
            throws Exception {
        SSLEngine asking = factory.createClientSslEngine(host, 9093, "https");
        SSLEngine answering = factory.createServerSslEngine(host, 9093);
        asking.setEnabledProtocols(new String[] {version});
        ByteBuffer toServer = ByteBuffer.allocate(1 << 17);
        ByteBuffer toClient = ByteBuffer.allocate(1 << 17);
        asking.beginHandshake();
        answering.beginHandshake();
        for (int round = 0; round < 100; round++) {
            step(asking, toClient, toServer);
            step(answering, toServer, toClient);
            if (asking.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING
                    && answering.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING
                    && toServer.position() == 0 && toClient.position() == 0) {
                if (asking.isInboundDone() || answering.isInboundDone()) {
                    throw new IllegalStateException("closed");
                }
                return;
            }
        }
        throw new IllegalStateException("the handshake does not end");
    }

    private static void step(SSLEngine engine, ByteBuffer in, ByteBuffer out) throws Exception {
        ByteBuffer data = ByteBuffer.allocate(1 << 16);
        for (int turn = 0; turn < 50; turn++) {
            HandshakeStatus status = engine.getHandshakeStatus();
            if (status == HandshakeStatus.NEED_TASK) {
                engine.getDelegatedTask().run();
            } else if (status == HandshakeStatus.NEED_WRAP) {
                engine.wrap(ByteBuffer.allocate(0), out);
            } else if (in.position() > 0) {
                in.flip();
                SSLEngineResult result = engine.unwrap(in, data);
                in.compact();
                if (result.getStatus() == SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                    return;
                }
            } else {
                return;
            }
        }
    }
}
