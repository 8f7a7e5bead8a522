"""The scheduler's hot rows in prepared SQL: what is due, what is claimed, what gates judge by.

Leases are written and compared by one clock: the database's on PostgreSQL, ours on SQLite (RUN-64).
"""

# ruff: noqa: S608 - the pieces are ours

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from app.kernel import clock
from app.kernel.prepared import Found, Prepared, is_sqlite


class ByLease:
    """A statement in which `{now}` and `{until}` are of the clock that leases go by."""

    def __init__(self, sql: str, **postgresql: str) -> None:
        self._sqlite = Prepared(
            sql.format(now=":now", until=":until", **dict.fromkeys(postgresql, ""))
        )
        later = "clock_timestamp() + :lease_s * interval '1 second'"
        self._postgresql = Prepared(sql.format(now="clock_timestamp()", until=later, **postgresql))

    def run(self, connection: Connection, *, lease_s: float = 0.0, **values: Any) -> Found:
        """Execute it; a lease that begins now lasts `lease_s`."""
        if is_sqlite(connection):
            now = clock.now()
            values |= {"now": now, "until": now + timedelta(seconds=lease_s)}
            return self._sqlite.run_with(connection, values)
        return self._postgresql.run_with(connection, values | {"lease_s": lease_s})


class LockingLane(Prepared):
    """A SELECT that holds the lane it finds, and none of what it joins, until the commit."""

    def __init__(self, sql: str) -> None:
        super().__init__(sql)
        self._postgresql += " FOR UPDATE OF l"


class Told(NamedTuple):
    """An input, as far as news of it tells."""

    tenant_id: str
    id: str
    lane_id: str | None
    message_id: str
    state: str
    hold: str | None
    run_id: str | None


def moment(stored: Any) -> datetime | None:
    """A time as prepared SQL finds it: text in SQLite, a value in PostgreSQL."""
    if isinstance(stored, str):
        return datetime.fromisoformat(stored).replace(tzinfo=UTC)
    found: datetime | None = stored
    return found


_LIVE = "('queued', 'running', 'suspended')"

# --- what is due -------------------------------------------------------------------------------

_OPENABLE = (
    "FROM run_input i WHERE i.state = 'queued' AND i.lane_id IS NOT NULL "
    "AND (i.judge_after IS NULL OR i.judge_after <= :moment) AND NOT EXISTS ("
    "SELECT 1 FROM run r WHERE r.tenant_id = i.tenant_id AND r.lane_id = i.lane_id "
    f"AND r.kind = 'conversation' AND r.state IN {_LIVE})"
)
_IS_OF_OPEN_BATCH = (  # the call itself waits; of `await_approval` it is over, a pause is left
    "(w.kind IN ('call', 'run') OR (w.kind = 'approval' AND NOT EXISTS (SELECT 1 FROM tool_call t "
    "WHERE t.tenant_id = w.tenant_id AND t.id = w.call_id AND t.state = 'done')))"
)
_WAKEABLE = (
    "FROM run_wait w JOIN run r ON r.tenant_id = w.tenant_id AND r.id = w.run_id "
    "AND r.state = 'suspended' WHERE w.satisfied_at IS NULL AND (w.due_at <= :moment "
    "OR (w.kind = 'approval' AND NOT EXISTS (SELECT 1 FROM approval a "
    "WHERE a.tenant_id = w.tenant_id AND a.id = w.ref AND a.state = 'open')) "
    "OR (w.kind = 'run' AND NOT EXISTS (SELECT 1 FROM run c WHERE c.tenant_id = w.tenant_id "
    f"AND c.id = w.ref AND c.state IN {_LIVE})) "
    "OR (w.kind = 'call' AND NOT EXISTS (SELECT 1 FROM external_effect e "
    "WHERE e.tenant_id = w.tenant_id AND e.call_id = w.ref AND e.state IN ('waiting', 'started'))) "
    f"OR (w.kind <> 'pause' AND NOT {_IS_OF_OPEN_BATCH} AND EXISTS (SELECT 1 FROM run_input i "
    "WHERE i.tenant_id = r.tenant_id AND i.lane_id = r.lane_id AND i.state = 'queued' "
    "AND (i.judge_after IS NULL OR i.judge_after <= :moment))) "
    "OR (w.kind = 'pause' AND NOT EXISTS (SELECT 1 FROM agent_pause p "
    "WHERE p.tenant_id = r.tenant_id AND p.agent_id = r.agent_id) "
    "AND NOT EXISTS (SELECT 1 FROM lane l WHERE l.tenant_id = r.tenant_id AND l.id = r.lane_id "
    "AND l.paused_at IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM delegation d "
    "WHERE d.tenant_id = r.tenant_id AND d.id = r.delegation_id AND d.revoked_at IS NULL "
    "AND d.paused_at IS NOT NULL)))"
)
_BEHIND_A_BATCH = (
    "i.state = 'queued' AND i.hold IS NULL AND EXISTS (SELECT 1 FROM run r JOIN run_wait w "
    "ON w.tenant_id = r.tenant_id AND w.run_id = r.id AND w.satisfied_at IS NULL "
    f"AND {_IS_OF_OPEN_BATCH} "
    "WHERE r.tenant_id = i.tenant_id "
    "AND r.lane_id = i.lane_id AND r.kind = 'conversation' AND r.state = 'suspended')"
)
_CLAIMABLE = "r.state = 'queued' AND (r.not_before IS NULL OR r.not_before <= :moment)"

