-- IAT in three steps: T1 misses T3's row, T3 misses T2's, and T2 misses T1's.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level repeatable read; -- T1
begin; set transaction isolation level repeatable read; -- T2
begin; set transaction isolation level repeatable read; -- T3
select * from test where value = 50; -- T1. Returns nothing
select * from test where value = 30; -- T2. Returns nothing
select * from test where value = 40; -- T3. Returns nothing
insert into test (id, value) values (3, 30); -- T1
insert into test (id, value) values (4, 40); -- T2
insert into test (id, value) values (5, 50); -- T3
commit; -- T1
commit; -- T2
commit; -- T3
