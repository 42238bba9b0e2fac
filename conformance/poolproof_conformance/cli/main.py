"""`poolproof`: the group of commands, and the one place where errors become exit codes."""

import os
import sys
import traceback
from collections.abc import Sequence

import click

from poolproof_conformance.cli.bench import bench
from poolproof_conformance.cli.campaign import campaign
from poolproof_conformance.cli.check import check
from poolproof_conformance.cli.conform import conform
from poolproof_conformance.cli.explain import explain
from poolproof_conformance.cli.explore import explore
from poolproof_conformance.cli.export_test import export_test
from poolproof_conformance.cli.prove import prove
from poolproof_conformance.cli.replay import replay
from poolproof_conformance.cli.report import report
from poolproof_conformance.cli.search import search
from poolproof_conformance.cli.show import show
from poolproof_conformance.cli.targets import targets
from poolproof_conformance.cli.terminal import EXIT_INTERRUPTED, EXIT_USAGE, note
from poolproof_conformance.cli.vectors import vectors
from poolproof_conformance.errors import PoolproofError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 all holds; 1 a violation was found; 2 unknown, or the command was wrong; 130 interrupted.",
)
@click.version_option(package_name="poolproof")
def cli() -> None:
    """Hold memory pools with joint reclaim against the model of what is right.

    \b
    Begin with:
      poolproof check
      poolproof conform reference --traces 1000 --seed 1
    """


for command in (
    bench,
    campaign,
    check,
    conform,
    replay,
    explain,
    report,
    show,
    explore,
    export_test,
    prove,
    search,
    targets,
    vectors,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit. Only a violation that was found exits with 1."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run and return the exit code."""
    try:
        code = cli.main(arguments, prog_name="poolproof", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except PoolproofError as error:
        note(f"error: {error.found}")
        note(f"  fix: {error.fix}")
        return EXIT_USAGE
    except click.exceptions.NoArgsIsHelpError as error:
        note(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        note(f"error: {error.format_message()}")
        note(f"  fix: {context.command_path if context else 'poolproof'} --help")
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        note("interrupted.")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe left. Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_USAGE
    except Exception:
        traceback.print_exc()
        note("error: poolproof itself failed; this says nothing about the target")
        note("  fix: report the lines above, with the command that you typed")
        return EXIT_USAGE


if __name__ == "__main__":
    main()
