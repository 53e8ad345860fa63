-- RAT, a read that can't be repeated: T2 changes a row between two reads of it by T1.
-- database: postgres
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where id = 1; -- T1. Returns 1 => 10
begin; set transaction isolation level read committed; -- T2
update test set value = 11 where id = 1; -- T2
commit; -- T2
select * from test where id = 1; -- T1. Returns 1 => 11
commit; -- T1
