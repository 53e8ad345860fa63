-- RAT, write-read skew: each changes a row, and reads that of the other as it was.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
begin; set transaction isolation level read committed; -- T2
update test set value = 11 where id = 1; -- T1
update test set value = 21 where id = 2; -- T2
select * from test where id = 1; -- T2. Returns 1 => 10
select * from test where id = 2; -- T1. Returns 2 => 20
commit; -- T1
commit; -- T2
