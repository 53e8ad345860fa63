-- RAT, an intermediate read: T2 reads what T1 overwrites itself.
-- database: mariadb
-- holds: nothing

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level read uncommitted; begin; -- T1
update test set value = 11 where id = 1; -- T1
set session transaction isolation level read uncommitted; begin; -- T2
select * from test where value > 10; -- T2. Returns 1 => 11, 2 => 20
update test set value = 12 where id = 1; -- T1
commit; -- T1
commit; -- T2
