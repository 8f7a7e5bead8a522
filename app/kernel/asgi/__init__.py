"""The layers every request passes before the application, each plain ASGI and one idea.

From the outside in, the order they are meant to stand in (`app.main` writes it down):

    TrustedProxies    who the peer really is (SEC-46)
    RequestContext    a request id, one log line, the numbers, a span
    SecurityHeaders   on everything below, refusals and faults included (SEC-44, SEC-45)
    Faults            an unhandled exception becomes a 500 that tells nothing
    HeadLimit         16 KiB, and no deciding header twice (SEC-49)
    HostCheck         421 for names that are not ours, 307 from 127.0.0.1 to localhost (SEC-46)
    BodyLimit         counted and timed while a body arrives (SEC-47)
    CspReports        the sink of the browser's complaints
"""
