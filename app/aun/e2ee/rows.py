"""Prepared SQL of device keys: a client's key changes after every message that it decrypts."""

from app.kernel.prepared import Prepared

UPDATE = Prepared(
    "UPDATE aun_device_key SET key_source = :key_source, spk_id = :spk_id, spk_pk = :spk_pk, "
    "spk_signature = :spk_signature, spk_timestamp = :spk_timestamp, updated_at = :updated_at "
    "WHERE tenant_id = :tenant_id AND aid = :aid AND device_id = :device_id "
    "AND group_id = :group_id"
)
INSERT = Prepared(
    "INSERT INTO aun_device_key (tenant_id, aid, device_id, group_id, key_source, spk_id, spk_pk, "
    "spk_signature, spk_timestamp, updated_at) VALUES (:tenant_id, :aid, :device_id, :group_id, "
    ":key_source, :spk_id, :spk_pk, :spk_signature, :spk_timestamp, :updated_at)"
)
TRIM = Prepared(  # the limit is for SQLite, which knows no offset without one
    "DELETE FROM aun_device_key WHERE tenant_id = :tenant_id AND aid = :aid "
    "AND group_id = :group_id AND device_id IN (SELECT device_id FROM aun_device_key "
    "WHERE tenant_id = :tenant_id AND aid = :aid AND group_id = :group_id "
    "AND device_id <> :device_id ORDER BY updated_at DESC, device_id LIMIT 1000000 OFFSET :others)"
)
