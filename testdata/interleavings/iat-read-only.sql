-- IAT, the read-only anomaly: T3 sees the row of T2 and one that T1 deletes, and T1 has not seen that of T2.
-- database: postgres
-- holds: strong-si

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level repeatable read; -- T1
select * from test where value >= 30; -- T1. Returns nothing
begin; set transaction isolation level repeatable read; -- T2
insert into test (id, value) values (4, 42); -- T2
commit; -- T2
begin; set transaction isolation level repeatable read; -- T3
select * from test; -- T3. Returns 1 => 10, 2 => 20, 4 => 42
commit; -- T3
delete from test where value = 10; -- T1
commit; -- T1
