"""/docs: the HTTP API for those who write programs, to read and to try out with their own session.

Swagger UI over `/openapi.json`, which is as public as this page: no tenant's command is in either
(SEC-88). It runs under the policy of every page, but for the `data:` images of its style.
"""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.console.view import render

router = APIRouter()


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """The page; script makes the description readable, and without it there is a link."""
    request.state.csp_img_data = True
    return render(request, "docs/page.html")
