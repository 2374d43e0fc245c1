import java.io.ByteArrayInputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedKeyManager;

/**
 * Prints 1 for each host for which a Java client accepts a certificate, else 0.
 *
 * The client is made as Kafka's SslFactory makes it: an engine for the peer's host with endpoint
 * identification `https`. The first line of the file holds the authority's certificate and the key
 * of all others; each further one a certificate and a host. Fields are Base64, with a space between.
 */
public class HostNames {
    public static void main(String[] arguments) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(arguments[0]));
        String[] first = lines.get(0).split(" ");
        Certificate authority = certificate(first[0]);
        PrivateKey key = KeyFactory.getInstance("EC")
            .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(first[1])));
        SSLContext client = client(authority);
        StringBuilder answers = new StringBuilder();
        SSLContext server = null;
        String held = "";
        for (String line : lines.subList(1, lines.size())) {
            String[] fields = line.split(" ");
            if (!fields[0].equals(held)) {
                held = fields[0];
                server = server(certificate(held), key);
            }
            String host = new String(Base64.getDecoder().decode(fields[1]), "UTF-8");
            answers.append(accepts(client, server, host) ? "1\n" : "0\n");
        }
        System.out.print(answers);
    }

    private static Certificate certificate(String text) throws Exception {
        return CertificateFactory.getInstance("X.509")
            .generateCertificate(new ByteArrayInputStream(Base64.getDecoder().decode(text)));
    }

    private static SSLContext client(Certificate authority) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", authority);
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext made = SSLContext.getInstance("TLS");
        made.init(null, trust.getTrustManagers(), null);
        return made;
    }

    private static SSLContext server(Certificate own, PrivateKey key) throws Exception {
        X509Certificate[] chain = {(X509Certificate) own};
        X509ExtendedKeyManager shown = new X509ExtendedKeyManager() {
            @Override
            public String[] getClientAliases(String type, Principal[] issuers) {
                return null;
            }

            @Override
            public String chooseClientAlias(String[] types, Principal[] issuers, Socket socket) {
                return null;
            }

            @Override
            public String[] getServerAliases(String type, Principal[] issuers) {
                return new String[] {"kafka"};
            }

            @Override
            public String chooseServerAlias(String type, Principal[] issuers, Socket socket) {
                return "kafka";
            }

            @Override
            public String chooseEngineServerAlias(String type, Principal[] issuers, SSLEngine it) {
                return "EC".equals(type) ? "kafka" : null;
            }

            @Override
            public X509Certificate[] getCertificateChain(String alias) {
                return chain;
            }

            @Override
            public PrivateKey getPrivateKey(String alias) {
                return key;
            }
        };
        SSLContext made = SSLContext.getInstance("TLS");
        made.init(new KeyManager[] {shown}, new TrustManager[0], null);
        return made;
    }

    private static boolean accepts(SSLContext client, SSLContext server, String host)
            throws Exception {
        SSLEngine asking = client.createSSLEngine(host, 9093);
        asking.setUseClientMode(true);
        SSLParameters parameters = asking.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("https");
        asking.setSSLParameters(parameters);
        SSLEngine answering = server.createSSLEngine();
        answering.setUseClientMode(false);
        ByteBuffer toServer = ByteBuffer.allocate(65536);
        ByteBuffer toClient = ByteBuffer.allocate(65536);
        asking.beginHandshake();
        try {
            for (int round = 0; round < 100; round++) {
                if (asking.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING) {
                    return true;
                }
                step(asking, toClient, toServer);
                step(answering, toServer, toClient);
            }
        } catch (SSLException refused) {
            Throwable cause = refused;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            String told = String.valueOf(cause.getMessage());
            if (told.startsWith("No ") || told.contains("name")
                    || cause instanceof IllegalArgumentException) {
                return false;
            }
            throw refused;
        }
        throw new IllegalStateException("the handshake does not end: " + host);
    }

    private static void step(SSLEngine engine, ByteBuffer in, ByteBuffer out) throws Exception {
        ByteBuffer data = ByteBuffer.allocate(65536);
        for (int turn = 0; turn < 20; turn++) {
            HandshakeStatus status = engine.getHandshakeStatus();
            if (status == HandshakeStatus.NEED_TASK) {
                engine.getDelegatedTask().run();
            } else if (status == HandshakeStatus.NEED_WRAP) {
                engine.wrap(ByteBuffer.allocate(0), out);
            } else if (in.position() > 0) {
                in.flip();
                engine.unwrap(in, data);
                in.compact();
            } else {
                return;
            }
        }
    }
}
