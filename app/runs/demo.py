"""What `--demo` means for runs: what was said in the story lies behind its agents.

They work on what people write from now on; the old messages stay as they are, unanswered ones too.
"""

from sqlmodel import col, select

from app.aun.models import Conversation, Participant
from app.identity import demo
from app.identity.demo import Workspace
from app.kernel.db import Work
from app.runs.run_models import HeardUpTo


@demo.step
def begin(work: Work, made: dict[str, Workspace]) -> None:
    """Let every agent of the demo begin behind the newest message of each of its conversations."""
    for workspace in made.values():
        for agent in workspace.agents.values():
            query = (
                select(Conversation)
                .join(
                    Participant,
                    (col(Participant.tenant_id) == Conversation.tenant_id)
                    & (col(Participant.conversation_id) == Conversation.id),
                )
                .where(Conversation.tenant_id == agent.tenant_id, Participant.aid == agent.aid)
            )
            for conversation in work.session.exec(query).all():
                work.session.add(
                    HeardUpTo(
                        tenant_id=agent.tenant_id,
                        agent_id=agent.id,
                        conversation_id=conversation.id,
                        log_seq=conversation.last_seq,
                    )
                )
    work.session.flush()
