import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Debezium's connector in a process of its own. Its settings are arguments, name=value; events go to one topic of Kafka. */
public class Stream {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        for (String arg : args) {
            String[] pair = arg.split("=", 2);
            settings.setProperty(pair[0], pair[1]);
        }
        String topic = (String) settings.remove("to.topic");
        Properties kafka = new Properties();
        kafka.setProperty("bootstrap.servers", (String) settings.remove("to.brokers"));
        var producer = new KafkaProducer<String, String>(kafka, new StringSerializer(), new StringSerializer());
        DebeziumEngine.ChangeConsumer<ChangeEvent<String, String>> send = new DebeziumEngine.ChangeConsumer<>() {
            @Override
            public void handleBatch(java.util.List<ChangeEvent<String, String>> events,
                    DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) throws InterruptedException {
                try {
                    var sent = new java.util.ArrayList<java.util.concurrent.Future<RecordMetadata>>();
                    for (var e : events) {
                        sent.add(producer.send(new ProducerRecord<>(topic, e.key(), e.value())));
                    }
                    for (var s : sent) {
                        s.get();
                    }
                    for (var e : events) {
                        committer.markProcessed(e);
                    }
                    committer.markBatchFinished();
                } catch (java.util.concurrent.ExecutionException e) {
                    throw new RuntimeException(e);
                }
            }
        };
        DebeziumEngine.create(Json.class).using(settings).notifying(send)
                .using((DebeziumEngine.CompletionCallback) (ok, message, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                    }
                    System.exit(ok ? 0 : 1);
                })
                .build().run();
    }
}
