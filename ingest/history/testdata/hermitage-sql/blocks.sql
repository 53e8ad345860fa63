create table shop.test (id int primary key, value int);
insert into shop.test values (1, 10), (2, 20);
begin; -- T1
begin; -- T2
begin; -- T3
update shop.test set value = 11 where id = 1; -- T1
update shop.test set value = value + 1; -- T2, BLOCKS
select * from shop.test; -- T3. BLOCKS
commit; -- T1. This unblocks T2, so T1's update is overwritten; T3 now returns 1 => 11, 2 => 20
select * from shop.test where id in (1, 2) for update; -- T3. Looks odd
delete from shop.test where value > 11; -- T3
commit; -- T3. Is this right?
commit; -- T2. Prints "ERROR: could not serialize access"
begin; -- T1
delete from shop.test; -- T1. Prints out "ERROR 1213 (40001): Deadlock found"
