-- Shop DB "read committed" does not prevent Read Skew (G-single):
begin; set transaction isolation level read committed; -- T1
set session transaction isolation level read committed; begin; -- T2
select * from test where id = 1; -- T1
select * from test; -- T2. Still shows 1 => 10
update test set value = value + 2 where id = 1; -- T2
update test set value = 18 where value % 3 = 2; -- T2
insert into test (id, value) values(3, 30); -- T2
commit; -- T2
select * from test where mod(value, 3) = 0; -- T1. Returns the newly inserted row
delete from test where value = 20; -- T1. Doesn't delete anything
commit; -- T1
select * from test; -- either. Shows 1 => 12
