-- WAT, full-write skew (G0): T2 overwrites what T1 wrote to row 1, and T1 what T2 wrote to row 2.
-- Locks of rows are held until the end in all the databases here: none lets it come to this.
-- database: none
-- holds: rc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; -- T1
begin; -- T2
update test set value = 11 where id = 1; -- T1
update test set value = 12 where id = 1; -- T2
update test set value = 21 where id = 2; -- T2
update test set value = 22 where id = 2; -- T1
commit; -- T1
commit; -- T2
begin; -- T3
select * from test; -- T3. Returns 1 => 12, 2 => 22
commit; -- T3
