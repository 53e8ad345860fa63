-- WAT, a dirty write: T2 overwrites what T1 has not committed, and T1 takes it back with its own.
-- Locks of rows are held until the end in all the databases here: none lets it come to this.
-- database: none
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; -- T1
begin; -- T2
update test set value = 11 where id = 1; -- T1
update test set value = 12 where id = 1; -- T2
commit; -- T2
rollback; -- T1
begin; -- T2
select * from test; -- T2. Returns 1 => 10, 2 => 20
commit; -- T2
