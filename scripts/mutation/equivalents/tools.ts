import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/tools` that change nothing observable. */
export const toolsEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/tools/src/built-in/files/tools/put-file.ts',
    within: 'putFile',
    operator: 'literal',
    original: '12',
    becomes: '13',
    why: 'How many random digits the name of a temporary file has decides nothing: 12 bytes are not drawn twice.',
  },
  {
    path: 'packages/tools/src/content/content.ts',
    within: 'mark',
    operator: 'literal',
    original: 'true',
    becomes: 'false',
    why: 'A part is known by having the mark, whatever its value.',
  },
  {
    path: 'packages/tools/src/input/expectation.ts',
    within: 'resolve',
    operator: 'logical',
    original: 'isObject(place) && Object.hasOwn(place, key)',
    becomes: '(isObject(place))',
    why: 'Of what every object inherits only its prototype is an object, and that says nothing as a schema.',
  },
  {
    path: 'packages/tools/src/built-in/http-fetch/exchange.ts',
    within: 'nextHop',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'A status of 303 never comes here: the other branch has it.',
  },
  {
    path: 'packages/tools/src/built-in/calculator/functions.ts',
    within: 'round',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'For no places the scale is one, and one is its own reciprocal.',
  },
  {
    path: 'packages/tools/src/built-in/calculator/rational.ts',
    within: 'rational',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'No denominator is 0: a division by zero is refused before.',
  },
  {
    path: 'packages/tools/src/built-in/calculator/expression.ts',
    within: '',
    operator: 'literal',
    original: '3',
    becomes: '4',
    occurrence: 3,
    why: 'A power binds its left operand more strongly than any other operator: 3 and 4 are above all others alike.',
  },
  ...(
    [
      ['parse', 1],
      ['operand', 0],
      ['call', 0],
      ['call', 1],
    ] as const
  ).map(([within, occurrence]) => ({
    path: 'packages/tools/src/built-in/calculator/expression.ts',
    within,
    operator: 'literal',
    original: '0',
    becomes: '1',
    occurrence,
    why: 'Every operator binds with 1 at least: a smallest binding of 0 and of 1 let the same ones in.',
  })),
]
