-- MariaDB at SERIALIZABLE: a read locks where it looked, both inserts wait for the other's, and one is refused.
-- database: mariadb
-- holds: sser

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level serializable; begin; -- T1
set session transaction isolation level serializable; begin; -- T2
select * from test where value >= 30; -- T1. Returns nothing
select * from test where value >= 30; -- T2. Returns nothing
insert into test (id, value) values (3, 30); -- T1. BLOCKS
insert into test (id, value) values (4, 42); -- T2. Prints an error: Deadlock found when trying to get lock; try restarting transaction. Unblocks T1
commit; -- T1
rollback; -- T2
