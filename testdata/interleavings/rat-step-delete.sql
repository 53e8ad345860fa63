-- RAT in three steps: T1 has seen a row that T2 deletes, T3 sees that it is gone, and T1 sees T3's.
-- database: postgres
-- holds: ra

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
select * from test where value = 20; -- T1. Returns 2 => 20
begin; set transaction isolation level read committed; -- T2
delete from test where value = 20; -- T2
commit; -- T2
begin; set transaction isolation level read committed; -- T3
select * from test where value = 20; -- T3. Returns nothing
insert into test (id, value) values (4, 40); -- T3
commit; -- T3
select * from test where value = 40; -- T1. Returns 4 => 40
commit; -- T1
