-- WAT in three steps: T1 misses T2's row, T3 has seen that, and T1 overwrites what T3 wrote.
-- database: postgres
-- holds: pc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where value = 30; -- T1. Returns nothing
begin; set transaction isolation level read committed; -- T2
insert into test (id, value) values (3, 30); -- T2
commit; -- T2
begin; set transaction isolation level read committed; -- T3
select * from test where value = 30; -- T3. Returns 3 => 30
update test set value = 11 where id = 1; -- T3
commit; -- T3
update test set value = 12 where id = 1; -- T1
commit; -- T1
begin; -- T3
select * from test; -- T3. Returns 1 => 12, 2 => 20, 3 => 30
commit; -- T3
