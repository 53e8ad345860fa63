-- RAT, read skew: T1 sees that T2 has changed row 1, and has seen a row that T2 has deleted.
-- database: postgres
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where value = 20; -- T1. Returns 2 => 20
begin; set transaction isolation level read committed; -- T2
delete from test where value = 20; -- T2
update test set value = 11 where id = 1; -- T2
commit; -- T2
select * from test where id = 1; -- T1. Returns 1 => 11
commit; -- T1
