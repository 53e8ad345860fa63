-- IAT, intersecting data: each reads one class of rows, and inserts one that the other class has by that.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level repeatable read; -- T1
begin; set transaction isolation level repeatable read; -- T2
select * from test where value = 10; -- T1. Returns 1 => 10
select * from test where value = 20; -- T2. Returns 2 => 20
insert into test (id, value) values (3, 20); -- T1
insert into test (id, value) values (4, 10); -- T2
commit; -- T1
commit; -- T2