DUE = ByLease(
    f"SELECT EXISTS (SELECT 1 {_OPENABLE}) AS opening, "
    f"EXISTS (SELECT 1 {_WAKEABLE}) AS waking, "
    f"EXISTS (SELECT 1 FROM run_input i WHERE {_BEHIND_A_BATCH}) AS holding, "
    "EXISTS (SELECT 1 FROM run r WHERE r.state = 'running' AND r.lease_until < {now}) "
    "AS recovering, "
    f"EXISTS (SELECT 1 FROM run r WHERE {_CLAIMABLE}) AS claiming, "
    "EXISTS (SELECT 1 FROM agent_schedule s WHERE s.next_at <= :moment AND s.paused_at IS NULL) "
    "AS scheduling"
)
OPENABLE = Prepared(
    f"SELECT i.tenant_id, i.lane_id {_OPENABLE} "
    "GROUP BY i.tenant_id, i.lane_id ORDER BY min(i.log_seq) LIMIT :limit"
)
WAKEABLE = Prepared(f"SELECT w.tenant_id, w.id {_WAKEABLE} ORDER BY w.opened_at LIMIT :limit")
_HOLD_BEHIND = f"UPDATE run_input AS i SET hold = 'approval' WHERE {_BEHIND_A_BATCH}"
_HELD = " RETURNING tenant_id, id, lane_id, message_id, state, hold, run_id"
HOLD_BEHIND_A_BATCH = Prepared(_HOLD_BEHIND + _HELD)
HOLD_ONE_BEHIND = Prepared(_HOLD_BEHIND + " AND i.tenant_id = :tenant_id AND i.id = :id" + _HELD)
BEHIND_A_BATCH = Prepared(
    f"SELECT i.tenant_id, i.id FROM run_input i WHERE {_BEHIND_A_BATCH} "
    "ORDER BY i.log_seq LIMIT :limit"
)

# --- hearing -----------------------------------------------------------------------------------

