from __future__ import annotations

import pytest

from opencse.text.documents import likely_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Refunds are not allowed after the end of the month, and they were never paid in cash.", "en"),
        ("Die Rückgabe ist nach dem Ende des Monats nicht mehr möglich, und wir haben sie nie bezahlt.", "de"),
        ("Le remboursement n'est pas possible après la fin du mois, et nous ne payons pas en espèces.", "fr"),
        ("El reembolso no es posible después del fin de mes, y nunca se paga en efectivo por las tiendas.", "es"),
        ("x = 17 % 3; print(y)", None),
        ("", None),
    ],
)
def test_the_language_by_its_function_words(text, language) -> None:
    assert likely_language([text]) == language
