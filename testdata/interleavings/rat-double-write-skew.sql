-- RAT, double-write skew: T2 reads what T1 has not committed, and T1 overwrites what T2 wrote.
-- database: mariadb
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level read uncommitted; begin; -- T1
update test set value = 11 where id = 1; -- T1
set session transaction isolation level read uncommitted; begin; -- T2
select * from test where value = 11; -- T2. Returns 1 => 11
update test set value = 21 where id = 2; -- T2
commit; -- T2
update test set value = 22 where id = 2; -- T1
commit; -- T1
begin; -- T2
select * from test; -- T2. Returns 1 => 11, 2 => 22
commit; -- T2