_BEHIND = (
    "SELECT a.tenant_id, a.id AS agent_id, a.aid, p.conversation_id FROM agent a "
    "JOIN conversation_participant p ON p.tenant_id = a.tenant_id AND p.aid = a.aid "
    "AND p.left_at IS NULL JOIN conversation c ON c.tenant_id = p.tenant_id "
    "AND c.id = p.conversation_id LEFT JOIN heard_up_to h ON h.tenant_id = a.tenant_id "
    "AND h.agent_id = a.id AND h.conversation_id = p.conversation_id "
    "LEFT JOIN aun_group_member m ON m.tenant_id = c.tenant_id AND m.group_id = c.group_id "
    "AND m.aid = a.aid WHERE a.kind = 'hosted' AND c.last_seq > p.from_seq "
    "AND (h.log_seq IS NULL OR c.last_seq > h.log_seq) AND m.blocked_at IS NULL"
)
BEHIND = Prepared(_BEHIND + " ORDER BY c.last_seq LIMIT :limit")
BEHIND_IN = Prepared(
    _BEHIND + " AND p.tenant_id = :tenant_id AND p.conversation_id = :conversation_id"
)
HEADS = Prepared("SELECT tenant_id, seq FROM event_head")
SAID_SINCE = Prepared(  # by the log, whose numbers stand in the order of commits
    "SELECT DISTINCT subject FROM event WHERE tenant_id = :tenant_id AND seq > :seq "
    "AND kind = :kind"
)
HEAR = Prepared(  # takes the cursor's row: two processes hear one after the other
    "INSERT INTO heard_up_to (tenant_id, agent_id, conversation_id, log_seq) "
    "VALUES (:tenant_id, :agent_id, :conversation_id, 0) "
    "ON CONFLICT (tenant_id, agent_id, conversation_id) "
    "DO UPDATE SET log_seq = heard_up_to.log_seq RETURNING log_seq"
)
HEARD = Prepared(
    "UPDATE heard_up_to SET log_seq = :log_seq WHERE tenant_id = :tenant_id "
    "AND agent_id = :agent_id AND conversation_id = :conversation_id AND log_seq < :log_seq"
)
JOINED = Prepared(
    "SELECT p.from_seq, c.last_seq FROM conversation_participant p JOIN conversation c "
    "ON c.tenant_id = p.tenant_id AND c.id = p.conversation_id WHERE p.tenant_id = :tenant_id "
    "AND p.conversation_id = :conversation_id AND p.aid = :aid AND p.left_at IS NULL"
)
MESSAGES = Prepared(
    "SELECT m.id, m.message_id, m.conversation_id, m.sender_aid, m.log_seq, m.type, m.payload, "
    "m.envelope IS NOT NULL AS is_sealed, m.unreadable, m.mention_mode, m.in_reply_to, "
    "m.thread_id, m.group_id, m.recalled_at, i.kind AS identity_kind, i.owner_id, "
    "l.user_id AS linked_to FROM message m LEFT JOIN aun_identity i ON i.tenant_id = m.tenant_id "
    "AND i.aid = m.sender_aid LEFT JOIN peer_link l ON l.tenant_id = m.tenant_id "
    "AND l.aid = m.sender_aid AND l.revoked_at IS NULL WHERE m.tenant_id = :tenant_id "
    "AND m.conversation_id = :conversation_id AND m.log_seq > :after ORDER BY m.log_seq "
    "LIMIT :limit"
)
SAID_BY = Prepared(
    "SELECT 1 FROM message WHERE tenant_id = :tenant_id AND sender_aid = :aid "
    "AND message_id = :message_id AND conversation_id = :conversation_id"
)
POLICY = Prepared(
    "SELECT content FROM agent_release WHERE tenant_id = :tenant_id AND agent_id = :agent_id "
    "ORDER BY number DESC LIMIT 1"
)
_INPUT = (
    *("tenant_id", "id", "agent_id", "message_id", "log_seq", "lane_id", "sender_aid"),
    *("sender_kind", "mode", "mode_source", "state", "hold", "reason", "judged", "judge_after"),
    *("run_id", "arrived_at", "settled_at"),
)
ARRIVE = Prepared(
    f"INSERT INTO run_input ({', '.join(_INPUT)}) "
    f"VALUES ({', '.join(':' + name for name in _INPUT)}) "
    "ON CONFLICT (tenant_id, agent_id, message_id) DO NOTHING"
)
JUDGE_AGAIN = Prepared(  # those that wait to be judged are judged at the next message
    "UPDATE run_input SET judge_after = :moment WHERE tenant_id = :tenant_id "
    "AND agent_id = :agent_id AND state = 'queued' AND hold = 'wait' AND lane_id IN ("
    "SELECT id FROM lane WHERE tenant_id = :tenant_id AND agent_id = :agent_id "
    "AND conversation_id = :conversation_id)"
)
END_STREAK = Prepared(
    "UPDATE lane SET agent_streak = 0 WHERE tenant_id = :tenant_id AND agent_id = :agent_id "
    "AND conversation_id = :conversation_id AND agent_streak > 0 RETURNING id, user_id"
)
MAKE_LANE = Prepared(
    "INSERT INTO lane (tenant_id, id, agent_id, party, user_id, peer_aid, conversation_id, "
    "discussion, agent_streak, hour_used, created_at) VALUES (:tenant_id, :id, :agent_id, :party, "
    ":user_id, :peer_aid, :conversation_id, :discussion, 0, 0, :created_at) "
    "ON CONFLICT (tenant_id, agent_id, party, conversation_id, discussion) DO NOTHING"
)
LANE_ID = Prepared(
    "SELECT id FROM lane WHERE tenant_id = :tenant_id AND agent_id = :agent_id "
    "AND party = :party AND conversation_id = :conversation_id AND discussion = :discussion"
)
CHAIN = Prepared(  # whose run said a message
    "SELECT r.user_id, r.actors, r.scopes, r.depth, l.party, l.peer_aid FROM sent_message s "
    "JOIN run r ON r.tenant_id = s.tenant_id AND r.id = s.run_id "
    "LEFT JOIN lane l ON l.tenant_id = r.tenant_id AND l.id = r.lane_id "
    "WHERE s.tenant_id = :tenant_id AND s.message_id = :message_id"
)

