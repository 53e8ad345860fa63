"""Records what SQLAlchemy's sessions load and flush, a column of a row each: account:7.balance.

    record(recorder, Base, Session, engine)      # the declarative base, the sessionmaker, the engine

What is not known is not recorded: a transaction with a savepoint, with an update of rows that are no objects, with an
SQL expression as a value, or with COMMIT after an error counts as dropped. Statements that are not of sessions, and
rows that are no objects, are not seen.
"""

from sqlalchemy import event, inspect
from sqlalchemy.sql import ClauseElement

from isowatch import ABORTED, COMMITTED, UNKNOWN, refused


def record(recorder, base, sessions, engine):
    def begin(session, _, connection):
        if "isowatch" in session.info:  # a savepoint, or a second database
            session.info["isowatch"].lost = True
            return
        t = connection.info.setdefault("isowatch session", recorder.session()).begin()
        t.outcome, t.failed, t.lost = ABORTED, False, False
        session.info["isowatch"] = connection.info["isowatch"] = t

    def load(instance, context, _=None):
        if t := context.session.info.get("isowatch"):
            for key, _, value in columns(instance):
                t.read(key, value)

    def flush(session, _):
        t = session.info.get("isowatch")
        if not t:  # there was nothing to write
            return
        for instance in session.deleted:
            for key, _, _ in columns(instance):
                t.write(key, None)
        for instance in session.new | session.dirty:
            for key, attribute, value in columns(instance):
                if instance in session.new or attribute.history.has_changes():
                    t.lost |= isinstance(value, ClauseElement)
                    t.write(key, value)
            if len(columns(instance)) < len(attributes(instance)):
                t.lost = True  # the database chose a value

    def execute(state):
        if not state.is_select:
            state.session.connection(bind_arguments=state.bind_arguments)  # begins, if it is the first
            state.session.info["isowatch"].lost = True

    def commit(connection):
        if t := connection.info.get("isowatch"):
            t.outcome = UNKNOWN  # COMMIT is sent, and not answered

    def error(context):
        t = context.connection and context.connection.info.get("isowatch")
        if t and t.outcome == UNKNOWN and refused(getattr(context.original_exception, "sqlstate", None)):
            t.outcome = ABORTED
        elif t:
            t.failed = True

    def committed(session):
        if t := session.info.get("isowatch"):  # else nothing was asked for
            t.outcome, t.lost = COMMITTED, t.lost or t.failed

    def end(session, transaction):
        if transaction.parent is None and (t := session.info.pop("isowatch", None)):
            if t.lost:
                t.lose()
            else:
                t.end(t.outcome)

    for target, name, listener in [
        (sessions, "after_begin", begin), (base, "load", load), (base, "refresh", load),
        (sessions, "after_flush", flush),
        (sessions, "do_orm_execute", execute), (engine, "commit", commit), (engine, "handle_error", error),
        (sessions, "after_commit", committed), (sessions, "after_transaction_end", end),
    ]:
        event.listen(target, name, listener, propagate=target is base)


def attributes(instance):
    return [a for a in inspect(instance).mapper.column_attrs if not a.columns[0].primary_key]


def columns(instance):
    """A row's columns, as far as they are known: key, attribute, value. SQL's NULL is not the absence of a row."""
    state = inspect(instance)
    row = ",".join(map(str, state.mapper.primary_key_from_instance(instance)))
    return [
        (f"{state.mapper.local_table.name}:{row}.{a.columns[0].name}", state.attrs[a.key],
         {"null": True} if state.dict[a.key] is None else state.dict[a.key])
        for a in attributes(instance) if a.key in state.dict
    ]
