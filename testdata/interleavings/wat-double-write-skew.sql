-- WAT, double-write skew: T1 reads what T2 has not committed, and T2 overwrites what T1 wrote.
-- database: mariadb
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level read uncommitted; begin; -- T1
update test set value = 11 where id = 1; -- T1
set session transaction isolation level read uncommitted; begin; -- T2
update test set value = 21 where id = 2; -- T2
update test set value = 12 where id = 1; -- T2. BLOCKS
select * from test where value = 21; -- T1. Returns 2 => 21
commit; -- T1. Unblocks T2
commit; -- T2
begin; -- T1
select * from test; -- T1. Returns 1 => 12, 2 => 21
commit; -- T1
