"""What there is to be permitted: codes that slices and packs declare, written at start (SEC-6)."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.identity.models import Feature, Permission
from app.kernel.db import Work


@dataclass(frozen=True, slots=True)
class Declared:
    """A permission or a feature as its slice or pack declares it."""

    code: str
    pack: str
    en: str
    zh: str

    @property
    def title(self) -> dict[str, str]:
        """Its name in both languages."""
        return {"en": self.en, "zh-CN": self.zh}


def _platform(code: str, en: str, zh: str) -> Declared:
    return Declared(code, "platform", en, zh)


PLATFORM = (
    _platform("identity.user.read", "See people", "查看人员"),
    _platform("identity.user.manage", "Invite, change and disable people", "邀请、修改和停用人员"),
    _platform("identity.org.read", "See the organisation tree", "查看组织结构"),
    _platform("identity.org.manage", "Change the organisation tree", "修改组织结构"),
    _platform("identity.role.read", "See roles and who holds them", "查看角色及其持有人"),
    _platform("identity.role.manage", "Make roles and assign them", "创建并分配角色"),
    _platform("identity.feature.read", "See features", "查看功能授权"),
    _platform("identity.feature.manage", "Entitle the tenant to features", "管理租户的功能授权"),
    _platform("identity.agent.read", "See agents", "查看智能体"),
    _platform(
        "identity.agent.manage", "Make, publish and disable agents", "创建、发布和停用智能体"
    ),
    _platform(
        "identity.model.manage", "Set up the models that agents think with", "设置智能体使用的模型"
    ),
    _platform("identity.delegation.read", "See everyone's delegations", "查看所有人的委托"),
    _platform("identity.delegation.manage", "Revoke anyone's delegation", "撤销任何人的委托"),
    _platform("identity.client.manage", "Register and block applications", "登记和封禁应用"),
    _platform(
        "identity.contact.manage",
        "Let outside messaging clients register, and shut them out",
        "允许外部消息客户端注册，并将其封禁",
    ),
    _platform("command.webhook.manage", "Manage webhooks", "管理网络回调"),
    _platform("command.definition.read", "See commands and their versions", "查看命令及其版本"),
    _platform(
        "command.definition.manage",
        "Publish, retire and restore commands",
        "发布、停用和恢复命令",
    ),
    _platform(
        "command.outside.manage",
        "Register outside servers and admit their tools",
        "登记外部服务器并启用其工具",
    ),
    _platform("outside.tool.read", "Look things up with outside tools", "使用外部工具查询信息"),
    _platform("outside.tool.use", "Change things with outside tools", "使用外部工具进行更改"),
    _platform("audit.read", "Read the audit trail", "查看审计记录"),
    _platform("system.read", "See the state of the system", "查看系统状态"),
)


_brought: dict[str, tuple[tuple[Declared, ...], tuple[Declared, ...]]] = {}


def bring(pack: str, permissions: tuple[Declared, ...], features: tuple[Declared, ...]) -> None:
    """What a pack wants permitted and entitled, for the next `write`."""
    _brought[pack] = (permissions, features)


def declared() -> tuple[tuple[Declared, ...], tuple[Declared, ...]]:
    """Every permission and every feature that the platform and the packs declare."""
    permissions = (*PLATFORM, *(each for brought in _brought.values() for each in brought[0]))
    return permissions, tuple(each for brought in _brought.values() for each in brought[1])


def write(work: Work, permissions: tuple[Declared, ...], features: tuple[Declared, ...]) -> None:
    """Make the tables say what was declared; a code nobody declares any more gives nothing."""
    _write_one(work, Permission, permissions)
    _write_one(work, Feature, features)


def _write_one(work: Work, table: type[Any], declared: tuple[Declared, ...]) -> None:
    stored: dict[str, Permission | Feature] = {
        row.code: row for row in work.session.exec(select(table)).all()
    }
    for item in declared:
        row = stored.pop(item.code, None) or table(code=item.code, pack="", title={})
        if (row.pack, row.title) != (item.pack, item.title):
            row.pack, row.title = item.pack, item.title
            work.session.add(row)
    for gone in stored.values():
        work.session.delete(gone)


def all_codes(session: Session) -> list[str]:
    """Every permission code, sorted."""
    return list(session.exec(select(Permission.code).order_by(col(Permission.code))).all())
