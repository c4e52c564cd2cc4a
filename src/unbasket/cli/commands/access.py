"""`unbasket access` and `unbasket prove-absence`: what is held about a user, or that nothing is, with a proof."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, id_of, known_user, open_to_read
from unbasket.cli._shared.terminal import say, say_json, to_json, write_file
from unbasket.store.proofs import Proof

_Output = Annotated[Path | None, typer.Option(help="Write it to this file instead of printing it.", metavar="FILE")]


def access(user: User, db: Db, output: _Output = None) -> None:
    """Write everything that is held about a user, with a proof that it is everything.

    The proof ends in a signed checkpoint. Anyone can check it offline: `python -m unbasket.verifier FILE`.
    """
    rec = open_to_read(db)
    name = known_user(rec, user)
    _write(rec.prove(name), output, f"everything that is held about user {name}")


def prove_absence(user: User, db: Db, output: _Output = None) -> None:
    """Write a proof that nothing is held about a user.

    The proof ends in a signed checkpoint. Anyone can check it offline: `python -m unbasket.verifier FILE`.
    """
    rec = open_to_read(db)
    name = id_of(rec, "user", user)
    _write(rec.prove_absence(name), output, f"nothing is held about user {name}")


def _write(proof: Proof, output: Path | None, said: str) -> None:
    if output is None:
        say_json(proof)
        return
    write_file(output, to_json(proof) + "\n")
    say(f"{output}: {said}. Check it with `python -m unbasket.verifier {output}`")