# --- gates and admission -----------------------------------------------------------------------

LANE = LockingLane(
    "SELECT l.tenant_id, l.id, l.agent_id, l.party, l.user_id, l.peer_aid, l.conversation_id, "
    "l.discussion, l.paused_at, l.reset_after_seq, l.agent_streak, l.hour_start, l.hour_used, "
    "a.aid AS agent_aid, a.status AS agent_status, t.status AS tenant_status, "
    "u.status AS user_status, d.id AS delegation_id, d.scopes AS delegation_scopes, "
    "d.paused_at AS delegation_paused_at, d.expires_at AS delegation_expires_at, "
    "s.paused_at AS agent_paused_at, c.group_id, g.status AS group_status, "
    "(SELECT p.from_seq FROM conversation_participant p WHERE p.tenant_id = l.tenant_id "
    "AND p.conversation_id = l.conversation_id AND p.aid = a.aid AND p.left_at IS NULL) "
    "AS agent_from_seq, EXISTS (SELECT 1 FROM conversation_participant p "
    "WHERE p.tenant_id = l.tenant_id AND p.conversation_id = l.conversation_id "
    "AND p.left_at IS NULL AND (p.aid = u.aid OR p.aid = l.peer_aid OR p.aid IN ("
    "SELECT k.aid FROM peer_link k WHERE k.tenant_id = l.tenant_id AND k.user_id = l.user_id "
    "AND k.revoked_at IS NULL))) AS is_principal_in "
    "FROM lane l JOIN agent a ON a.tenant_id = l.tenant_id AND a.id = l.agent_id "
    "JOIN tenant t ON t.id = l.tenant_id "
    "JOIN conversation c ON c.tenant_id = l.tenant_id AND c.id = l.conversation_id "
    'LEFT JOIN "user" u ON u.tenant_id = l.tenant_id AND u.id = l.user_id '
    "LEFT JOIN delegation d ON d.tenant_id = l.tenant_id AND d.user_id = l.user_id "
    "AND d.agent_id = l.agent_id AND d.revoked_at IS NULL "
    "LEFT JOIN agent_pause s ON s.tenant_id = l.tenant_id AND s.agent_id = l.agent_id "
    "LEFT JOIN aun_group g ON g.tenant_id = l.tenant_id AND g.id = c.group_id "
    "WHERE l.tenant_id = :tenant_id AND l.id = :lane_id"
)
_QUEUED = (
    "SELECT i.tenant_id, i.id, i.message_id, i.log_seq, i.mode, i.sender_kind, i.sender_aid, "
    "i.hold, i.judged, i.run_id, i.state, m.id AS stored, m.conversation_id, "
    "m.message_id AS sent_as, m.recalled_at, m.payload, m.sent_at, m.group_id, "
    "i.sender_kind = 'person' AND EXISTS (SELECT 1 FROM aun_identity n "
    "WHERE n.tenant_id = i.tenant_id AND n.aid = i.sender_aid AND n.kind = 'outside') "
    "AND NOT EXISTS (SELECT 1 FROM peer_link k JOIN lane l ON l.tenant_id = k.tenant_id "
    "AND l.user_id = k.user_id WHERE k.tenant_id = i.tenant_id AND k.aid = i.sender_aid "
    "AND k.revoked_at IS NULL AND l.id = i.lane_id) AS is_unlinked FROM run_input i "
    "LEFT JOIN message m ON m.tenant_id = i.tenant_id AND m.id = i.message_id "
    "WHERE i.tenant_id = :tenant_id AND i.lane_id = :lane_id AND i.state = 'queued' "
    "AND (i.judge_after IS NULL OR i.judge_after <= :moment)"
)
QUEUED = Prepared(  # steering goes first; within a mode the oldest (F-4)
    _QUEUED + " ORDER BY CASE i.mode WHEN 'steering' THEN 0 ELSE 1 END, i.log_seq LIMIT :limit"
)
_JUDGED = " AND (i.hold IS NULL OR i.hold <> 'wait')"
QUEUED_OF = Prepared(_QUEUED + _JUDGED + " AND i.mode = :mode ORDER BY i.log_seq LIMIT :limit")
QUEUED_JUDGED = Prepared(
    _QUEUED + _JUDGED + " ORDER BY CASE i.mode WHEN 'steering' THEN 0 ELSE 1 END, i.log_seq "
    "LIMIT :limit"
)
QUEUED_ONE = Prepared(_QUEUED + " AND i.id = :input_id LIMIT 1")
QUEUED_OPENING = Prepared(  # what opened the run goes first
    _QUEUED + _JUDGED + " ORDER BY CASE WHEN i.message_id = (SELECT r.origin_message_id FROM run r "
    "WHERE r.tenant_id = :tenant_id AND r.id = :run_id) THEN 0 ELSE 1 END, "
    "CASE i.mode WHEN 'steering' THEN 0 ELSE 1 END, i.log_seq LIMIT :limit"
)
QUEUED_TO_JUDGE = Prepared(_QUEUED + " AND i.hold = 'wait' ORDER BY i.log_seq LIMIT 20")
HAS_QUEUED = Prepared(
    "SELECT 1 FROM run_input WHERE tenant_id = :tenant_id AND lane_id = :lane_id "
    "AND state = 'queued' AND mode = :mode AND (hold IS NULL OR hold <> 'wait') "
    "AND (judge_after IS NULL OR judge_after <= :moment) LIMIT 1"
)
_TOLD = " RETURNING tenant_id, id, lane_id, message_id, state, hold, run_id"
ACCEPT = Prepared(
    "UPDATE run_input SET state = 'accepted', hold = NULL, judge_after = NULL, run_id = :run_id, "
    "round = :round, accepted_seq = :accepted_seq, accepted_at = :now "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'queued'" + _TOLD
)
JUDGED = Prepared(
    "UPDATE run_input SET hold = NULL, judge_after = NULL "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'queued' AND hold = 'wait'" + _TOLD
)
WAIT_ON = Prepared(
    "UPDATE run_input SET judged = :judged, judge_after = :again "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'queued' AND hold = 'wait'"
)
CLOSE = Prepared(  # archived or dropped
    "UPDATE run_input SET state = :state, reason = :reason, hold = NULL, judge_after = NULL, "
    "settled_at = :now WHERE tenant_id = :tenant_id AND id = :id AND state = 'queued'" + _TOLD
)
SETTLE = Prepared(
    "UPDATE run_input SET state = :state, reason = :reason, settled_at = :now "
    "WHERE tenant_id = :tenant_id AND run_id = :run_id AND state = 'accepted'" + _TOLD
)
HOLD = Prepared(
    "UPDATE run_input SET hold = :hold, judge_after = :until WHERE tenant_id = :tenant_id "
    "AND lane_id = :lane_id AND state = 'queued' "
    "AND (hold IS NULL OR hold NOT IN (:hold, 'wait')) "  # those still to be judged stay so
    "AND (sender_kind <> 'person' OR :persons)" + _TOLD
)
HOLD_ON = Prepared(
    "UPDATE run_input SET judge_after = :until WHERE tenant_id = :tenant_id "
    "AND lane_id = :lane_id AND state = 'queued' AND hold IN (:hold, 'wait') "
    "AND (judge_after IS NULL OR judge_after < :until)"
)
UNHOLD = Prepared(
    "UPDATE run_input SET hold = NULL, judge_after = NULL WHERE tenant_id = :tenant_id "
    "AND lane_id = :lane_id AND state = 'queued' AND hold = :hold" + _TOLD
)
DROP_QUEUED = Prepared(
    "UPDATE run_input SET state = :state, reason = :reason, hold = NULL, judge_after = NULL, "
    "settled_at = :now WHERE tenant_id = :tenant_id AND lane_id = :lane_id AND state = 'queued' "
    "AND log_seq <= :up_to" + _TOLD
)
HELD_LANES = Prepared(
    "SELECT l.id, l.user_id FROM lane l WHERE l.tenant_id = :tenant_id "
    "AND l.agent_id = :agent_id AND EXISTS (SELECT 1 FROM run_input i "
    "WHERE i.tenant_id = l.tenant_id AND i.lane_id = l.id AND i.state = 'queued' "
    "AND i.hold = 'paused')"
)
CONVERSATION_OF = Prepared(
    "SELECT conversation_id, user_id FROM lane WHERE tenant_id = :tenant_id AND id = :lane_id"
)
COUNT_INPUT = Prepared(
    "UPDATE lane SET agent_streak = :agent_streak, hour_start = :hour_start, "
    "hour_used = :hour_used WHERE tenant_id = :tenant_id AND id = :lane_id"
)
HAS_RECEIPT = Prepared(  # settled ones too: what comes next is a follow-up, in a round of its own
    "SELECT 1 FROM run_input WHERE tenant_id = :tenant_id AND run_id = :run_id LIMIT 1"
)
STEPS = Prepared(
    "SELECT o.steps_used < o.step_limit AND r.steps_used < r.step_limit AS is_left FROM run r "
    "JOIN run o ON o.tenant_id = r.tenant_id AND o.id = r.root_run_id "
    "WHERE r.tenant_id = :tenant_id AND r.id = :run_id"
)
LIVE_IN = Prepared(
    "SELECT id, state FROM run WHERE tenant_id = :tenant_id AND lane_id = :lane_id "
    f"AND kind = 'conversation' AND state IN {_LIVE}"
)
TRIES = Prepared(
    "SELECT count(*) AS number FROM run WHERE tenant_id = :tenant_id AND lane_id = :lane_id "
    "AND kind = 'conversation' AND origin_message_id = :message_id"
)
RUNS_OF_PEER = Prepared(
    "SELECT count(*) AS number FROM run r JOIN lane l ON l.tenant_id = r.tenant_id "
    "AND l.id = r.lane_id WHERE l.tenant_id = :tenant_id AND l.party = :party "
    "AND r.queued_at > :since"
)

