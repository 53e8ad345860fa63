-- WAT, a DELETE that is evaluated twice: before and after T1 there is a row of 20, and T2 deletes none.
-- It waits for row 2 as it was, asks again once T1 has made it 30, and does not look for what else has
-- become 20 (EvalPlanQual).
-- database: postgres
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T1
begin; set transaction isolation level read committed; -- T2
update test set value = 30 where id = 2; -- T1
update test set value = 20 where id = 1; -- T1
delete from test where value = 20; -- T2. BLOCKS
commit; -- T1. Unblocks T2, which deletes nothing
select * from test; -- T2. Returns 1 => 20, 2 => 30
commit; -- T2
