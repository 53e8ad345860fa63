import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** An application that adds to accounts: Shop ADDRESS RECORDS CLIENTS TRANSACTIONS. */
public final class Shop {
    public static void main(String[] arguments) throws Exception {
        var database = new PGSimpleDataSource();
        database.setUrl(arguments[0]);
        int clients = Integer.parseInt(arguments[2]), transactions = Integer.parseInt(arguments[3]);
        try (var recorder = new Recorder(Path.of(arguments[1]), 10_000)) {
            DataSource source = recorder.wrap(database);
            open(source);
            var pool = Executors.newFixedThreadPool(clients);
            var work = IntStream.range(0, clients).mapToObj(i -> (Callable<Void>) () -> work(source, i, transactions));
            var done = pool.invokeAll(work.toList());
            pool.shutdown();
            for (var client : done) client.get();
        }
    }

    private static void open(DataSource source) throws SQLException {
        try (var connection = source.getConnection()) {
            connection.createStatement().execute("create table account (id int primary key, n int)");
            connection.setAutoCommit(false);
            for (int account = 0; account < 2; account++) {
                connection.createStatement().executeUpdate("insert into account values (" + account + ", 0)");
                connection.unwrap(Recorder.Transaction.class).write("account:" + account + ".n", 0);
            }
            connection.commit();
        }
    }

    private static Void work(DataSource source, int number, int transactions) throws Exception {
        try (var connection = source.getConnection()) {
            connection.setAutoCommit(false);
            for (int done = 0; done < transactions; ) {
                try {
                    add(connection, (number + done) % 2);
                    done++;
                } catch (SQLException e) {
                    connection.rollback();
                    if (!"40001".equals(e.getSQLState())) throw e; // else again
                }
            }
        }
        return null;
    }

    private static void add(Connection connection, int account) throws Exception {
        var t = connection.unwrap(Recorder.Transaction.class);
        String key = "account:" + account + ".n";
        int n;
        try (var get = connection.prepareStatement("select n from account where id = ?")) {
            get.setInt(1, account);
            var rows = get.executeQuery();
            rows.next();
            n = rows.getInt(1);
            t.read(key, n);
        }
        Thread.sleep(2); // the application thinks
        try (var set = connection.prepareStatement("update account set n = ? where id = ?")) {
            set.setInt(1, n + 1);
            set.setInt(2, account);
            set.executeUpdate();
            t.write(key, n + 1);
        }
        connection.commit();
    }
}
