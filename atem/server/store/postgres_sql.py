"""What the store says to PostgreSQL: its tables, and a statement for each call.

Rules: every value is a parameter. Bytes are counted by triggers, into one of
several rows: that of the connection. Whoever has locked such a row locks nothing
after it; those who lock several records do it in one order. So nobody waits for
somebody who waits for him.
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = """
CREATE SEQUENCE put;
CREATE TABLE records (
    tenant text NOT NULL, id text NOT NULL, put bigint NOT NULL DEFAULT nextval('put'),
    touched double precision NOT NULL, owner text NOT NULL, until double precision NOT NULL,
    ending boolean NOT NULL DEFAULT false, body bytea NOT NULL, items text[] NOT NULL,
    PRIMARY KEY (tenant, id));
CREATE INDEX records_touched ON records (touched) WHERE owner = '';
CREATE INDEX records_until ON records (until) WHERE owner <> '';
CREATE INDEX records_items ON records USING gin (items);
CREATE TABLE events (
    tenant text NOT NULL, id text NOT NULL, number bigint NOT NULL, body bytea NOT NULL,
    PRIMARY KEY (tenant, id, number),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE);
CREATE TABLE total (slot integer PRIMARY KEY, bytes bigint NOT NULL);
INSERT INTO total SELECT slot, 0 FROM generate_series(0, 15) AS slot;
CREATE TABLE version (number integer NOT NULL);

CREATE FUNCTION count_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint := 0;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        change := change + coalesce((SELECT sum(length(body)) FROM added), 0);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        change := change - coalesce((SELECT sum(length(body)) FROM removed), 0);
    END IF;
    UPDATE total SET bytes = bytes + change WHERE slot = pg_backend_pid() % 16 AND change <> 0;
    RETURN NULL;
END $$;
CREATE TRIGGER added AFTER INSERT ON records REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER changed AFTER UPDATE ON records
    REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER removed AFTER DELETE ON records REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER added AFTER INSERT ON events REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER removed AFTER DELETE ON events REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();

CREATE FUNCTION make_room(most bigint, of_tenant text, of_id text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sum(bytes) FROM total) > most THEN
        LOCK TABLE version IN EXCLUSIVE MODE;  -- one server at a time, or each drops as much
        WHILE (SELECT sum(bytes) FROM total) > most LOOP
            DELETE FROM records WHERE (tenant, id) IN (
                SELECT tenant, id FROM records
                WHERE owner = '' AND (tenant, id) <> (of_tenant, of_id)
                ORDER BY touched LIMIT 1 FOR UPDATE SKIP LOCKED);
            EXIT WHEN NOT FOUND;
        END LOOP;
    END IF;
END $$;
"""

# A record's version is the number of its last put, or of its last change of hands.
# New ones are let in and others changed by two statements: one that does both could bring back what
# is deleted at the same moment.
LOGGED: Final = """
RETURNING tenant, id, put),
logged AS (
    INSERT INTO events
    SELECT tenant, id, number, event
    FROM kept, unnest($8::bigint[], $9::bytea[]) AS new (number, event)
    ON CONFLICT DO NOTHING)
SELECT put FROM kept
"""
PUT_NEW: Final = f"""
WITH kept AS (
    INSERT INTO records (tenant, id, touched, owner, until, body, items)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (tenant, id) DO NOTHING
{LOGGED}
"""  # noqa: S608 (constants)
PUT: Final = f"""
WITH kept AS (
    UPDATE records SET
        put = nextval('put'), touched = $3, owner = $4, until = $5,
        ending = ending AND $4 <> '', body = $6, items = $7
    WHERE tenant = $1 AND id = $2 AND put = $10
{LOGGED}
"""  # noqa: S608 (constants)
GET: Final = """
SELECT owner, put, body FROM records
WHERE tenant = $1 AND id = $2
"""
FIND: Final = """
SELECT owner, put, body FROM records
WHERE tenant = $1 AND items @> ARRAY[$2::text]
ORDER BY put DESC LIMIT 1
"""
DELETE: Final = """
DELETE FROM records WHERE tenant = $1 AND id = $2
"""
# The lock waits for a change of hands that has begun: nothing is added behind it.
APPEND: Final = """
WITH held AS (
    SELECT tenant, id FROM records WHERE tenant = $1 AND id = $2 AND owner = $3
    FOR NO KEY UPDATE),
logged AS (
    INSERT INTO events
    SELECT tenant, id, number, event
    FROM held, unnest($4::bigint[], $5::bytea[]) AS new (number, event)
    ON CONFLICT DO NOTHING)
SELECT count(*) FROM held
"""
EVENTS: Final = """
SELECT body FROM events WHERE tenant = $1 AND id = $2 AND number > $3
ORDER BY number LIMIT $4
"""
# Those who lock several rows do it in one order, so that they can't wait for each other.
RENEW: Final = """
WITH held AS (
    SELECT tenant, id FROM records
    JOIN unnest($3::text[], $4::text[]) AS wanted (tenant, id) USING (tenant, id)
    WHERE owner = $1 ORDER BY tenant, id FOR NO KEY UPDATE OF records)
UPDATE records SET until = $2
FROM held WHERE (records.tenant, records.id) = (held.tenant, held.id)
RETURNING records.tenant, records.id, ending
"""
CANCEL: Final = """
UPDATE records SET ending = true WHERE tenant = $1 AND id = $2 AND owner <> '' RETURNING true
"""
TAKE_OVER: Final = """
WITH late AS (
    SELECT tenant, id FROM records
    WHERE owner <> '' AND until <= $2 ORDER BY tenant, id FOR NO KEY UPDATE)
UPDATE records SET owner = $1, until = $3, put = nextval('put')
FROM late WHERE (records.tenant, records.id) = (late.tenant, late.id)
RETURNING owner, put, body
"""
EXPIRE: Final = """
DELETE FROM records WHERE (tenant, id) IN (
    SELECT tenant, id FROM records WHERE owner = '' AND touched <= $1 FOR UPDATE SKIP LOCKED)
"""
EXPIRE_LOGS: Final = """
DELETE FROM events USING records
WHERE (events.tenant, events.id) = (records.tenant, records.id) AND owner = '' AND touched < $1
"""
