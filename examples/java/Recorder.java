import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;

/**
 * Records what an application's transactions read and wrote, for Isowatch: an object of JSON a line.
 *
 * <pre>
 * var recorder = new Recorder(Path.of("records.jsonl"), 10_000);
 * DataSource recorded = recorder.wrap(dataSource);
 * try (var connection = recorded.getConnection()) {
 *     connection.setAutoCommit(false);
 *     var t = connection.unwrap(Recorder.Transaction.class);     // for all of this connection's, one after the other
 *     t.read("account:1.n", n);                                  // when the answer is there
 *     t.write("account:1.n", n + 1);
 *     connection.commit();                                       // its outcome is recorded
 * }
 * recorder.close();
 * </pre>
 *
 * The application is never held up: a record that has no room is dropped. Its number in the session is used up, so that
 * the monitor knows that something is missing. Auto-commit and savepoints are not for transactions that are recorded.
 */
public final class Recorder implements AutoCloseable {
    /** What a transaction read and wrote: integers, strings, and null for a row that is not there. */
    public interface Transaction {
        void read(String key, Object value);

        void write(String key, Object value);
    }

    private static final String END = "";
    /** The time in nanoseconds, by a clock that is never set back. */
    private static final long EPOCH = System.currentTimeMillis() * 1_000_000 - System.nanoTime();

    private final BlockingQueue<String> waiting;
    private final OutputStream file;
    private final AtomicLong dropped = new AtomicLong();
    private final AtomicLong sessions = new AtomicLong();
    /** No other run's sessions are called so. */
    private final String name = ManagementFactory.getRuntimeMXBean().getName() + "/" + now();
    private final Thread writer = new Thread(this::write, "isowatch");

    public Recorder(Path path, int waitingMax) throws IOException {
        waiting = new ArrayBlockingQueue<>(waitingMax);
        file = new FileOutputStream(path.toFile(), true);
        writer.setDaemon(true);
        writer.start();
    }

    /** How many records are lost. */
    public long dropped() {
        return dropped.get();
    }

    /** Records what is done with the connections of a source. */
    public DataSource wrap(DataSource source) {
        return proxy(DataSource.class, (method, arguments) -> {
            Object out = call(source, method, arguments);
            return out instanceof Connection c ? proxy(Connection.class, new Recorded(c)::handle) : out;
        });
    }

    /** Writes what waits. It is called when no transaction is under way. */
    @Override
    public void close() throws IOException {
        try {
            waiting.put(END);
            writer.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        file.close();
    }

    /** A connection: its transactions are a session. After an unknown outcome another one is begun. */
    private final class Recorded implements Transaction {
        private final Connection connection;
        private String session;
        private long seq, start;
        private StringBuilder ops;

        Recorded(Connection connection) {
            this.connection = connection;
            open();
        }

        private void open() {
            session = name + "/" + sessions.incrementAndGet();
            seq = 0;
            next();
        }

        private void next() {
            ops = new StringBuilder();
            start = now(); // BEGIN goes with the first statement, which comes later
        }

        Object handle(Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "commit" -> {
                    String outcome = "unknown";
                    try {
                        Object out = call(connection, method, arguments);
                        outcome = "committed";
                        return out;
                    } catch (SQLException e) {
                        if (refused(e.getSQLState())) outcome = "aborted";
                        throw e;
                    } finally {
                        end(outcome);
                    }
                }
                case "rollback" -> {
                    if (arguments == null) end("aborted"); // whatever becomes of it, nothing was committed
                }
                case "close" -> end("unknown"); // drivers and pools do with what is open as they like
                case "unwrap" -> {
                    if (arguments[0] == Transaction.class) return this;
                }
                case "isWrapperFor" -> {
                    if (arguments[0] == Transaction.class) return true;
                }
                default -> {
                    if (ops.isEmpty() && !method.getName().startsWith("get")) start = now();
                }
            }
            return call(connection, method, arguments);
        }

        @Override
        public void read(String key, Object value) {
            op("r", key, value);
        }

        @Override
        public void write(String key, Object value) {
            op("w", key, value);
        }

        private void op(String kind, String key, Object value) {
            ops.append(ops.isEmpty() ? "[" : ",[").append(json(kind)).append(',').append(json(key)).append(',')
                .append(json(value)).append(']');
        }

        private void end(String outcome) {
            if (!ops.isEmpty()) {
                put(record(session, seq++, outcome, ops, start));
                if (outcome.equals("unknown")) open();
            }
            next();
        }
    }

    /** Whether this answer to COMMIT says that nothing was committed. What is no answer, or another, says nothing. */
    private static boolean refused(String state) {
        return state != null && state.matches("23...|40...|25P02") && !state.equals("40003");
    }

    private void put(String record) {
        if (!waiting.offer(record)) dropped.incrementAndGet();
    }

    private void write() {
        long told = 0;
        try {
            for (String next = waiting.take(); ; next = waiting.take()) {
                if (dropped.get() > told) {
                    // Records are lost: a hole in a session shows only if another record follows.
                    told = dropped.get();
                    String lost = name + "/" + sessions.incrementAndGet();
                    line(record(lost, 0, "aborted", "", now()));
                    line(record(lost, 2, "aborted", "", now()));
                }
                if (next.equals(END)) return;
                line(next);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void line(String record) {
        try {
            file.write((record + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            dropped.incrementAndGet();
        }
    }

    private static String record(String session, long seq, String outcome, CharSequence ops, long start) {
        return "{\"session\":%s,\"seq\":%d,\"start\":%d,\"end\":%d,\"status\":\"%s\",\"ops\":[%s]}"
            .formatted(json(session), seq, start, now(), outcome, ops);
    }

    private static String json(Object value) {
        if (value == null || value instanceof Integer || value instanceof Long || value instanceof Boolean) {
            return String.valueOf(value);
        }
        var out = new StringBuilder("\"");
        value.toString().chars().forEach(c -> {
            if (c < ' ' || c == '"' || c == '\\' || Character.isSurrogate((char) c)) out.append("\\u%04x".formatted(c));
            else out.append((char) c);
        });
        return out.append('"').toString();
    }

    private static long now() {
        return EPOCH + System.nanoTime();
    }

    private interface Handler {
        Object handle(Method method, Object[] arguments) throws Throwable;
    }

    private static <T> T proxy(Class<T> type, Handler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> handler.handle(method, arguments)));
    }

    private static Object call(Object on, Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(on, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
