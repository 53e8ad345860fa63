-- IAT, predicate write skew: each finds no row of the other's value, and inserts one of its own.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level repeatable read; -- T1
begin; set transaction isolation level repeatable read; -- T2
select * from test where value >= 30; -- T1. Returns nothing
select * from test where value >= 30; -- T2. Returns nothing
insert into test (id, value) values (3, 30); -- T1
insert into test (id, value) values (4, 42); -- T2
commit; -- T1
commit; -- T2
