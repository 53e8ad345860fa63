"""Records what an application's transactions read and wrote, for Isowatch: an object of JSON a line.

    recorder = Recorder("records.jsonl")
    with recorder.transaction(connection) as t:         # a psycopg 3 connection
        t.read("account:1.n", n)                        # when the answer is there
        t.write("account:1.n", n + 1)
    recorder.close()

The application is never held up: a record that has no room is dropped. Its number in the session is used up, so that
the monitor knows that something is missing.
"""

import contextlib
import json
import os
import queue
import socket
import threading
import time
import weakref

import psycopg

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"

# The time in nanoseconds, by a clock that is never set back.
_EPOCH = time.time_ns() - time.monotonic_ns()


def now():
    return _EPOCH + time.monotonic_ns()


def refused(sqlstate):
    """Whether this answer to COMMIT says that nothing was committed. What is no answer, or another, says nothing."""
    return sqlstate is not None and sqlstate[:2] in ("40", "23") and sqlstate != "40003"


class Recorder:
    def __init__(self, path, waiting_max=10_000):
        self.dropped = 0
        self._file = open(path, "ab", buffering=0)
        self._name = f"{socket.gethostname()}/{os.getpid()}/{now()}"  # no other run's sessions are called so
        self._lock, self._count = threading.Lock(), 0
        self._sessions = weakref.WeakKeyDictionary()
        self._waiting = queue.Queue(waiting_max)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def session(self):
        """The transactions of one connection, one after the other. After an unknown outcome another one is begun."""
        with self._lock:
            self._count += 1
            return Session(self, f"{self._name}/{self._count}")

    @contextlib.contextmanager
    def transaction(self, connection):
        """Like connection.transaction(), and records it."""
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raise RuntimeError("a transaction is under way on this connection: this would be a savepoint in it")
        if connection not in self._sessions:
            self._sessions[connection] = self.session()
        t, outcome = self._sessions[connection].begin(), ABORTED
        try:
            with connection.transaction():
                yield t
                # After a statement that failed COMMIT rolls back, and says nothing.
                if connection.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
                    outcome = UNKNOWN  # COMMIT is sent, and not answered
            if outcome == UNKNOWN:
                outcome = COMMITTED
        except psycopg.Error as e:
            if refused(e.sqlstate):
                outcome = ABORTED
            raise
        finally:
            t.end(outcome)
            if outcome == UNKNOWN:
                del self._sessions[connection]

    def put(self, record):
        try:
            self._waiting.put_nowait(json.dumps(record, separators=(",", ":")).encode())
        except queue.Full:
            self.drop()

    def drop(self):
        with self._lock:
            self.dropped += 1

    def close(self):
        """Writes what waits. It is called when no transaction is under way."""
        self._waiting.put(None)
        self._writer.join()
        self._file.close()

    def _write(self):
        told = 0
        for line in iter(self._waiting.get, None):
            told = self._tell(told)
            self._line(line)
        self._tell(told)

    def _tell(self, told):
        """Says that records are lost: a hole in a session shows only if another record follows."""
        if self.dropped > told:
            told, lost = self.dropped, self.session()
            for lost.seq in (0, 2):
                t = lost.begin()
                self._line(json.dumps(t.record | {"status": ABORTED, "end": now()}).encode())
        return told

    def _line(self, line):
        try:
            if self._file.write(line + b"\n") <= len(line):
                raise OSError("the disk is full")
        except OSError:
            self.drop()


class Session:
    def __init__(self, recorder, name):
        self.recorder, self.name, self.seq = recorder, name, 0

    def begin(self):
        """To be called before the database is told."""
        t = Transaction(self.recorder, {"session": self.name, "seq": self.seq, "start": now(), "ops": []})
        self.seq += 1
        return t


class Transaction:
    def __init__(self, recorder, record):
        self.recorder, self.record = recorder, record

    def read(self, key, value):
        """None is what a row that is not there has."""
        self.record["ops"].append(["r", key, value])

    def write(self, key, value):
        self.record["ops"].append(["w", key, value])

    def end(self, outcome):
        self.recorder.put(self.record | {"status": outcome, "end": now()})

    def lose(self):
        """In place of end, if it read or wrote what is not known."""
        self.recorder.drop()
