"""The live layer: what happens becomes fragments, and each browser session one stream of them.

How a page's owner writes for it. A family of things has one module here, `live/<family>.py`, found
by its names; nothing is registered anywhere else:

    RENDERS = {"message.stored": [Render(_row), Render(_counts, audience=each_user)]}
    PASSES  = {PresenceChanged: Pass(_dot, hears=_whoever_sees)}
    REGIONS = {"conversations": _conversations, "conversation": _conversation}
    BADGES  = {"unread": _unread}

*Renders.* An event of the log (`event_log.append`, kind → renders) becomes one frame for each
person who may hear of it (`access.standing`: `user_id`, `permission`, `topic`); the partials of all
its renders stand in it, in order (UI-34). A render is `draw(session, event, hearer)`, a query that
gives `Partial`s; mostly `partial("#messages", "beforeend", "conversations/_message.html", …)`.

- The bytes are shared by everybody of one audience, language and zone (UI-41). `audience(event,
  hearer)` names it, cheaply and without the database: `everybody` (the default), `each_user` for
  counts and whatever else is one person's, or a function of yours (`"sender" if event.data["by"] ==
  hearer.aid else "member"`). `draw` may look at `hearer` no further than its audience goes: of
  `everybody` it knows tenant, language and zone.
- Nothing of one browser session is in it: no `_csrf.html`, no nonce (UI-29).
- No partial addresses a node that the same frame creates (UI-35): draw the message with its
  delivery line; the next event may patch that line.
- A target that is not on a page is dropped there. A target is an id of ours, `#message-01J…`, or a
  list's, `#messages` with `beforeend` (the tab puts it in its place by `data-seq`, and morphs what
  is there already); `outerHTML` and `outerMorph` replace a leaf unless its `data-rev` is newer
  (UI-30, UI-44). A row that goes: `Partial("#conversation-…-row", "delete")`.
- Something to be said aloud, or on the desktop: `notice(text, tag, path, …)` (UI-49).
- An event without partials for somebody (`[]`) sends them nothing.
- Under load frames wait. `Render(…, is_standing=True)` says that all it draws is how the event's
  subject stands now: of several that wait for a stream only the newest is drawn. `is_apart=True`
  says that it touches no place of growing text: the room for that, and the text, go before it.

*Passes.* What is true for a moment only (presence, elapsed time) is a kernel event that is never
logged: `Pass(draw, hears)`; `hears(session, event)` gives ids of the users whose streams get it.
Where the event itself says whose that is, `Pass(draw, is_for=…)` asks nobody else's.
Growing text goes by `kernel.deltas.append(tenant_id, user_id, node, at, text)`: at most one frame
in 50 ms for each node; what ends it is a logged event whose partial replaces the node (UI-36).

*Regions.* `draw(session, asked)` gives the inner HTML of the element with `data-region="<name>"`
or `"<name>:<key>"` as it is now; None where it is gone or forbidden, which empties it (give the
empty state of your page instead where it has one). `asked` has `person`, `key` and `oldest` (the
lowest `data-seq` on the page, None where nothing is): history that is loaded stays, 500 at most.
All regions of one request are read in one snapshot (UI-46). The page and the region include the
same partial, hence draw the same.

*Badges.* `count(session, person)`, beside the rail's entry whose `NavItem` has `badge="<name>"`, on
every page; a render that changes it gives `badge(name, count)`, as of `each_user`.

*Pages.* `<html>` has cursor, session and heartbeat from the viewer (UI-38), on every page that a
person sees. A list of live things: `data-region`, `data-ordered` (`desc` for newest first),
children with `id`, `data-seq` and `data-rev`. Sending one's own messages: `static/js/composer.js`.
"""
