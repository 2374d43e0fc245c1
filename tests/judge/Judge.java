import java.io.StringReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Properties;
import kafka.server.KafkaConfig;

/** What Kafka says of many properties files in one call. */
public class Judge {
    /**
     * Of files with NUL between them, why each is refused; nothing where Kafka takes it.
     *
     * Three things are asked: whether the settings are valid; and, of KRaft, two steps of the start
     * that judge settings alone: `KafkaRaftServer` reads the addresses of the voters, and a broker
     * looks for the protocol of the controllers' listener.
     */
    public String refusals(String files) throws Exception {
        StringBuilder said = new StringBuilder();
        String[] texts = files.split("\0", -1);
        for (int index = 0; index < texts.length; index++) {
            Properties properties = new Properties();
            properties.load(new StringReader(texts[index]));
            if (index > 0) said.append('\0');
            try {
                begin(KafkaConfig.fromProps(properties, false));
            } catch (Exception refusal) {
                said.append(refusal.getMessage() == null ? refusal.toString() : refusal.getMessage());
            }
        }
        return said.toString();
    }

    private static void begin(KafkaConfig config) throws Exception {
        List roles = config.values().containsKey("process.roles") ? config.getList("process.roles") : null;
        if (roles == null || roles.isEmpty()) return;
        List voters = config.getList("controller.quorum.voters");
        call("parseVoterConnections", new String[] {
            "org.apache.kafka.raft.QuorumConfig", "org.apache.kafka.raft.RaftConfig"
        }, new Object[] {voters});
        if (!roles.contains("broker")) return;
        String[] provider = {
            "org.apache.kafka.server.RaftControllerNodeProvider", "kafka.server.RaftControllerNodeProvider"
        };
        Object noNodes = scala.collection.immutable.Nil$.MODULE$;
        call("apply|create", provider, new Object[] {null, config, noNodes});
    }

    /** Calls a static method of the first class that there is, with as many arguments as it has. */
    private static void call(String names, String[] classes, Object[] arguments) throws Exception {
        for (int index = 0; index < classes.length; index++) {
            Class found;
            try {
                found = Class.forName(classes[index], true, KafkaConfig.class.getClassLoader());
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
            Method[] methods = found.getMethods();
            for (int at = 0; at < methods.length; at++) {
                if (!methods[at].getName().matches(names)) continue;
                Object[] given = new Object[methods[at].getParameterCount()];
                System.arraycopy(arguments, 0, given, 0, given.length);
                try {
                    methods[at].invoke(null, given);
                } catch (InvocationTargetException refusal) {
                    throw (Exception) refusal.getCause();
                }
                return;
            }
        }
        throw new NoSuchMethodError(names);
    }
}
