-- IAT, overdraft: both read that there are 30 in all, and each takes 15 from a row of its own.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level repeatable read; -- T1
begin; set transaction isolation level repeatable read; -- T2
select * from test where value > 0; -- T1. Returns 1 => 10, 2 => 20
select * from test where value > 0; -- T2. Returns 1 => 10, 2 => 20
update test set value = -5 where id = 1; -- T1
update test set value = 5 where id = 2; -- T2
commit; -- T1
commit; -- T2