# --- claims ------------------------------------------------------------------------------------

ALONE = Prepared("SELECT pg_advisory_xact_lock(7203514)")  # claims one after the other: exact caps


_CLAIM = (  # `=`, for PostgreSQL may ask a query behind `IN` once for each row
    "UPDATE run SET state = 'running', claim_token = :token, claimed_by = :process, "
    "lease_until = {until}, started_at = coalesce(started_at, :moment), not_before = NULL, "
    "version = version + 1 WHERE state = 'queued' AND (tenant_id, id) = ("
    f"SELECT r.tenant_id, r.id FROM run r WHERE {_CLAIMABLE} "
    "AND (SELECT count(*) FROM run o WHERE o.state = 'running' AND o.tenant_id = r.tenant_id "
    "AND o.agent_id = r.agent_id) < coalesce({agent_limit}, :agent_cap) "
    "AND (r.user_id IS NULL OR (SELECT count(*) FROM run o WHERE o.state = 'running' "
    "AND o.tenant_id = r.tenant_id AND o.user_id = r.user_id) "
    "< coalesce({user_limit}, :user_cap)) ORDER BY r.queued_at, r.id LIMIT 1{skipping}) "
    "RETURNING tenant_id, id"
)
_OF_RELEASE = (  # what is published now: the snapshot of the run is made after its claim
    "(SELECT {} FROM agent_release v WHERE v.tenant_id = r.tenant_id "
    "AND v.agent_id = r.agent_id ORDER BY v.number DESC LIMIT 1)"
)
# what is no number is no limit of its own: one release that cannot be read must not stop all claims
_LIMIT_SQLITE = (
    "CASE WHEN NOT json_valid(v.content) THEN NULL "
    "WHEN json_type(v.content, '$.limits.{0}') = 'integer' "
    "THEN json_extract(v.content, '$.limits.{0}') END"
)
_LIMIT_POSTGRESQL = (
    "CASE WHEN v.content -> 'limits' ->> '{0}' ~ '^[0-9]{{1,9}}$' "
    "THEN (v.content -> 'limits' ->> '{0}')::int END"
)
_CLAIM_SQLITE = Prepared(
    _CLAIM.format(
        until=":until",
        agent_limit=_OF_RELEASE.format(_LIMIT_SQLITE.format("concurrent")),
        user_limit=_OF_RELEASE.format(_LIMIT_SQLITE.format("concurrent_per_user")),
        skipping="",
    )
)
_CLAIM_POSTGRESQL = Prepared(
    _CLAIM.format(
        until="clock_timestamp() + :lease_s * interval '1 second'",
        agent_limit=_OF_RELEASE.format(_LIMIT_POSTGRESQL.format("concurrent")),
        user_limit=_OF_RELEASE.format(_LIMIT_POSTGRESQL.format("concurrent_per_user")),
        skipping=" FOR UPDATE OF r SKIP LOCKED",
    )
)


