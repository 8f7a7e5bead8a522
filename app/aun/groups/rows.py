"""The hot rows of groups in prepared SQL: a number, a member, a page of messages, a cursor."""

from app.kernel.prepared import Prepared

# the row stays locked until the unit is over, so a lower number never appears after a higher one
TAKE_SEQ = Prepared(
    "UPDATE aun_group SET message_seq = message_seq + 1 WHERE tenant_id = :tenant_id "
    "AND id = :group_id RETURNING message_seq, event_seq, status, visibility, mention_mode"
)
GIVE_BACK = Prepared(  # nobody else saw it: the row is locked since it was taken
    "UPDATE aun_group SET message_seq = message_seq - 1 "
    "WHERE tenant_id = :tenant_id AND id = :group_id"
)
MEMBER = Prepared(
    "SELECT m.role, m.banned_at IS NOT NULL AS is_banned, i.status FROM aun_group_member m "
    "JOIN aun_identity i ON i.tenant_id = m.tenant_id AND i.aid = m.aid "
    "WHERE m.tenant_id = :tenant_id AND m.group_id = :group_id AND m.aid = :aid"
)
HEARING = Prepared(  # members who receive messages, and were there when this one came
    "SELECT aid FROM aun_group_member WHERE tenant_id = :tenant_id AND group_id = :group_id "
    "AND join_seq < :seq AND blocked_at IS NULL"
)
_SHOWN = (
    "SELECT seq, id, message_id, sender_aid, sender_device, type, payload, envelope, unreadable, "
    "need_render, mention_mode, sent_ms, recalled_at FROM message "
    "WHERE tenant_id = :tenant_id AND group_id = :group_id "
)
AFTER = Prepared(_SHOWN + "AND seq > :after AND seq <= :until ORDER BY seq LIMIT :limit")
BEFORE = Prepared(_SHOWN + "AND seq > :after AND seq < :before ORDER BY seq DESC LIMIT :limit")
ONE = Prepared(_SHOWN + "AND id = :id")
OLDEST = Prepared(
    "SELECT MIN(seq) AS seq FROM message WHERE tenant_id = :tenant_id AND group_id = :group_id"
)
ACK = Prepared(
    "SELECT ack_seq FROM aun_cursor WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND device_id = :device_id AND slot_key = :slot_key AND scope = :scope AND subject = :group_id"
)
MOVE = Prepared(
    "INSERT INTO aun_cursor "
    "(tenant_id, aid, device_id, slot_key, scope, subject, ack_seq, updated_at) "
    "VALUES (:tenant_id, :aid, :device_id, :slot_key, :scope, :group_id, :ack_seq, :now) "
    "ON CONFLICT (tenant_id, aid, device_id, slot_key, scope, subject) DO UPDATE SET "
    "ack_seq = CASE WHEN aun_cursor.ack_seq > excluded.ack_seq THEN aun_cursor.ack_seq "
    "ELSE excluded.ack_seq END, updated_at = excluded.updated_at RETURNING ack_seq"
)
