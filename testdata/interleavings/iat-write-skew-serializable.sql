-- IAT, predicate write skew as in iat-write-skew.sql: SERIALIZABLE refuses one of the two.
-- database: postgres
-- holds: sser

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level serializable; -- T1
begin; set transaction isolation level serializable; -- T2
select * from test where value >= 30; -- T1. Returns nothing
select * from test where value >= 30; -- T2. Returns nothing
insert into test (id, value) values (3, 30); -- T1
insert into test (id, value) values (4, 42); -- T2
commit; -- T1
commit; -- T2. Prints an error: could not serialize access due to read/write dependencies among transactions
