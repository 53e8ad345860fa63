-- RAT, a long fork: T3 sees T1's row and not T2's, and T4 sees T2's and not T1's.
-- database: postgres
-- holds: cc

create table test (id int primary key, value int);
insert into test (id, value) values (1, 10), (2, 20);
begin; set transaction isolation level read committed; -- T3
select * from test where value = 40; -- T3. Returns nothing
begin; set transaction isolation level read committed; -- T4
select * from test where value = 30; -- T4. Returns nothing
begin; set transaction isolation level read committed; -- T1
insert into test (id, value) values (3, 30); -- T1
commit; -- T1
begin; set transaction isolation level read committed; -- T2
insert into test (id, value) values (4, 40); -- T2
commit; -- T2
select * from test where value = 30; -- T3. Returns 3 => 30
select * from test where value = 40; -- T4. Returns 4 => 40
commit; -- T3
commit; -- T4
