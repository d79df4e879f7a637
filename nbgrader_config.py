"""How nbgrader runs this course; its commands read this file when they start in this folder."""

import os
import sys
from pathlib import Path

try:
    from posenc.grading import assignments
except ModuleNotFoundError as error:
    raise SystemExit(f'{error.name} is not installed; run: pip install -e ".[class]"') from None

ROOT = Path(__file__).resolve().parent
# Those whose first word is the name of an assignment.
COMMANDS = {
    "autograde",
    "collect",
    "generate_assignment",
    "generate_feedback",
    "release_assignment",
}

# nbgrader starts alembic by its name, which fails where the environment is not activated.
SCRIPTS = str(Path(sys.executable).parent)
if SCRIPTS not in os.environ["PATH"].split(os.pathsep):
    os.environ["PATH"] = os.pathsep.join([SCRIPTS, os.environ["PATH"]])

c = get_config()  # noqa: F821 - nbgrader provides it
c.CourseDirectory.course_id = "posenc"
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = assignments.SOURCE
c.CourseDirectory.release_directory = assignments.RELEASE
# Any database that SQLAlchemy has a driver for.
c.CourseDirectory.db_url = os.environ.get("POSENC_DB") or f"sqlite:///{ROOT / 'gradebook.db'}"

# exercises/ is in the repository, so without this the first generate_assignment would do nothing.
c.GenerateAssignment.force = True
c.GenerateAssignment.exporter_class = "posenc.grading.nbgrader_plugin.ReleaseExporter"
c.Autograde.exporter_class = "posenc.grading.nbgrader_plugin.SubmissionExporter"
c.GenerateFeedback.exporter_class = "posenc.grading.feedback.FeedbackExporter"
c.ExportApp.plugin_class = "posenc.grading.export.GradesExport"

# nbgrader itself says only that nothing matched.
if len(sys.argv) > 2 and sys.argv[1] in COMMANDS and not sys.argv[2].startswith("-"):
    try:
        assignments.known([sys.argv[2]])
    except ValueError as error:
        print(f"posenc: {error}", file=sys.stderr)

try:
    assignments.refresh_source(ROOT)
except assignments.CourseError as error:
    print(f"posenc: {error}", file=sys.stderr)
except ModuleNotFoundError as error:
    print(f'{error.name} is not installed; run: pip install -e ".[class]"', file=sys.stderr)
