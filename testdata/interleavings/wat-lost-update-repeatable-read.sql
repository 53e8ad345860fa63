-- WAT, a lost update at MariaDB's REPEATABLE READ: both read 10, and T2 overwrites what T1 made of it.
-- database: mariadb
-- holds: pc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level repeatable read; begin; -- T1
select * from test where value = 10; -- T1. Returns 1 => 10
set session transaction isolation level repeatable read; begin; -- T2
select * from test where value = 10; -- T2. Returns 1 => 10
update test set value = 11 where id = 1; -- T1
commit; -- T1
update test set value = 12 where id = 1; -- T2
commit; -- T2
begin; -- T3
select * from test; -- T3. Returns 1 => 12, 2 => 20
commit; -- T3
