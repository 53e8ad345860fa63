-- PostgreSQL at SERIALIZABLE: T2 is seen by T3 before T1 commits, and counts as committed only after it.
-- Between the two T2's server process is held, by a debugger, before it gives its predicate locks back; one that loses
-- its processor there will do. T1 has not seen what T2 wrote, and T3 sees that and not what T1 wrote: no order explains it.
-- database: postgres
-- holds: strong-si
-- held: T2 at ReleasePredicateLocks

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level serializable; -- T1
begin; set transaction isolation level serializable; -- T2
select * from test where id = 1; -- T1. Returns 1 => 10
select * from test where id = 1; -- T2. Returns 1 => 10
update test set value = 11 where id = 1; -- T2
update test set value = 21 where id = 2; -- T1
commit; -- T2. BLOCKS
begin; set transaction isolation level serializable; -- T3
select * from test where id = 1; -- T3. Returns 1 => 11
commit; -- T1. Unblocks T2
select * from test where id = 2; -- T3. Returns 2 => 20
commit; -- T3