def claim_one(
    connection: Connection,
    *,
    token: str,
    process: str,
    lease_s: float,
    agent_cap: int,
    user_cap: int,
) -> Any:
    """Take the oldest queued run within the caps, None where there is none (RUN-62)."""
    now = clock.now()
    values: dict[str, Any] = {
        "token": token,
        "process": process,
        "moment": now,
        "agent_cap": agent_cap,
        "user_cap": user_cap,
    }
    if is_sqlite(connection):
        values["until"] = now + timedelta(seconds=lease_s)
        return _CLAIM_SQLITE.run_with(connection, values).first()
    ALONE.run(connection)
    return _CLAIM_POSTGRESQL.run_with(connection, values | {"lease_s": lease_s}).first()


BEAT = ByLease(
    "UPDATE run SET lease_until = {until} WHERE tenant_id = :tenant_id AND id = :run_id "
    "AND claim_token = :token AND state = 'running' RETURNING cancel_requested_at, reason"
)
EXPIRED = ByLease(
    "SELECT r.tenant_id, r.id, r.claim_token, r.takeovers FROM run r WHERE r.state = 'running' "
    "AND r.lease_until < {now} ORDER BY r.lease_until LIMIT :limit"
)
RECOVER = ByLease(
    "UPDATE run SET state = 'queued', claim_token = NULL, claimed_by = NULL, lease_until = NULL, "
    "takeovers = takeovers + 1, version = version + 1 WHERE tenant_id = :tenant_id "
    "AND id = :run_id AND claim_token = :token AND state = 'running' "
    "AND lease_until < {now} RETURNING id"
)
REQUEST_CANCEL = Prepared(
    "UPDATE run SET cancel_requested_at = :moment, cancel_requested_by = :by, reason = :reason, "
    "version = version + 1 WHERE tenant_id = :tenant_id AND id = :run_id AND state = 'running' "
    "AND cancel_requested_at IS NULL RETURNING id"
)

