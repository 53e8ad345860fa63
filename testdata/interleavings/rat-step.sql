-- RAT in three steps: T1 misses T2's row, T3 has seen that, and T1 sees T3's.
-- database: postgres
-- holds: ra

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where value = 30; -- T1. Returns nothing
begin; set transaction isolation level read committed; -- T2
insert into test (id, value) values (3, 30); -- T2
commit; -- T2
begin; set transaction isolation level read committed; -- T3
select * from test where value = 30; -- T3. Returns 3 => 30
insert into test (id, value) values (4, 40); -- T3
commit; -- T3
select * from test where value = 40; -- T1. Returns 4 => 40
commit; -- T1
