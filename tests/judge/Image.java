import java.util.HashMap;
import java.util.Map;
import kafka.docker.KafkaDockerWrapper$;

/** What the apache/kafka image makes of its variables: its start script is Java in Kafka's own jar. */
public class Image {
    /** Of environments with NUL between them, one NAME=value a line: the properties, likewise. */
    public String properties(String environments) throws Exception {
        StringBuilder made = new StringBuilder();
        String[] texts = environments.split("\0", -1);
        for (int index = 0; index < texts.length; index++) {
            Map variables = new HashMap();
            String[] lines = texts[index].split("\n");
            for (int at = 0; at < lines.length; at++) {
                String[] parts = lines[at].split("=", 2);
                variables.put(parts[0], parts[1]);
            }
            Object given = scala.jdk.javaapi.CollectionConverters.asScala(variables);
            scala.collection.immutable.Map known = (scala.collection.immutable.Map)
                scala.collection.immutable.Map$.MODULE$.from((scala.collection.IterableOnce) given);
            if (index > 0) made.append('\0');
            made.append(KafkaDockerWrapper$.MODULE$.getServerConfigsFromEnv(known).mkString("\n"));
        }
        return made.toString();
    }
}