# --- waits -------------------------------------------------------------------------------------

SATISFY = Prepared(
    "UPDATE run_wait SET satisfied_at = :now, answer = :answer WHERE tenant_id = :tenant_id "
    "AND id = :id AND satisfied_at IS NULL RETURNING run_id"
)
WAKE = Prepared(
    "UPDATE run SET state = 'queued', queued_at = :now, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :run_id AND state = 'suspended' RETURNING id"
)
RUN_OF_WAIT = Prepared("SELECT run_id FROM run_wait WHERE tenant_id = :tenant_id AND id = :id")
FOLLOW_APPROVAL = Prepared(
    "UPDATE run_wait SET ref = :successor WHERE tenant_id = :tenant_id "
    "AND id = :id AND satisfied_at IS NULL"
)
FOLLOW_APPROVAL_IN_CALL = Prepared(
    "UPDATE tool_call SET approval_id = :successor, rev = rev + 1 WHERE tenant_id = :tenant_id "
    "AND id = :call_id AND state = 'waiting'"
)
TAKE_SUSPENDED = Prepared(
    "UPDATE run SET state = 'running', claim_token = :token WHERE tenant_id = :tenant_id "
    "AND id = :run_id AND state = 'suspended' RETURNING id"
)
SUSPEND_AGAIN = Prepared(
    "UPDATE run SET state = 'suspended', claim_token = NULL WHERE tenant_id = :tenant_id "
    "AND id = :run_id AND claim_token = :token"
)
WOKEN_BY = Prepared(  # the newest message that ended a wait of a run
    "SELECT answer FROM run_wait WHERE tenant_id = :tenant_id AND run_id = :run_id "
    "AND kind IN ('message', 'timer', 'approval') AND satisfied_at IS NOT NULL "
    "ORDER BY satisfied_at DESC, id DESC LIMIT 1"
)

