"""The hot rows of messaging in prepared SQL: a message, its inbox, its place in a conversation.

A number of an inbox is taken under the lock of its row, in the transaction that stores: so a lower
one never appears after a higher one, and no reader's cursor passes what it has not seen.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from app.kernel.prepared import Found, Prepared

COLUMNS = (
    "tenant_id",
    "id",
    "conversation_id",
    "sender_aid",
    "sender_device",
    "message_id",
    "receiver_aid",
    "group_id",
    "seq",
    "log_seq",
    "type",
    "payload",
    "envelope",
    "unreadable",
    "html",
    "need_render",
    "mention_mode",
    "in_reply_to",
    "thread_id",
    "to_device",
    "sent_at",
    "sent_ms",
    "expires_at",
    "recalled_at",
    "version",
)

_CONVERSATION = (
    "(SELECT id FROM conversation WHERE tenant_id = :tenant_id AND first_aid = :first_aid "
    "AND second_aid = :second_aid) AS conversation_id"
)
_BEFORE = (
    "(SELECT id FROM message WHERE tenant_id = :tenant_id AND sender_aid = :sender_aid "
    "AND message_id = :message_id) AS known"
)
PLACE = Prepared(f"SELECT {_CONVERSATION}, {_BEFORE}")
ADDRESSED = Prepared(  # all that a send asks before it stores, in one
    "SELECT s.status AS sender_status, r.kind, r.status, "  # noqa: S608 - our words
    "(SELECT delivery_mode FROM aun_connection WHERE tenant_id = :tenant_id "
    "AND aid = :receiver_aid AND seen_at > :since LIMIT 1) AS mode, "
    f"{_CONVERSATION}, {_BEFORE} FROM aun_identity s LEFT JOIN aun_identity r "
    "ON r.tenant_id = s.tenant_id AND r.aid = :receiver_aid "
    "WHERE s.tenant_id = :tenant_id AND s.aid = :sender_aid"
)
KNOWN = Prepared(
    "SELECT m.id, m.conversation_id, m.log_seq, m.sent_ms, m.seq AS group_seq, e.seq AS inbox_seq, "
    "m.expires_at, m.mention_mode FROM message m LEFT JOIN inbox_entry e "
    "ON e.tenant_id = m.tenant_id AND e.message = m.id AND e.aid = m.receiver_aid "
    "AND e.direction = 'inbound' "
    "WHERE m.tenant_id = :tenant_id AND m.sender_aid = :sender_aid AND m.message_id = :message_id"
)
_MESSAGE = (
    f"INSERT INTO message ({', '.join(COLUMNS)}) "  # noqa: S608 - our columns
    f"VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
)
_TALK = (
    "UPDATE conversation SET last_seq = :log_seq, last_message_id = :id "
    "WHERE tenant_id = :tenant_id AND id = :conversation_id"
)
_COUNTER = (
    "INSERT INTO inbox_counter (tenant_id, aid, seq) VALUES (:tenant_id, :aid, 1) "
    "ON CONFLICT (tenant_id, aid) DO UPDATE SET seq = inbox_counter.seq + 1 RETURNING seq"
)
_PEER = (
    "INSERT INTO inbox_peer "
    "(tenant_id, aid, sender_aid, head_seq, prev_seq, floor_seq, delivered_seq) {taken} "
    "ON CONFLICT (tenant_id, aid, sender_aid) DO UPDATE "
    "SET prev_seq = inbox_peer.head_seq, head_seq = excluded.head_seq "
    "RETURNING head_seq, prev_seq"
)
_ENTRY = (
    "INSERT INTO inbox_entry (tenant_id, aid, seq, message, sender_aid, prev_peer_seq, direction) "
)
_INSERT = Prepared(_MESSAGE)
_TOUCH = Prepared(_TALK)
_TAKE = Prepared(_COUNTER)
_FOLLOW = Prepared(_PEER.format(taken="VALUES (:tenant_id, :aid, :sender_aid, :seq, 0, 0, 0)"))
_ENTER = Prepared(
    _ENTRY + "VALUES (:tenant_id, :aid, :seq, :id, :sender_aid, :prev_peer_seq, :direction)"
)
_TAKEN = "SELECT :tenant_id, :aid, :sender_aid, counter.seq, 0, 0, 0 FROM counter"
_INBOX_AT_ONCE = (
    f"counter AS ({_COUNTER}), peer AS ({_PEER.format(taken=_TAKEN)}) {_ENTRY}"  # noqa: S608 - ours
    "SELECT :tenant_id, :aid, peer.head_seq, :id, :sender_aid, peer.prev_seq, :direction "
    "FROM peer RETURNING seq"
)
_STORE_AT_ONCE = Prepared(f"WITH stored AS ({_MESSAGE}), talk AS ({_TALK}), {_INBOX_AT_ONCE}")
_ENTER_AT_ONCE = Prepared(f"WITH {_INBOX_AT_ONCE}")
_KEEP_AT_ONCE = Prepared(f"WITH stored AS ({_MESSAGE}) {_TALK}")

START = Prepared(
    "INSERT INTO conversation (tenant_id, id, kind, first_aid, second_aid, group_id, started_by, "
    "last_seq, last_message_id, created_at) VALUES (:tenant_id, :id, :kind, :first_aid, "
    ":second_aid, :group_id, :started_by, 0, NULL, :created_at)"
)
TAKE_PART = Prepared(
    "INSERT INTO conversation_participant (tenant_id, conversation_id, aid, from_seq, read_seq) "
    "VALUES (:tenant_id, :conversation_id, :aid, :from_seq, :from_seq) "
    "ON CONFLICT (tenant_id, conversation_id, aid) DO UPDATE SET left_at = NULL, "
    "from_seq = excluded.from_seq, read_seq = CASE WHEN conversation_participant.read_seq > "
    "excluded.read_seq THEN conversation_participant.read_seq ELSE excluded.read_seq END"
)
LEAVE = Prepared(
    "UPDATE conversation_participant SET left_at = :left_at WHERE tenant_id = :tenant_id "
    "AND conversation_id = :conversation_id AND aid = :aid AND left_at IS NULL"
)
READ_UP_TO = Prepared(
    "UPDATE conversation_participant SET read_seq = :seq WHERE tenant_id = :tenant_id "
    "AND conversation_id = :conversation_id AND aid = :aid AND read_seq < :seq"
)
CONVERSATION_KIND = Prepared(
    "SELECT kind FROM conversation WHERE tenant_id = :tenant_id AND id = :conversation_id"
)
OWNER = Prepared(
    "SELECT owner_id FROM aun_identity WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND kind = 'user'"
)
OF_PAIR = Prepared(
    "SELECT id FROM conversation WHERE tenant_id = :tenant_id AND first_aid = :first_aid "
    "AND second_aid = :second_aid"
)
OF_GROUP = Prepared(
    "SELECT id, last_seq FROM conversation WHERE tenant_id = :tenant_id AND group_id = :group_id"
)
LAST_SEQ = Prepared(
    "SELECT last_seq FROM conversation WHERE tenant_id = :tenant_id AND id = :conversation_id"
)

IS_DEVICE = Prepared(
    "SELECT 1 FROM aun_device_key WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND device_id = :device_id UNION ALL "
    "SELECT 1 FROM aun_connection WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND device_id = :device_id UNION ALL "
    "SELECT 1 FROM aun_cursor WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND device_id = :device_id LIMIT 1"
)
_ROW = (
    "SELECT e.seq, e.prev_peer_seq, e.direction, m.id, m.message_id, m.sender_aid, "
    "m.sender_device, m.receiver_aid, m.type, m.payload, m.envelope, m.unreadable, m.need_render, "
    "m.to_device, m.sent_ms, m.recalled_at, m.conversation_id, m.log_seq "
    "FROM inbox_entry e JOIN message m ON m.tenant_id = e.tenant_id AND m.id = e.message "
    "WHERE e.tenant_id = :tenant_id AND e.aid = :aid AND e.seq > :after_seq AND e.seq < :before_seq"
)
_FROM = " AND e.sender_aid = :sender_aid"
FORWARD = Prepared(_ROW + _FROM + " ORDER BY e.seq LIMIT :limit")
BACKWARD = Prepared(_ROW + _FROM + " ORDER BY e.seq DESC LIMIT :limit")
FORWARD_ALL = Prepared(_ROW + " ORDER BY e.seq LIMIT :limit")
_COLUMNS, _, _TABLES = _ROW.partition(" FROM ")
_JOINED = _TABLES.partition(" WHERE ")[0]
OF_MESSAGE = Prepared(  # and whose its sender is
    f"{_COLUMNS}, (SELECT i.kind FROM aun_identity i WHERE i.tenant_id = e.tenant_id "  # noqa: S608 - our words
    f"AND i.aid = m.sender_aid) AS sender_kind FROM {_JOINED} "
    "WHERE e.tenant_id = :tenant_id AND e.message = :id AND e.aid = :aid"
)
IN_INBOX = Prepared(  # by way of the senders, for an id alone is in no index
    _COLUMNS + " FROM inbox_peer p JOIN message m ON m.tenant_id = p.tenant_id "
    "AND m.sender_aid = p.sender_aid AND m.message_id = :message_id "
    "JOIN inbox_entry e ON e.tenant_id = m.tenant_id AND e.message = m.id AND e.aid = p.aid "
    "WHERE p.tenant_id = :tenant_id AND p.aid = :aid ORDER BY e.seq DESC LIMIT 1"
)
_PEER_ROW = (
    "SELECT p.sender_aid, p.head_seq, p.floor_seq, p.delivered_seq, "
    "COALESCE(c.ack_seq, 0) AS ack_seq, (SELECT i.kind FROM aun_identity i "
    "WHERE i.tenant_id = p.tenant_id AND i.aid = p.sender_aid) AS kind "
    "FROM inbox_peer p LEFT JOIN aun_cursor c ON c.tenant_id = p.tenant_id AND c.aid = p.aid "
    "AND c.device_id = :device_id AND c.slot_key = :slot_key AND c.scope = 'peer' "
    "AND c.subject = p.sender_aid WHERE p.tenant_id = :tenant_id AND p.aid = :aid "
)
ONE_PEER = Prepared(_PEER_ROW + "AND p.sender_aid = :sender_aid")
PENDING_PEERS = Prepared(
    _PEER_ROW + "AND p.head_seq > COALESCE(c.ack_seq, 0) ORDER BY p.sender_aid"
)
EVERY_PEER = Prepared(_PEER_ROW + "AND p.sender_aid > :after ORDER BY p.sender_aid LIMIT :limit")
INBOX_HEAD = Prepared(
    "SELECT COALESCE((SELECT seq FROM inbox_counter WHERE tenant_id = :tenant_id AND aid = :aid), "
    "0) AS head_seq, COALESCE((SELECT MAX(floor_seq) FROM inbox_peer WHERE tenant_id = :tenant_id "
    "AND aid = :aid), 0) AS floor_seq, COALESCE((SELECT ack_seq FROM aun_cursor "
    "WHERE tenant_id = :tenant_id AND aid = :aid AND device_id = :device_id "
    "AND slot_key = :slot_key AND scope = 'global' AND subject = ''), 0) AS ack_seq"
)
CURSOR = Prepared(
    "SELECT ack_seq FROM aun_cursor WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND device_id = :device_id AND slot_key = :slot_key AND scope = :scope AND subject = :subject"
)
MOVE_CURSOR = Prepared(
    "INSERT INTO aun_cursor "
    "(tenant_id, aid, device_id, slot_key, scope, subject, ack_seq, updated_at) VALUES (:tenant_id,"
    " :aid, :device_id, :slot_key, :scope, :subject, :ack_seq, :updated_at) "
    "ON CONFLICT (tenant_id, aid, device_id, slot_key, scope, subject) DO UPDATE "
    "SET ack_seq = excluded.ack_seq, updated_at = excluded.updated_at "
    "WHERE aun_cursor.ack_seq < excluded.ack_seq"
)
SENT = Prepared(
    "SELECT id, conversation_id, receiver_aid, group_id, seq, sent_ms, recalled_at FROM message "
    "WHERE tenant_id = :tenant_id AND sender_aid = :sender_aid AND message_id = :message_id"
)
BURY = Prepared(
    "UPDATE message SET type = :type, payload = :payload, envelope = NULL, unreadable = NULL, "
    "html = NULL, recalled_at = :recalled_at, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND recalled_at IS NULL"
)
QUEUE = Prepared(
    "SELECT id FROM aun_connection WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND delivery_mode = 'queue' AND seen_at > :since ORDER BY id"
)
DELIVERED = Prepared(
    "UPDATE inbox_peer SET delivered_seq = :seq WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND sender_aid = :sender_aid AND delivered_seq < :seq"
)
EXPIRE = Prepared(
    "UPDATE message SET payload = NULL, envelope = NULL, html = NULL, version = version + 1 "
    "WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM message WHERE expires_at <= :now "
    "AND (payload IS NOT NULL OR envelope IS NOT NULL) LIMIT :limit)"
)
_OLD = (
    "SELECT m.id, m.conversation_id FROM message m WHERE m.tenant_id = :tenant_id "
    "AND m.sent_at < :before AND {}("
    "SELECT 1 FROM conversation_participant p JOIN aun_identity i ON i.tenant_id = p.tenant_id "
    "AND i.aid = p.aid WHERE p.tenant_id = m.tenant_id AND p.conversation_id = m.conversation_id "
    "AND i.kind IN ('user', 'agent')) ORDER BY m.log_seq LIMIT :limit"
)
OLD_OUTSIDE = Prepared(_OLD.format("m.receiver_aid IS NOT NULL AND NOT EXISTS "))
OLD_HOSTED = Prepared(_OLD.format("EXISTS "))
ENTRIES = Prepared(
    "SELECT aid, sender_aid, seq FROM inbox_entry WHERE tenant_id = :tenant_id AND message = :id"
)
RAISE_FLOOR = Prepared(
    "UPDATE inbox_peer SET floor_seq = :seq WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND sender_aid = :sender_aid AND floor_seq < :seq"
)
FORGET_ENTRIES = Prepared("DELETE FROM inbox_entry WHERE tenant_id = :tenant_id AND message = :id")
FORGET_LAST = Prepared(
    "UPDATE conversation SET last_message_id = NULL "
    "WHERE tenant_id = :tenant_id AND id = :conversation_id AND last_message_id = :message"
)
FORGET = Prepared("DELETE FROM message WHERE tenant_id = :tenant_id AND id = :id")


def keep(connection: Connection, message: Mapping[str, Any]) -> None:
    """Insert a message of no inbox, a group's, as the newest of its conversation."""
    if connection.dialect.name == "postgresql":
        _KEEP_AT_ONCE.run_with(connection, message)
        return
    _INSERT.run_with(connection, message)
    _touch(connection, message)


