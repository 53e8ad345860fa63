-- RAT, a dirty read: T2 reads what T1 takes back.
-- database: mariadb
-- holds: nothing

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level read uncommitted; begin; -- T1
update test set value = 11 where id = 1; -- T1
set session transaction isolation level read uncommitted; begin; -- T2
select * from test where value = 11; -- T2. Returns 1 => 11
rollback; -- T1
commit; -- T2
