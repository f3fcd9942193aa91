-- SPDX-License-Identifier: Apache-2.0
-- Lets accounts of workers see the jobs of their queues in a record in MariaDB, and nothing of the
-- plans: through views in a database of their own, because MariaDB has no rules for rows. Replace
-- 'actionplan' where the record is another database, and run it after each 'db upgrade':
--
--     mariadb --user root < worker-accounts.mariadb.sql
--
-- Then, for each account:
--
--     CREATE USER site_b@'%' IDENTIFIED BY 'SECRET' REQUIRE SSL;
--     GRANT actionplan_worker TO site_b@'%';
--     SET DEFAULT ROLE actionplan_worker FOR site_b@'%';
--     INSERT INTO actionplan_workers.served_queue (account, queue) VALUES ('site_b', 'site-b');
--
-- Its watcher.conf names this database: mysql://site_b:SECRET@db.example/actionplan_workers
-- doc/how-to/many-machines.rst tells more.

CREATE DATABASE IF NOT EXISTS actionplan_workers CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
USE actionplan_workers;

-- Which account serves which queues. Workers may not read it. The host of an account is not told
-- apart: give no two of them the same name.
CREATE TABLE IF NOT EXISTS served_queue (
    account varchar(128) NOT NULL,
    queue varchar(255) NOT NULL,
    PRIMARY KEY (account, queue)
) ENGINE=InnoDB;

-- Jobs of its queues: a worker takes, renews and ends them. What was fenced or cancelled, and so
-- is neither todo, doing nor ended, no worker sees or changes any more.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW actionplan_worker_job AS
    SELECT * FROM actionplan.actionplan_worker_job AS job
    WHERE job.state IN ('todo', 'doing', 'ended') AND job.queue IN (
        SELECT own.queue FROM actionplan_workers.served_queue AS own
        WHERE own.account = substring_index(user(), '@', 1)
    )
    WITH CASCADED CHECK OPTION;

-- Workers that serve no other queues than its own.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW actionplan_worker AS
    SELECT * FROM actionplan.actionplan_worker AS worker
    WHERE json_contains((
        SELECT json_arrayagg(own.queue) FROM actionplan_workers.served_queue AS own
        WHERE own.account = substring_index(user(), '@', 1)
    ), worker.queues)
    AND json_type(worker.queues) = 'ARRAY'
    AND worker.started_at > '2000-01-01' AND worker.heard_at > '2000-01-01'
    WITH CASCADED CHECK OPTION;

-- The version of the tables.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW actionplan_alembic_version AS
    SELECT * FROM actionplan.actionplan_alembic_version;

CREATE ROLE IF NOT EXISTS actionplan_worker;
GRANT SELECT, UPDATE (state, worker, lost_worker, token, taken_at, leased_until, result)
    ON actionplan_workers.actionplan_worker_job TO actionplan_worker;
GRANT SELECT, INSERT, DELETE, UPDATE (running, heard_at)
    ON actionplan_workers.actionplan_worker TO actionplan_worker;
GRANT SELECT ON actionplan_workers.actionplan_alembic_version TO actionplan_worker;
