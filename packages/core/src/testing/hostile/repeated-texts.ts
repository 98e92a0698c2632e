/** A text made of one piece, again and again. */
export interface RepeatedText {
  /** The piece, and the texts before and after it, as JSON. */
  readonly name: string
  readonly text: string
}

/** Pieces that patterns and scanners go back over: of each, and of its neighbours, there can be very many. */
const pieces: readonly string[] = [
  ' ',
  '\t',
  '\n',
  '\r\n',
  '\u00a0',
  '0',
  '1',
  'a',
  'A',
  '_',
  '-',
  '.',
  '/',
  '\\',
  ':',
  '=',
  '@',
  '#',
  '"',
  "'",
  '`',
  '```',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '<',
  '>',
  '!',
  '*',
  '+',
  '|',
  '~',
  '%',
  '&',
  ';',
  '/*',
  '*/',
  '/**/',
  '/* */',
  '--',
  '--\n',
  '//',
  '//a',
  'a:',
  ':a',
  'a@',
  '://',
  '://a:',
  '://a:b',
  '{}',
  '[]',
  '()',
  '{"a":',
  '[1,',
  '{"',
  '"}',
  '\\"',
  '"a":"',
  '""',
  'a"',
  '\\u',
  '\\\\"',
  '```json\n',
  '\n```',
  '```\n',
  '`a',
  'a`',
  '<a',
  '</',
  '<!--',
  '&amp;',
  'a.',
  '.a',
  'a-',
  '-a',
  'a_',
  'aA',
  'a1',
  '1.',
  '1e',
  '1_',
  '+1',
  'eyJ',
  'eyJeyJ',
  'eyJaaaaaaaa.',
  'sk-',
  'sk-a',
  'SG.',
  'ghp_',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ',
  'password',
  'password=',
  'password: ',
  '"password":"',
  '\\"password\\":',
  'token=',
  'Authorization: ',
  'bearer ',
  'Bearer\t',
  'basic a',
  'cookie:',
  'api-key:',
  'xox',
  'AKIA',
  'postgres://',
  'redis://:',
  'context ',
  'model ',
  'previous response ',
  'conversation ',
  'SELECT ',
  'EXPLAIN ',
  'WITH a AS (',
  '\u{1f9fe}',
  '\ud800',
  '\u2028',
]
const before: readonly string[] = ['', 'a', '"', '/*', '```', '{']
const behind: readonly string[] = ['', 'x', '!', '\u0000', '"', '\n']

/**
 * Texts of about `length` characters that make patterns backtrack and scanners start over. For each of them, code that
 * reads text from outside must take about twice the steps for twice the length.
 */
export function repeatedTexts(length: number): readonly RepeatedText[] {
  const texts: RepeatedText[] = []
  for (const piece of pieces) {
    const body = piece.repeat(Math.ceil(length / piece.length))
    for (const [index, head] of before.entries()) {
      // Each beginning with every end would be six times as many texts, which find no more.
      for (const tail of new Set(['', behind[index] ?? '', 'x'])) {
        texts.push({ name: JSON.stringify([head, piece, tail]), text: head + body + tail })
      }
    }
  }
  return texts
}
