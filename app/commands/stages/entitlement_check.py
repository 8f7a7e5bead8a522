"""Stage `entitlement_check`: the tenant may use the feature now."""

from app.access import entitlements
from app.commands.context import Context
from app.commands.errors import Rejected


def run(ctx: Context) -> None:
    """Refuse what the tenant is not entitled to.

    Raises:
        Rejected: `feature_not_entitled`.
    """
    feature, tenant_id = ctx.command.feature, ctx.call.principal.tenant_id
    if feature and not entitlements.has_feature(ctx.work.session, tenant_id, feature):
        raise Rejected("feature_not_entitled", feature=feature)
