-- MariaDB at REPEATABLE READ: a plain read locks nothing, and both insert what the other looked for.
-- database: mariadb
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
set session transaction isolation level repeatable read; begin; -- T1
set session transaction isolation level repeatable read; begin; -- T2
select * from test where value >= 30; -- T1. Returns nothing
select * from test where value >= 30; -- T2. Returns nothing
insert into test (id, value) values (3, 30); -- T1
insert into test (id, value) values (4, 42); -- T2
commit; -- T1
commit; -- T2
