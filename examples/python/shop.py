"""An application that adds to accounts: shop.py ADDRESS RECORDS CLIENTS TRANSACTIONS, with psycopg 3."""

import sys
import threading
import time

import psycopg

from isowatch import Recorder

address, records, clients, transactions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
recorder = Recorder(records)


def add(connection, account):
    with recorder.transaction(connection) as t:
        key = f"account:{account}.n"
        (n,) = connection.execute("select n from account where id = %s", (account,)).fetchone()
        t.read(key, n)
        time.sleep(0.002)  # the application thinks
        connection.execute("update account set n = %s where id = %s", (n + 1, account))
        t.write(key, n + 1)


def client(number):
    with psycopg.connect(address, autocommit=True) as connection:
        done = 0
        while done < transactions:
            try:
                add(connection, (number + done) % 2)
                done += 1
            except psycopg.errors.SerializationFailure:
                pass  # again


with psycopg.connect(address, autocommit=True) as connection:
    connection.execute("create table account (id int primary key, n int)")
    with recorder.transaction(connection) as t:
        for account in (0, 1):
            connection.execute("insert into account values (%s, 0)", (account,))
            t.write(f"account:{account}.n", 0)
threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
recorder.close()
