-- WAT, a lost update: both read what has the value 10, and T1 overwrites what T2 made of it.
-- database: postgres
-- holds: pc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where value = 10; -- T1. Returns 1 => 10
begin; set transaction isolation level read committed; -- T2
select * from test where value = 10; -- T2. Returns 1 => 10
update test set value = 11 where id = 1; -- T2
update test set value = 12 where id = 1; -- T1. BLOCKS
commit; -- T2. Unblocks T1
commit; -- T1
begin; -- T3
select * from test; -- T3. Returns 1 => 12, 2 => 20
commit; -- T3
