-- IAT in three steps: each has seen a row that the next one deletes.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20), (3, 30);
begin; set transaction isolation level repeatable read; -- T1
begin; set transaction isolation level repeatable read; -- T2
begin; set transaction isolation level repeatable read; -- T3
select * from test where value = 10; -- T1. Returns 1 => 10
select * from test where value = 20; -- T2. Returns 2 => 20
select * from test where value = 30; -- T3. Returns 3 => 30
delete from test where value = 20; -- T1
delete from test where value = 30; -- T2
delete from test where value = 10; -- T3
commit; -- T1
commit; -- T2
commit; -- T3