RESOLVE = Prepared(
    "UPDATE tool_call SET resolved_as = :finding, resolved_by = :by, resolved_at = :now, "
    "rev = rev + 1 WHERE tenant_id = :tenant_id AND id = :id AND state = 'unknown' "
    "AND resolved_as IS NULL"
)
MOVE_SCHEDULE = Prepared(
    "UPDATE agent_schedule SET next_at = :next_at, last_at = :now, run_count = :number, "
    "version = version + 1 WHERE tenant_id = :tenant_id AND id = :id AND version = :version"
)
REST_SCHEDULE = Prepared(
    "UPDATE agent_schedule SET paused_at = :now, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND paused_at IS NULL"
)

# --- standing ----------------------------------------------------------------------------------

STANDING = Prepared(
    "SELECT r.tenant_id, r.id, r.root_run_id, r.agent_id, r.user_id, r.delegation_id, r.actors, "
    "r.tokens_used, r.cost_micros, "
    "t.status AS tenant_status, u.status AS user_status, u.authz_epoch, "
    "a.status AS agent_status, d.id AS delegation, d.revoked_at, d.expires_at, "
    "d.paused_at AS delegation_paused_at, d.scopes, c.group_id, g.status AS group_status, "
    "s.paused_at AS agent_paused_at, l.paused_at AS lane_paused_at, "
    "EXISTS (SELECT 1 FROM conversation_participant p WHERE p.tenant_id = r.tenant_id "
    "AND p.conversation_id = r.conversation_id AND p.aid = a.aid AND p.left_at IS NULL) "
    "AS is_agent_in, EXISTS (SELECT 1 FROM conversation_participant p "
    "WHERE p.tenant_id = r.tenant_id AND p.conversation_id = r.conversation_id "
    "AND p.left_at IS NULL AND (p.aid = u.aid OR p.aid = l.peer_aid OR p.aid IN ("
    "SELECT k.aid FROM peer_link k WHERE k.tenant_id = r.tenant_id AND k.user_id = r.user_id "
    "AND k.revoked_at IS NULL))) AS is_principal_in, "
    "r.user_id IS NOT NULL AND EXISTS (SELECT 1 FROM message o JOIN aun_identity n "
    "ON n.tenant_id = o.tenant_id AND n.aid = o.sender_aid AND n.kind = 'outside' "
    "WHERE o.tenant_id = r.tenant_id AND o.id = r.origin_message_id AND NOT EXISTS ("
    "SELECT 1 FROM peer_link k WHERE k.tenant_id = o.tenant_id AND k.aid = o.sender_aid "
    "AND k.user_id = r.user_id AND k.revoked_at IS NULL)) AS is_unlinked "
    "FROM run r JOIN tenant t ON t.id = r.tenant_id "
    "JOIN agent a ON a.tenant_id = r.tenant_id AND a.id = r.agent_id "
    'LEFT JOIN "user" u ON u.tenant_id = r.tenant_id AND u.id = r.user_id '
    "LEFT JOIN delegation d ON d.tenant_id = r.tenant_id AND d.id = r.delegation_id "
    "LEFT JOIN lane l ON l.tenant_id = r.tenant_id AND l.id = r.lane_id "
    "LEFT JOIN conversation c ON c.tenant_id = r.tenant_id AND c.id = r.conversation_id "
    "LEFT JOIN aun_group g ON g.tenant_id = r.tenant_id AND g.id = c.group_id "
    "LEFT JOIN agent_pause s ON s.tenant_id = r.tenant_id AND s.agent_id = r.agent_id "
    "WHERE r.tenant_id = :tenant_id AND r.id = :run_id"
)
