-- RAT, read skew of two rows: T1 reads row 1 before T2 changes both, and row 2 after it.
-- database: postgres
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where id = 1; -- T1. Returns 1 => 10
begin; set transaction isolation level read committed; -- T2
update test set value = 11 where id = 1; -- T2
update test set value = 21 where id = 2; -- T2
commit; -- T2
select * from test where id = 2; -- T1. Returns 2 => 21
commit; -- T1
