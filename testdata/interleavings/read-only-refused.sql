-- PostgreSQL at SERIALIZABLE: as in read-only-serializable.sql, but that T2's commit is not held up. T3 is refused.
-- database: postgres
-- holds: sser

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level serializable; -- T1
begin; set transaction isolation level serializable; -- T2
select * from test where id = 1; -- T1. Returns 1 => 10
select * from test where id = 1; -- T2. Returns 1 => 10
update test set value = 11 where id = 1; -- T2
update test set value = 21 where id = 2; -- T1
commit; -- T2
begin; set transaction isolation level serializable; -- T3
select * from test where id = 1; -- T3. Returns 1 => 11
commit; -- T1
select * from test where id = 2; -- T3. Prints an error: could not serialize access due to read/write dependencies among transactions
rollback; -- T3