def keep_for(connection: Connection, message: Mapping[str, Any], aid: str) -> int:
    """Insert a message as the newest of its conversation and of the inbox of `aid`: its number."""
    if connection.dialect.name == "postgresql":
        values = {**message, "aid": aid, "direction": "inbound"}
        return int(_STORE_AT_ONCE.run_with(connection, values).scalar())
    keep(connection, message)
    return enter(connection, message, aid, "inbound")


def enter(connection: Connection, message: Mapping[str, Any], aid: str, direction: str) -> int:
    """Put a message into the inbox of `aid` as its newest; returns its number there."""
    known = {"tenant_id": message["tenant_id"], "aid": aid, "sender_aid": message["sender_aid"]}
    told = {"id": message["id"], "direction": direction}
    if connection.dialect.name == "postgresql":
        return int(_ENTER_AT_ONCE.run_with(connection, known | told).scalar())
    seq: int = _TAKE.run(connection, tenant_id=known["tenant_id"], aid=aid).one().seq
    before: int = _FOLLOW.run_with(connection, {**known, "seq": seq}).one().prev_seq
    _ENTER.run_with(connection, {**known, **told, "seq": seq, "prev_peer_seq": before})
    return seq


def _touch(connection: Connection, message: Mapping[str, Any]) -> Found:
    return _TOUCH.run(
        connection,
        tenant_id=message["tenant_id"],
        conversation_id=message["conversation_id"],
        log_seq=message["log_seq"],
        id=message["id"],
    )
