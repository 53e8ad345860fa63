-- IAT, write skew of two rows: each reads both, and changes the one that the other does not.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level repeatable read; -- T1
begin; set transaction isolation level repeatable read; -- T2
select * from test; -- T1. Returns 1 => 10, 2 => 20
select * from test; -- T2. Returns 1 => 10, 2 => 20
update test set value = 11 where id = 1; -- T1
update test set value = 21 where id = 2; -- T2
commit; -- T1
commit; -- T2
