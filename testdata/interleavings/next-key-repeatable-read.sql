-- MariaDB at REPEATABLE READ: a DELETE that finds nothing locks where it looked (next-key locks), and T2 waits.
-- database: mariadb
-- holds: sser

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level repeatable read; begin; -- T1
set session transaction isolation level repeatable read; begin; -- T2
delete from test where value = 30; -- T1. Deletes nothing
insert into test (id, value) values (3, 30); -- T2. BLOCKS
select * from test where value = 30; -- T1. Returns nothing
commit; -- T1. Unblocks T2
commit; -- T2
