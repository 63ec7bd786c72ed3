"""The independent checker: a room of its own, which derives everything that a certificate proves once more.

A certificate gives a problem, its laws with exact weights, and witnesses with integer multipliers. Nothing else is
believed: the constraints are checked on the laws themselves, and the multipliers are put through weak duality, which
turns *any* numbers into a rigorous bound (bad ones only make it weak). The steps, and the files that are trusted to
take them:

1. the JSON data is read into exact numbers and lattice indices (`reading`, `lattice`, `law`, `inputs`, `statement`,
   and one file for each constraint in `families` and each objective in `objectives`);
2. e^epsilon is enclosed between two rationals E_lo <= e^epsilon <= E_hi (`verdict`);
3. every constraint is decided on the law, with the margin it is met by, and the objective is computed (each in its own
   file, with the sums of `sums`);
4. every witness is read and found to belong to its constraint (`witness`), and adds its multiplier times its function
   to the reduced cost of every lattice point, with E_hi for e^epsilon (`reduced_cost`); then
   ``objective >= constant + lambda``, where lambda is the largest number that a theorem allows (`bound`);
5. value and bound together say optimal, feasible or infeasible (`verdict`).

Everything is integer arithmetic over common denominators; balls are used for logarithms only. Certificates of kind
"target" go through one file more, `target`. Before a step starts, what it takes is estimated beside it and put on one
account (`effort`): a certificate that asks for more than the limits of `dpopt.work` does not hold within them.

What this room stands on: `dpopt.arithmetic` (numbers, e^epsilon, logarithms by python-flint), `dpopt.lattice_function`
(tables with polynomial tails, and their sums), `dpopt.pmf`, `dpopt.distributions` and `dpopt.family.members` (laws:
the input of a Wasserstein objective, the TableBuilder family), `dpopt.work`, `dpopt.errors` and `dpopt.text`. It
imports nothing else, and no numpy: nothing of the path that made the certificate, and no solver.
"""

from dpopt.checker.verdict import Verdict, certify, derive, verify

__all__ = ["Verdict", "certify", "derive", "verify"]
