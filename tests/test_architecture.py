"""House rules no off-the-shelf linter knows. A failure names the file and the line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy
from sqlmodel import SQLModel

from tests.requirements import REQUIREMENTS
from tests.sources import APP, ROOT, files, import_models, parsed, text_files

# Written so that this file names none itself.
REGISTRY_HOSTS = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "deb." + "debian.org",
]
# What runs a server as long as its block does.
SERVERS = ["RunningServer", "workspace.empty", "stock.instance", "demo_in", "house", "serving"]
# Rows of the deployment, not of a tenant (security.md, 1).
SHARED_TABLES = {
    "tenant",
    "permission",
    "feature",
    "oauth_client",
    "oauth_request",
    "authorization_code",
    "device_code",
    "setup_link",
    "oidc_state",
    "passkey_challenge",
    "used_assertion",
    "signing_key",
    "sealed_key",
    "aun_root",
    "aun_issuer",  # a domain is one tenant's alone
}


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = f".{ast.unparse(node.func)}"
            if called.endswith(tuple(f".{name}" for name in names)):
                yield node


def callers_of(*names: str, except_in: str) -> list[str]:
    return [
        f"{path.relative_to(APP)}:{call.lineno} {ast.unparse(call.func)}"
        for path, tree in parsed(APP)
        if path != APP / except_in
        for call in calls(tree, *names)
    ]


def lines_with(pattern: str, paths: Iterator[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]


def carried_ids() -> set[str]:
    return {
        ast.literal_eval(argument)
        for _, tree in parsed(ROOT / "tests", ROOT / "e2e")
        for marker in calls(tree, "mark.requirement")
        for argument in marker.args
    }


def test_only_kernel_db_commits_or_opens_an_engine() -> None:
    assert callers_of("commit", "create_engine", except_in="kernel/db.py") == []


def test_only_kernel_http_builds_a_client() -> None:
    builders = ["AsyncClient", "httpx2.Client", "AsyncOAuth2Client", "OAuth2Client", "OAuth"]
    one_off = [f"httpx2.{verb}" for verb in ("get", "post", "put", "request", "stream")]

    assert callers_of(*builders, *one_off, "urlopen", except_in="kernel/http.py") == []


def test_only_kernel_clock_tells_the_time() -> None:
    wall = ["datetime.now", "datetime.utcnow", "datetime.today", "date.today"]
    seconds = [f"time.{name}" for name in ("time", "time_ns", "monotonic", "perf_counter")]

    assert callers_of(*wall, *seconds, except_in="kernel/clock.py") == []


def test_only_kernel_ids_makes_ids_and_secrets() -> None:
    """The bytes of a key or a nonce are neither."""
    tokens = ["secrets.token_hex", "secrets.token_urlsafe", "randbits", "uuid1", "uuid4", "uuid7"]

    assert callers_of(*tokens, except_in="kernel/ids.py") == []


def test_only_a_browser_session_makes_a_person() -> None:
    assert callers_of("Principal.person", except_in="identity/sessions.py") == []


def test_no_coroutine_holds_a_transaction() -> None:
    holders = [
        f"{path.relative_to(APP)}:{node.lineno} {node.name}"
        for path, tree in parsed(APP)
        if path != APP / "kernel/db.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef)
        and any(is_handle(each.annotation) for each in [*node.args.args, *node.args.kwonlyargs])
    ]

    assert holders == []


def is_handle(annotation: ast.expr | None) -> bool:
    """`Work`, `db.Session | None` and so on; a unit that takes one is none."""
    if isinstance(annotation, ast.BinOp):
        return is_handle(annotation.left) or is_handle(annotation.right)
    written = ast.unparse(annotation).strip("'\"") if annotation else ""
    return written.rpartition(".")[2] in {"Work", "Session"}


def test_middleware_is_plain_asgi() -> None:
    assert lines_with(r"\bBaseHTTPMiddleware\b", files(APP, "*.py")) == []


def test_templates_escape_and_one_module_may_say_what_is_markup() -> None:
    makers = {
        str(path.relative_to(APP))
        for path, tree in parsed(APP)
        for _ in calls(tree, "Markup", "Markup.format")
    }

    assert lines_with(r"\|\s*safe\b|autoescape\s+false", files(ROOT / "templates", "*.html")) == []
    assert len(makers) <= 1, makers


def test_the_product_knows_nothing_of_its_tests() -> None:
    assert lines_with(r"^\s*(from|import) (tests|e2e)\b", files(APP, "*.py")) == []


def test_tables_are_in_models() -> None:
    elsewhere = (path for path in files(APP, "*.py") if not path.name.endswith("models.py"))

    assert lines_with(r"\btable=True\b", elsewhere) == []


def test_tables_of_a_tenant_have_it_first_in_their_keys() -> None:
    import_models()
    owned = [
        table for table in SQLModel.metadata.tables.values() if table.name not in SHARED_TABLES
    ]
    late = [
        f"{table.name}: {', '.join(columns)}"
        for table in owned
        for columns in keys_of(table)
        if columns[0] != "tenant_id"
    ]

    assert len(owned) > 10, "else this proves nothing"
    assert late == []


def keys_of(table: sqlalchemy.Table) -> Iterator[list[str]]:
    """What must be unique: a database spread over machines can see to it inside a tenant only."""
    yield [column.name for column in table.primary_key]
    for constraint in table.constraints:
        if isinstance(constraint, sqlalchemy.UniqueConstraint):
            yield [column.name for column in constraint.columns]
    for index in filter(lambda index: index.unique, table.indexes):
        yield [str(getattr(part, "name", part)) for part in index.expressions]


def test_every_page_and_every_router_has_a_test_file() -> None:
    tested = {path.stem for path in [*files(ROOT / "tests", "*.py"), *files(ROOT / "e2e", "*.py")]}
    modules = [*(APP / "console/pages").glob("[a-z]*.py"), *(APP / "api").glob("[a-z]*.py")]
    routers = [path for path in modules if re.search(r"^router\b", path.read_text(), re.MULTILINE)]

    assert routers, "else this proves nothing"
    assert [path.stem for path in routers if f"test_{path.stem}" not in tested] == []


def test_every_tool_of_agents_has_a_test_file() -> None:
    tested = {path.stem for path in files(ROOT / "tests/runs/toolbox", "*.py")}
    tools = [path.stem for path in (APP / "runs/toolbox").glob("[a-z]*.py")]

    assert tools, "else this proves nothing"
    assert [name for name in tools if f"test_{name}" not in tested] == []


def test_every_requirement_has_a_test_or_says_what_it_waits_for() -> None:
    due = {id_ for id_, requirement in REQUIREMENTS.items() if not requirement.waits_for}

    assert carried_ids() & set(REQUIREMENTS) == due


def test_no_test_carries_an_id_nobody_wrote_down() -> None:
    assert carried_ids() - set(REQUIREMENTS) == set()


def test_no_journey_stops_its_server_while_its_pages_are_open() -> None:
    """A fixture is over after the pages are; a `with` in the test is over before."""
    stopped = [
        f"{path.name}:{call.lineno} {ast.unparse(call.func)}"
        for path, tree in parsed(ROOT / "e2e")
        for test in ast.walk(tree)
        if isinstance(test, ast.AsyncFunctionDef) and test.name.startswith("test_")
        for item in (item for node in ast.walk(test) for item in getattr(node, "items", []))
        for call in calls(item, *SERVERS)
    ]

    assert stopped == []


def test_no_alias_of_a_table_outlives_its_statement() -> None:
    """Two threads that use one first at once break it, and what it filters, for the process."""
    shared = [
        f"{path.relative_to(APP)}:{call.lineno} {ast.unparse(call.func)}"
        for path, tree in parsed(APP)
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and not isinstance(statement.value, ast.Lambda)
        for call in calls(statement, "aliased", "alias", "subquery", "cte", "lateral")
    ]

    assert shared == []


def test_no_file_names_a_package_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path, text in text_files()
        for host in REGISTRY_HOSTS
        if host in text
    ]

    assert found == []
