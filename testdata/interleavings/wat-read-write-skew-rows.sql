-- WAT, read-write skew of two rows: T1 has read row 1 as it was before T2, and overwrites what T2 made of row 2.
-- database: postgres
-- holds: pc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where id = 1; -- T1. Returns 1 => 10
begin; set transaction isolation level read committed; -- T2
update test set value = 11 where id = 1; -- T2
update test set value = 21 where id = 2; -- T2
commit; -- T2
update test set value = 22 where id = 2; -- T1
commit; -- T1
begin; -- T3
select * from test; -- T3. Returns 1 => 11, 2 => 22
commit; -- T3
