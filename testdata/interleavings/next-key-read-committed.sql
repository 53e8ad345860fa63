-- MariaDB at READ COMMITTED: a DELETE that finds nothing locks nothing, and T2 inserts what it was to find.
-- database: mariadb
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level read committed; begin; -- T1
set session transaction isolation level read committed; begin; -- T2
delete from test where value = 30; -- T1. Deletes nothing
insert into test (id, value) values (3, 30); -- T2
commit; -- T2
select * from test where value = 30; -- T1. Returns 3 => 30
commit; -- T1
