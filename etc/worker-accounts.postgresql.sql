-- SPDX-License-Identifier: Apache-2.0
-- Lets accounts of workers see the jobs of their queues in a record in PostgreSQL, and nothing of
-- the plans. Run it as the owner of the tables, who may create roles, after each 'db upgrade':
--
--     psql --single-transaction --set ON_ERROR_STOP=1 --file worker-accounts.postgresql.sql actionplan
--
-- Then, for each account:
--
--     CREATE ROLE site_b LOGIN PASSWORD 'SECRET' IN ROLE actionplan_worker;
--     INSERT INTO actionplan_rights.served_queue (account, queue) VALUES ('site_b', 'site-b');
--
-- doc/how-to/many-machines.rst tells more. The tables of the record are expected in the schema
-- public.

CREATE SCHEMA IF NOT EXISTS actionplan_rights;

-- Which account serves which queues. Workers may not read it.
CREATE TABLE IF NOT EXISTS actionplan_rights.served_queue (
    account name NOT NULL,
    queue varchar(255) NOT NULL,
    PRIMARY KEY (account, queue)
);
REVOKE ALL ON SCHEMA actionplan_rights FROM PUBLIC;
REVOKE ALL ON actionplan_rights.served_queue FROM PUBLIC;

DO $$
BEGIN
    CREATE ROLE actionplan_worker NOLOGIN;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

-- The queues of the account that has logged in. No statement changes session_user, except for
-- superusers.
CREATE OR REPLACE FUNCTION actionplan_rights.own_queues() RETURNS SETOF varchar
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS 'SELECT queue FROM actionplan_rights.served_queue WHERE account = session_user';
REVOKE ALL ON FUNCTION actionplan_rights.own_queues() FROM PUBLIC;
GRANT USAGE ON SCHEMA actionplan_rights TO actionplan_worker;
GRANT EXECUTE ON FUNCTION actionplan_rights.own_queues() TO actionplan_worker;

-- Jobs of its queues: a worker takes, renews and ends them. What was fenced or cancelled, and so
-- is neither todo, doing nor ended, no worker sees or changes any more.
GRANT SELECT ON public.actionplan_worker_job TO actionplan_worker;
GRANT UPDATE (state, worker, lost_worker, token, taken_at, leased_until, result)
    ON public.actionplan_worker_job TO actionplan_worker;
ALTER TABLE public.actionplan_worker_job ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own_jobs ON public.actionplan_worker_job;
CREATE POLICY own_jobs ON public.actionplan_worker_job TO actionplan_worker
    USING (queue IN (SELECT actionplan_rights.own_queues()) AND state IN ('todo', 'doing', 'ended'))
    WITH CHECK (queue IN (SELECT actionplan_rights.own_queues()) AND state IN ('doing', 'ended'));

-- Workers that serve no other queues than its own.
GRANT SELECT, INSERT, DELETE ON public.actionplan_worker TO actionplan_worker;
GRANT UPDATE (running, heard_at) ON public.actionplan_worker TO actionplan_worker;
ALTER TABLE public.actionplan_worker ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own_workers ON public.actionplan_worker;
CREATE POLICY own_workers ON public.actionplan_worker TO actionplan_worker
    USING (
        queues::jsonb <@ (
            SELECT coalesce(jsonb_agg(queue), '[]') FROM actionplan_rights.own_queues() AS queue
        )
        AND jsonb_typeof(queues::jsonb) = 'array' AND isfinite(started_at) AND isfinite(heard_at)
    );

-- All other accounts that may use these tables see all rows, as before.
DROP POLICY IF EXISTS all_jobs ON public.actionplan_worker_job;
CREATE POLICY all_jobs ON public.actionplan_worker_job
    USING (NOT pg_has_role(session_user, 'actionplan_worker', 'MEMBER'));
DROP POLICY IF EXISTS all_workers ON public.actionplan_worker;
CREATE POLICY all_workers ON public.actionplan_worker
    USING (NOT pg_has_role(session_user, 'actionplan_worker', 'MEMBER'));

-- The version of the tables.
GRANT SELECT ON public.actionplan_alembic_version TO actionplan_worker;
