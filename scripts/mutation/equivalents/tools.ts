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
  ...(
    [
      ['round', 'literal', '0n', '1n', 0, 'Rounded to no place, a number is neither divided nor multiplied.'],
      ['round', 'comparison', '<', '<=', 1, 'Zero and its opposite are one number.'],
      [
        'round',
        'literal',
        '0n',
        '1n',
        1,
        'A whole number below 1 is zero or negative, and zero has no sign.',
      ],
      ['squareRoot', 'literal', '2', '3', 0, 'It has more digits then, and 30 of them are shown.'],
      ['squareRoot', 'literal', '0', '1', 0, 'It has one more digit then, and 30 of them are shown.'],
    ] as const
  ).map(([within, operator, original, becomes, occurrence, why]) => ({
    path: 'packages/tools/src/built-in/calculator/functions.ts',
    ...{ within, operator, original, becomes, occurrence, why },
  })),
  ...(
    [
      [
        'comparison',
        '<',
        '<=',
        0,
        'A power of ten has a digit too many then, which raises the exponent again.',
      ],
      ['comparison', '<', '<=', 2, 'The exponent is below -7 or at least 30 here.'],
      ['literal', '0', '1', 1, 'The exponent is below -7 or at least 30 here.'],
    ] as const
  ).map(([operator, original, becomes, occurrence, why]) => ({
    path: 'packages/tools/src/built-in/calculator/number-text.ts',
    ...{ within: 'rounded', operator, original, becomes, occurrence, why },
  })),
  ...(
    [
      ['arithmetic', 'max', 'min', 0],
      [
        'logical',
        'times * BigInt(digits) > maxDigits || times > maxDigits * 4',
        '(times > maxDigits * 4)',
        0,
      ],
      ['comparison', '>', '>=', 0],
      ['comparison', '>', '>=', 1],
      ['literal', '4', '5', 0],
    ] as const
  ).map(([operator, original, becomes, occurrence]) => ({
    path: 'packages/tools/src/built-in/calculator/power.ts',
    ...{ within: 'power', operator, original, becomes, occurrence },
    why: 'It only spares making a power that is too large, which is refused with the same words.',
  })),
  ...(
    [
      ['rational', 'literal', '0n', '1n', 0, 'No denominator is zero.'],
      ['floor', 'comparison', '<', '<=', 0, 'The denominator of zero is 1.'],
      ['floor', 'literal', '0n', '1n', 0, 'The denominator of zero is 1.'],
      ['magnitude', 'comparison', '<', '<=', 0, 'Zero and its opposite are one number.'],
      [
        'magnitude',
        'literal',
        '0n',
        '1n',
        0,
        'A whole number below 1 is zero or negative, and zero has no sign.',
      ],
      ['wholeRoot', 'comparison', '<', '<=', 0, 'Of 2 it is compared with what has a whole root.'],
      ['wholeRoot', 'literal', '2n', '3n', 0, 'Of 2 it is compared with what has a whole root.'],
      ['wholeRoot', 'literal', '1n', '2n', 0, 'The method falls to the root from any number above it.'],
    ] as const
  ).map(([within, operator, original, becomes, occurrence, why]) => ({
    path: 'packages/tools/src/built-in/calculator/rational.ts',
    ...{ within, operator, original, becomes, occurrence, why },
  })),
  ...(
    [
      ['#item', 'literal', '1', '2', 2, 'Where a line is not ended, a break of any height is a space.'],
      ['#tablePart', 'literal', '1', '2', 0, 'Where a line is not ended, a break of any height is a space.'],
      ['#endRow', 'arithmetic', '++', '--', 0, 'Only whether it is the first row is looked at.'],
      ['markdownOfHtml', 'comparison', '<', '<=', 0, 'It writes an empty piece once more.'],
    ] as const
  ).map(([within, operator, original, becomes, occurrence, why]) => ({
    path: 'packages/tools/src/built-in/http-fetch/markdown/markdown-of-html.ts',
    ...{ within, operator, original, becomes, occurrence, why },
  })),
  {
    path: 'packages/tools/src/built-in/http-fetch/markdown/markdown-of-html.ts',
    within: '',
    operator: 'literal',
    original: '16_384',
    becomes: '16385',
    why: 'A page reads the same, whatever the length of the pieces that the parser gets.',
  },
  ...(
    [
      ['#breaks', 'literal', '0', '1', 'Before the first line no break is written.'],
      ['#hasSpace', 'literal', 'false', 'true', 'A line does not begin with a space.'],
      ['#shared', 'literal', '0', '1', 'It is set with the first line, before which nothing is between two.'],
      [
        'fence',
        'statement',
        'if (this.isFull) break',
        ';',
        'It only spares text that is cut off afterwards.',
      ],
    ] as const
  ).map(([within, operator, original, becomes, why]) => ({
    path: 'packages/tools/src/built-in/http-fetch/markdown/markdown-writer.ts',
    ...{ within, operator, original, becomes, why },
  })),
  ...(
    [
      ['comparison', '<', '<=', 0],
      ['literal', '1', '2', 0],
      ['literal', '1', '2', 1],
    ] as const
  ).map(([operator, original, becomes, occurrence]) => ({
    path: 'packages/tools/src/built-in/skills/found-skills.ts',
    ...{ within: 'foundSkills', operator, original, becomes, occurrence },
    why: 'No two skills have one name, and of the order of two only the sign counts.',
  })),
  ...(
    [
      ['element', 'once: true', ''],
      ['literal', 'true', 'false'],
    ] as const
  ).map(([operator, original, becomes]) => ({
    path: 'packages/tools/src/mcp/connection/call-task.ts',
    ...{ within: 'createdTask', operator, original, becomes },
    why: 'A signal aborts once, and the listener is removed when the request has ended.',
  })),
  {
    path: 'packages/tools/src/mcp/oauth/token-file.ts',
    within: 'change',
    operator: 'element',
    original: "flag: 'wx',",
    becomes: '',
    why: 'The name of the file holds a random UUID: no file that has it is there before.',
  },
  {
    path: 'packages/tools/src/mcp/serve/listen-http.ts',
    within: 'close',
    operator: 'statement',
    original: 'await handler.close()',
    becomes: ';',
    why: 'Every call has been stopped before, and every connection breaks right after: the library only forgets them earlier.',
  },
  {
    path: 'packages/tools/src/mcp/transport/server-process.ts',
    within: 'spawned',
    operator: 'element',
    original: ", 'pipe'",
    becomes: '',
    why: 'Node makes a pipe of each of the three for which nothing else is said.',
  },
  {
    path: 'packages/tools/src/mcp/transport/bounded-fetch.ts',
    within: 'messageBound',
    operator: 'literal',
    original: '0',
    becomes: '1',
    occurrence: 2,
    why: 'A message may have 1000 bytes at least, so that the longest of none never is too long.',
  },
  {
    path: 'packages/tools/src/mcp/options/known-secrets-of.ts',
    within: 'learn',
    operator: 'statement',
    original: 'if (tokens.has(secret)) return',
    becomes: ';',
    why: 'A set holds a token once, and keeps its place: it only spares making the forms again.',
  },
  {
    path: 'packages/tools/src/search/ranking.ts',
    within: 'entryOf',
    operator: 'arithmetic',
    original: '+',
    becomes: '-',
    occurrence: 0,
    why: 'The mean length has the same sign then, and only the quotient of the two counts.',
  },
  ...(
    [
      ['comparison', '<', '<=', 0],
      ['literal', '1', '2', 0],
      ['literal', '1', '2', 1],
    ] as const
  ).flatMap(([operator, original, becomes, occurrence]) =>
    [
      ['built-in/files/tools/walk.ts', 'shownEntries'],
      ['mcp/manager/pinned-tools.ts', 'pinnedTools'],
    ].map(([file, within = '']) => ({
      path: `packages/tools/src/${file}`,
      ...{ within, operator, original, becomes, occurrence },
      why: 'No two names are alike, and of the order of two only the sign counts.',
    })),
  ),
]
