"""An application that adds to accounts: shop_sqlalchemy.py ADDRESS RECORDS CLIENTS TRANSACTIONS, with SQLAlchemy."""

import sys
import threading
import time

from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

from isowatch import Recorder
from isowatch_sqlalchemy import record


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "account"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    n: Mapped[int]


address, records, clients, transactions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
engine = create_engine(address.replace("postgres://", "postgresql+psycopg://"), pool_size=clients)
Session = sessionmaker(engine)
recorder = Recorder(records)
record(recorder, Base, Session, engine)


def client(number):
    done = 0
    while done < transactions:
        try:
            with Session.begin() as session:
                account = session.get(Account, (number + done) % 2)
                time.sleep(0.002)  # the application thinks
                account.n += 1
            done += 1
        except DBAPIError as e:
            if e.orig.sqlstate != "40001":
                raise


Base.metadata.create_all(engine)
with Session.begin() as session:
    session.add_all([Account(id=0, n=0), Account(id=1, n=0)])
threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
recorder.close()
