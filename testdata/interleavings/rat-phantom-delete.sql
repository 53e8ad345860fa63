-- RAT, a phantom: T1 reads twice by one condition, and misses a row that T2 has deleted in between.
-- database: postgres
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where value >= 20; -- T1. Returns 2 => 20
begin; set transaction isolation level read committed; -- T2
delete from test where value = 20; -- T2
commit; -- T2
select * from test where value >= 20; -- T1. Returns nothing
commit; -- T1
