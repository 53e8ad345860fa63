"""What examples/python/isowatch_sqlalchemy.py records of what sessions do: sessions.py ADDRESS RECORDS."""

import sys

from sqlalchemy import create_engine, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

from isowatch import Recorder
from isowatch_sqlalchemy import record


class Base(DeclarativeBase):
    pass


class A(Base):
    __tablename__ = "a"
    id: Mapped[int] = mapped_column(primary_key=True)
    n: Mapped[int | None]


address, records = sys.argv[1:]
engine = create_engine(address.replace("postgres://", "postgresql+psycopg://"), pool_size=1, max_overflow=0)
Base.metadata.create_all(engine)
Session = sessionmaker(engine)
recorder, put = Recorder(records), []
recorder.put = put.append
record(recorder, Base, Session, engine)
NULL = {"null": True}


def one(session):
    return session.get(A, 1)


def savepoint(session):
    with session.begin_nested():
        one(session).n = 8


def after_error(session):
    one(session).n = 9
    session.flush()
    try:
        session.execute(text("select 1 / 0"))
    except Exception:
        pass


def undone(session):
    one(session).n = 10
    session.flush()
    session.rollback()


wrong = False
# What a session does, how it ends, and what is recorded of that; None: it is dropped.
for number, (do, outcome, want) in enumerate([
    (lambda s: None, "", []),
    (lambda s: s.add(A(id=1, n=5)), "committed", [["w", "a:1.n", 5]]),
    (lambda s: s.add(A(id=1, n=6)), "aborted", []),
    (lambda s: setattr(one(s), "n", 5), "committed", [["r", "a:1.n", 5]]),
    (lambda s: setattr(one(s), "n", None), "committed", [["r", "a:1.n", 5], ["w", "a:1.n", NULL]]),
    (lambda s: setattr(one(s), "n", A.id + 1), None, None),
    (lambda s: s.execute(update(A).values(n=7)), None, None),
    (savepoint, None, None),
    (after_error, None, None),
    (lambda s: setattr(one(s), "n", 4), "committed", [["r", "a:1.n", 8], ["w", "a:1.n", 4]]),
    (undone, "aborted", [["r", "a:1.n", 4], ["w", "a:1.n", 10]]),
    (lambda s: s.delete(one(s)), "committed", [["r", "a:1.n", 4], ["w", "a:1.n", None]]),
]):
    dropped = recorder.dropped
    put.clear()
    try:
        with Session() as session:
            do(session)
            session.commit()
    except IntegrityError as e:
        print(number, "failed:", e.orig)
    got = [(r["status"], r["ops"]) for r in put]
    if got != ([(outcome, want)] if outcome else []) or (recorder.dropped > dropped) != (outcome is None):
        print(number, "is recorded as", got, "and dropped", recorder.dropped - dropped, "times; want", outcome, want)
        wrong = True
sys.exit(wrong)
